"""Spot checks of an objective: they accept every legal objective and no other that gives a wrong answer."""

import math
from itertools import product

import numpy as np
import pytest

import tallytree as tt
from tallytree.answers.objective import Objective

BROKEN = {
    "decreasing, large scores": (1e10, lambda s, k: -s),
    "decreasing, small values": (1.0, lambda s, k: -1e-12 * s),
    "decreasing at one tally": (1.0, lambda s, k: np.where(k == 3, -s, s)),
    "periodic": (3.0, lambda s, k: s % 7),
    "wave": (1.0, lambda s, k: np.sin(s)),
    "largest score of all": (1.0, lambda s, k: s.max() - k),
    "mean of all": (1.0, lambda s, k: s - s.mean() - k),
    "largest tally of all": (1.0, lambda s, k: s + k.max()),
    "hill": (1.0, lambda s, k: k - s**2),
    "reciprocal": (1.0, lambda s, k: 1 / s),
}
LEGAL = {
    "log": lambda s, k: np.log(s),
    "root": lambda s, k: np.sqrt(s) - k,
    "log of plain numbers": tt.elementwise(lambda s, k: math.log(s)),
    "score": lambda s, k: s,
    "product": lambda s, k: s * k,
    "cancelled": lambda s, k: (s + k) - s,
    "squashed": lambda s, k: np.tanh(s) + 1e-12 * k,
    "barrier": lambda s, k: np.where(k % 2 == 0, s, -1e300),
    "ratio": lambda s, k: np.exp(s / 10) / (1 + k),
    "tiny": lambda s, k: 1e-200 * s,
}
LABELLINGS = np.array(list(product(range(2), repeat=6)))


def chain(rng: np.random.Generator, scale: float = 1.0, shift: float = 0.0) -> tt.Model:
    return tt.Model.chain(scale * rng.normal(size=(6, 2)) + shift, scale * rng.normal(size=(2, 2)))


def best_value(model: tt.Model, objective: Objective) -> float:
    rows = ((np.array([model.score(y)]), np.array([y.sum()])) for y in LABELLINGS)
    with np.errstate(all="ignore"):
        return float(max(np.broadcast_to(objective(s, k), 1)[0] for s, k in rows))


@pytest.mark.parametrize("name", BROKEN)
def test_no_wrong_answer_is_accepted(name: str) -> None:
    scale, objective = BROKEN[name]
    refused = 0
    for seed in range(60):
        model = chain(np.random.default_rng(seed), scale)
        try:
            value = tt.solve(model, [tt.count(model, state=1)], objective).value
        except tt.ObjectiveError:
            refused += 1
        else:
            assert value == pytest.approx(best_value(model, objective), rel=1e-6)
    assert refused > 50


@pytest.mark.parametrize("name", LEGAL)
def test_legal_objectives_are_accepted(name: str) -> None:
    for seed in range(60):
        model = chain(np.random.default_rng(seed), shift=3.0 + 5 * (seed % 2))
        value = tt.solve(model, [tt.count(model, state=1)], LEGAL[name]).value
        assert value == pytest.approx(best_value(model, LEGAL[name]), rel=1e-9)


def test_the_chosen_row_is_always_probed() -> None:
    """Among many tallies, one at which the objective decreases is found where it would be the answer."""
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(200, 2)), rng.normal(size=(2, 2)))
    profile = tt.profile(model, [tt.count(model, state=1)])
    for tally in (1, 77, 131, 199):
        with pytest.raises(tt.ObjectiveError, match=rf"decreases in the score at tally \(count_1={tally}\)"):
            profile.best(lambda s, k, t=tally: np.where(k == t, 1e6 - s, s))


def test_without_statistics_too() -> None:
    model = chain(np.random.default_rng(0))
    with pytest.raises(tt.ObjectiveError, match="decreases"):
        tt.solve(model, objective=lambda s: -s)
    assert tt.solve(model, objective=lambda s: s**3).value == pytest.approx(tt.solve(model).score ** 3)


@pytest.mark.parametrize(
    "objective",
    [
        lambda s, k: s * (1 + 1j),
        lambda s, k: np.ma.masked_greater(s, 1.0),
        lambda s, k: [1j] * len(s),
        lambda s, k: ["1.5"] * len(s),
        tt.elementwise(lambda s, k: s + 1j),
        tt.elementwise(lambda s, k: None),
        tt.elementwise(lambda s, k: "1.5"),
        tt.elementwise(lambda s, k: [s, k]),
    ],
    ids=[
        "complex",
        "masked",
        "complex list",
        "texts",
        "complex by row",
        "None by row",
        "text by row",
        "list by row",
    ],
)
def test_values_are_real_numbers(objective: Objective) -> None:
    model = chain(np.random.default_rng(0))
    with pytest.raises(tt.ObjectiveError, match=r"one number per row|is nan"):
        tt.solve(model, [tt.count(model, state=1)], objective)


def test_probes_cost_two_calls() -> None:
    calls: list[int] = []

    def objective(s: np.ndarray, k: np.ndarray) -> np.ndarray:
        calls.append(len(s))
        return s - k

    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(3000, 2)), np.zeros((2, 2)))
    tt.profile(model, [tt.count(model, state=1)]).best(objective)
    assert len(calls) == 3 and sum(calls[1:]) < 150
