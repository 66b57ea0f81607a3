"""Statistics, constraints and ranked trees, compared with the enumeration of all trees."""

import pickle
from collections import Counter
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treebanks import (
    Sentence,
    best_scores,
    by_tally,
    holds,
    random_sentence,
    sentences,
    some_constraints,
    some_statistics,
    some_truth,
    toy,
)

import tallytree as tt
from tallytree import losses, parsing
from tallytree.kernels import native
from tallytree.parsing import Forest, Grammar, Tree, TreeStatistic, count, parse_tree, ranking
from tallytree.parsing import forest as forests

close = {"rtol": 1e-9, "atol": 1e-9}
few = settings(max_examples=40)


seeds = st.integers(0, 2**16)


@pytest.mark.sanitize
@pytest.mark.parametrize("number", range(13))
def test_profile_of_each_statistic(number: int) -> None:
    for seed in range(8):
        sentence = random_sentence(np.random.default_rng(100 * number + seed))
        check_profile(sentence, [some_statistics(sentence, seed)[number]])


@given(sentences(), st.lists(st.integers(0, 12), max_size=3, unique=True), seeds)
def test_profile_of_several_statistics(sentence: Sentence, numbers: list[int], seed: int) -> None:
    every = some_statistics(sentence, seed)
    check_profile(sentence, [every[i] for i in numbers])


def check_profile(sentence: Sentence, statistics: list[TreeStatistic]) -> None:
    expected = by_tally(sentence, statistics)
    profile = parsing.profile(sentence.forest, statistics)
    assert list(map(tuple, profile.tallies.tolist())) == sorted(expected)
    np.testing.assert_allclose(profile.scores, [expected[t] for t in sorted(expected)], **close)
    trees = best_scores(sentence)
    for row, tally in enumerate(profile.tallies.tolist()):
        found = profile.row(row)
        assert [s.tally(found.tree) for s in statistics] == tally == list(found.tally)
        np.testing.assert_allclose(trees[found.tree], expected[tuple(tally)], **close)
        np.testing.assert_allclose(found.score, expected[tuple(tally)], **close)


def test_ties_and_forbidden_tallies_in_every_instruction_set() -> None:
    sentence = random_sentence(np.random.default_rng(5), 5, 40)
    truth = some_truth(sentence, 3)
    statistics = [parsing.true_positives(truth), parsing.false_positives(truth)]
    answers = []
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            profile = parsing.profile(sentence.forest, statistics)
            answers.append((profile.scores.tolist(), [str(profile.row(i).tree) for i in range(len(profile))]))
    finally:
        native.use_instruction_set("")
    assert all(answer == answers[0] for answer in answers)


# --- objectives and constraints -----------------------------------------------------------------------------


@given(sentences(), st.integers(0, 8), seeds)
def test_constraints(sentence: Sentence, number: int, seed: int) -> None:
    where = some_constraints(sentence, seed)[number]
    allowed = {tree: score for tree, score in best_scores(sentence).items() if holds(where, tree)}
    if not allowed:
        with pytest.raises(tt.InfeasibleError, match=r"no tree satisfies .* nearest attainable"):
            parsing.solve(sentence.forest, where=where)
        return
    found = parsing.solve(sentence.forest, where=where)
    np.testing.assert_allclose(found.score, max(allowed.values()), **close)
    assert found.tree in allowed
    assert [s.tally(found.tree) for s in where.statistics] == list(found.tally)


@given(sentences(), st.integers(0, 8), seeds)
@few
def test_objective_with_constraint(sentence: Sentence, number: int, seed: int) -> None:
    where = some_constraints(sentence, seed)[number]
    size, tp = some_statistics(sentence, seed)[0], some_statistics(sentence, seed)[7]

    def objective(score: np.ndarray, k: np.ndarray, right: np.ndarray) -> np.ndarray:
        return score - np.abs(k - 3) + right**2

    values = {
        tree: objective(score, size.tally(tree), tp.tally(tree))
        for tree, score in best_scores(sentence).items()
        if holds(where, tree)
    }
    if not values:
        return
    found = parsing.solve(sentence.forest, [size, tp], objective, where=where)
    np.testing.assert_allclose(found.value, max(values.values()), **close)
    np.testing.assert_allclose(values[found.tree], found.value, **close)


@given(sentences(), seeds)
@few
def test_derivations_are_counted(sentence: Sentence, seed: int) -> None:
    """The verbs of charts over the integers modulo a prime: the program of a chart runs in every algebra."""
    statistics = some_statistics(sentence, seed)[:8:7]
    plan = parsing.plan(sentence.forest, statistics)
    counted = Counter(tuple(s.tally(tree) for s in statistics) for tree, _ in sentence.trees)
    s = plan.compiled.levelled(sentence.forest.scores)
    for prime in (5, 2_147_483_629):
        run = native.ChartRun(plan.layout.native, s.words, s.rules, s.chains, native.COUNTING, prime)
        _, tallies, values = plan.root(run)
        found = dict(zip(map(tuple, tallies.tolist()), values.tolist(), strict=True))
        assert {t: n % prime for t, n in counted.items()} == {t: found[t] for t in counted}
        assert all(n == 0 for t, n in found.items() if t not in counted)


# --- ranked trees -------------------------------------------------------------------------------------------


@given(sentences(trees=4), seeds)
def test_k_best(sentence: Sentence, seed: int) -> None:
    scores = best_scores(sentence)
    found = parsing.k_best(sentence.forest, 20)
    expected = sorted(scores.values(), reverse=True)[:20]
    np.testing.assert_allclose([parse.score for parse in found], expected, **close)
    assert len({parse.tree for parse in found}) == len(found)
    for parse in found:
        np.testing.assert_allclose(parse.score, scores[parse.tree], **close)
    assert len(list(parsing.iter_best(sentence.forest))) == len(scores)


@given(sentences(trees=4), st.integers(0, 8), seeds)
@few
def test_k_best_with_objective_and_constraint(sentence: Sentence, number: int, seed: int) -> None:
    where = some_constraints(sentence, seed)[number]
    size = count()
    values = sorted(
        (
            score - size.tally(tree) ** 2
            for tree, score in best_scores(sentence).items()
            if holds(where, tree)
        ),
        reverse=True,
    )
    found = parsing.k_best(sentence.forest, 10, [size], lambda score, k: score - k**2, where=where)
    np.testing.assert_allclose([parse.value for parse in found], values[:10], **close)
    assert all(holds(where, parse.tree) for parse in found)


@given(sentences(trees=4), st.integers(1, 4), st.sampled_from([1, 3, 256]), st.integers(0, 17), seeds)
@few
def test_diverse_k_best(sentence: Sentence, distance: int, looked: int, number: int, seed: int) -> None:
    """Each is the best of those that are far from all before it, found in order or by statistics."""
    where = some_constraints(sentence, seed)[number] if number < 9 else None
    scores = {t: s for t, s in best_scores(sentence).items() if where is None or holds(where, t)}
    chosen: list[Tree] = []

    def apart(a: Tree, b: Tree) -> int:
        x, y = a.constituents(), b.constituents()
        return ((x - y) + (y - x)).total()

    with patch.object(ranking, "_LOOKED_THROUGH", looked):
        found = parsing.diverse_k_best(sentence.forest, 4, distance, where=where)
    for parse in found:
        read = () if where is None else where.statistics
        assert list(parse.tally) == [s.tally(parse.tree) for s in read]
        far = [s for tree, s in scores.items() if all(apart(tree, other) >= distance for other in chosen)]
        np.testing.assert_allclose(parse.score, max(far), **close)
        assert all(apart(parse.tree, other) >= distance for other in chosen)
        chosen.append(parse.tree)
    if len(found) < 4:
        assert not [t for t in scores if all(apart(t, other) >= distance for other in chosen)]


# --- certificates -------------------------------------------------------------------------------------------


def test_parses_say_what_they_are_the_best_of() -> None:
    forest, size, ms = toy(), count(name="size"), count("M", name="ms")
    profile = parsing.profile(forest, [size, ms])
    ranked = list(parsing.iter_best(forest, where=ms <= 1))
    claims = {
        "no tree has a higher score": [
            forest.best(),
            profile.best(),
            parsing.diverse_k_best(forest, 1, 1)[0],
        ],
        "no tree has a higher value": [profile.best(lambda score, n, m: score - n)],
        "no tree with this tally has a higher score": [profile.row(0), profile.at(size=4, ms=0)],
        "no tree that satisfies 'ms == 2' has a higher score": [
            parsing.solve(forest, where=ms == 2, strategy="full")
        ],
        "no tree that satisfies 'ms <= 1', except the 3 before it, has a higher score": [ranked[3]],
        "of the trees at least 2 brackets away from each of the 2 before it, none that satisfies 'ms <= 1' "
        "has a higher score": [parsing.diverse_k_best(forest, 3, 2, where=ms <= 1)[2]],
        "no tree has a higher sum of expected constituents": [forest.max_bracket()],
    }
    for claim, parses in claims.items():
        for parse in parses:
            found = parse.certificate
            assert found.claim == claim and found.optimal
            assert found.difference <= found.allowance < 1e-9
            assert found.tally == parse.tally._asdict()
            lines = parse.explain().splitlines()
            assert lines[0] == f"optimal: {claim}" and lines[-1].endswith(str(found.price))
            assert lines[-1].startswith("  the chart covers every tree of 5 words: 2 symbols")
    assert len({parse.tree for parse in ranked}) == len(ranked)


def test_parses_show_themselves_in_notebooks() -> None:
    grammar = Grammar({("S", "<n>", "<n>"): -0.5}, {}, {"<n>": {"a&b": 0.0}}, root="S")
    shown = parsing.solve(Forest(grammar, "a&b a&b"), [count(name="size")])._repr_html_()
    assert shown.startswith("<b>Parse</b><table>") and "<td>-0.5</td>" in shown
    assert '<th style="text-align:left">size</th><td>1</td>' in shown
    assert shown.endswith("<pre>(S (&lt;n&gt; a&amp;b) (&lt;n&gt; a&amp;b))</pre>")


def test_parses_pickle_with_their_certificates() -> None:
    forest = toy()
    found = parsing.solve(forest, [count(name="my size")], where=count("M") == 1)
    for parse in (found, forest.best(), parsing.loss_augmented(forest, losses.FBeta(found.tree), "slack")):
        back = pickle.loads(pickle.dumps(parse))
        assert back == parse and type(back) is type(parse)
        assert back.explain() == parse.explain() and back.tally._fields == parse.tally._fields
    assert parsing.Parse(0.0, 0.0, (), found.tree).explain().startswith("no certificate")


# --- plans and errors ---------------------------------------------------------------------------------------


def test_plan_prints_its_price() -> None:
    forest = toy()
    truth = forest.best().tree
    plan = parsing.plan(forest, [parsing.true_positives(truth), parsing.false_positives(truth)])
    lines = str(plan).splitlines()
    assert lines[0] == "plan for 5 words and 2 statistics (tp, fp)"
    assert f"{plan.items} items over 15 spans, tallies R = {plan.tallies}" in lines[1]
    assert "add-max operations" in lines[2] and "costliest step: combine splits of words 0 to" in lines[3]
    assert repr(plan).startswith(f"TreePlan(items={plan.items}, tallies={plan.tallies}")
    bounded = parsing.plan(forest, where=count() <= 2)
    assert bounded.operations < parsing.plan(forest, [count()]).operations
    assert "the constraint rules out" in str(bounded)


def test_ranges_are_tight() -> None:
    """True positives at most the gold constituents inside a span, predicted ones what it can hold."""
    forest = toy(6)
    truth = forest.best().tree
    plan = parsing.plan(forest, [parsing.true_positives(truth)])
    gold = truth.constituents()
    for span, (start, end) in enumerate(zip(forest.starts, forest.ends, strict=True)):
        inside = sum(n for (_, s, e), n in gold.items() if start <= s and e <= end)
        assert plan.layout.cells[span, 1] <= inside + 1
    sizes = parsing.plan(forest, [count()])
    assert sizes.tallies <= 1 + 2 * (2 * len(forest.words) - 1)


def test_budget_is_kept_before_the_chart_is_built() -> None:
    forest = toy(12)
    with pytest.raises(tt.BudgetError, match=r"chart of 12 words needs .* the limit is .*memory_limit="):
        parsing.plan(forest, [count(), count("M"), count("N", max_length=3)], memory_limit=60_000)
    with pytest.raises(tt.BudgetError, match="chart of 12 words"):
        parsing.plan(forest, memory_limit=1000)
    statistics = [count(), count("M")]
    peak = parsing.plan(forest, statistics).peak_bytes
    assert parsing.profile(forest, statistics, memory_limit=peak).plan.peak_bytes == peak
    with pytest.raises(tt.BudgetError, match=r"chart of 12 words needs .* at words 0 to 12"):
        parsing.profile(forest, statistics, memory_limit=peak - 1)


def test_plain_charts_keep_the_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    forest = toy(30)
    assert forest.price.peak_bytes > 10_000 and "items" in str(forest.price)
    monkeypatch.setattr(forests, "default_memory_limit", lambda: 10_000.0)
    with pytest.raises(tt.BudgetError, match=r"chart of 30 words needs .* the limit is 9\.8 KiB"):
        toy(30).best()


def test_profile_pickles_without_its_chart() -> None:
    profile = parsing.profile(toy(9), [count(), count("M", max_depth=2, name="m")])
    text = pickle.dumps(profile)
    assert len(text) < profile.plan.peak_bytes / 5
    back = pickle.loads(text)
    assert back.scores.tolist() == profile.scores.tolist()
    assert [back.row(i) for i in range(3)] == [profile.row(i) for i in range(3)]
    assert back.plan.operations == profile.plan.operations
    assert back.model.best() == toy(9).best()


def test_wrong_arguments() -> None:
    forest = toy()
    model = tt.Model([2, 2])
    with pytest.raises(tt.ModelError, match=r"expected a statistic of trees, such as tallytree\.parsing"):
        parsing.profile(forest, [tt.count(model, state=1)])
    with pytest.raises(tt.ModelError, match="a forest has none"):
        parsing.solve(forest, fixed={0: 1})
    with pytest.raises(tt.ModelError, match="must be a Tree"):
        parsing.true_positives("(N a)")  # type: ignore[arg-type]
    with pytest.raises(tt.ModelError, match="to count"):
        count(min_length=3, max_length=2)
    with pytest.raises(tt.ModelError, match="cap must be a non-negative integer"):
        count(cap=-1)
    for label, options in ((3, {}), (("N", 3), {}), (None, {"max_length": 2.5}), ("N", {"min_depth": -1})):
        with pytest.raises(tt.ModelError, match=r"must be a string|to count"):
            count(label, **options)
    for made in (parsing.true_positives, parsing.crossing_brackets, parsing.wrong_nodes):
        with pytest.raises(tt.ModelError, match="compares with a truth of 4 words, but the sentence has 5"):
            parsing.solve(forest, where=made(toy(4).best().tree) <= 2)
    with pytest.raises(tt.ModelError, match="k must be at least 0"):
        parsing.k_best(forest, -1)
    with pytest.raises(tt.ModelError, match="k must be an integer, got '3'"):
        parsing.k_best(forest, "3")  # type: ignore[arg-type]
    with pytest.raises(tt.ModelError, match="the distance must be at least 1"):
        parsing.diverse_k_best(forest, 2, 0)
    with pytest.raises(tt.ModelError, match="up to 100"):
        count(max_depth=1000)


def test_statistics_are_known_by_content() -> None:
    truth = toy().best().tree
    assert count("N") == count("N", name="other") and count("N") != count("M")
    assert parsing.true_positives(truth) == parsing.true_positives(parse_tree(str(truth)))
    assert parsing.true_positives(truth) != parsing.false_positives(truth)
    assert pickle.loads(pickle.dumps(count("N", cap=2))) == count("N", cap=2)
    assert repr(count("N", cap=2)) == "count_N (at most 2)"
