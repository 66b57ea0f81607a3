"""The same problem said in another way has the same profile.

Larger than enumeration allows: each rewriting is compared with the problem as it was drawn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators, problems

import tallytree as tt
from tallytree.testing import check_solution, factors_of, random_model, score_tolerance

LARGE = problems(largest=11, states=3, most=2, local=True)


def profile_of(model, statistics, **options):
    """Return ``{tally: score}``."""
    profile = tt.profile(model, statistics, **options)
    return dict(zip(map(tuple, profile.tallies.tolist()), profile.scores.tolist(), strict=True))


def check_same(got, wanted, model):
    """Compare two profiles up to rounding; splitting scores increases it slightly."""
    assert sorted(got) == sorted(wanted)
    tolerance = 4 * score_tolerance(model)
    assert all(abs(got[tally] - wanted[tally]) <= tolerance for tally in wanted)


# ---------------------------------------------------------------- rewritings
# Each takes (scope, table) pairs and gives others; what they do to the tallies is said next to them.


def rebuilt(model, statistics, cardinalities=None, change=lambda pairs: pairs):
    """Rebuild a model and statistics from pairs changed by `change`."""
    sizes = model.cardinalities.tolist() if cardinalities is None else cardinalities
    changed = [tt.Statistic(change(list(factors_of(s.blocks))), name=s.name, cap=s.cap) for s in statistics]
    return tt.Model(sizes, change(list(factors_of(model.blocks)))), changed


def permuted(rng, model, statistics):
    places = rng.permutation(len(model))
    sizes = np.zeros(len(model), dtype=int)
    sizes[places] = model.cardinalities

    def change(pairs):
        return [(tuple(places[list(scope)].tolist()), table) for scope, table in pairs]

    return rebuilt(model, statistics, sizes.tolist(), change)


def relabelled(rng, model, statistics):
    states = [rng.permutation(n) for n in model.cardinalities]

    def change(pairs):
        return [(scope, table[np.ix_(*(states[v] for v in scope))]) for scope, table in pairs]

    return rebuilt(model, statistics, change=change)


def transposed(rng, model, statistics):
    def change(pairs):
        axes = [rng.permutation(len(scope)).tolist() for scope, _ in pairs]
        return [
            (tuple(scope[i] for i in axis), np.transpose(table, axis))
            for (scope, table), axis in zip(pairs, axes, strict=True)
        ]

    return rebuilt(model, statistics, change=change)


def shuffled(rng, model, statistics):
    return rebuilt(model, statistics, change=lambda pairs: [pairs[i] for i in rng.permutation(len(pairs))])


def split(rng, model, statistics):
    """Every table becomes the sum of two: one with small whole numbers, one with the rest."""

    def change(pairs):
        halves = [rng.integers(-3, 4, size=table.shape).astype(table.dtype) for _, table in pairs]
        first = [(scope, half) for (scope, _), half in zip(pairs, halves, strict=True)]
        return first + [(scope, table - half) for (scope, table), half in zip(pairs, halves, strict=True)]

    return rebuilt(model, statistics, change=change)


def merged(rng, model, statistics):
    """Each table is added to another one whose scope holds its own, where there is one."""

    def change(pairs):
        pairs = list(pairs)
        for i in rng.permutation(len(pairs)).tolist():
            scope, table = pairs[i]
            homes = [j for j, (other, _) in enumerate(pairs) if j != i and set(scope) < set(other)]
            if homes:
                j = homes[0]
                other, values = pairs[j]
                axes = np.argsort([other.index(v) for v in scope]).tolist()
                shape = [values.shape[k] if v in scope else 1 for k, v in enumerate(other)]
                pairs[j] = (other, values + np.transpose(table, axes).reshape(shape))
                pairs[i] = (scope, np.zeros_like(table))
        return [(scope, table) for scope, table in pairs if table.any()]

    return rebuilt(model, statistics, change=change)


def with_bystanders(rng, model, statistics):
    """Add variables that nothing depends on: of one state, or with nothing to gain."""
    sizes = [*model.cardinalities.tolist(), 1, 2]
    new, changed = rebuilt(model, statistics, sizes)
    pairs = [*factors_of(new.blocks), ((len(model) + 1,), np.array([0.0, -5.0]))]
    return tt.Model(sizes, pairs), changed


REWRITINGS = [permuted, relabelled, transposed, shuffled, split, merged, with_bystanders]


@pytest.mark.parametrize("rewriting", REWRITINGS, ids=lambda f: f.__name__)
@given(problem=LARGE, rng=generators())
@settings(max_examples=60)
def test_rewritings_keep_the_profile(rewriting, problem, rng):
    model, statistics = problem
    other, changed = rewriting(rng, model, statistics)
    check_same(profile_of(other, changed), profile_of(model, statistics), other)


# ---------------------------------------------------------------- other tallies, other scores


@given(problem=problems(largest=11, most=2, local=True, capped=False))
@settings(max_examples=60)
def test_minus_a_statistic_has_minus_its_tallies(problem):
    model, statistics = problem
    negated = [tt.Statistic.combination(-1 * s, name=s.name) for s in statistics]
    wanted = {tuple(-k for k in tally): score for tally, score in profile_of(model, statistics).items()}
    check_same(profile_of(model, negated), wanted, model)


@given(problem=LARGE, score=st.integers(-5, 5), steps=st.lists(st.integers(-4, 4), min_size=2, max_size=2))
@settings(max_examples=60)
def test_constants_move_scores_and_tallies(problem, score, steps):
    model, statistics = problem
    moved = tt.Model(model.cardinalities, [*factors_of(model.blocks), ((), float(score))])
    stepped = [
        tt.Statistic([*factors_of(s.blocks), ((), step)], cap=None if s.cap is None else s.cap + step)
        for s, step in zip(statistics, steps, strict=False)
    ]
    wanted = {
        tuple(k + step for k, step in zip(tally, steps, strict=False)): value + score
        for tally, value in profile_of(model, statistics).items()
    }
    check_same(profile_of(moved, stepped), wanted, moved)


@given(problem=problems(largest=11, most=3, local=True))
@settings(max_examples=60)
def test_statistics_in_reverse_reverse_the_tallies(problem):
    model, statistics = problem
    wanted = {tally[::-1]: score for tally, score in profile_of(model, statistics).items()}
    check_same(profile_of(model, statistics[::-1]), wanted, model)


@given(
    problem=problems(largest=11, most=2, local=True, capped=False), caps=st.tuples(*[st.integers(-5, 8)] * 2)
)
@settings(max_examples=60)
def test_a_cap_is_a_maximum_over_what_lies_above(problem, caps):
    model, statistics = problem
    wanted = {}
    for tally, score in profile_of(model, statistics).items():
        capped = tuple(min(k, cap) for k, cap in zip(tally, caps, strict=False))
        wanted[capped] = max(score, wanted.get(capped, -np.inf))
    capped = [s.capped(cap) for s, cap in zip(statistics, caps, strict=False)]
    check_same(profile_of(model, capped), wanted, model)


@given(problem=problems(largest=11, most=3, local=True))
@settings(max_examples=60)
def test_fewer_statistics_are_a_maximum_over_the_others(problem):
    model, statistics = problem
    wanted = {}
    for tally, score in profile_of(model, statistics).items():
        wanted[tally[1:]] = max(score, wanted.get(tally[1:], -np.inf))
    check_same(profile_of(model, statistics[1:]), wanted, model)


# ---------------------------------------------------------------- other programs


@given(problem=LARGE, rng=generators())
@settings(max_examples=60)
def test_every_order_and_layout_gives_the_same_profile(problem, rng):
    model, statistics = problem
    wanted = profile_of(model, statistics)
    for options in (
        {"order": rng.permutation(len(model))},
        {"order": tt.clique_tree(model, statistics).order()},
        {"order": "sweep"},
        {"order": "natural"},
        {"order": "min-weight"},
        {"layout": "rows"},
        {"layout": "cells"},
    ):
        check_same(profile_of(model, statistics, **options), wanted, model)


@given(problem=LARGE, rng=generators())
@settings(max_examples=60)
def test_a_plan_serves_other_weights(problem, rng):
    model, statistics = problem
    plan = tt.plan(model, statistics)
    for _ in range(2):
        pairs = [(scope, rng.normal(size=table.shape)) for scope, table in factors_of(model.blocks)]
        other = tt.Model(model.cardinalities, pairs)
        reused = tt.profile(other, statistics, plan=plan)
        check_same(
            dict(zip(map(tuple, reused.tallies.tolist()), reused.scores.tolist(), strict=True)),
            profile_of(other, statistics),
            other,
        )
        check_solution(reused.best(), other, statistics)


def test_a_plan_is_refused_by_other_problems():
    rng = np.random.default_rng(0)
    chain, tree = random_model(rng, "chain", variables=6), random_model(rng, "tree", variables=6)
    ones, zeros = tt.count(state=1), tt.count(state=0)
    plan = tt.plan(chain, [ones])
    for model, statistics in ((tree, [ones]), (chain, [zeros]), (chain, []), (chain, [ones, zeros])):
        with pytest.raises(tt.ModelError, match="another shape or for other statistics"):
            tt.profile(model, statistics, plan=plan)
