"""Batches: every answer is identical, bit for bit, to that of a single call, on any number of threads."""

import pickle
import threading

import numpy as np
import pytest
from batch_cases import alone, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.bulk.batch import _ProfileOf, _SolutionOf
from tallytree.bulk.jobs import Batch, BatchOptions
from tallytree.kernels import native
from tallytree.planning.budget import readable_bytes
from tallytree.planning.options import PlanOptions
from tallytree.testing import check_profile, check_solution


def batches(most=5, **options):
    return st.lists(problems(feasible=False, largest=5, **options), max_size=most)


def ratio(score, *tallies):
    """Return an objective that does not decrease in the score, with many ties."""
    return np.floor(score) / (1 + sum((np.abs(t) for t in tallies), np.zeros_like(score)))


def penalty(score, *tallies):
    """Return an objective that looks at every tally."""
    return score - sum((np.abs(t - 1) for t in tallies), np.zeros_like(score))


# ---------------------------------------------------------------- the same answers


@given(some=batches(), threads=st.integers(1, 4), tallies=st.sampled_from(["auto", "rows", "cells"]))
@settings(max_examples=150, deadline=None)
def test_profiles_equal_those_made_one_by_one(some, threads, tallies):
    models, statistics = [model for model, _ in some], [statistics for _, statistics in some]
    found = tt.profile_batch(models, statistics, threads=threads, layout=tallies)
    assert len(found) == len(some)
    for profile, model, given_statistics in zip(found, models, statistics, strict=True):
        expected = tt.profile(model, given_statistics, layout=tallies)
        np.testing.assert_array_equal(profile.tallies, expected.tallies)
        assert profile.scores.tobytes() == expected.scores.tobytes()
        assert profile.names == expected.names
        check_profile(profile, model, given_statistics)


@given(some=batches(), threads=st.integers(1, 4), objective=st.sampled_from([None, penalty]))
@settings(max_examples=150, deadline=None)
def test_solutions_equal_those_found_one_by_one(some, threads, objective):
    models, statistics = [model for model, _ in some], [statistics for _, statistics in some]
    found = tt.solve_batch(models, statistics, objective, threads=threads, errors="return")
    for solution, model, given_statistics in zip(found, models, statistics, strict=True):
        assert_same(solution, alone(tt.solve, model, given_statistics, objective, strategy="full"))
        if isinstance(solution, tt.Solution):
            check_solution(solution, model, given_statistics)


@given(some=batches(most=4), data=st.data())
@settings(max_examples=100, deadline=None)
def test_constraints_and_fixed_states_are_kept_to_as_one_by_one(some, data):
    models, statistics = [model for model, _ in some], [statistics for _, statistics in some]
    where = [_constraint(data.draw, given_statistics) for given_statistics in statistics]
    fixed = [data.draw(st.sampled_from([None, {0: 0}, {len(m) - 1: 0}])) for m in models]
    allowed = [data.draw(st.sampled_from([None, {0: [0]}])) for _ in models]
    found = tt.solve_batch(
        models, statistics, penalty, where=where, fixed=fixed, allowed=allowed, errors="return"
    )
    for i, solution in enumerate(found):
        options = {"where": where[i], "fixed": fixed[i], "allowed": allowed[i]}
        assert_same(solution, alone(tt.solve, models[i], statistics[i], penalty, strategy="full", **options))


def _constraint(draw, statistics):
    """Draw a constraint: on one statistic, on a combination, or on one that the objective does not get."""
    hidden = tt.count(state=0, name="hidden")
    terms = [*statistics, hidden, sum((s.capped(None) for s in statistics), start=hidden) - hidden]
    constraint = draw(st.sampled_from(terms)) >= draw(st.integers(-2, 3))
    if draw(st.booleans()):
        constraint &= hidden <= draw(st.integers(0, 3))
    return draw(st.sampled_from([None, constraint]))


def held_for(models, statistics=None):
    """Return what a batch counts for its problems and answers, beside the tables of runs."""
    each = [()] * len(models) if statistics is None else statistics
    problems = {n: _ProfileOf(m, s, None, None) for n, (m, s) in enumerate(zip(models, each, strict=True))}
    return Batch(problems, BatchOptions.read({}, "raise", tt.profile_batch)).held.budget.held


def test_problems_and_answers_count_towards_the_limit():
    models = [tt.Model.chain(np.zeros((10, 2)), np.zeros((2, 2)))] * 50
    held = held_for(models)
    words = rf"a batch of 50 problems and answers: .* takes {readable_bytes(held)}, but"
    with pytest.raises(tt.BudgetError, match=words):
        tt.solve_batch(models, memory_limit=0.9 * held, errors="return")
    assert len(tt.solve_batch(models, memory_limit=1e5 + held)) == 50


@given(some=batches(most=3), share=st.floats(0.3, 1.0))
@settings(max_examples=60, deadline=None)
def test_little_memory_is_refused_or_enough_as_one_by_one(some, share):
    models, statistics = [model for model, _ in some], [statistics for _, statistics in some]
    sizes = [tt.plan(m, s).layout.arena_bytes for m, s in zip(models, statistics, strict=True)]
    limit = share * max(sizes, default=1)
    found = tt.solve_batch(
        models, statistics, memory_limit=limit + held_for(models, statistics), threads=3, errors="return"
    )
    for solution, model, given_statistics in zip(found, models, statistics, strict=True):
        assert_same(solution, alone(tt.solve, model, given_statistics, memory_limit=limit, strategy="full"))


def sentences(count=60, states=5, seed=0):
    rng = np.random.default_rng(seed)
    pair = rng.normal(size=(states, states))
    for length in rng.integers(1, 30, count):
        model = tt.Model.chain(rng.normal(size=(length, states)), pair)
        truth = rng.integers(0, states, length)
        yield model, [tt.matches(model, truth, 0, name="tp"), tt.mismatches(model, truth, 0, name="fp")]


@pytest.mark.parametrize("name", native.instruction_sets())
def test_the_number_of_threads_changes_nothing(name):
    models, statistics = zip(*sentences(), strict=True)
    native.use_instruction_set(name)
    try:
        expected = tt.solve_batch(models, statistics, ratio, threads=1)
        for threads in (2, 3, 8, 100):
            for one, other in zip(
                tt.solve_batch(models, statistics, ratio, threads=threads), expected, strict=True
            ):
                assert_same(one, other)
    finally:
        native.use_instruction_set()
    for solution, model, given_statistics in zip(expected, models, statistics, strict=True):
        assert_same(solution, tt.solve(model, given_statistics, ratio))


@pytest.mark.parametrize("threads", [1, 2])
def test_reductions_and_machines_are_solved_as_one_by_one(threads):
    rng = np.random.default_rng(1)
    pair = rng.normal(size=(3, 3))
    models = [tt.Model.chain(rng.normal(size=(n, 3)), pair, states=["O", "B", "I"]) for n in (1, 3, 6)]
    inside = tt.count(state="I", name="inside")
    where = tt.regular("(O|B I*)*") & (inside >= 1)
    found = tt.solve_batch(models, [inside], penalty, where=where, threads=threads, errors="return")
    for solution, model in zip(found, models, strict=True):
        assert_same(solution, alone(tt.solve, model, [inside], penalty, where=where))
    assert isinstance(found[0], tt.InfeasibleError) and isinstance(found[2], tt.Solution)
    truths = [rng.integers(0, 3, len(model)) for model in models]
    recipe = tt.losses.FBeta(background="O")
    answers = tt.loss_augmented_batch(
        models, recipe, "slack", truths=truths, where=where, threads=threads, errors="return"
    )
    for answer, model, truth in zip(answers, models, truths, strict=True):
        expected = alone(
            tt.loss_augmented, model, recipe.against(truth), "slack", where=where, strategy="full"
        )
        assert_same(answer, expected)


# ---------------------------------------------------------------- arguments


def chains(*lengths):
    scores = np.array([[0.0, 1], [0, 2], [0, 4], [0, 8]])
    return [tt.Model.chain(scores[:length], np.zeros((2, 2))) for length in lengths]


ONES = tt.count(state=1, name="ones")


def test_one_argument_serves_all_models_and_a_list_has_one_for_each():
    models = chains(1, 2, 3)
    assert [s.score for s in tt.solve_batch(iter(models), ONES, where=ONES <= 1)] == [1.0, 2.0, 4.0]
    assert [s.score for s in tt.solve_batch(models, [ONES], where=[ONES == 0, None, ONES == 2])] == [0, 3, 6]
    objectives = [None, lambda score, k: score - 3 * k, lambda score, k: -k]
    assert [s.value for s in tt.solve_batch(models, [[ONES]] * 3, objectives)] == [1.0, 0.0, 0.0]
    assert [s.score for s in tt.solve_batch(models, fixed=[None, {1: 0}, {}])] == [1.0, 1.0, 7.0]
    assert [len(p) for p in tt.profile_batch(models, [[], [ONES], [ONES, ONES]])] == [1, 3, 4]
    assert [len(p) for p in tt.profile_batch(models, ONES, allowed={0: [1]})] == [1, 2, 3]
    assert tt.solve_batch([]) == tt.profile_batch([]) == []


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"where": [ONES == 1]}, "where has 1 entry for 2 models; give one per model, or one for all"),
        ({"statistics": [[ONES]]}, "statistics has 1 entry for 2 models"),
        ({"where": 3}, "where must be one for all models or a list with one per model, got 3"),
        ({"fixed": [{}]}, "fixed has 1 entry"),
        ({"errors": "ignore"}, "errors must be 'raise' or 'return', got 'ignore'"),
        ({"threads": 0}, "threads must be a positive integer or None, got 0"),
        ({"threads": True}, "threads must be"),
        ({"layout": "runs"}, "layout must be 'auto', 'rows' or 'cells', got 'runs'"),
        ({"order": "best"}, "unknown elimination heuristic 'best'"),
        ({"statistics": [3, ONES]}, "statistics must be Statistic objects or recipes"),
    ],
)
def test_wrong_arguments_are_explained(options, text):
    with pytest.raises(tt.ModelError, match=text):
        tt.solve_batch(chains(1, 2), **options)


def test_the_first_problem_with_an_error_raises_it_and_is_named():
    models = chains(3, 1, 1)
    with pytest.raises(tt.InfeasibleError, match="no labelling satisfies 'ones == 2'") as caught:
        tt.solve_batch(models, where=ONES == 2)
    assert caught.value.__notes__ == ["(problem 1 of the batch)"]
    with pytest.raises(tt.ModelError, match="must be a Model, got int") as caught:
        tt.profile_batch([*models, 5])
    assert caught.value.__notes__ == ["(problem 3 of the batch)"]


def test_errors_take_the_places_of_the_answers_and_the_good_ones_are_kept():
    models = chains(2, 1, 3)
    forbidden = tt.Model([2], [((0,), [-np.inf, -np.inf])])

    def choosy(score, k):
        return np.where(k == 1, score, -np.inf)

    found = tt.solve_batch([*models, forbidden, None], [ONES], choosy, where=ONES >= 1, errors="return")
    assert [s.score for s in found[:3]] == [2.0, 1.0, 4.0]
    assert isinstance(found[3], tt.InfeasibleError) and "forbidden" in str(found[3])
    assert isinstance(found[4], tt.ModelError)
    wrong = tt.solve_batch(
        models, [ONES], [None, lambda score, k: -score, lambda s, k: k / 0], errors="return"
    )
    assert wrong[0].score == 3.0
    assert isinstance(wrong[1], tt.ObjectiveError) and "decreases" in str(wrong[1])
    assert isinstance(wrong[2], tt.ObjectiveError) and "nan" in str(wrong[2])


@pytest.mark.parametrize("threads", [1, 3])
def test_what_an_objective_raises_comes_through(threads):
    def faulty(score, k):
        raise ZeroDivisionError("of my own")

    with pytest.raises(ZeroDivisionError, match="of my own"):
        tt.solve_batch(chains(*[3] * 50), [ONES], faulty, threads=threads, errors="return")


def test_objectives_are_called_from_threads_one_at_a_time_and_may_solve_batches_themselves():
    busy, seen = threading.Lock(), set()

    def objective(score, k):
        assert busy.acquire(blocking=False)
        seen.add(threading.get_ident())
        inner = tt.solve_batch(chains(2), where=ONES == 1, threads=1)
        busy.release()
        return score - inner[0].score

    found = tt.solve_batch(chains(*[4] * 20), [ONES], objective, threads=1)
    assert {s.value for s in found} == {13.0} and len(seen) == 1


def test_the_costliest_problem_is_the_first_to_be_solved():
    lengths, seen = [3, 1, 4, 2], []

    def noting(length):
        def objective(score, k):
            seen.append(length)
            return score

        return objective

    tt.solve_batch(chains(*lengths), [ONES], [noting(length) for length in lengths], threads=1)
    assert list(dict.fromkeys(seen)) == [4, 3, 2, 1]


# ---------------------------------------------------------------- what comes out


def test_a_profile_of_a_batch_has_a_plan_and_labellings_when_they_are_asked_for():
    (model, statistics), *_ = sentences(seed=3)
    (profile,) = tt.profile_batch([model], [statistics])
    expected = tt.profile(model, statistics)
    assert str(profile.plan) == str(expected.plan)
    for one, other in zip(profile.top(5), expected.top(5), strict=True):
        assert_same(one, other)
    again = pickle.loads(pickle.dumps(tt.profile_batch([model], [statistics])[0]))
    assert_same(again.best(ratio), expected.best(ratio))
    assert next(again.ranked()).score == expected.best().score


def test_problems_wait_for_each_other_where_memory_is_short():
    models, statistics = zip(*sentences(count=12), strict=True)
    largest = max(tt.plan(m, s).peak_bytes for m, s in zip(models, statistics, strict=True))
    found = tt.solve_batch(
        models, statistics, memory_limit=largest + held_for(models, statistics), threads=4, strategy="full"
    )
    for solution, model, given_statistics in zip(found, models, statistics, strict=True):
        assert_same(solution, tt.solve(model, given_statistics))


class Roomier(_SolutionOf):
    """A problem that has all the memory it needs when it is solved on its own."""

    def alone(self, options):
        return super().alone(options._replace(plan=PlanOptions()))


def test_problems_that_only_fit_on_their_own_are_answered_with_a_warning():
    models = [tt.Model.chain(np.tile([0.0, 1.0], (n, 1)), np.zeros((2, 2))) for n in (200, 3, 200)]
    problems = {i: Roomier(model, [ONES], None, None, None, None) for i, model in enumerate(models)}
    batch = Batch(problems, BatchOptions(PlanOptions(memory_limit=2e4 + held_for(models)), 2, "raise"))
    with pytest.warns(tt.PerformanceWarning, match="2 of the 3 problems .* the first of them problem 0"):
        found = batch.solve()
    for solution, model in zip(found, models, strict=True):
        assert_same(solution, tt.solve(model, [ONES]))


def test_an_item_that_asks_needs_an_answer():
    (model, statistics), *_ = sentences(seed=3)
    batch = native.Batch(native.TallyMode.AUTO, 1e9)
    plan = tt.plan(model, statistics)
    shifts = [block.tables for s in statistics for block in s.blocks]
    limits = [native.UNCAPPED] * 2, [-native.NO_LIMIT] * 2, [native.NO_LIMIT] * 2
    batch.add(plan.skeleton, shifts, *limits, [b.tables for b in model.blocks], [], [], True)
    with pytest.raises(ValueError, match="nobody to answer"):
        batch.run(1)
    batch.run(1, lambda item, tallies, scores: [3, 0])
    labels, tallies, sums, known = batch.labellings()
    profile = tt.profile(model, statistics)
    assert known["item"].tolist() == [0, 0] and known["certified"].all()
    np.testing.assert_array_equal(tallies.reshape(2, 2), profile.tallies[[3, 0]])
    np.testing.assert_array_equal(sums, tallies)
    np.testing.assert_array_equal(labels[: len(model)], profile.row(3).assignment)
    batch.run(1, lambda item, tallies, scores: [])
    assert [len(column) for column in batch.labellings()] == [0, 0, 0, 0]
