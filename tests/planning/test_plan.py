"""Plans: predictions, printed form, and programs that are correct by definition."""

import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import needs_proc
from strategies import problems

import tallytree as tt
from tallytree.testing import check_profile, random_model

# ---------------------------------------------------------------- the definition


def check_plan(plan, model, statistics):
    """Check a program by its definition: it computes the right sum, whatever it costs."""
    steps = plan.steps
    assert [step.number for step in steps] == list(range(len(steps)))
    assert steps[-1].scope == ()
    consumed = [table for step in steps for table in step.inputs]
    assert sorted(consumed) == list(range(len(steps) - 1)), "every table but the last is consumed once"
    assert all(table < step.number for step in steps for table in step.inputs)
    eliminated = [step.variable for step in steps if step.verb == "eliminate"]
    assert sorted(eliminated) == list(range(len(model))), "every variable is eliminated once"
    score_scopes = [block.scopes.tolist() for block in model.blocks]
    shift_scopes = [block.scopes.tolist() for s in statistics for block in s.blocks]
    for step in steps:
        check_scope(step, steps, score_scopes, shift_scopes)
    check_absorbed([ref for step in steps for ref in step.factors], score_scopes)
    check_absorbed([ref for step in steps for ref in step.shifts], shift_scopes)
    check_running_intersection(steps)


def check_scope(step, steps, score_scopes, shift_scopes):
    below = [set(steps[table].scope) for table in step.inputs]
    assert len(set(step.scope)) == len(step.scope)
    if step.verb == "unit":
        assert not below
        assert set(step.scope) == ({step.variable} if step.variable is not None else set())
    elif step.verb == "join":
        assert len(below) == 2
        assert set(step.scope) == below[0] | below[1]
        assert not step.factors
        assert not step.shifts
    else:
        absorbed = [score_scopes[block][row] for block, row in step.factors]
        taken_along = [scope for scope in absorbed if step.variable not in scope]
        assert len(taken_along) <= 1
        assert all(len(scope) == 1 and scope[0] not in below[0] for scope in taken_along), "brought in here"
        shifted = [shift_scopes[block][row] for block, row in step.shifts]
        assert all(step.variable in scope for scope in shifted)
        own = [scope for scope in absorbed if step.variable in scope]
        assert all(scope[0] in set().union(*own, *shifted) for scope in taken_along)
        absorbed += shifted
        assert step.variable in below[0]
        assert set(step.scope) == below[0].union(*absorbed) - {step.variable}


def check_absorbed(refs, scopes):
    wanted = [(b, row) for b, rows in enumerate(scopes) for row, scope in enumerate(rows) if scope]
    assert sorted(refs) == wanted, "every factor is absorbed once"


def check_running_intersection(steps):
    """An eliminated variable is in no later table, and reaches that step by a path of tables."""
    gone = set()
    for step in steps:
        assert not gone & set(step.scope)
        if step.verb == "eliminate":
            gone.add(step.variable)
    consumer = {table: step for step in steps for table in step.inputs}
    for step in steps[:-1]:
        above = consumer[step.number]
        for variable in step.scope:
            assert variable in above.scope or above.variable == variable


@given(problem=problems(largest=12, local=True), data=st.data())
@settings(max_examples=150)
def test_programs_are_correct_by_definition(problem, data):
    model, statistics = problem
    orders = st.sampled_from([None, "min-fill", "min-degree", "min-weight", "natural", "sweep"])
    own = st.permutations(range(len(model)))
    order = data.draw(st.one_of(orders, own))
    plan = tt.plan(model, statistics, order=order)
    check_plan(plan, model, statistics)
    if isinstance(order, list):
        assert plan.order.tolist() == order


@given(problem=problems(largest=12, local=True))
@settings(max_examples=80)
def test_the_order_of_a_clique_tree_is_accepted_and_keeps_its_width(problem):
    model, statistics = problem
    tree = tt.clique_tree(model, statistics)
    plan = tt.plan(model, statistics, order=tree.order())
    assert plan.order.tolist() == list(tree.order())
    assert plan.width <= tree.width


def test_known_widths():
    rng = np.random.default_rng(0)
    for shape, variables, width in (("chain", 30, 1), ("star", 30, 1), ("cycle", 30, 2), ("grid", 25, 5)):
        assert tt.plan(random_model(rng, shape, variables=variables, states=2)).width == width


# ---------------------------------------------------------------- what it costs


def star(size, states=2):
    unary = np.random.default_rng(size).normal(size=(size, states))
    return tt.Model.tree([-1] + [0] * (size - 1), unary, np.zeros((states, states)))


@pytest.mark.parametrize("build", [star, lambda m: tt.Model.chain(np.zeros((m, 2)), np.zeros((2, 2)))])
def test_a_count_costs_about_the_square_of_the_size(build):
    """The paper's bound for the star is ``M · R²``, a cube; tight ranges, small joins first: a square."""
    sizes = np.array([100, 200, 400, 800])
    operations = np.array([tt.plan(build(m), [tt.count(state=1)]).operations for m in sizes])
    assert (operations <= 4 * sizes**2).all()
    slope = np.diff(np.log(operations)) / np.diff(np.log(sizes))
    assert (slope < 2.2).all()


def test_operations_are_counted_as_they_are_executed():
    """On a chain of M variables with N states, counting one of them: Σ_t N² (t + 1) from an end."""
    size, n = 40, 5
    model = tt.Model.chain(np.zeros((size, n)), np.zeros((n, n)))
    plan = tt.plan(model, [tt.count(state=1)], order=range(size))
    chain = sum(n * n * (t + 1) for t in range(size - 1)) + n * size
    assert plan.operations == pytest.approx(chain, rel=0.05)
    assert tt.plan(model, order=range(size)).operations == pytest.approx(n * n * (size - 1) + n, rel=0.05)


def test_64_capped_statistics_need_65_tallies_at_most():
    """Excluding K outputs: a table's tallies are which of them still agree, K + 1 sets at most, not 2^K."""
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(200, 4)), rng.normal(size=(4, 4)))
    others = rng.integers(4, size=(64, 200))
    statistics = [tt.mismatches(model, y, name=f"d{k}", cap=1) for k, y in enumerate(others)]
    plan = tt.plan(model, statistics)
    assert plan.tables[:, 2].max() <= 65
    assert plan.tallies <= 65
    profile = tt.profile(model, statistics, plan=plan)
    free = profile.at(*[1] * 64)
    assert free.score == pytest.approx(tt.profile(model).best().score, abs=1e-9)
    for k in range(3):
        alone = profile.at(*[int(i != k) for i in range(64)])
        assert alone.assignment.tolist() == others[k].tolist()


@pytest.mark.parametrize("shape", ["chain", "tree", "grid", "cycle"])
def test_excluding_outputs_on_small_models_equals_enumeration(shape):
    rng = np.random.default_rng(1)
    model = random_model(rng, shape, variables=6, states=2)
    others = rng.integers(model.cardinalities, size=(5, 6))
    statistics = [tt.mismatches(model, y, name=f"d{k}", cap=1) for k, y in enumerate(others)]
    plan = tt.plan(model, statistics)
    assert plan.tallies <= 6
    check_profile(tt.profile(model, statistics, plan=plan), model, statistics)


# ---------------------------------------------------------------- budgets


def test_too_little_memory_is_refused_with_the_table_that_does_not_fit():
    model = random_model(np.random.default_rng(0), "grid", variables=100, states=2)
    statistics = [tt.count(model, state=1, variables=range(k, 100, 4), name=f"n{k}") for k in range(4)]
    for build in (tt.plan, tt.profile, tt.distribution, tt.solve):
        with pytest.raises(
            tt.BudgetError,
            match=r"up to about [\d.]+ GiB.*limit is 1\.0 MiB.*over 10 variables.*memory_limit=",
        ) as caught:
            build(model, statistics, memory_limit=2**20)
        assert isinstance(caught.value, MemoryError)


def test_a_graph_beyond_any_memory_is_refused():
    rng = np.random.default_rng(0)
    dense = [((i, j), rng.normal(size=(3, 3))) for i in range(60) for j in range(i)]
    with pytest.raises(tt.BudgetError, match=r"too dense.*order \(order=\).*toulbar2") as refused:
        tt.plan(tt.Model([3] * 60, dense))
    assert refused.value.too_wide


@needs_proc
def test_a_refusal_stays_within_the_limit_itself():
    """A problem of terabytes: finding that out must not take more memory than the limit that it protects."""
    code = """
        import numpy as np, tallytree as tt
        def status(field):  # what getrusage says begins with the memory of the process that forked this one
            lines = open("/proc/self/status").read().splitlines()
            return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
        model = tt.Model.chain(np.zeros((300, 20)), np.zeros((20, 20)))
        statistics = [tt.count(model, state=s) for s in range(8)]
        before = status("VmRSS")
        try:
            tt.plan(model, statistics, memory_limit=200e6)
        except tt.BudgetError as error:
            print(status("VmHWM") - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=60
    )
    assert int(done.stdout) < 200e6


# The forecast against the resident memory of a process of its own; each about 300 MB.
BIG = {
    "rows": """
        model = tt.Model.chain(rng.normal(size=(1600, 30)), rng.normal(size=(30, 30)))
        statistics, options = [tt.count(model, state=1)], {"every_table": True}
    """,
    "rolling": """
        model = tt.Model.chain(rng.normal(size=(30000, 5)), rng.normal(size=(5, 5)))
        statistics, options = [tt.count(model, state=1)], {}
    """,
    "rolling, then in order": """
        model = tt.Model.chain(rng.normal(size=(1600, 30)), rng.normal(size=(30, 30)))
        statistics, options = [tt.count(model, state=1)], {}
    """,
    "two statistics": """
        model = tt.Model.chain(rng.normal(size=(245, 12)), rng.normal(size=(12, 12)))
        statistics, options = [tt.count(model, state=s) for s in (1, 2)], {}
    """,
    "cells": """
        model = tt.Model.chain(rng.normal(size=(1600, 30)), rng.normal(size=(30, 30)))
        statistics, options = [tt.count(model, state=1)], {"layout": "cells"}
    """,
    "checkpoints": """
        model = tt.Model.chain(rng.normal(size=(3000, 30)), rng.normal(size=(30, 30)))
        statistics, options = [tt.count(model, state=1)], {"memory_limit": 300e6, "every_table": True}
    """,
    "no statistics": """
        model = tt.Model.grid(rng.normal(size=(16, 45, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, 2)))
        statistics, options = [], {}
    """,
}


def resident(name):
    code = """
        import numpy as np, tallytree as tt
        from tallytree.planning.plan import Plan, PlanOptions
        def status(field):
            lines = open("/proc/self/status").read().splitlines()
            return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
        rng = np.random.default_rng(0)
        {problem}
        tt.profile(tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2))), [tt.count(state=1)]).best()
        before = status("VmRSS")
        plan = Plan(model, statistics, PlanOptions(**options))
        profile = tt.profile(model, statistics, plan=plan)
        profile.best()
        if {in_order}:
            next(profile.ranked())
        said = plan.every_table_bytes if {in_order} else plan.peak_bytes
        print(said, status("VmHWM") - before, plan.segments)
    """
    code = textwrap.dedent(code).replace("{problem}", textwrap.dedent(BIG[name]))
    code = code.replace("{in_order}", str("in order" in name))
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    return tuple(map(int, done.stdout.split()))


@needs_proc
@pytest.mark.parametrize("name", sorted(BIG))
def test_the_forecast_of_memory_is_what_is_used(name):
    forecast, measured, segments = resident(name)
    assert 150e6 < forecast < 500e6, "about 300 MB, so that the rest of the process does not matter"
    assert (segments > 1) == (name == "checkpoints" or "rolling" in name)
    assert measured == pytest.approx(forecast, rel=0.2)


@needs_proc
def test_marginals_stay_within_the_limit():
    code = """
        import numpy as np, tallytree as tt
        def status(field):
            lines = open("/proc/self/status").read().splitlines()
            return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
        model = tt.Model.chain(np.zeros((1600, 16)), np.zeros((16, 16)))
        limit = 1.1 * tt.plan(model, [tt.count(state=1)]).every_table_bytes
        before = status("VmRSS")
        try:
            tt.distribution(model, [tt.count(state=1)], memory_limit=limit).marginals()
        except tt.BudgetError:
            pass
        print(limit, status("VmHWM") - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True, timeout=60
    )
    limit, measured = map(float, done.stdout.split())
    assert measured <= 1.2 * limit


@needs_proc
@pytest.mark.parametrize(
    ("weights", "limit"), [("few", 55e6), ("few", 90e6), ("many", 90e6), ("many", 160e6)]
)
def test_planning_sparse_supports_stays_within_the_limit(weights, limit):
    """A million pairs of tallies, with few or a million different sums: merging them needs room, too."""
    code = """
        import sys, numpy as np, tallytree as tt
        def status(field):
            lines = open("/proc/self/status").read().splitlines()
            return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))
        rng, weights, limit = np.random.default_rng(0), sys.argv[1], float(sys.argv[2])
        model = tt.Model([1000, 1000], [((v,), np.zeros(1000)) for v in range(2)])
        few, many = np.arange(1000) * 10**7, rng.integers(0, 10**12, (2, 1000))
        tables = [few, few] if weights == "few" else many
        statistic = tt.Statistic([((v,), table) for v, table in enumerate(tables)])
        tt.plan(tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2))))
        before = status("VmRSS")
        try:
            tt.plan(model, [statistic], layout="cells", memory_limit=limit)
        except tt.BudgetError:
            pass
        print(status("VmHWM") - before)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code), weights, str(limit)],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert int(done.stdout) <= 1.05 * limit
