"""Weights so large that hardly two labellings have the same tally."""

import time

import numpy as np
import pytest

import tallytree as tt
from tallytree.testing import brute_force


def problem(size, largest=2**39, parts=1):
    rng = np.random.default_rng(size)
    model = tt.Model.chain(rng.normal(size=(size, 2)), rng.normal(size=(2, 2)))
    loads = [
        tt.node_statistic(
            np.column_stack([np.zeros(size, dtype=int), rng.integers(largest // 2, largest, size)]),
            name=f"load{i}",
        )
        for i in range(parts)
    ]
    return model, loads


QUESTIONS = {
    "plan": lambda model, loads, k: tt.plan(model, loads),
    "plan where": lambda model, loads, k: tt.plan(model, where=loads[0] <= k),
    "profile": lambda model, loads, k: tt.profile(model, loads),
    "distribution": lambda model, loads, k: tt.distribution(model, loads),
    "solve": lambda model, loads, k: tt.solve(model, where=loads[0] <= k),
    "solve by bounds": lambda model, loads, k: tt.solve(model, where=loads[0] <= k, strategy="bounds"),
    "exactly": lambda model, loads, k: tt.solve(model, where=loads[0] == k),
    "k best": lambda model, loads, k: tt.k_best(model, 3, where=loads[0] <= k),
}


@pytest.mark.parametrize("size", [40, 200, 2000])
@pytest.mark.parametrize("name", QUESTIONS)
def test_they_are_refused_at_once(name, size):
    model, loads = problem(size)
    start = time.process_time()
    with pytest.raises(tt.BudgetError, match=r"the plan needs up to about .* tallies") as error:
        QUESTIONS[name](model, loads, size * 2**38 // 2)
    assert time.process_time() - start < 4  # half a second on an idle machine, minutes before
    assert "by bounds" not in str(error.value)  # which have no numbers for these weights


@pytest.mark.parametrize("parts", [2, 3])
def test_several_are_refused_at_once(parts):
    model, loads = problem(60, parts=parts)
    start = time.process_time()
    with pytest.raises(tt.BudgetError, match="the plan needs up to about"):
        tt.plan(model, loads)
    assert time.process_time() - start < 4


def test_what_fits_is_still_planned():
    model, (load,) = problem(18)
    assert tt.plan(model, [load]).tallies == 2**18
    model, (load,) = problem(22)
    with pytest.raises(tt.BudgetError, match="the plan needs up to about"):
        tt.plan(model, [load], memory_limit=1e8)
    few = tt.node_statistic(np.repeat([[0, 2**39]], 3000, axis=0), name="few")  # far apart, but few
    model = tt.Model.chain(np.zeros((3000, 2)), np.zeros((2, 2)))
    assert tt.plan(model, [few]).tallies == 3001


def test_many_small_weights_and_a_few_large_ones_fit():
    rng = np.random.default_rng(0)
    weights = np.concatenate([rng.integers(1, 5000, 70), [2**39, 2**38 + 7, 2**37 + 5]])
    load = tt.node_statistic(np.column_stack([np.zeros_like(weights), weights]), name="load")
    model = tt.Model.chain(np.zeros((73, 2)), np.zeros((2, 2)))
    assert tt.plan(model, [load], memory_limit=1e10).tallies > 2**20


@pytest.mark.parametrize("layout", ["auto", "cells"])
@pytest.mark.parametrize("seed", range(6))
def test_windows_on_sums_that_are_far_apart(seed, layout):
    rng = np.random.default_rng(seed)
    model = tt.Model.chain(rng.normal(size=(9, 3)), rng.normal(size=(3, 3)))
    load = tt.node_statistic(rng.integers(-(10**6), 10**7, size=(9, 3)), name="load")
    every = brute_force(model, [load])
    tallies, scores = every.tallies[:, 0], every.scores
    low, high = sorted(int(t) for t in rng.choice(tallies, 2))
    for where, allowed in (
        ((load >= low) & (load <= high), (tallies >= low) & (tallies <= high)),
        (load <= low, tallies <= low),
        (load == high, tallies == high),
    ):
        assert tt.solve(model, where=where, layout=layout, strategy="full").score == pytest.approx(
            scores[allowed].max()
        )
        found = tt.distribution(model, [load], where=where, layout=layout)
        assert found.tallies.ravel().tolist() == sorted(set(tallies[allowed].tolist()))
    with pytest.raises(tt.InfeasibleError):
        tt.solve(model, where=load == int(tallies.max()) - 1, layout=layout, strategy="full")


def test_the_operation_limit_stops_planning():
    model, (load,) = problem(24)
    for where in (None, load <= 24 * 2**38):
        start = time.process_time()
        with pytest.raises(tt.BudgetError, match="more operations than operation_limit, which is 1e"):
            tt.solve(model, [load], lambda score, load: score, where=where, operation_limit=1e5)
        assert time.process_time() - start < 4
    with pytest.raises(tt.BudgetError, match="more operations than operation_limit"):
        tt.io.ProblemFile(model, [load]).profile(operation_limit=1e5)


def test_a_printed_plan_does_not_list_what_a_constraint_rules_out():
    model, (load,) = problem(22)
    start = time.process_time()
    text = str(tt.plan(model, where=load <= 22 * 2**38 // 3))
    assert "the constraint rules out most of the tallies in all tables" in text
    assert time.process_time() - start < 4
