"""The verbs of charts: each computed by hand, and their transposes by definition."""

import numpy as np
import pytest

from tallytree.algebra import Counting, LogSumExp, MaxPlus
from tallytree.algebra.tallies import cap_array
from tallytree.kernels.chart_problem import ChartProblem, Item
from tallytree.kernels.chart_reference import (
    combine,
    either,
    pull_combine,
    pull_either,
    pull_unary,
    unary,
    word,
)
from tallytree.kernels.chart_sweeps import sweep_down, sweep_up, walk
from tallytree.kernels.reference import Table

ALGEBRAS = [MaxPlus(), LogSumExp(), Counting()]


def message(tallies: list[int], values: list[float]) -> Table:
    return Table((), np.array(tallies)[:, None], np.array(values))


def test_combine_keeps_the_better_pair_and_adds_the_rule():
    left, right = message([0, 1], [1.0, 5.0]), message([0, 2], [10.0, 20.0])
    made = combine(left, right, -0.5, MaxPlus(), cap_array([2]))
    assert made.tallies.tolist() == [[0], [1], [2]]
    assert made.values.tolist() == [10.5, 14.5, 24.5]  # 2 is 0 + 2, or 1 + 2 cut down to the cap


def test_unary_moves_tallies_down_as_well_as_up():
    made = unary(message([0, 3], [1.0, 2.0]), 0.25, np.array([-2]), MaxPlus(), cap_array([None]))
    assert made.tallies.tolist() == [[-2], [1]]
    assert made.values.tolist() == [1.25, 2.25]


def test_either_adds_what_is_there_twice():
    made = either([message([3], [1.0]), message([0, 3], [2.0, 1.0])], LogSumExp())
    assert made.tallies.tolist() == [[0], [3]]
    np.testing.assert_allclose(made.values, [2.0, 1.0 + np.log(2)])


def test_either_without_statistics():
    made = either([word(1.0, 0, MaxPlus()), word(4.0, 0, MaxPlus())], MaxPlus())
    assert made.tallies.shape == (1, 0)
    assert made.values.tolist() == [4.0]


def total(inside: Table, outside: Table, algebra) -> object:
    return algebra.reduce(algebra.times(inside.values, outside.values), 0).item()


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_a_pulled_weighting_gives_the_same_total(algebra, seed):
    """The transposed verb: <verb(a), outside> = <a, pull(outside)>."""
    rng, caps = np.random.default_rng(seed), cap_array([3, None])

    def some(tallies) -> Table:
        values = algebra.as_elements(rng.integers(0, 5, size=len(tallies)).astype(object))
        return Table((), np.array(tallies), values)

    a, b = some([[0, -1], [1, 0], [3, 2]]), some([[0, 0], [2, -2]])
    made = combine(a, b, 2.0, algebra, caps)
    outside = some(made.tallies)
    for inside, pulled in zip((a, b), pull_combine(a, b, 2.0, outside, algebra, caps), strict=True):
        assert total(inside, pulled, algebra) == pytest.approx(total(made, outside, algebra))

    shift = np.array([2, -1])
    made = unary(a, 1.0, shift, algebra, caps)
    outside = some(made.tallies)
    (pulled,) = pull_unary(a, 1.0, shift, outside, algebra, caps)
    assert total(a, pulled, algebra) == pytest.approx(total(made, outside, algebra))

    made = either([a, b], algebra)
    outside = some(made.tallies)
    parts = [total(part, pull_either(part, outside), algebra) for part in (a, b)]
    assert algebra.plus(*parts) == pytest.approx(total(made, outside, algebra))


# --- a whole chart by hand ----------------------------------------------------------------------------------


def nouns(words: int, counted: int = 1) -> ChartProblem:
    """The rule ``N → N N``; a chain over each span of several words counts 1 on the left, 0 elsewhere."""
    spans = words * (words + 1) // 2
    shifts = np.zeros((1, spans, 1), dtype=np.int32)
    starts = np.concatenate([np.arange(words - width + 1) for width in range(1, words + 1)])
    shifts[0, starts == 0, 0] = counted
    return ChartProblem(
        root=0,
        rules=np.array([[0, 0, 0]]),
        chains=np.array([[0, 0, 0, -1, 0]]),
        word_scores=np.zeros((words, 1)),
        rule_scores=np.array([[-1.0]]),
        chain_scores=np.zeros((1, 1)),
        shifts=shifts,
        caps=cap_array([None]),
        live=np.ones((2, spans, 1), dtype=bool),
    )


def test_trees_are_counted_by_the_depth_of_their_left_spine():
    """Ballot numbers: binary trees over 5 leaves whose left spine has so many nodes."""
    problem = nouns(5)
    top = sweep_up(problem, Counting())[problem.top]
    assert top.tallies.ravel().tolist() == [1, 2, 3, 4]
    assert top.values.tolist() == [5, 5, 3, 1]


def test_every_tree_has_the_whole_span():
    problem = nouns(4)
    inside = sweep_up(problem, Counting())
    weights = np.array([1] * len(inside[problem.top].values), dtype=object)
    found = {
        item: int(value)
        for item, way, value in sweep_down(problem, inside, weights, Counting())
        if way is None
    }
    assert found[problem.top] == 5
    assert [found[Item(1, start, 2, 0)] for start in range(3)] == [2, 2, 2]  # of the five trees
    assert [found[Item(1, start, 3, 0)] for start in range(2)] == [2, 2]


def test_ties_go_to_the_first_split():
    problem = nouns(3, counted=0)
    inside = sweep_up(problem, MaxPlus())
    steps = walk(problem, inside, np.array([0]), lambda values: int(np.argmax(values)), MaxPlus())
    assert steps[:3].tolist() == [[1, 0, 0, 3, 0], [2, 0, 0, 3, 1], [1, 0, 0, 1, 0]]


def test_what_is_forbidden_is_not_made():
    problem = nouns(3)
    problem.live[1, problem.span(0, 2)] = False
    top = sweep_up(problem, Counting())[problem.top]
    assert (top.tallies.tolist(), top.values.tolist()) == ([[1]], [1])
    problem.word_scores[1] = -np.inf
    assert problem.top not in sweep_up(problem, Counting())
    assert not list(sweep_down(problem, sweep_up(problem, Counting()), np.zeros(0, dtype=object), Counting()))
