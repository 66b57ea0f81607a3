"""The price of a table, from the ranges of its statistics, compared with its layout."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning.carried import tally_limits
from tallytree.planning.orders import drafted, skeleton
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


@pytest.mark.sanitize
@pytest.mark.parametrize("count", [1, 2])
def test_tallies_that_differ_by_multiples_are_as_many_as_others(count):
    """Programs may differ: some more work is counted, because they lie apart."""
    rng = np.random.default_rng(1)
    model, some = MODELS["chain"], rng.integers(0, 3, (count, 120, 4))

    def work(weight, more):
        counted = [tt.node_statistic(weight * one + more, name=f"s{p}") for p, one in enumerate(some)]
        plan = tt.plan(model, counted)
        return priced(plan)[0], plan.operations

    for weight, more in ((1000, 0), (10**6, 3), (2**30, -(2**29))):
        for far, near in zip(work(weight, more), work(1, 0), strict=True):
            assert 0.5 * near <= far <= 2 * near


def test_few_variables_have_few_tallies():
    model = tt.Model.chain(np.zeros((8, 2)), np.zeros((2, 2)))
    sums = tt.Statistic([((v,), [0, 3**v * 100 + v]) for v in range(8)]).on(model)
    assert priced(tt.plan(model, [sums]))[0] <= 8 * 2**9


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


@pytest.mark.parametrize("states", [2, 3, 5])
@pytest.mark.parametrize("part", [2, 4])
def test_prices_of_drafts_continue_those_of_programs(states, part):
    """A chain of twice the length takes two to four times as long, whatever its price is known from."""
    works = []
    for length in (12_000, 24_000):
        model = tt.Model.chain(np.zeros((length, states)), np.eye(states))
        ones = tt.count(model, state=1)
        assert drafted(model, [ones]) is (length > 12_000)
        works.append(tt.plan(model, where=ones == length // part).search.table_work)
    assert 1.7 < works[1] / works[0] < 4.7


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


def test_pairs_of_tallies_that_cannot_occur_are_not_priced():
    """A count of some variables is at most that of all: half of the pairs do not occur."""
    model = tt.Model.chain(np.zeros((200, 2)), np.eye(2))
    some, others, every = (
        tt.count(model, state=1, variables=range(*ends), name=name)
        for name, ends in (("some", (0, 200, 2)), ("others", (1, 200, 2)), ("every", (0, 200)))
    )
    nested, apart = (priced(tt.plan(model, pair)) for pair in ([some, every], [some, others]))
    exact = [tt.plan(model, pair).operations for pair in ([some, every], [some, others])]
    assert (
        nested[0] > 1.9 * apart[0] and exact[0] < 1.1 * exact[1]
    )  # the box is twice as large, the table is not
    assert nested[1] < 1.3 * apart[1]


def test_rolled_tables_cost_no_memory_but_parts_of_them_are_computed_again():
    """A block takes 1.2 ns to write and 0.3 or more to compute; decoding computes some of them again."""
    model = tt.Model.chain(np.zeros((6000, 2)), np.eye(2))
    plan = tt.plan(model, where=tt.count(model, state=1) == 3000)
    assert plan.peak_bytes < plan.every_table_bytes
    blocks = plan.every_table_bytes / 64
    assert 1.8 * blocks < priced(plan)[1] < 2.4 * blocks


@pytest.mark.parametrize("statistics", [1, 2, 3])
def test_a_search_fits_in_the_memory_that_is_expected(statistics):
    """With several statistics, bands are many times as large as with one."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        model = tt.Model.chain(rng.normal(size=(14, 4)), rng.normal(size=(4, 4)))
        where = tt.count(model, state=1) == 2
        for state in range(2, statistics + 1):
            where &= tt.count(model, state=state, name=f"of {state}") == 2
        price = tt.plan(model, where=where).search
        found = tt.solve(model, where=where, strategy="bounds", memory_limit=price.peak_bytes)
        assert isinstance(found.certificate, tt.BoundsCertificate)


def test_local_tables_of_orders_that_are_too_wide_are_not_read():
    """A sweep of a star may begin at its hub: what is counted there depends on most of the leaves."""
    pairs = [(1, 0), (0, 2), (0, 3), (4, 0), (5, 0), (6, 0), (7, 0), (0, 8), (0, 9), (10, 0), (0, 11), (9, 0)]
    star = tt.Model([9] * 12, [(pair, np.zeros((9, 9))) for pair in pairs])
    some = tt.Statistic([((v,), np.arange(9)) for v in (0, 1, 3, 4, 6, 7, 8, 9)], name="some")
    link = ((0, 6), np.tile(np.arange(9), (9, 1)))
    others = tt.Statistic([*(((v,), np.arange(9)) for v in (0, 6, 7, 8, 9, 11)), link], name="others")
    assert search_price(star, [some.on(star), others.on(star)], {0: (-16, -16), 1: (-17, None)}) is not None
