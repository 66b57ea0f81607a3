"""Tables that are computed again, as far as a labelling needs them, are those of a whole pass."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning.options import PlanOptions
from tallytree.planning.planner import plan_graph
from tallytree.solving import ask


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


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("where", [None, "middle", "many"])
def test_large_tables_roll_and_give_the_same(shape, where):
    """Tables of more than 16 MB share memory that stays near the processor."""
    model = shape({chain: 2500, tree: 3000, grid: 700}[shape], 4 if shape is not grid else 3)
    count = tt.count(model, state=1)
    asked = {None: None, "middle": count == len(model) // 2, "many": count >= len(model) - 30}[where]
    plan = plan_graph(ask(model, [count], asked), PlanOptions())
    whole, rolling = run_of(model, plan, every=True), run_of(model, plan)
    cells, _, values = whole.root()
    np.testing.assert_array_equal(rolling.root()[2], values)
    for cell in cells[:: max(1, len(cells) // 7)].tolist():
        np.testing.assert_array_equal(rolling.decode(cell), whole.decode(cell))
    if shape is chain and where is None:
        assert rolling.native_steps > whole.native_steps, "some tables were computed again"


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
