"""Problems too large to enumerate: the score of a tally compared with an integer program solved by HiGHS."""

import numpy as np
import pytest
from milp import IntegerProgram

import tallytree as tt
from tallytree.testing import check_solution, random_model


def best_score(program, statistics, tally):
    """Return the best score with this tally, evaluated on the labelling found; -inf if there is none.

    A tally that is the cap stands for all sums from there on.
    """
    rows = [
        program.row(s, wanted, np.inf if wanted == s.cap else wanted)
        for s, wanted in zip(statistics, tally, strict=True)
    ]
    y = program.solve(*rows)
    if y is None:
        return -np.inf
    assert [s.tally(y) for s in statistics] == list(tally)
    return program.model.score(y)


def chain_with_counts():
    model = random_model(np.random.default_rng(1), "chain", variables=50, states=3, forbidden=0.05)
    flips = [((v, v + 1), 1 - np.eye(*model.cardinalities[v : v + 2], dtype=int)) for v in range(49)]
    return model, [tt.count(model, state=1), tt.Statistic(flips, name="flips")]


def tree_with_a_signed_and_a_capped_statistic():
    rng = np.random.default_rng(2)
    model = random_model(rng, "tree", variables=60, states=2)
    signed = tt.Statistic([((v,), rng.integers(-2, 3, size=model.cardinalities[v])) for v in range(60)])
    return model, [signed, tt.count(model, state=1, cap=12)]


def grid_with_a_count():
    model = random_model(np.random.default_rng(3), "grid", variables=25, states=2)
    return model, [tt.count(model, state=1)]


def cycle_with_a_long_range_statistic():
    """The statistic has scopes that no factor has: it adds to the width."""
    rng = np.random.default_rng(4)
    model = random_model(rng, "cycle", variables=24, states=3)
    pairs = [((v, v + 2), rng.integers(0, 2, size=model.cardinalities[[v, v + 2]])) for v in range(0, 22, 2)]
    return model, [tt.Statistic(pairs, name="skips"), tt.count(model, state=0, variables=range(12))]


PROBLEMS = [
    chain_with_counts,
    tree_with_a_signed_and_a_capped_statistic,
    grid_with_a_count,
    cycle_with_a_long_range_statistic,
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda f: f.__name__)
def test_scores_of_tallies_are_those_of_an_integer_program(problem):
    model, statistics = problem()
    profile = tt.profile(model, statistics)
    program = IntegerProgram(model)
    rows = [
        *np.unique(np.linspace(0, len(profile) - 1, 9).astype(int)).tolist(),
        int(profile.scores.argmax()),
    ]
    for row in rows:
        tally = profile.tallies[row].tolist()
        solution = profile.at(*tally)
        check_solution(solution, model, statistics)
        assert solution.score == pytest.approx(best_score(program, statistics, tally), abs=1e-6)


def test_tallies_that_are_not_listed_are_infeasible():
    model, statistics = chain_with_counts()
    profile = tt.profile(model, statistics)
    program = IntegerProgram(model)
    listed = set(map(tuple, profile.tallies.tolist()))
    missing = [(k, f) for k in (0, 30, 48) for f in (0, 1, 49) if (k, f) not in listed][:3]
    assert missing
    for tally in missing:
        assert best_score(program, statistics, tally) == -np.inf


@pytest.mark.parametrize("tallies", ["rows", "cells"])
@pytest.mark.parametrize("size", [20, 60, 400])
def test_independent_variables_take_the_largest_gains(size, tallies):
    """A closed form at any length: ``μ(k)`` is the sum of the k largest gains, on a chain and on a star."""
    gains = np.random.default_rng(size).normal(size=size)
    unary = np.stack([np.zeros(size), gains], axis=1)
    wanted = np.concatenate([[0.0], np.cumsum(np.sort(gains)[::-1])])
    for model in (
        tt.Model.chain(unary, np.zeros((2, 2))),
        tt.Model.tree([-1] + [0] * (size - 1), unary, np.zeros((2, 2))),
        tt.Model([2] * size, [((v,), unary[v]) for v in range(size)]),
    ):
        profile = tt.profile(model, [tt.count(state=1)], layout=tallies)
        np.testing.assert_allclose(profile.scores, wanted, atol=1e-10)
        for k in (0, 7, size):
            assert profile.at(k).assignment.sum() == k
