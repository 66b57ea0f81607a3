"""Infeasible constraints are proven infeasible by prices, without tables."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.answers.nearest import unsatisfiable
from tallytree.planning.options import PlanOptions
from tallytree.running.bounds import ModelSearcher, Search, Wanted
from tallytree.solving import ask
from tallytree.testing import brute_force


def counted(model, states):
    return [tt.count(model, state=state) for state in states]


@pytest.mark.parametrize("states, bounds", [((0, 1), (1000, 1001)), ((0, 1, 2), (300, 400, 1299))])
@pytest.mark.parametrize("strategy", ["auto", "bounds"])
def test_counts_of_a_long_chain_that_do_not_add_up(states, bounds, strategy):
    rng = np.random.default_rng(len(states))
    model = tt.Model.chain(rng.normal(size=(2000, 3)), rng.normal(size=(3, 3)))
    parts = [one == bound for one, bound in zip(counted(model, states), bounds, strict=True)]
    where = parts[0]
    for part in parts[1:]:
        where = where & part
    with pytest.raises(tt.InfeasibleError, match="ranges from 0 to 2000"):
        tt.solve(model, where=where, strategy=strategy)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_losses_under_counts_that_do_not_add_up(scaling):
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(3000, 3)), rng.normal(size=(3, 3)))
    zeros, ones = counted(model, (0, 1))
    loss = tt.losses.HammingLoss(rng.integers(0, 3, 3000))
    with pytest.raises(tt.InfeasibleError, match="no labelling satisfies"):
        tt.loss_augmented(model, loss, scaling, where=(zeros == 1500) & (ones == 1501))


def test_sums_between_those_that_can_be_attained():
    rng = np.random.default_rng(4)
    model = tt.Model.chain(rng.normal(size=(60, 2)), rng.normal(size=(2, 2)))
    even = tt.node_statistic(np.tile([0, 2], (60, 1)), name="even").on(model)
    found = ModelSearcher(model, [even])(Search(Wanted([31], [31])))
    assert found.impossible and not found.finished and found.bound == -np.inf
    with pytest.raises(tt.InfeasibleError, match=r"=30.*=32"):
        tt.solve(model, where=even == 31, strategy="bounds")


def test_of_several_boxes_those_without_labellings_do_not_matter():
    rng = np.random.default_rng(5)
    model = tt.Model.chain(rng.normal(size=(90, 3)), rng.normal(size=(3, 3)))
    zeros, ones = counted(model, (0, 1))
    impossible = (zeros == 60) & (ones == 31)
    best = tt.solve(model, where=impossible | ((zeros == 50) & (ones == 30)), strategy="bounds")
    assert best.score == pytest.approx(tt.solve(model, where=(zeros == 50) & (ones == 30)).score)
    with pytest.raises(tt.InfeasibleError):
        tt.solve(model, where=impossible | ((zeros == 91) & (ones == 0)), strategy="bounds")


@given(problem=problems(), data=st.data())
@settings(max_examples=150)
def test_a_box_is_impossible_if_no_labelling_has_a_tally_of_it(problem, data):
    model, statistics = problem
    statistics = statistics[:3]
    statistics = [s.capped(None) for s in statistics]
    known = brute_force(model, statistics)
    tallies = set(map(tuple, known.tallies[known.scores > -np.inf].tolist()))
    low = [data.draw(st.integers(*s.extent)) for s in statistics]
    high = [a + data.draw(st.integers(0, 2)) for a in low]
    found = ModelSearcher(model, statistics)(Search(Wanted(low, high)))
    if found is None or not statistics or not tallies:
        return
    inside = [t for t in tallies if all(a <= x <= b for a, x, b in zip(low, t, high, strict=True))]
    assert found.impossible == (not inside) and found.finished == bool(inside)


def test_a_constraint_that_can_be_satisfied_is_never_reported_as_infeasible():
    """The nearest tallies of the error come from another computation, so they would show a wrong proof."""
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    query = ask(model, where=tt.count(state=1) == 1)
    with pytest.raises(tt.CertificateError, match=r"satisfies '.* == 1', but one has the tally \[1\]"):
        unsatisfiable(query, PlanOptions())
