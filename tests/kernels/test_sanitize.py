"""A few hundred small problems through every native entry, for the address and undefined-behaviour checks.

What is right is settled elsewhere: here the answers are only certified. `make sanitize` runs these with NumPy
and Hypothesis alone.
"""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import little
from strategies import problems

import tallytree as tt
from tallytree.kernels import native
from tallytree.testing import check_solution

pytestmark = pytest.mark.sanitize


@pytest.fixture(params=native.instruction_sets())
def instruction_set(request):
    before = native.instruction_set()
    native.use_instruction_set(request.param)
    yield request.param
    native.use_instruction_set(before)


def exercise(model, statistics, **options):
    """Go through profile, decoding, distribution, marginals, samples, counts."""
    profile = tt.profile(model, statistics, **options)
    for row in range(0, len(profile), 1 + len(profile) // 6):
        check_solution(profile.at(*profile.tallies[row].tolist()), model, statistics)
    if not len(profile):
        return
    if profile.plan.segments == 1:
        for solution in islice(profile.ranked(), 40):
            check_solution(solution, model, statistics)
    d = tt.distribution(model, statistics, plan=profile.plan)
    assert len(d.tallies) == len(profile)
    assert sum(d.counts) >= len(profile)
    tally = d.tallies[len(d.tallies) // 2]
    d.sample(3, rng=0)
    assert all([s.tally(y) for s in statistics] == tally.tolist() for y in d.sample(2, tally=tally, rng=1))
    if profile.plan.segments == 1:
        np.testing.assert_allclose([m.sum() for m in model.by_variable(d.marginals())], 1.0, atol=1e-9)
        np.testing.assert_allclose([m.sum() for m in model.by_variable(d.marginals(tally))], 1.0, atol=1e-9)


@given(some=st.lists(problems(largest=6, feasible=False), max_size=6), threads=st.integers(1, 3))
@settings(max_examples=40, deadline=None)
def test_batches(some, threads):
    models, statistics = [model for model, _ in some], [statistics for _, statistics in some]
    objectives = [None, lambda score, *tallies: score - sum(tallies)] * 3
    for memory in (None, 4000 + 8000 * len(models)):
        options = {"memory_limit": memory, "threads": threads, "errors": "return"}
        tt.profile_batch(models, statistics, **options)
        found = tt.solve_batch(models, statistics, objectives[: len(some)], **options)
        for solution, model, given_statistics in zip(found, models, statistics, strict=True):
            if isinstance(solution, tt.Solution):
                check_solution(solution, model, given_statistics)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_batches_of_losses(instruction_set, scaling):
    rng = np.random.default_rng(0)
    pair = rng.normal(size=(4, 4))
    models = [tt.Model.chain(rng.normal(size=(n, 4)), pair) for n in (1, 2, 3, 9, 17, 30)]
    truths = [rng.integers(0, 4, len(model)) for model in models]
    loss = tt.losses.FBeta(background=0)
    for threads in (1, 2):
        found = tt.loss_augmented_batch(models, loss, scaling, truths=truths, threads=threads)
        assert all(0 <= s.loss <= 1 for s in found)


@pytest.mark.parametrize("tallies", ["rows", "cells"])
@given(problem=problems(largest=8, states=4, feasible=False))
@settings(max_examples=120, deadline=None)
def test_random_problems(tallies, problem):
    for name in native.instruction_sets():
        native.use_instruction_set(name)
        exercise(*problem, layout=tallies)
    native.use_instruction_set()


@given(problem=problems(largest=6), order=st.randoms(use_true_random=False))
@settings(max_examples=40, deadline=None)
def test_any_order(problem, order):
    model, statistics = problem
    variables = list(range(len(model)))
    order.shuffle(variables)
    exercise(model, statistics, order=variables)
    for heuristic in ("min-fill", "min-degree", "min-weight", "natural", "sweep"):
        tt.plan(model, statistics, order=heuristic)


@given(problem=problems(largest=8, states=3))
@settings(max_examples=40, deadline=None)
def test_checkpoints_and_refusals(problem):
    model, statistics = problem
    plan = tt.plan(model, statistics)
    for share in (0.8, 0.5, 0.2, 0.01):
        try:
            exercise(model, statistics, memory_limit=little(plan, share))
        except tt.BudgetError:
            break


@given(problem=problems(largest=6, most=2), low=st.integers(-6, 8), width=st.integers(-1, 5))
@settings(max_examples=60, deadline=None)
def test_windows(problem, low, width):
    model, statistics = problem
    for g in statistics:
        for where in (
            (g >= low) & (g <= low + width),
            g >= low,
            g <= low,
            g != low,
            statistics[0] - g == low,
        ):
            for tallies in ("rows", "cells"):
                try:
                    solution = tt.solve(model, statistics[:1], where=where, layout=tallies)
                except tt.InfeasibleError:
                    continue
                assert np.isfinite(solution.score)


@pytest.mark.parametrize("size", [1, 2, 9, 40, 300])
def test_chains_stars_and_forests(instruction_set, size):
    rng = np.random.default_rng(size)
    states = 2 if size > 100 else 3
    unary, pairwise = rng.normal(size=(size, states)), rng.normal(size=(states, states))
    for parents in (np.arange(-1, size - 1), np.r_[-1, np.zeros(size - 1, dtype=int)], np.full(size, -1)):
        model = tt.Model.tree(parents, unary, pairwise)
        ones = tt.count(model, state=1)
        exercise(model, [ones])
        exercise(
            model,
            [ones.capped(min(7, size)), tt.count(model, state=0, variables=range(size // 2 + 1))][
                : 1 + (size < 100)
            ],
        )
        for k in (0, size // 3, size):
            assert tt.solve(model, where=ones == k).assignment.tolist().count(1) == k


def test_grids(instruction_set):
    rng = np.random.default_rng(0)
    model = tt.Model.grid(rng.normal(size=(5, 6, 2)), rng.normal(size=(2, 2)), rng.normal(size=(2, 2)))
    exercise(model, [])
    exercise(model, [tt.count(model, state=1)])
    exercise(
        model, [tt.mismatches(model, rng.integers(2, size=(5, 6)), cap=1, name=f"d{k}") for k in range(9)]
    )


@pytest.mark.parametrize(
    ("a", "b"),
    [((1, 1), (1, 1)), ((1, 7), (1, 9)), ((1, 16), (1, 17)), ((1, 128), (1, 128)), ((1, 129), (1, 700)),
     ((1, 500), (1, 333)), ((3, 5), (2, 130)), ((4, 131), (3, 140)), ((1, 1), (1, 600)), ((9, 1), (8, 1))],
)  # fmt: skip
def test_joins(instruction_set, a, b):
    rng = np.random.default_rng(0)
    for states in (1, 2):
        left, right = rng.normal(size=(states, *a)), rng.normal(size=(states, *b))
        left[rng.random(left.shape) < 0.1] = -np.inf
        out = native.join(left, right)
        assert out.shape == (states, a[0] + b[0] - 1, a[1] + b[1] - 1)
        assert out[0, 0, 0] == left[0, 0, 0] + right[0, 0, 0]
        assert out[-1, -1, -1] == left[-1, -1, -1] + right[-1, -1, -1]


def test_the_smallest_problems():
    for model in (tt.Model([], []), tt.Model([], [((), 2.0)]), tt.Model([1], []), tt.Model([3, 1], [])):
        profile = tt.profile(model)
        assert len(profile.best().assignment) == len(model)
        exercise(model, [tt.Statistic([((), 4)], name="four"), tt.Statistic([], name="none", cap=-1)])
