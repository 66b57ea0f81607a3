"""The price of a table, from the ranges of its statistics, compared with its layout."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning.carried import tally_limits
from tallytree.planning.orders import skeleton
from tallytree.planning.search_price import _CALL, _VARIABLE, CACHED_BYTES, search_price

RNG = np.random.default_rng(0)
MODELS = {
    "chain": tt.Model.chain(RNG.normal(size=(120, 4)), RNG.normal(size=(4, 4))),
    "tree": tt.Model.tree(
        [-1, *(int(RNG.integers(0, v)) for v in range(1, 90))], RNG.normal(size=(90, 3)), np.eye(3)
    ),
    "grid": tt.Model.grid(RNG.normal(size=(4, 20, 2)), np.eye(2), np.eye(2)),
}


def priced(plan):
    """Return operations, the work of the tables and of their layout, and the bytes of the layout."""
    counts = [block.tables for s in plan.statistics for block in s.blocks]
    return native.table_price(plan.skeleton, counts, *tally_limits(plan.statistics, plan.window))


@pytest.mark.sanitize
@pytest.mark.parametrize("name", MODELS)
def test_one_count_has_the_operations_and_lists_of_its_layout(name):
    plan = tt.plan(MODELS[name], [tt.count(MODELS[name], state=1)])
    operations, _, _, size = priced(plan)
    assert operations == pytest.approx(plan.operations, rel=0.05)
    assert 0.7 * plan.layout.plan_bytes < size < 1.3 * plan.layout.plan_bytes


@pytest.mark.parametrize("name", ["chain", "tree"])
def test_two_counts_have_about_the_operations_of_their_layout(name):
    model = MODELS[name]
    plan = tt.plan(model, [tt.count(model, state=1), tt.count(model, state=2)])
    assert 0.25 * priced(plan)[0] < plan.operations < 1.1 * priced(plan)[0]


def test_short_rows_take_a_whole_vector():
    """A tenth of the tallies takes more than a tenth of the time."""
    model = MODELS["chain"]
    ones = tt.count(model, state=1)
    few, every = (priced(tt.plan(model, where=where)) for where in (ones <= 4, ones <= 120))
    assert few[1] / every[1] > 2 * few[0] / every[0]


def test_what_a_window_rules_out_costs_nothing():
    model = MODELS["chain"]
    ones = tt.count(model, state=1)
    works = [priced(tt.plan(model, where=ones == count))[1] for count in (5, 20, 60)]
    assert works == sorted(works)


def test_the_layout_counts_if_the_plan_is_too_large_to_be_cached():
    """Then it is made again for each question."""
    for size, cached in ((200, True), (4000, False)):
        model = tt.Model.chain(np.zeros((size, 2)), np.eye(2))
        plan = tt.plan(model, [tt.count(model, state=1)])
        _, work, layout, _ = priced(plan)
        assert (plan.kept_bytes <= CACHED_BYTES) is cached
        beside = plan.search.table_work - work - _VARIABLE * size - _CALL
        assert (beside < 0.5 * layout) is cached


@pytest.mark.sanitize
def test_programs_without_steps_have_no_price():
    """A sweep over a tree with many states keeps too many variables: such a program is not laid out."""
    rng = np.random.default_rng(5)
    parents = [-1, *(int(rng.integers(0, v)) for v in range(1, 200))]
    tree = tt.Model.tree(parents, rng.normal(size=(200, 8)), rng.normal(size=(8, 8)))
    ones = tt.count(tree, state=1)
    program = skeleton(tree, [ones], "sweep", draft=True)
    assert not program.feasible and program.drafted
    counts = [block.tables for block in ones.blocks]
    with pytest.raises(ValueError, match="without steps"):
        native.table_price(program, counts, *tally_limits([ones], {}))
    price = search_price(tree, [ones], {}, "sweep")
    assert price is None
    assert search_price(tree, [ones], {}).table_work < np.inf


def test_only_long_programs_are_priced_as_rolled():
    """A 10 x 30 grid has too few steps for tables that are rolled; their memory is fresh."""
    for rows, columns, rolled in ((10, 30, False), (12, 30, True)):
        grid = tt.Model.grid(np.zeros((rows, columns, 2)), np.eye(2), np.eye(2))
        plan = tt.plan(grid, where=tt.count(grid, state=1) == 100)
        assert (plan.peak_bytes < plan.every_table_bytes) is rolled
        _, work, _, _ = priced(plan)
        fresh = 6 * plan.every_table_bytes / 64  # nanoseconds for each block of 64 bytes
        assert (work > fresh) is not rolled
