"""Charts: the reference against enumeration, and the native run against the reference.

With scores that are multiples of 1/8 all sums are exact, so that both agree to the last bit, whatever the
order they add in. With any others, max-plus charts without statistics agree to the last bit as well, because
both add ``(left + right) + rule``. With statistics the native run adds a rule to the child that its group
does not share before it adds the other one, and the last bits may differ.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treebanks import Sentence, sentences, some_constraints, some_statistics

import tallytree as tt
from tallytree import parsing
from tallytree.algebra import Algebra, Counting, LogSumExp, MaxPlus
from tallytree.parsing.derivation import steps_score, steps_tree
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.statistics import TreeStatistic
from tallytree.planning.charts import ChartLayout
from tallytree.running.charts import ChartMessages, Scores, run_chart

few = settings(max_examples=40)
seeds = st.integers(0, 10**6)
chosen = st.lists(st.integers(0, 14), max_size=2, unique=True)


def every_statistic(sentence: Sentence, seed: int) -> list[TreeStatistic]:
    """Those of the treebanks, and two that count downwards."""
    plain = some_statistics(sentence, seed)
    size, s_count, tp, fp = plain[0], plain[1], plain[7], plain[8]
    return [*plain, TreeStatistic.combination(s_count - 2 * size), TreeStatistic.combination(fp - tp)]


def planned(sentence: Sentence, numbers: list[int], seed: int) -> TreePlan:
    every = every_statistic(sentence, seed)
    return parsing.plan(sentence.forest, [every[number] for number in numbers])


def rounded(scores: Scores) -> Scores:
    return Scores(*(np.round(8 * a) / 8 for a in (scores.words, scores.rules, scores.chains)))


def scores_of(plan: TreePlan, sentence: Sentence, exact: bool) -> Scores:
    scores = rounded(sentence.forest.scores) if exact else sentence.forest.scores
    return plan.compiled.levelled(scores)


def both(
    plan: TreePlan, scores: Scores, algebra: Algebra | None = None
) -> tuple[ChartMessages, ChartMessages]:
    algebra = algebra or MaxPlus()
    return plan.run(scores, algebra), plan.run(scores, algebra, backend="reference")


# --- the reference, by the definition -----------------------------------------------------------------------


@given(sentences(longest=4), chosen, seeds)
@few
def test_the_reference_agrees_with_enumeration(sentence: Sentence, numbers: list[int], seed: int) -> None:
    plan = planned(sentence, numbers, seed)
    scores: dict[tuple[int, ...], list[float]] = {}
    for tree, score in sentence.trees:
        scores.setdefault(tuple(s.tally(tree) for s in plan.statistics), []).append(score)
    expected = sorted(scores.items())
    for algebra, sums in ((MaxPlus(), np.max), (LogSumExp(), np.logaddexp.reduce), (Counting(), len)):
        run = plan.run(scores_of(plan, sentence, exact=False), algebra, backend="reference")
        _, tallies, values = plan.root(run)
        assert list(map(tuple, tallies.tolist())) == [tally for tally, _ in expected]
        np.testing.assert_allclose(values.astype(float), [sums(of) for _, of in expected], atol=1e-9)


@given(sentences(longest=4), chosen, seeds)
@few
def test_the_reference_counts_items_and_steps(sentence: Sentence, numbers: list[int], seed: int) -> None:
    """Marginals over the integers: how many derivations have each item."""
    plan = planned(sentence, numbers, seed)
    scores = scores_of(plan, sentence, exact=False)
    counts = plan.run(scores, Counting(), backend="reference").marginals()
    assert counts[1, -1, plan.compiled.rules.root] == len(sentence.trees)
    live = plan.layout.live
    assert live is not None and np.array_equal(counts > 0, live > 0)


# --- native and reference -----------------------------------------------------------------------------------


@given(sentences(), chosen, seeds, st.booleans())
@few
def test_native_runs_agree_with_the_reference(
    sentence: Sentence, numbers: list[int], seed: int, exact: bool
) -> None:
    plan = planned(sentence, numbers, seed)
    scores = scores_of(plan, sentence, exact)
    run, reference = both(plan, scores)
    (cells, tallies, values), (others, rows, wanted) = plan.root(run), plan.root(reference)
    assert np.array_equal(tallies, rows)
    if exact:
        assert np.array_equal(values, wanted)
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-12)
    for row, (cell, other) in enumerate(zip(cells.tolist(), others.tolist(), strict=True)):
        steps, same = run.decode(cell), reference.decode(other)
        if exact and len(numbers) < 2:  # with more, ties may be settled in another order of tallies
            assert np.array_equal(steps, same)
        tree = steps_tree(plan.compiled, same, sentence.forest.words)
        assert [s.tally(tree) for s in plan.statistics] == tallies[row].tolist()
        assert steps_score(scores, same)[0] == pytest.approx(values[row], abs=1e-9)


@given(sentences())
@few
def test_plain_charts_agree_to_the_last_bit(sentence: Sentence) -> None:
    forest = sentence.forest
    layout = ChartLayout.plain(forest.compiled.rules, len(forest.words), np.inf)
    run, reference = (run_chart(layout, forest.scores, backend=b) for b in ("native", "reference"))
    assert run.root()[2].tolist() == reference.root()[2].tolist()
    assert np.array_equal(run.decode(0), reference.decode(0))
    np.testing.assert_allclose(run.marginals(), reference.marginals(), rtol=1e-12, atol=1e-12)
    exact = rounded(forest.scores)
    run, reference = (run_chart(layout, exact, backend=b) for b in ("native", "reference"))
    assert np.array_equal(run.marginals(), reference.marginals())


@given(sentences(), chosen, seeds)
@few
def test_sums_agree_with_the_reference(sentence: Sentence, numbers: list[int], seed: int) -> None:
    plan = planned(sentence, numbers, seed)
    run, reference = both(plan, scores_of(plan, sentence, exact=False), LogSumExp())
    (cells, tallies, values), (others, rows, wanted) = plan.root(run), plan.root(reference)
    assert np.array_equal(tallies, rows)
    np.testing.assert_allclose(values, wanted, rtol=1e-12, atol=1e-12)
    probabilities = np.random.default_rng(seed).dirichlet(np.ones(len(cells)))
    weights, same = np.zeros(len(run.values)), np.zeros(len(reference.values))
    weights[cells], same[others] = probabilities, probabilities
    for counts, expected in zip(run.expectations(weights), reference.expectations(same), strict=True):
        np.testing.assert_allclose(counts, expected, atol=1e-10)
    if len(numbers) < 2:
        uniforms = np.random.default_rng(seed).random((len(cells), run.choices))
        drawn = run.sample(cells, uniforms), reference.sample(others, uniforms)
        assert all(np.array_equal(a, b) for a, b in zip(*drawn, strict=True))


@given(sentences())
@few
def test_expectations_without_statistics_agree_with_the_reference(sentence: Sentence) -> None:
    forest = sentence.forest
    layout = ChartLayout.plain(forest.compiled.rules, len(forest.words), np.inf)
    run, reference = (
        run_chart(layout, forest.scores, algebra=LogSumExp(), backend=b) for b in ("native", "reference")
    )
    for counts, expected in zip(run.expectations(), reference.expectations(), strict=True):
        np.testing.assert_allclose(counts, expected, atol=1e-10)


@given(sentences(), st.integers(0, 8), seeds)
@few
def test_windows_leave_the_same_tallies(sentence: Sentence, number: int, seed: int) -> None:
    plan = parsing.plan(sentence.forest, where=some_constraints(sentence, seed)[number])
    run, reference = both(plan, scores_of(plan, sentence, exact=True))
    for one, other in zip(plan.root(run)[1:], plan.root(reference)[1:], strict=True):
        assert np.array_equal(one, other)


def test_what_a_run_refuses() -> None:
    forest = parsing.Forest(parsing.Grammar({("N", "N", "N"): 0.0}, {}, {"N": {"a": 0.0}}, root="N"), "a a")
    layout = ChartLayout.plain(forest.compiled.rules, 2, np.inf)
    with pytest.raises(tt.ModelError, match="backend must be 'native' or 'reference', got 'numpy'"):
        tt.solve(forest, backend="numpy")
    with pytest.raises(tt.ModelError, match="only the reference counts derivations"):
        run_chart(layout, forest.scores, algebra=Counting())
    assert run_chart(layout, forest.scores, algebra=Counting(), backend="reference").values.tolist() == [1]


@given(sentences(longest=4), chosen, seeds)
@few
def test_profiles_and_distributions_by_the_reference(
    sentence: Sentence, numbers: list[int], seed: int
) -> None:
    """Every answer is certified, so a wrong derivation would be refused."""
    plan, forest = planned(sentence, numbers, seed), sentence.forest
    profile = tt.profile(forest, plan.statistics, plan=plan, backend="reference")
    assert [profile.row(i).score for i in range(len(profile))] == pytest.approx(
        tt.profile(forest, plan.statistics, plan=plan).scores.tolist(), abs=1e-9
    )
    with pytest.raises(tt.ModelError, match="trees in order need the native executor"):
        list(profile.ranked())
    found = tt.distribution(forest, plan.statistics, plan=plan, backend="reference")
    native = tt.distribution(forest, plan.statistics, plan=plan)
    np.testing.assert_allclose(found.probabilities, native.probabilities, atol=1e-12)
    for one, other in zip(found.expectations(), native.expectations(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    tally = found.tallies[0].tolist()
    assert [s.tally(found.sample(tally=tally, rng=seed)) for s in plan.statistics] == tally
