"""Objectives given as functions on forests by bounds: the values of enumeration, and of whole charts."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from treebanks import Sentence, by_tally, sentences, some_statistics, toy

import tallytree as tt
from tallytree import parsing
from tallytree.parsing import count

OBJECTIVES: list[Callable[..., Any]] = [
    lambda score, *tallies: score - 0.3 * sum(tallies) ** 2,
    lambda score, *tallies: np.floor(score) + 0.1 * tallies[0],
    lambda score, *tallies: np.arctan(score) * (2 + np.tanh(tallies[-1])),
    lambda score, *tallies: np.where(tallies[0] % 2 == 0, score, -np.inf),
    lambda score, *tallies: np.sign(score) + 0.0 * tallies[0],
]


@given(
    sentence=sentences(),
    number=st.integers(0, len(OBJECTIVES) - 1),
    seed=st.integers(0, 2**16),
    which=st.sampled_from([(0,), (6,), (0, 7), (8, 6, 0)]),
)
def test_the_best_value_of_enumeration(
    sentence: Sentence, number: int, seed: int, which: tuple[int, ...]
) -> None:
    statistics = [some_statistics(sentence, seed)[i] for i in which]
    values = [
        float(OBJECTIVES[number](np.float64(score), *map(np.int64, tally)))
        for tally, score in by_tally(sentence, statistics).items()
        if score > -np.inf
    ]
    ways = ("auto", "bounds", "full")
    if max(values, default=-np.inf) == -np.inf:
        for way in ways:
            with pytest.raises(tt.InfeasibleError):
                tt.solve(sentence.forest, statistics, OBJECTIVES[number], strategy=way)
        return
    for way in ways:
        found = tt.solve(sentence.forest, statistics, OBJECTIVES[number], strategy=way)
        assert found.value == pytest.approx(max(values), abs=1e-9)
        if isinstance(found.certificate, parsing.TreeBoundsCertificate):
            tt.testing.check_bounds(found)


def test_a_function_of_two_counts_over_a_long_sentence() -> None:
    plain, m, n = toy(40), count("M"), count("N")
    rules = np.random.default_rng(1).normal(size=(41, 41, len(plain.grammar.binary)))
    forest = parsing.Forest(plain.grammar, plain.words, binary_scores=rules)

    def objective(score: Any, ms: Any, ns: Any) -> Any:
        return score - 0.2 * (ms - 12) ** 2 - 0.1 * abs(ns - 10)

    found = {way: tt.solve(forest, [m, n], objective, strategy=way) for way in ("auto", "bounds", "full")}
    for way in ("auto", "bounds"):
        assert found[way].value == pytest.approx(found["full"].value)
        assert isinstance(found[way].certificate, parsing.TreeBoundsCertificate)
        tt.testing.check_bounds(found[way])


def test_a_function_that_bounds_do_not_help_is_computed_from_the_chart() -> None:
    forest, m = toy(24), count("M")
    found = tt.solve(forest, [m], lambda score, ms: np.minimum(score, -1e6) + 0 * ms, strategy="bounds")
    assert found.value == -1e6 and isinstance(found.certificate, parsing.TreeCertificate)
