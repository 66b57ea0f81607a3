"""Single precision: every score is an upper bound, and the gap covers what is lost.

Bounds are compared with exact sums, without tolerance.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import little
from single_cases import rounds_to_nearest
from strategies import generators, problems

import tallytree as tt
from tallytree.kernels import native
from tallytree.model.blocks import Block
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.precision import single_rounding
from tallytree.testing import brute_force
from tallytree.testing.enumeration import factors_of

SCALES = {
    "plain": lambda rng: 1.0,
    "subnormal": lambda rng: 1e-43,
    "too small for a float": lambda rng: 1e-300,
    "large": lambda rng: 1e36,
    "mixed": lambda rng: 10.0 ** rng.uniform(-50, 20),
}


def scaled(model, rng, scale):
    blocks = [Block(block.scopes, block.tables * SCALES[scale](rng)) for block in model.blocks]
    return tt.Model.from_blocks(model.cardinalities, blocks)


def exact_scores(every):
    """Return the sums of all labellings, rounded once: no bound of a sum is below that."""
    entries = [
        table[tuple(every.labellings[:, v] for v in scope)] * np.ones(len(every.labellings))
        for scope, table in factors_of(every.model.blocks)
    ]
    return np.array([math.fsum(row) for row in np.array(entries).T.reshape(len(every.labellings), -1)])


def run_of(plan, model, threads=1):
    """Run a plan; a grain of one operation makes a task of every step, and cuts every step into parts."""
    return native.SingleRun(plan.layout, [block.tables for block in model.blocks], threads, 1.0)


def planned(model, statistics, tallies, share=1.0):
    """Plan with little memory, where that can be had: then tables are computed again from checkpoints."""
    whole = Plan(model, statistics, PlanOptions(layout=tallies, precision="single"))
    limit = little(whole, share) + 4000
    try:
        return Plan(model, statistics, PlanOptions(layout=tallies, precision="single", memory_limit=limit))
    except tt.BudgetError:
        return whole


@pytest.fixture(autouse=True)
def _restored_instruction_set():
    before = native.instruction_set()
    yield
    native.use_instruction_set(before)


# ---------------------------------------------------------------- against all labellings


@given(
    problem=problems(feasible=False),
    scale=st.sampled_from(sorted(SCALES)),
    rng=generators(),
    tallies=st.sampled_from(["rows", "cells"]),
    name=st.sampled_from(native.instruction_sets()),
)
@settings(max_examples=120)
@pytest.mark.sanitize
def test_scores_are_bounds_and_gaps_cover_what_is_lost(problem, scale, rng, tallies, name):
    native.use_instruction_set(name)
    model, statistics = scaled(problem[0], rng, scale), problem[1]
    every = brute_force(model, statistics)
    scores = exact_scores(every)
    profile = tt.profile(model, statistics, layout=tallies, precision="single")
    attainable, _ = every.profile()
    np.testing.assert_array_equal(profile.tallies, attainable)
    for row, tally in enumerate(attainable):
        best = scores[(every.tallies == tally).all(axis=1)].max()
        found = profile.row(row)
        assert profile.scores[row] >= best
        assert found.value == found.score
        assert found.gap >= profile.scores[row] - found.score
        assert 0.0 <= found.gap <= single_rounding(*sizes(model, found.assignment))
    if len(profile):
        found = profile.best()
        assert found.gap >= profile.scores.max() - found.score >= scores.max() - found.score


def sizes(model, assignment):
    local = [abs(float(table[tuple(assignment[list(scope)])])) for scope, table in factors_of(model.blocks)]
    return len(local), sum(local)


@given(problem=problems(most=2), weight=st.integers(-3, 3), rng=generators())
@settings(max_examples=40)
def test_the_gap_of_an_objective_and_a_constraint(problem, weight, rng):
    model, statistics = problem
    every = brute_force(model, statistics)

    def objective(score, *tally):
        return np.minimum(2 * score, score + 1) + weight * sum(tally, np.zeros_like(score))

    some = every.tallies[int(rng.integers(len(every.tallies)))]
    where = statistics[0] >= int(some[0]) if statistics else None
    try:
        best = every.best(objective, where)
    except tt.InfeasibleError:
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, statistics, objective, where=where, precision="single")
        return
    found = tt.solve(model, statistics, objective, where=where, precision="single")
    tally = np.array(found.tally[: len(statistics)], dtype=np.int64)
    assert found.value == objective(np.array([found.score]), *tally[:, None])
    assert found.score == pytest.approx(model.score(found.assignment), abs=1e-12)
    assert best.value - found.value <= found.gap + 1e-12 <= 1e-3
    if where is not None:
        assert found.tally[0] >= some[0]


@given(
    problem=problems(feasible=False, largest=8),
    tallies=st.sampled_from(["rows", "cells"]),
    share=st.sampled_from([0.3, 1.0]),
)
@settings(max_examples=30)
@pytest.mark.sanitize
def test_the_same_on_any_number_of_threads_and_instruction_set(problem, tallies, share):
    model, statistics = problem
    plan = planned(model, statistics, tallies, share)
    native.use_instruction_set("baseline")
    alone = run_of(plan, model)
    cells = alone.root()[0].tolist()[:4]
    labellings = [alone.decode(cell).tolist() for cell in cells]
    for name in native.instruction_sets():
        native.use_instruction_set(name)
        for threads in (1, 3):
            run = run_of(plan, model, threads)
            assert run.values.tobytes() == alone.values.tobytes()
            assert [run.decode(cell).tolist() for cell in cells] == labellings
            assert rounds_to_nearest()


# ---------------------------------------------------------------- against double precision


def chain(rng):
    model = tt.Model.chain(rng.normal(size=(45, 7)), rng.normal(size=(44, 7, 7)))
    truth = rng.integers(0, 7, 45)
    return model, [tt.matches(model, truth, 0, name="tp"), tt.mismatches(model, truth, 0, name="fp")]


def capped_chain(rng):
    model = tt.Model.chain(rng.normal(size=(90, 4)), rng.normal(size=(4, 4)))
    return model, [tt.count(model, state=1), tt.count(model, state=2).capped(30)]


def tree(rng):
    parents = [-1, *(int(rng.integers(max(0, i - 5), i)) for i in range(1, 70))]
    model = tt.Model.tree(parents, rng.normal(size=(70, 3)), rng.normal(size=(3, 3)))
    return model, [tt.count(model, state=s, name=f"state{s}") for s in (0, 1)]


def two_paths(rng):
    parents = [-1, *range(300), 0, *range(301, 600)]
    model = tt.Model.tree(parents, rng.normal(size=(601, 2)), rng.normal(size=(2, 2)))
    return model, [tt.count(model, state=1)]


def grid(rng):
    pairs = rng.normal(size=(2, 3, 3))
    model = tt.Model.grid(rng.normal(size=(4, 12, 3)), *pairs)
    return model, [tt.count(model, state=1)]


def wide_chain(rng):
    return tt.Model.chain(rng.normal(size=(60, 37)), rng.normal(size=(59, 37, 37))), []


@pytest.mark.parametrize("name", native.instruction_sets())
@pytest.mark.parametrize("make", [chain, capped_chain, tree, two_paths, grid, wide_chain])
def test_large_problems_lie_just_above_double_precision(make, name):
    native.use_instruction_set(name)
    model, statistics = make(np.random.default_rng(0))
    double = tt.profile(model, statistics)
    single = tt.profile(model, statistics, precision="single")
    np.testing.assert_array_equal(single.tallies, double.tallies)
    above = single.scores - double.scores
    assert above.min() >= -1e-10
    assert above.max() <= 3e-5 * np.abs(double.scores).max()
    best, found = double.best(), single.best()
    assert best.score - found.score <= found.gap <= above.max() + best.score - found.score + 1e-10
    assert single.plan.layout.arena_bytes < double.plan.layout.arena_bytes
    assert single.precision == "single"


def test_checkpoints_give_the_same_answer_in_less_memory():
    model, statistics = chain(np.random.default_rng(1))
    whole = tt.profile(model, statistics, precision="single")
    cut = tt.plan(model, statistics, precision="single", memory_limit=whole.plan.peak_bytes // 2)
    assert cut.segments > 1
    found = tt.profile(model, statistics, plan=cut)
    np.testing.assert_array_equal(found.scores, whole.scores)
    np.testing.assert_array_equal(found.best().assignment, whole.best().assignment)
    double = tt.plan(model, statistics)
    assert cut.peak_bytes < whole.plan.peak_bytes < 0.65 * double.peak_bytes


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("stops", [False, True])
def test_python_rounds_to_nearest_meanwhile_and_afterwards(threads, stops):
    signal = pytest.importorskip("signal")
    rng = np.random.default_rng(0)
    parents = [-1, *(int(rng.integers(0, i)) for i in range(1, 300))]
    model = tt.Model.tree(parents, rng.normal(size=(300, 3)), rng.normal(size=(3, 3)))
    statistics = [tt.count(model, state=s, name=f"state{s}") for s in (0, 1)]
    plan = tt.plan(model, statistics, precision="single")
    seen = []

    def look(*_):
        seen.append(rounds_to_nearest())
        if stops:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, look)
    try:
        signal.setitimer(signal.ITIMER_REAL, 2e-3, 2e-3)
        tt.profile(model, statistics, plan=plan, threads=threads).best()
    except KeyboardInterrupt:
        assert stops
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert seen
    assert all(seen)
    assert rounds_to_nearest()


def test_a_failed_objective_leaves_the_rounding_as_it_was():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(ZeroDivisionError):
        tt.solve(model, objective=lambda score: 1 // 0, precision="single")
    assert rounds_to_nearest()
