"""Tables that are partly recomputed for a labelling agree with those of a full pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import rolled
from strategies import generators, problems

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.planner import plan_graph
from tallytree.solving import ask
from tallytree.testing import check_distribution, check_profile


def chain(length, states, seed=0):
    rng = np.random.default_rng(seed)
    return tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(length - 1, states, states)))


def tree(length, states, seed=0):
    rng = np.random.default_rng(seed)
    parents = np.array([-1, *(int(rng.integers(max(0, i - 5), i)) for i in range(1, length))])
    return tt.Model.tree(
        parents, rng.normal(size=(length, states)), rng.normal(size=(length, states, states))
    )


def grid(length, states, seed=0):
    rng = np.random.default_rng(seed)
    pair = rng.normal(size=(states, states))
    return tt.Model.grid(rng.normal(size=(3, max(1, length // 3), states)), pair, -pair)


SHAPES = [chain, tree, grid]


def run_of(model, plan, **options):
    return native.Run(plan.layout, [block.tables for block in model.blocks], native.MAX_PLUS, **options)


@st.composite
def counted(draw):
    """A model, one statistic of any step and sign, perhaps capped, and a window."""
    rng = draw(generators())
    model = draw(st.sampled_from(SHAPES))(draw(st.integers(6, 40)), draw(st.integers(2, 3)), rng.integers(99))
    counts = draw(st.sampled_from([(0, 1), (0, 3), (-2, 1), (-1, 4)]))
    entries = [
        ((v,), rng.integers(counts[0], counts[1] + 1, size=k)) for v, k in enumerate(model.cardinalities)
    ]
    s = tt.Statistic(entries, name="s")
    low, high = int(sum(e.min() for _, e in entries)), int(sum(e.max() for _, e in entries))
    middle = draw(st.integers(low, high))
    return (
        model,
        draw(st.sampled_from([None, s <= middle, s >= middle, (s >= middle - 2) & (s <= middle)])),
        s,
    )


@settings(deadline=None)
@given(counted(), st.floats(0.0, 1.0))
def test_labellings_from_checkpoints_are_those_of_whole_tables(problem, share):
    model, where, s = problem
    query = ask(model, [s], where)
    whole = plan_graph(query, PlanOptions(layout="rows"))
    rest = whole.peak_bytes - whole.layout.arena_bytes
    try:
        cut = plan_graph(
            query, PlanOptions(layout="rows", memory_limit=rest + share * whole.layout.arena_bytes)
        )
    except tt.BudgetError:
        return
    expected, found = run_of(model, whole), run_of(model, cut)
    cells, _, values = expected.root()
    np.testing.assert_array_equal(found.root()[2], values)
    for cell in cells.tolist():
        np.testing.assert_array_equal(found.decode(cell), expected.decode(cell))


@settings(deadline=None)
@given(
    problems(largest=7),
    st.sampled_from(["rows", "cells"]),
    st.integers(2, 9),
    st.sampled_from([1, 2, 3]),
)
@pytest.mark.sanitize
def test_small_tables_that_roll_give_what_enumeration_gives(problem, tallies, segments, threads):
    model, statistics = problem
    plan = rolled(Plan(model, statistics, PlanOptions(layout=tallies)), segments)
    check_profile(tt.profile(model, statistics, plan=plan, threads=threads), model, statistics)
    check_distribution(tt.distribution(model, statistics, plan=plan, threads=threads), model, statistics)


@settings(deadline=None)
@given(counted(), st.integers(2, 12), st.sampled_from([2, 3]))
@pytest.mark.sanitize
def test_rolling_on_threads_has_the_bits_of_whole_tables(problem, segments, threads):
    """A grain of one operation makes a task of every step, and cuts every step into parts."""
    model, where, s = problem
    query = ask(model, [s], where)
    options = PlanOptions(layout="rows")
    whole = Plan(query.subject, query.carried, options, query.window)
    cut = rolled(Plan(query.subject, query.carried, options, query.window), segments)
    expected, found = run_of(model, whole), run_of(model, cut, threads=threads, grain=1.0)
    assert found.values.tobytes() == expected.values.tobytes()
    for cell in expected.root()[0].tolist():
        np.testing.assert_array_equal(found.decode(cell), expected.decode(cell))
    weights = np.zeros(len(expected.values))
    assert found.downward(weights).tobytes() == expected.downward(weights).tobytes()


def test_the_halves_of_a_chain_have_memory_of_their_own():
    """Two threads compute them at the same time: no table of one side may lie where one of the other does."""
    model = chain(40, 3)
    plan = rolled(Plan(model, [tt.count(model, state=1)], PlanOptions(layout="rows")), 6)
    tables = plan.tables
    middle = next(step for step in plan.steps if step.verb == "join")
    first, second = sorted(middle.inputs)
    kept = tables[:, 5].astype(bool)
    ends = tables[:, 4] + tables[:, 3] // 8
    side = np.arange(len(tables)) <= first
    assert ends[side & ~kept].max() <= tables[~side & ~kept, 4].min()
    assert first + 1 <= second
    assert kept[first]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("where", [None, "middle", "many"])
@pytest.mark.parametrize("threads", [1, 2])
def test_large_tables_roll_and_give_the_same(shape, where, threads):
    """Tables of more than 16 MB share memory that stays near the processor."""
    model = shape({chain: 2500, tree: 3000, grid: 700}[shape], 4 if shape is not grid else 3)
    count = tt.count(model, state=1)
    asked = {None: None, "middle": count == len(model) // 2, "many": count >= len(model) - 30}[where]
    plan = plan_graph(ask(model, [count], asked), PlanOptions())
    whole, rolling = run_of(model, plan, every=True), run_of(model, plan, threads=threads)
    cells, _, values = whole.root()
    np.testing.assert_array_equal(rolling.root()[2], values)
    for cell in cells[:: max(1, len(cells) // 7)].tolist():
        np.testing.assert_array_equal(rolling.decode(cell), whole.decode(cell))
    if shape is chain and where is None:
        assert rolling.native_steps > whole.native_steps, "some tables were computed again"


@pytest.mark.parametrize("threads", [1, 2, None])
def test_the_default_rolls_on_any_number_of_threads(threads):
    model = chain(2500, 4)
    count = tt.count(model, state=1)
    plan = tt.plan(model, [count])
    assert plan.segments > 8
    assert plan.every_table
    assert 8 * plan.layout.arena_bytes <= plan.layout.unrolled_bytes
    whole = Plan(model, [count], PlanOptions(every_table=True))
    assert whole.segments == 1
    assert whole.layout.arena_bytes == plan.layout.unrolled_bytes
    profiles = [tt.profile(model, [count], plan=p, threads=threads) for p in (whole, plan)]
    assert profiles[0].scores.tobytes() == profiles[1].scores.tobytes()
    for tally in (0, 625, 2500):
        expected, found = (p.at(tally) for p in profiles)
        np.testing.assert_array_equal(found.assignment, expected.assignment)


def test_tables_that_do_not_fit_roll_within_the_limit():
    """Where whole tables are refused, one answer is computed, and what needs all of them says so."""
    model = chain(2500, 4)
    count = tt.count(model, state=1)
    free = tt.plan(model, [count])
    limit = free.peak_bytes + free.layout.arena_bytes / 4
    plan = tt.plan(model, [count], memory_limit=limit)
    assert plan.peak_bytes <= limit < free.every_table_bytes / 4
    assert (plan.segments, plan.every_table, plan.every_table_bytes) == (
        free.segments,
        False,
        plan.peak_bytes,
    )
    found, expected = tt.profile(model, [count], memory_limit=limit), tt.profile(model, [count])
    assert found.scores.tobytes() == expected.scores.tobytes()
    np.testing.assert_array_equal(found.at(800).assignment, expected.at(800).assignment)
    with pytest.raises(tt.BudgetError, match=r"need every table.*raise memory_limit="):
        next(found.ranked())
    with pytest.raises(
        tt.BudgetError,
        match=r"marginals need every table twice, .* in all, but the limit is .* keeps checkpoints of",
    ):
        found.max_marginals(800)


def test_a_limit_that_leaves_no_room_for_both_keeps_all_tables():
    """Labellings in order of a profile need all tables beside those that rolled."""
    model = chain(2500, 4)
    count = tt.count(model, state=1)
    whole = Plan(model, [count], PlanOptions(every_table=True))
    plan = tt.plan(model, [count], memory_limit=whole.peak_bytes * 1.01)
    assert (plan.segments, plan.peak_bytes) == (1, whole.peak_bytes)


def test_a_rolled_run_makes_every_table_once_that_is_needed():
    model = chain(2500, 4)
    count = tt.count(model, state=1)
    plan = tt.plan(model, [count])
    whole, rolling = run_of(model, plan, every=True), run_of(model, plan)
    cells = whole.root()[0]
    weights = np.where(np.arange(len(cells)) == 700, 0.0, -np.inf)
    np.testing.assert_array_equal(rolling.downward(weights), whole.downward(weights))
    for ours, theirs in zip(
        native.KBest(rolling, cells[[700]]).next(5, 1e9),
        native.KBest(whole, cells[[700]]).next(5, 1e9),
        strict=True,
    ):
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(rolling.decode(int(cells[700])), whole.decode(int(cells[700])))


def test_single_precision_rolls_too():
    model = chain(2500, 4)
    count = tt.count(model, state=1)
    single = tt.solve(model, where=count == 900, precision="single", strategy="full", threads=1)
    double = tt.solve(model, where=count == 900, strategy="full", threads=1)
    assert single.score <= double.score <= single.score + single.gap
    assert single.tally == double.tally
