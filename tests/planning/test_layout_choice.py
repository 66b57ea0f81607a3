"""The layout that ``auto`` selects: the cheaper one in bytes and time, including planning."""

from itertools import product

import numpy as np
import pytest

import tallytree as tt
from tallytree import _native
from tallytree.planning.options import PlanOptions
from tallytree.planning.planner import plan_graph
from tallytree.solving import ask


def chain(length, entries):
    rng, states = np.random.default_rng(0), len(entries)
    model = tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))
    return model, tt.Statistic([((v,), entries) for v in range(length)], "s")


def tree(size, entries):
    rng, states = np.random.default_rng(0), len(entries)
    parents = [-1, *((v - 1) // 2 for v in range(1, size))]
    model = tt.Model.tree(parents, rng.normal(size=(size, states)), rng.normal(size=(states, states)))
    return model, tt.Statistic([((v,), entries) for v in range(size)], "s")


def planned(model, where, layout="auto"):
    return plan_graph(ask(model, [], where), PlanOptions(layout=layout, memory_limit=1e10))


@pytest.mark.parametrize("far", [10**5, 10**7, 2**39])
def test_shifts_beyond_a_cap_take_no_room_in_rows(far):
    model, s = chain(30, [0, 1, far])
    for layout in ("auto", "rows", "cells"):
        assert planned(model, s >= 5, layout).peak_bytes < 40_000
    scores = {tt.solve(model, where=s >= 5, layout=layout).score for layout in ("auto", "rows", "cells")}
    assert len(scores) == 1


@pytest.mark.parametrize("layout", ["rows", "cells"])
@pytest.mark.parametrize("entries", [[0, 1, 10**5], [-7, 0, 10**6], [3, -(10**5), 2]])
@pytest.mark.sanitize
def test_answers_with_shifts_beyond_a_cap(layout, entries):
    model, s = chain(4, entries)
    labellings = [np.array(y) for y in product(range(3), repeat=4)]
    for bound in (-(10**5), -8, 0, 1, 5, 10**5, 2 * 10**5 + 1):
        best = max((model.score(y) for y in labellings if s.tally(y) >= bound), default=None)
        if best is None:
            with pytest.raises(tt.InfeasibleError):
                tt.solve(model, where=s >= bound, layout=layout)
            continue
        assert tt.solve(model, where=s >= bound, layout=layout).score == pytest.approx(best)
        capped = tt.distribution(model, [s.capped(bound)], layout=layout)
        logs = {}
        for y in labellings:
            tally = min(s.tally(y), bound)
            logs[tally] = np.logaddexp(logs.get(tally, -np.inf), model.score(y))
        assert capped.tallies[:, 0].tolist() == sorted(logs)
        np.testing.assert_allclose(capped.log_partitions, [logs[t] for t in sorted(logs)])


def test_sparse_tallies_are_listed_as_cells():
    model, s = chain(30, [0, 1, 10**5])
    assert tt.plan(model, [s], memory_limit=1e10).mode == "cells"
    assert planned(model, s >= 200_005).mode == "cells"


@pytest.mark.parametrize(
    ("make", "size", "entries"),
    [(tree, 500, [0, 7, 100]), (tree, 3000, [0, 4]), (chain, 3000, [0, 2]), (chain, 800, [0, 1, 100])],
)
def test_cells_are_given_up_where_listing_them_costs_more_than_a_pass_over_rows(make, size, entries):
    model, s = make(size, entries)
    many, each = 10**12, 1e4
    plan = tt.plan(model, [s], memory_limit=1e10)
    _native.interrupt_at(many, each)
    try:
        tt.plan(model, [s], memory_limit=1e10, order=plan.order.tolist())
    finally:
        looks = many - _native.interrupt_at(0)
    assert plan.mode == "rows"
    numbers = plan.layout.arena_bytes / 8
    assert looks * each < 2e6 + 0.1 * (plan.operations + 10 * numbers)
