"""Budgets and cached plans, without measuring."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import grown, needs_proc
from memory_cases import PLANNED, SLACK

import tallytree as tt
from tallytree import _native
from tallytree.planning import orders, planner
from tallytree.planning.budget import Budget
from tallytree.planning.options import PlanOptions
from tallytree.planning.planner import plan_graph
from tallytree.planning.recent import Recent
from tallytree.solving import ask

# ---------------------------------------------------------------- without measuring


def uniform(length, states=3):
    return tt.Model.chain(np.zeros((length, states)), np.zeros((states, states)))


def test_a_program_that_cannot_fit_is_not_drawn_up(monkeypatch):
    monkeypatch.setattr("tallytree.planning.orders._Search.program", None)
    ones = tt.count(state=1)
    for where, strategy in ((None, "auto"), (ones <= 3, "auto"), (ones <= 3, "full"), (ones <= 3, "bounds")):
        with pytest.raises(
            tt.BudgetError,
            match=r"the plan needs .* for the program of 30,001 variables alone, but the limit is",
        ):
            tt.solve(uniform(30_001), where=where, memory_limit=5e6, strategy=strategy)


@pytest.mark.parametrize("size", [10**7, 2**40 - 1])
def test_sums_beyond_a_cap_take_no_room(size):
    model = tt.Model([2, 2], [((0,), [0.0, 1.0]), ((1,), [0.5, 0.0])])
    s = tt.Statistic([((0,), [-size, 0]), ((1,), [0, size])], name="s")
    plan = plan_graph(ask(model, [], s >= 1), PlanOptions(layout="rows"))
    assert plan.mode == "rows" and plan.peak_bytes < 10_000
    assert tt.solve(model, where=s >= 1, layout="rows").score == tt.solve(model, where=s >= 1).score == 1.0


def test_large_models_get_the_program_that_small_ones_do(monkeypatch):
    """Drafts lead to the same decisions as full programs."""
    rng = np.random.default_rng(0)
    parents = np.array([-1, *(int(rng.integers(0, i)) for i in range(1, 300))])
    model = tt.Model.tree(parents, rng.normal(size=(300, 3)), rng.normal(size=(3, 3)))
    shapes = [(uniform(50), [tt.count(state=1)]), (model, []), (model, [tt.count(model, state=1)])]
    whole = [tt.plan(m, s) for m, s in shapes]
    monkeypatch.setattr(orders, "_MANY", 0)
    _forget_plans(monkeypatch)
    for (m, s), plan in zip(shapes, whole, strict=True):
        again = tt.plan(m, s)
        assert again.order.tolist() == plan.order.tolist() and str(again) == str(plan)
        assert again.steps == plan.steps


def test_the_cache_of_programs_is_bounded_in_bytes(monkeypatch):
    programs, _ = _forget_plans(monkeypatch, most_bytes=1e5)
    for length in range(100, 140):
        tt.plan(uniform(length))
    assert 1 <= len(programs) < 10 and programs.bytes <= 1e5


def test_small_plans_that_come_again_are_kept_and_large_ones_are_not(monkeypatch):
    _, plans = _forget_plans(monkeypatch)
    monkeypatch.setattr(planner, "_MET", [0] * (1 << 20))
    small, large = uniform(10), uniform(10_000)
    ones, others = tt.count(small, state=1), tt.count(small, state=0, name="count_1")
    first, kept = tt.plan(small, [ones]), tt.plan(small, [ones])
    assert first is not kept
    assert tt.plan(uniform(10), [tt.count(state=1)]) is kept, "what is equal has the same plan"
    for plan in (
        tt.plan(small, [others]),
        tt.plan(small, [ones.named("ones")]),
        tt.plan(small, [ones], where=ones <= 3),
        tt.plan(small, [ones], layout="cells"),
        tt.plan(small, [ones], memory_limit=1e7),
        tt.plan(small, [ones], order="natural"),
        tt.plan(small),
    ):
        assert plan is not kept
    assert tt.plan(large) is not tt.plan(large)
    assert len(plans) == 1
    for length in (*range(2, 200), *range(2, 200)):
        tt.plan(uniform(length))
    assert tt.plan(uniform(199)) is tt.plan(uniform(199)) and tt.plan(large) is not tt.plan(large)
    assert len(plans) <= 128 and plans.bytes <= 16e6
    wide, many = tt.node_statistic(np.arange(80_000).reshape(10, -1) % 3), tt.Model([8_000] * 10)
    before = len(plans), plans.bytes
    for _ in range(3):
        tt.plan(many, [wide])
    assert (len(plans), plans.bytes) == before, "nor those with large statistics"


def _forget_plans(monkeypatch, **changes):
    """Start without cached plans."""
    fresh = []
    for module in (orders, planner):
        limits = {"most": module._RECENT.most, "most_bytes": module._RECENT.most_bytes}
        fresh.append(Recent(**limits | changes))
        monkeypatch.setattr(module, "_RECENT", fresh[-1])
    return fresh


def test_a_program_of_joins_that_cannot_fit_is_not_drawn_up(monkeypatch):
    parents = np.zeros(60_001, dtype=int)
    parents[0] = -1
    model = tt.Model.tree(parents, np.zeros((60_001, 2)), np.zeros((2, 2)))
    whole = tt.plan(model)
    least = _native.least_plan_bytes(60_001, 120_001, whole.skeleton.step_count - 60_001)
    assert least <= whole.skeleton.bytes + whole.layout.plan_bytes + whole.layout.answer_bytes
    _forget_plans(monkeypatch)
    drafts = []
    program = orders._Search.program
    monkeypatch.setattr(
        orders._Search,
        "program",
        lambda *args, draft=False: drafts.append(draft) or program(*args, draft=draft),
    )
    with pytest.raises(tt.BudgetError, match="for the program of 60,001 variables alone"):
        tt.plan(model, memory_limit=0.95 * least)
    assert all(drafts), "no program is built, at most drafts"


@given(seed=st.integers(0, 2**32))
@settings(max_examples=100)
def test_no_program_has_fewer_steps_than_it_is_known_to_need(seed):
    """Variables that hang on others, of one state or more, in several parts, with factors of any size."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 40))
    sizes = rng.integers(1, 4, size)
    above = [(int(rng.integers(0, min(i, 3))), i) for i in range(1, size) if rng.random() < 0.9]
    more = [tuple(rng.permutation(size)[: rng.integers(1, 4)].tolist()) for _ in range(rng.integers(0, 3))]
    model = tt.Model(sizes, [(scope, np.zeros(sizes[list(scope)])) for scope in (*above, *more)])
    counted = [tt.Statistic([((v,), np.arange(n)) for v, n in enumerate(sizes)])] if seed % 2 else []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(orders, "_MOST_IN_TABLE", 4)
        least = orders._Search(orders.Programs(model, counted), ()).least_steps()
        for order in (*orders.METHODS, rng.permutation(size)):
            program = orders.skeleton(model, counted, order)
            if program.feasible and program.width <= 4:
                assert program.step_count >= least


@needs_proc
def test_a_star_that_cannot_fit_is_refused_at_once():
    asked = PLANNED["star"].replace("20_000", "100_000")
    for limit in (1e6, 90e6):
        found = grown(asked, limit)
        assert "for the program of 100,001 variables alone" in found["refused"]
        assert found["growth"] < SLACK


@needs_proc
def test_what_waits_for_the_next_run_is_given_back():
    """Tables that are kept for the next run are given back when its limit is small."""
    found = grown(
        """
        def counted(length):
            model = chain(length, 3)
            return model, [tt.count(model, state=1), tt.count(model, state=2)]
        def small(limit):
            tt.profile(*counted(5), threads=1)
        tables = tt.plan(*counted(150)).layout.arena_bytes
        tt.profile(*counted(150), threads=1)
        def call(limit):
            gc.collect()
            held = status("VmRSS")
            tt.plan(chain(3, 2), memory_limit=1e6)
            return {"tables": tables, "given back": held - status("VmRSS")}
        """
    )["said"]
    assert found["tables"] > 10e6
    assert found["given back"] > 0.9 * found["tables"]


def test_threads_are_as_many_as_there_is_room_for():
    plan = tt.plan(uniform(20, 300), memory_limit=1e9)
    one = plan.peak_bytes + plan.layout.scratch_bytes * (1 - plan.threads())
    tight = tt.plan(uniform(20, 300), memory_limit=one + 1.5 * plan.layout.scratch_bytes)
    assert (plan.threads(8), tight.threads(8), tight.threads(1)) == (8, 2, 1)


def test_a_search_that_has_no_room_goes_on_with_what_it_has_found():
    """Labellings that were found before the limit was met come before the error."""
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(40, 3)), rng.normal(size=(3, 3)))
    every, seen = [s.score for s in tt.k_best(model, 3000)], []
    with pytest.raises(tt.BudgetError, match=r"of which ([\d,]+) have been found") as caught:
        seen.extend(s.score for s in tt.iter_best(model, memory_limit=3e5))
    said = int(str(caught.value).split("of which ")[1].split(" ")[0].replace(",", ""))
    assert len(seen) == said and seen == every[:said]


def test_excluding_counts_what_is_excluded():
    model = uniform(200)
    some = np.random.default_rng(0).integers(0, 3, size=(500, 200))
    with pytest.raises(tt.BudgetError, match=r"the [\d,]+ labellings to exclude: together"):
        tt.exclude(model, some, memory_limit=2e5)


def test_a_budget_counts_and_gives_back():
    budget = Budget(100.0, held=60.0)
    budget.need(40.0, "a table")
    with pytest.raises(
        tt.BudgetError, match="a table: together with the memory already in use, this takes 101 bytes"
    ):
        budget.need(41.0, "a table")
    budget.hold(40.0, "a list")
    assert budget.room == 0
    budget.hold(-30.0, "a list")
    assert budget.room == 30
    with pytest.raises(tt.BudgetError, match=r"the limit is 100 bytes. Ask for less, or raise memory_limit="):
        budget.hold(31.0, "a list")


@pytest.mark.parametrize("limit", [2e5, 4e5, 8e5, 2e6])
def test_relaxing_stops_to_look_where_memory_is_short(limit):
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(150, 3)), rng.normal(size=(3, 3)))
    where = (tt.count(model, state=1) == 50) & (tt.count(model, state=2) == 47)
    free = tt.relax(model, where=where, iterations=5)
    found = tt.relax(model, where=where, iterations=5, memory_limit=limit)
    assert found.upper_bound >= tt.solve(model, where=where).score - 1e-9
    assert found.upper_bound >= free.upper_bound


def test_a_limit_is_a_number_of_bytes():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    for wrong in ("1GB", [1e9]):
        with pytest.raises(tt.ModelError, match="memory_limit must be a number of bytes, such as 1e9; got"):
            tt.solve(model, where=tt.count(state=1) >= 1, memory_limit=wrong)
