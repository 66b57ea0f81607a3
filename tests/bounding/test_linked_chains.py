"""Chains whose neighbours count, or whose variables have different numbers of states, searched in rows."""

import numpy as np
import pytest
from bounded_cases import KINDS, scores_of
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import grown, needs_proc

import tallytree as tt
from tallytree.testing import brute_force, check_bounds


def sizes_of(rng, length, states):
    """Numbers of states: all alike, of two kinds, or any; some variables may have one state."""
    least = int(rng.choice([1, max(states - 1, 1), states]))
    return rng.integers(least, states + 1, length)


@st.composite
def chains(draw, longest, states):
    """A chain with statistics of variables and of neighbours; a few tables are shared by many positions."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    length, kind = draw(st.integers(1, longest)), draw(KINDS)
    sizes = sizes_of(rng, length, states)
    shared = {}

    def table(what, shape):
        if rng.random() < 0.5:
            key = what, shape, int(rng.integers(2))
            return shared.setdefault(key, made(what, shape))
        return made(what, shape)

    def made(what, shape):
        if what == "score":
            return scores_of(rng, shape, kind, forbidden=0.08)
        return rng.integers(-1, 3, shape)

    def parts(what, missing):
        scopes = [(v,) for v in range(length)] + [(v, v + 1) for v in range(length - 1)]
        for scope in scopes:
            if rng.random() < missing:
                continue
            turned = scope[::-1] if rng.random() < 0.1 else scope
            yield turned, table(what, tuple(int(sizes[v]) for v in turned))

    links = [((v, v + 1), np.zeros((sizes[v], sizes[v + 1]))) for v in range(length - 1)]
    model = tt.Model(sizes, [*parts("score", 0.1), *links])
    statistics = [
        tt.Statistic(list(parts("count", missing)), name=f"s{p}").on(model)
        for p, missing in enumerate(rng.choice([0.1, 0.6], draw(st.integers(1, 2))))
    ]
    return model, statistics, rng


def constraint_on(statistics, tally):
    where = statistics[0] == int(tally[0])
    for statistic, value in zip(statistics[1:], tally[1:], strict=True):
        where = where & (statistic >= int(value))
    return where


@given(chains(longest=6, states=4))
@settings(max_examples=60, deadline=None)
def test_answers_are_those_of_all_labellings(problem):
    model, statistics, rng = problem
    every = brute_force(model, statistics)
    tally = every.tallies[rng.integers(len(every.tallies))]
    allowed = every.tallies[:, 0] == tally[0]
    for p in range(1, len(statistics)):
        allowed &= every.tallies[:, p] >= tally[p]
    best = every.scores[allowed].max()
    where = constraint_on(statistics, tally)
    if best == -np.inf:
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, where=where, strategy="bounds")
        return
    found = tt.solve(model, where=where, strategy="bounds")
    assert found.score == pytest.approx(best, rel=1e-12, abs=1e-12)
    if found.certificate is not None and "BoundsCertificate" in type(found.certificate).__name__:
        check_bounds(found)


@given(chains(longest=90, states=9))
@settings(max_examples=40, deadline=None)
def test_answers_are_those_of_full_tables(problem):
    model, statistics, rng = problem
    try:
        tally = tt.profile(model, statistics).tallies
    except tt.InfeasibleError:
        return
    where = constraint_on(statistics, tally[rng.integers(len(tally))])
    full = tt.solve(model, where=where, strategy="full")
    found = tt.solve(model, where=where, strategy="bounds")
    assert found.score == pytest.approx(full.score, rel=1e-9, abs=1e-9)


def test_widths_that_differ_much_are_left_to_steps():
    """One variable with many states would make all rows long."""
    rng = np.random.default_rng(0)
    sizes = np.array([2] * 40 + [300] + [2] * 40)
    factors = [((v,), rng.normal(size=n)) for v, n in enumerate(sizes)]
    factors += [((v, v + 1), rng.normal(size=sizes[v : v + 2])) for v in range(len(sizes) - 1)]
    model = tt.Model(sizes, factors)
    ones = tt.count(state=1)
    full = tt.solve(model, where=ones == 30, strategy="full")
    found = tt.solve(model, where=ones == 30, strategy="bounds")
    assert found.score == pytest.approx(full.score)
    np.testing.assert_array_equal(found.assignment, full.assignment)
    check_bounds(found)


@needs_proc
@pytest.mark.parametrize("limit", [18e6, 25e6, 32e6, 100e6])
def test_tables_of_counts_stay_within_the_memory_limit(limit):
    """Each pair of neighbours has its own scores and counts; programs that fit a lower limit take longer."""
    code = """
        from tallytree.running.bounds import ModelSearcher, Search, Wanted
        def asked(length, states=96):
            rng = np.random.default_rng(0)
            links = [(v, v + 1) for v in range(length - 1)]
            pairs = rng.normal(size=(length - 1, states, states))
            model = tt.Model.chain(rng.normal(size=(length, states)), pairs)
            counts = [(link, rng.integers(1, 4, (states, states))) for link in links]
            ask = ModelSearcher(model, [tt.Statistic(counts).on(model)])
            wanted = Wanted([2 * length], [2 * length])
            ask(Search(wanted, most_work=1, memory_limit=1))  # which makes the program
            return lambda limit: ask(Search(wanted, most_work=1, memory_limit=limit)) is not None
        small, call = lambda limit: asked(5)(1e12), asked(60)
    """
    assert grown(code, limit=limit)["growth"] <= limit
