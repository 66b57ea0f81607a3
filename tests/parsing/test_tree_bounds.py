"""Bounds below zero and beyond 64 bits on trees, compared with the enumeration of all trees."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treebanks import Sentence, best_scores, holds, sentences, some_statistics, some_truth, toy

import tallytree as tt
from tallytree import losses, parsing
from tallytree.parsing import TreeStatistic, count
from tallytree.statistics.constraints import Constraint

close = {"rtol": 1e-9, "atol": 1e-9}
few = settings(max_examples=60)
seeds = st.integers(0, 2**16)

edges = st.sampled_from([-1, -2, -5, -(2**31), -(2**62) - 1, -(2**63), -(2**70), 2**31, 2**62, 2**63, 2**70])
bounds = st.one_of(edges, st.integers(-4, 5), st.builds(lambda b, d: b + d, edges, st.integers(-2, 2)))
factors = st.sampled_from([1, 2, 3, 2**16, 2**31, 2**64])


@st.composite
def comparisons(draw: st.DrawFn, statistics: list[TreeStatistic]) -> Constraint:
    a, b = (draw(st.sampled_from(statistics)) for _ in range(2))
    left = draw(st.sampled_from([a.linear(), draw(factors) * a, draw(factors) * a - draw(factors) * b]))
    bound = draw(bounds)
    relation = draw(st.sampled_from(["__le__", "__ge__", "__eq__", "__ne__"]))
    constraint: Constraint = getattr(left, relation)(bound)
    return constraint


@st.composite
def extreme(draw: st.DrawFn) -> tuple[Sentence, Constraint]:
    """A sentence and a constraint whose bounds lie anywhere."""
    sentence = draw(sentences())
    statistics = some_statistics(sentence, draw(seeds))
    one, other = draw(comparisons(statistics)), draw(comparisons(statistics))
    return sentence, draw(st.sampled_from([one, ~one, one & other, one | other]))


@given(extreme(), seeds)
@few
def test_every_verb_under_extreme_bounds(case: tuple[Sentence, Constraint], seed: int) -> None:
    sentence, where = case
    scores = {tree: score for tree, score in best_scores(sentence).items() if holds(where, tree)}
    expected = sorted(scores.values(), reverse=True)
    ranked = parsing.k_best(sentence.forest, 4, where=where)
    np.testing.assert_allclose([parse.score for parse in ranked], expected[:4], **close)
    assert all(parse.tree in scores for parse in ranked)
    apart = parsing.diverse_k_best(sentence.forest, 2, 1, where=where)
    np.testing.assert_allclose([parse.score for parse in apart[:1]], expected[:1], **close)
    loss = losses.FBeta(some_truth(sentence, seed))
    if not scores:
        with pytest.raises(tt.InfeasibleError, match="no tree satisfies"):
            parsing.solve(sentence.forest, where=where)
        with pytest.raises(tt.InfeasibleError):
            parsing.loss_augmented(sentence.forest, loss, where=where)
        return
    np.testing.assert_allclose(parsing.solve(sentence.forest, where=where).score, expected[0], **close)
    truth = sentence.forest.score(loss.truth)
    most = max(loss(tree) + score - truth for tree, score in scores.items())
    found = parsing.loss_augmented(sentence.forest, loss, where=where)
    np.testing.assert_allclose(found.value, most, **close)


@pytest.mark.parametrize(
    "where",
    [
        count("M") >= -5,
        count("M") != -2147483648,
        count("M") <= 2**63,
        count("M") >= -(2**70),
        ~(count("M") == 2**64),
        (count("M") <= -3) | (count("M") >= -2),
        2**70 * count("M") >= -(2**80),
    ],
)
def test_a_bound_that_every_tree_meets_changes_nothing(where: Constraint) -> None:
    forest = toy()
    best = forest.best()
    assert parsing.solve(forest, where=where).score == best.score
    assert parsing.k_best(forest, 1, where=where)[0].score == best.score
    assert parsing.diverse_k_best(forest, 1, 1, where=where)[0].score == best.score


def test_what_cannot_be_capped_or_combined_is_refused() -> None:
    size, ms = count(name="size"), count("M", name="ms")
    combination = TreeStatistic.combination
    forest = toy()
    with pytest.raises(tt.ModelError, match="can decrease, so it cannot be capped"):
        combination(size - ms).capped(3)
    for cap in (-1, 2**62, 0.5):
        with pytest.raises(tt.ModelError, match="cap must be a non-negative integer"):
            size.capped(cap)
    with pytest.raises(tt.ModelError, match=r"'size \+ 3' has a constant"):
        combination(size + 3)
    with pytest.raises(tt.ModelError, match="is capped at 2"):
        combination(size.capped(2) + ms)
    with pytest.raises(tt.ModelError, match="can be combined with each other"):
        combination(size + tt.count(state=1))
    for coefficient in (2**31, 2**64):
        with pytest.raises(tt.ModelError, match=r"below 2\*\*31"):
            parsing.profile(forest, [combination(coefficient * size)])
    whole = parsing.profile(forest, [combination(2**8 * ms)])
    assert whole.tallies.ravel().tolist() == [2**8 * k for k in range(5)]
    assert combination(size + ms).capped(7).cap == 7
    none = combination(2**64 * count("X"))
    assert parsing.profile(forest, [none]).tallies.tolist() == [[0]]
