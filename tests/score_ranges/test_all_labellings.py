"""Ranges of scores by enumeration, where counting gains nothing."""

from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

import tallytree as tt
from tallytree.model.rounding import rounding
from tallytree.score_ranges import enumeration
from tallytree.score_ranges.enumeration import best_by_enumeration, labelling_count
from tallytree.score_ranges.window import Window
from tallytree.testing import brute_force


def subset_sums(size, seed=0):
    """A model in which every labelling has a score of its own."""
    unary = np.zeros((size, 2))
    unary[:, 1] = np.random.default_rng(seed).normal(size=size)
    return tt.Model.chain(unary, np.zeros((2, 2)))


@settings(deadline=None)
@given(
    model=models(largest=5),
    ends=st.tuples(st.floats(-5, 5), st.floats(0, 4)),
    row=st.sampled_from([1, 4, 2**16]),
)
def test_the_best_in_a_window_is_that_of_the_definition(model, ends, row):
    window = Window(ends[0], ends[0] + ends[1], rounding(model.blocks))
    scores = brute_force(model).scores
    inside = scores[(scores >= window.least) & (scores <= window.most)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(enumeration, "_ROW", row)
        found = best_by_enumeration(model, window)
    if not len(inside):
        assert found is None
    else:
        labelling = [found[v] for v in range(len(model.cardinalities))]
        assert model.score(labelling) == pytest.approx(inside.max())


def test_ten_million_labellings_take_seconds():
    model = subset_sums(23)
    assert labelling_count(model) == 2**23
    middle = tt.solve(model).score / 2
    began = perf_counter()
    with pytest.raises(tt.InfeasibleError, match="all labellings were enumerated"):
        tt.score_between(model, middle, middle + 1e-12, memory_limit=8e9)
    found = tt.score_between(model, middle - 0.01, middle)
    assert found.gap == 0 and middle - 0.01 <= found.score <= middle
    assert "all labellings were enumerated" in found.explain()
    with pytest.raises(tt.InfeasibleError):
        tt.score_between(model, middle, middle + 1e-12, labellings=10**7)
    assert perf_counter() - began < 30.0


def test_restrictions_and_names_are_kept():
    model = tt.Model.chain(
        np.random.default_rng(1).normal(size=(12, 4)), np.zeros((4, 4)), states=["a", "b", "c", "d"]
    )
    found = tt.score_between(model, -0.5, 0.5, labellings=10**6, fixed={0: "b"}, allowed={1: ["a", "c"]})
    assert found.labels[0] == "b" and found.labels[1] in ("a", "c")
    assert found.score == pytest.approx(model.score(found.assignment))
