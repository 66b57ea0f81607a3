"""Single precision: every score is an upper bound, and the gap covers what is lost.

Bounds are compared with exact sums, without tolerance.
"""

import math
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import little
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


# ---------------------------------------------------------------- the rounding mode


def rounds_to_nearest():
    half = float("1.1e-16")  # not a constant, which the compiler would add up
    return 1.0 + half == 1.0 and -1.0 - half == -1.0 and (np.ones(40) + half == 1.0).all()


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


# ---------------------------------------------------------------- what is told


@pytest.fixture
def model():
    return tt.Model.chain(np.array([[0.1, 1], [0, 0.7], [0.2, 0.3]]), np.zeros((2, 2)))


def test_the_certificate_says_the_gap(model):
    found = tt.solve(model, where=tt.count(state=1) == 1, precision="single")
    assert found.gap > 0
    assert not found.certificate.optimal
    assert found.certificate.gap == found.gap
    assert found.certificate.promised == pytest.approx(found.score + found.gap, abs=1e-15)
    first, _, third, _ = found.explain().splitlines()
    assert first == (
        f"optimal up to a gap of {found.gap:.2g}: no labelling that satisfies 'count_1 == 1' has a higher "
        "score by more than that"
    )
    assert third.endswith("an upper bound: single precision, rounded up")
    assert tt.solve(model).gap == 0.0
    assert tt.Solution(0.0, 0.0, (), np.zeros(3, dtype=np.int64), model).gap == np.inf


def test_whole_numbers_are_exact():
    model = tt.Model.chain(np.array([[0.0, 4], [1, 3], [0, 2]]), np.array([[0.0, 1], [1, 0]]))
    found = tt.solve(model, precision="single")
    assert (found.gap, found.score) == (0.0, tt.solve(model).score)
    assert found.certificate.optimal
    assert found.explain().startswith("optimal: no labelling has a higher score\n")


def test_answers_of_a_profile_have_their_own_values_and_gaps(model):
    ones = tt.count(model, state=1, name="ones")
    profile = tt.profile(model, [ones], precision="single")
    first, *others = profile.top(4, lambda score, k: score - 2 * k)
    assert first.value == first.score - 2 * first.tally.ones
    assert first.gap == (profile.scores - 2 * profile.tallies[:, 0]).max() - first.value
    for other in others:
        assert other.gap == profile.scores[other.tally.ones] - other.score
        assert other.value == other.score - 2 * other.tally.ones
    assert profile.at(ones=2).gap == profile.scores[2] - profile.at(2).score
    assert "upper bound" in profile._repr_html_()
    assert f"gap={first.gap:.2g})" in repr(first)
    assert f"<td>{first.gap:.2g}</td>" in first._repr_html_()
    assert "single precision" in str(profile.plan)


def test_pickles_keep_precision_and_gap(model):
    profile = tt.profile(model, [tt.count(state=1)], precision="single")
    again = pickle.loads(pickle.dumps(profile))
    assert (again.precision, again.best().gap) == ("single", profile.best().gap)
    assert pickle.loads(pickle.dumps(profile.best())).gap == profile.best().gap > 0
    assert pickle.loads(pickle.dumps(profile.plan)).peak_bytes == profile.plan.peak_bytes


def test_reductions_and_restrictions(model):
    where = tt.regular("0* 1 0*")
    found, best = (tt.solve(model, where=where, precision=p) for p in ("single", "double"))
    np.testing.assert_array_equal(found.assignment, best.assignment)
    assert 0 < found.gap < 1e-6
    assert tt.solve(model, fixed={0: 0}, precision="single").assignment[0] == 0


def test_degenerate_models():
    nothing = tt.Model([], [])
    assert tt.solve(nothing, precision="single").gap == 0.0
    constant = tt.Model([2], [((), 0.1), ((0,), [0.25, 0.5])])
    found = tt.solve(constant, precision="single")
    assert found.score == pytest.approx(0.6)
    assert 0 <= found.gap <= 2e-16  # constants stay doubles
    with pytest.raises(tt.InfeasibleError):
        tt.solve(tt.Model([2], [((0,), [-np.inf, -np.inf])]), precision="single")


# ---------------------------------------------------------------- what is refused


def test_what_single_precision_cannot_give_is_refused(model):
    ones = tt.count(model, state=1)
    profile = tt.profile(model, [ones], precision="single")
    refused = [
        (lambda: profile.max_marginals(), "marginals need double precision"),
        (lambda: profile.ranked(), "labellings in order need double precision"),
        (lambda: profile.ranked(lambda score, k: score), "labellings in order need double precision"),
        (lambda: tt.distribution(model, [ones], plan=profile.plan), "distributions need double precision"),
        (lambda: tt.profile(model, precision="single", backend="reference"), "reference runs need double"),
        (lambda: tt.plan(model, precision="half"), "precision must be 'double' or 'single', got 'half'"),
    ]
    for ask, text in refused:
        with pytest.raises(tt.ModelError, match=text):
            ask()


@pytest.mark.parametrize("score", [1e39, -1e39, 1e290, 2e38])
@pytest.mark.parametrize("threads", [1, 2])
def test_scores_beyond_single_precision_are_refused(score, threads):
    pairs = [[0.0, score], [-np.inf, 0.0]]
    model = tt.Model([2, 2, 2], [((0,), [score, 0.0]), ((1, 0), pairs), ((2,), [0, score])])
    with pytest.raises(tt.ModelError, match=r"the scores add up to .* but single precision ends at 1e\+38"):
        tt.solve(model, precision="single", threads=threads)
    assert rounds_to_nearest()


def test_an_objective_that_rounding_decides_is_refused(model):
    best = tt.solve(model).score
    bound = tt.profile(model, precision="single").scores[0]
    assert bound > best

    def sharp(score):
        return np.where(score > best, score, -np.inf)

    with pytest.raises(tt.ObjectiveError, match="single precision cannot decide"):
        tt.solve(model, objective=sharp, precision="single")


def test_layouts_of_the_other_precision_are_refused(model):
    tables = [block.tables for block in model.blocks]
    with pytest.raises(ValueError, match="this layout is for single precision"):
        native.Run(tt.plan(model, precision="single").layout, tables, native.MAX_PLUS)
    with pytest.raises(ValueError, match="this layout is for double precision"):
        native.SingleRun(tt.plan(model).layout, tables)
    with pytest.raises(IndexError, match="no such root cell"):
        native.SingleRun(tt.plan(model, precision="single").layout, tables).decode(9)
