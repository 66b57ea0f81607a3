"""The memory that the error of an oversized plan reports."""

import re
import time

import numpy as np
import pytest
from constraint_cases import constraints
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupts import interrupted, looks_of, some_looks
from strategies import problems

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import MODES, Plan, tally_limits
from tallytree.solving import ask


def estimate(plan):
    tables = [block.tables for s in plan.statistics for block in s.blocks]
    limits = tally_limits(plan.statistics, plan.window)
    mode, single = MODES[plan.options.layout], plan.precision == "single"
    return native.estimate_memory(plan.skeleton, tables, *limits, mode, plan.limit, single)


def least_limit(plan_with, high):
    """Return a limit with which the plan fits, and which is at most two percent too large."""
    low = 1.0
    while high > 1.02 * low:
        middle = (low * high) ** 0.5
        try:
            plan_with(middle)
            high = middle
        except tt.BudgetError:
            low = middle
    return high


@given(
    problem=problems(largest=9),
    layout=st.sampled_from(sorted(MODES)),
    precision=st.sampled_from(["double", "single"]),
    data=st.data(),
)
@settings(max_examples=300)
def test_a_plan_fits_what_was_estimated(problem, layout, precision, data):
    model, statistics = problem
    where = data.draw(constraints(statistics)) if statistics and data.draw(st.booleans()) else None
    query = ask(model, statistics, where)
    options = PlanOptions(layout=layout, precision=precision)
    plan = Plan(query.subject, query.carried, options, query.window)
    size, largest, states, tallies = estimate(plan)
    again = Plan(query.subject, query.carried, options._replace(memory_limit=size), query.window)
    assert again.peak_bytes <= size
    assert states == plan.tables[largest, 0]
    if plan.mode == "cells":  # rows also hold tallies that no labelling has
        assert states * tallies >= (plan.tables[:, 0] * plan.tables[:, 2]).max()


@pytest.mark.parametrize(("length", "states", "counts"), [(60, 4, 2), (40, 5, 3), (20, 6, 4), (100, 3, 1)])
def test_the_estimate_of_counts_is_close(length, states, counts):
    model = tt.Model.chain(np.zeros((length, states)), np.zeros((states, states)))
    statistics = [tt.count(state=k, name=f"n{k}") for k in range(counts)]
    plan = tt.plan(model, statistics)
    size, largest, _, tallies = estimate(plan)
    least = least_limit(lambda limit: tt.plan(model, statistics, memory_limit=limit), 2.0 * plan.peak_bytes)
    assert least <= size <= 1.5 * least
    assert tallies == pytest.approx(plan.tables[largest, 2])


def told(model, statistics, limit, **options):
    with pytest.raises(tt.BudgetError) as caught:
        tt.plan(model, statistics, memory_limit=limit, **options)
    text = str(caught.value)
    return re.search(r"needs up to about ([\d.,]+ \w+), but the limit is", text)[1], text


def test_what_is_needed_does_not_depend_on_the_limit():
    model = tt.Model.chain(np.zeros((200, 6)), np.zeros((6, 6)))
    statistics = [tt.count(state=k, name=f"n{k}") for k in range(4)]
    small, text = told(model, statistics, 1e6)
    assert small == told(model, statistics, 1e8)[0] == "46.7 GiB"
    assert "its largest table is over 1 variable: 6 states x up to 68.7 M tallies" in text
    assert "unit" not in text


def test_wide_graphs_are_told_by_their_states():
    size, text = told(tt.Model.grid(np.zeros((30, 30, 2)), np.zeros((2, 2)), np.zeros((2, 2))), [], 1e6)
    assert size.endswith("GiB")
    assert "its largest table is over 30 variables: 1.07 G states. Give a better" in text


def test_a_constraint_that_leaves_little_needs_little():
    model = tt.Model.chain(np.zeros((400, 4)), np.zeros((4, 4)))
    some = [tt.count(state=k, name=f"n{k}") for k in range(3)]
    where = (some[0] == 2) & (some[1] == 1) & (some[2] == 3)
    windowed, _ = told(model, (), 3e5, where=where)
    whole, _ = told(model, some, 3e5)
    assert windowed.endswith(("KiB", "MiB"))
    assert whole.endswith("GiB")


def test_many_different_statistics_are_estimated_by_their_ranges():
    """Each variable has shifts of its own, more kinds than are told apart."""
    values = np.random.default_rng(0).integers(0, 50, size=(60, 3))
    model = tt.Model.chain(np.zeros((60, 3)), np.zeros((3, 3)))
    statistics = [tt.node_statistic(values, name="a"), tt.node_statistic(values[::-1], name="b")]
    plan = tt.plan(model, statistics)
    size = estimate(plan)[0]
    assert plan.peak_bytes / 20 < size
    assert tt.plan(model, statistics, memory_limit=size).peak_bytes <= size


@pytest.mark.parametrize("layout", sorted(MODES))
def test_an_estimate_can_be_interrupted(layout):
    model = tt.Model.chain(np.zeros((30, 3)), np.zeros((3, 3)))
    plan = tt.plan(model, [tt.count(state=k, name=f"n{k}") for k in range(2)], layout=layout)
    looks = looks_of(lambda: estimate(plan))
    assert looks > 30
    assert all(interrupted(lambda: estimate(plan), look) for look in some_looks(looks, 20))


def least(plan):
    """Return the stretches and tallies that each table certainly has."""
    tables = [block.tables for s in plan.statistics for block in s.blocks]
    limits = tally_limits(plan.statistics, plan.window)
    return native.least_tallies(plan.skeleton, tables, *limits, MODES[plan.mode])


@given(
    problem=problems(largest=9),
    layout=st.sampled_from(["rows", "cells"]),
    counts=st.booleans(),
    data=st.data(),
)
@settings(max_examples=400)
def test_what_is_certain_is_there(problem, layout, counts, data):
    model, statistics = problem
    if counts:
        states = range(int(model.cardinalities.min()))
        statistics = [
            tt.count(model, state=state, cap=data.draw(st.none() | st.integers(0, 5))) for state in states
        ]
    where = data.draw(constraints(statistics)) if statistics and data.draw(st.booleans()) else None
    query = ask(model, statistics, where)
    plan = Plan(query.subject, query.carried, PlanOptions(layout=layout), query.window)
    if plan.mode == layout:
        assert (least(plan) <= plan.tables[:, 1:3]).all()


@pytest.mark.parametrize("where", [None, (3, 9), (0, 4)])
@pytest.mark.parametrize("layout", ["rows", "cells"])
def test_counts_of_a_chain_are_certain(where, layout):
    """All of them are known without a list, between the ends of a window too."""
    model = tt.Model.chain(np.zeros((12, 4)), np.zeros((4, 4)))
    ones, twos = (tt.count(model, state=state) for state in (1, 2))
    window = None if where is None else (ones >= where[0]) & (ones <= where[1]) & (twos <= 5)
    query = ask(model, [ones, twos], window)
    plan = Plan(query.subject, query.carried, PlanOptions(layout=layout), query.window)
    np.testing.assert_array_equal(least(plan), plan.tables[:, 1:3])


@pytest.mark.parametrize("where", [None, "window", "caps"])
def test_what_is_far_too_large_is_refused_at_once(where):
    model = tt.Model.chain(np.zeros((228, 5)), np.zeros((5, 5)))
    counts = [tt.count(model, state=state, name=f"c{state}") for state in range(4)]
    windows = {
        None: None,
        "window": (counts[0] == 50) & (counts[1] == 50) & (counts[2] == 50) & (counts[3] == 50),
        "caps": (counts[0] >= 90) | (counts[1] >= 90) | (counts[2] >= 90) | (counts[3] >= 90),
    }
    start = time.process_time()
    with pytest.raises(tt.BudgetError, match="the plan needs up to about"):
        tt.plan(model, counts if where is None else (), where=windows[where], memory_limit=2e9)
    assert time.process_time() - start < 1  # listing tallies up to the limit takes seconds
