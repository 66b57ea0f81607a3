"""Several threads on one problem: results are identical, bit for bit, to those of one thread."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import little
from strategies import problems

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning.budget import LARGE, processors, threads_for
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan

ALGEBRAS = {
    "max-plus": (native.MAX_PLUS, 0),
    "log-sum-exp": (native.LOG_SUM_EXP, 0),
    "counting": (native.COUNTING, 97),
}


def passed(plan, model, algebra, threads):
    """Run a plan; a grain of one operation makes a task of every step, and cuts every step into parts."""
    return native.Run(plan.layout, [block.tables for block in model.blocks], *algebra, threads, 1.0)


def planned(model, statistics, tallies, share):
    """Plan with little memory, where that can be had: then tables are computed again from checkpoints."""
    whole = Plan(model, statistics, PlanOptions(layout=tallies))
    try:
        return Plan(
            model,
            statistics,
            PlanOptions(layout=tallies, memory_limit=little(whole, share) + 4000),
        )
    except tt.BudgetError:
        return whole


@given(
    problem=problems(feasible=False, largest=8),
    algebra=st.sampled_from(sorted(ALGEBRAS)),
    tallies=st.sampled_from(["rows", "cells"]),
    share=st.sampled_from([0.3, 1.0]),
)
@settings(max_examples=60, deadline=None)
@pytest.mark.sanitize
def test_every_cell_and_labelling_is_the_same_on_any_number_of_threads(problem, algebra, tallies, share):
    model, statistics = problem
    plan = planned(model, statistics, tallies, share)
    alone = passed(plan, model, ALGEBRAS[algebra], 1)
    for threads in (2, 3):
        run = passed(plan, model, ALGEBRAS[algebra], threads)
        assert run.values.tobytes() == alone.values.tobytes()
        assert run.native_steps == len(plan.steps)
        if algebra == "max-plus":
            for cell in alone.root()[0].tolist()[:4]:
                np.testing.assert_array_equal(run.decode(cell), alone.decode(cell))
        if algebra != "counting" and plan.segments == 1:
            weights = np.zeros(len(alone.values))
            assert run.downward(weights).tobytes() == alone.downward(weights).tobytes()


def chain(rng, length, states):
    model = tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))
    truth = rng.integers(0, states, length)
    return model, [tt.matches(model, truth, 0, name="tp"), tt.mismatches(model, truth, 0, name="fp")]


def tree(rng, size, states):
    parents = [-1, *(int(rng.integers(max(0, i - 5), i)) for i in range(1, size))]
    pair = rng.normal(size=(states, states))
    model = tt.Model.tree(parents, rng.normal(size=(size, states)), pair)
    return model, [tt.count(model, state=s, name=f"state{s}") for s in (0, 1)]


def grid(rng, rows, columns):
    pairs = rng.normal(size=(2, 2, 2))
    model = tt.Model.grid(rng.normal(size=(rows, columns, 2)), *pairs)
    return model, [tt.count(model, state=1, name="ones")]


@pytest.mark.parametrize("name", native.instruction_sets())
@pytest.mark.parametrize(
    ("make", "sizes"), [(chain, (40, 6)), (tree, (60, 3)), (grid, (5, 9)), (grid, (1, 200))]
)
def test_tasks_and_parts_of_larger_problems(make, sizes, name):
    model, statistics = make(np.random.default_rng(0), *sizes)
    tables = [block.tables for block in model.blocks]
    native.use_instruction_set(name)
    try:
        for wanted in (statistics, [], [s.capped(7) for s in statistics]):
            plan = tt.plan(model, wanted)
            alone = native.Run(plan.layout, tables, native.MAX_PLUS)
            for threads, grain in ((2, 1e3), (3, 1e4), (8, 1e2)):
                run = native.Run(plan.layout, tables, native.MAX_PLUS, 0, threads, grain)
                assert run.values.tobytes() == alone.values.tobytes()
                best = int(alone.root()[0][0])
                np.testing.assert_array_equal(run.decode(best), alone.decode(best))
    finally:
        native.use_instruction_set()


@pytest.mark.parametrize("lengths", [(700, 900), (130, 1000)])
def test_a_long_join_is_shared_out_by_cells(lengths):
    rng = np.random.default_rng(1)
    parents = [-1, 0, *range(1, lengths[0]), 0, *range(lengths[0] + 1, sum(lengths))]
    wide = tt.Model.tree(parents, rng.normal(size=(len(parents), 2)), rng.normal(size=(2, 2)))
    plan = tt.plan(wide, [tt.count(wide, state=1)])
    tables = [block.tables for block in wide.blocks]
    one, two = (native.Run(plan.layout, tables, native.MAX_PLUS, 0, threads, 1e4) for threads in (1, 2))
    assert one.values.tobytes() == two.values.tobytes()


def test_threads_are_an_argument_of_every_pass():
    model, statistics = chain(np.random.default_rng(2), 30, 4)
    one, two = (tt.profile(model, statistics, threads=n) for n in (1, 2))
    assert one.scores.tobytes() == two.scores.tobytes()
    assert tt.solve(model, statistics, threads=2).value == tt.solve(model, statistics).value
    some = [tt.distribution(model, statistics, threads=n) for n in (1, 3)]
    assert some[0].log_partitions.tobytes() == some[1].log_partitions.tobytes()
    assert some[0].counts == some[1].counts


@pytest.mark.parametrize("threads", [0, -1, True, 1.5, "two"])
def test_a_number_of_threads_is_a_positive_integer(threads):
    with pytest.raises(tt.ModelError, match="threads must be a positive integer or None, got"):
        tt.profile(tt.Model([2]), threads=threads)


def test_large_problems_get_all_processors_and_small_ones_a_single_thread():
    assert threads_for(LARGE - 1, None) == 1
    assert threads_for(LARGE, None) == processors() >= 1
    assert threads_for(1.0, 3) == threads_for(1e12, 3) == 3
