"""Objectives given as formulas: equivalent to functions wherever an objective is accepted."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.io import ProblemFile

MODEL = tt.Model.chain(np.array([[0.0, 1], [0, 2], [0, 4], [0, -1]]), np.eye(2))
ONES = tt.count(MODEL, state=1, name="ones")
FORMULA = "score - 2*abs(ones - 2)"


def function(score, ones):
    return score - 2 * np.abs(ones - 2)


def same(formula, plain):
    assert (formula.value, formula.score, formula.tally) == (plain.value, plain.score, plain.tally)
    assert formula.assignment.tolist() == plain.assignment.tolist()


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
def test_solve(strategy):
    got = tt.solve(MODEL, [ONES], FORMULA, strategy=strategy)
    same(got, tt.solve(MODEL, [ONES], function, strategy=strategy))
    same(got, ProblemFile(MODEL, [ONES], FORMULA).solve(strategy=strategy))
    same(tt.solve(MODEL, [ONES], objective="score"), tt.solve(MODEL, [ONES]))


def test_profiles_and_lists():
    found = tt.profile(MODEL, [ONES])
    same(found.best(FORMULA), found.best(function))
    assert found.best_row(FORMULA) == found.best_row(function)
    for one, other in zip(found.top(3, FORMULA), found.top(3, function), strict=True):
        same(one, other)
    for one, other in zip(found.ranked(FORMULA), found.ranked(function), strict=True):
        same(one, other)
    for one, other in zip(
        tt.k_best(MODEL, 5, [ONES], FORMULA), tt.k_best(MODEL, 5, [ONES], function), strict=True
    ):
        same(one, other)
    same(next(tt.iter_best(MODEL, [ONES], FORMULA)), found.best(function))
    best = found.best(function)
    for method in ("ranking", "statistics"):
        same(
            tt.exclude(MODEL, [best], [ONES], FORMULA, method=method),
            tt.exclude(MODEL, [best], [ONES], function, method=method),
        )


def test_batches():
    models = [MODEL, tt.Model.chain(np.array([[0.0, 3], [0, 2]]), np.eye(2))]
    ones = tt.count(state=1, name="ones")
    for got, wanted in zip(
        tt.solve_batch(models, [ones], [FORMULA, None]),
        tt.solve_batch(models, [ones], [function, None]),
        strict=True,
    ):
        same(got, wanted)


def test_names_that_do_not_belong():
    with pytest.raises(tt.ModelError, match=r"objective uses 'one', .* did you mean 'ones'"):
        tt.solve(MODEL, [ONES], "score - 2*one")
    with pytest.raises(tt.ModelError, match="objective must be a number, such as"):
        tt.solve(MODEL, [ONES], "ones >= 2")
    with pytest.raises(tt.ModelError, match=r"objective must be a function H\(score, \*tallies\), or a form"):
        tt.solve(MODEL, [ONES], 3)
    with pytest.raises(tt.ModelError, match="a statistic is called 'score'"):
        tt.solve(MODEL, [ONES.named("score")], "score - 1")
    with pytest.raises(tt.ObjectiveError, match="decreases in the score"):
        tt.profile(MODEL, [ONES]).best("ones - score")


def test_the_plain_score_is_no_objective():
    assert ProblemFile(MODEL, [ONES], "score").objective is None
    assert ProblemFile(MODEL, [ONES], " (score) ").objective is None
