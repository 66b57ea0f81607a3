"""Relaxations with any number of sums: bounds, prices of one sign, proofs by bands, and limits."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.errors import BudgetError, InfeasibleError
from tallytree.testing import brute_force


@st.composite
def many_sums(draw):
    """Draw a small model in parts that are not connected, with ties, and ranges of several sums."""
    cards = draw(st.lists(st.integers(1, 3), min_size=2, max_size=5))
    score = st.sampled_from([0.0, 0.0, 1.0, -1.5, 0.25, 2.0, -np.inf])
    factors = [((i,), [draw(score) for _ in range(n)]) for i, n in enumerate(cards)]
    for i in range(len(cards) - 1):
        if draw(st.booleans()):
            shape = (cards[i], cards[i + 1])
            factors.append(((i, i + 1), [[draw(score) for _ in range(shape[1])] for _ in range(shape[0])]))
    model = tt.Model(cards, factors)
    where = None
    for number in range(draw(st.integers(1, 6))):
        tables = [((i,), [draw(st.integers(-2, 3)) for _ in range(n)]) for i, n in enumerate(cards)]
        sum_ = tt.Statistic(tables, name=f"sum{number}")
        low = draw(st.integers(-4, 6))
        kind = draw(st.sampled_from(["==", "<=", ">=", "range"]))
        part = {
            "==": sum_ == low,
            "<=": sum_ <= low,
            ">=": sum_ >= low,
            "range": (sum_ >= low - 1) & (sum_ <= low + 1),
        }[kind]
        where = part if where is None else where & part
    return model, where


@given(
    problem=many_sums(),
    iterations=st.sampled_from([1, 3, 50]),
    candidates=st.sampled_from([0, 1, 10**6]),
)
@settings(max_examples=400, deadline=None)
def test_against_enumeration(problem, iterations, candidates):
    model, where = problem
    try:
        best = brute_force(model).best(where=where).score
    except InfeasibleError:
        best = None
    try:
        found = tt.relax(model, where=where, iterations=iterations, candidates=candidates)
    except InfeasibleError:
        assert best is None
        return
    if candidates == 10**6:
        assert best is not None
        assert found.optimal
    if best is not None:
        assert found.upper_bound >= best
    if found.solution is not None:
        assert best is not None
        assert found.solution.score <= best + 1e-12
    if found.optimal:
        assert found.solution.score == pytest.approx(best, abs=1e-9)


def year(sums, seed=0):
    rng = np.random.default_rng(seed)
    model = tt.Model.chain(rng.normal(size=(60, 3)), rng.normal(size=(3, 3)))
    counts = [
        tt.count(model, state=1, variables=range(k * 60 // sums, (k + 1) * 60 // sums), name=f"part{k}")
        for k in range(sums)
    ]
    return model, counts


@pytest.mark.parametrize("sums", [1, 2, 3, 4, 7])
def test_no_prices_give_a_smaller_bound(sums):
    """The prices are the best: none that are drawn near them, or far from them, bound the score by less."""
    model, counts = year(sums)
    where, ends = None, []
    best = tt.solve(model).assignment
    for k, one in enumerate(counts):
        least = one.tally(best) + 1 + k % 3
        ends.append(least)
        where = one >= least if where is None else where & (one >= least)
    found = tt.relax(model, where=where, candidates=0)
    assert min(found.multipliers) >= 0
    rng = np.random.default_rng(1)
    for spread in (1e-3, 0.1, 1.0):
        for _ in range(10):
            prices = np.maximum(np.array(found.multipliers) + spread * rng.normal(size=sums), 0)
            priced = tt.Model(
                model.cardinalities,
                [
                    *((s, t) for block in model.blocks for s, t in _factors(block)),
                    *(
                        (s, p * t)
                        for one, p in zip(counts, prices, strict=True)
                        for block in one.blocks
                        for s, t in _factors(block)
                    ),
                ],
            )
            dual = tt.solve(priced).score - prices @ ends
            assert found.upper_bound <= dual + 1e-6


def _factors(block):
    tables = np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:]))
    return [(tuple(s), t) for s, t in zip(block.scopes.tolist(), tables, strict=True)]


def test_five_sums_are_proven_by_a_band():
    model, counts = year(5)
    best = tt.solve(model).assignment
    where = None
    for one in counts:
        part = one == one.tally(best) + 1
        where = part if where is None else where & part
    found = tt.relax(model, where=where, candidates=1)
    assert found.optimal
    assert found.solution.score == pytest.approx(tt.solve(model, where=where, strategy="full").score)


def test_counts_that_passes_cannot_hold_leave_a_bound():
    model = tt.Model([2, 2, 2], [((i,), [0.0, float(i)]) for i in range(3)])
    large = tt.Statistic([((i,), [0, 2**35 + i]) for i in range(3)], name="large")
    found = tt.relax(model, where=large <= 2**36)
    assert found.optimal
    assert found.solution.score == 2.0


def test_messages_that_do_not_fit_are_refused():
    model, counts = year(2)
    with pytest.raises(BudgetError, match="the plan needs"):
        tt.relax(model, where=(counts[0] == 3) & (counts[1] == 3), memory_limit=2e4)


@pytest.mark.parametrize("scale", [1e-300, 1e-200, 1e200, 1e289])
@pytest.mark.parametrize("large", [10**3, 10**6])
def test_prices_stay_finite_whatever_the_scale_of_scores(scale, large):
    scores = scale * np.array([[-2.0, 0.0], [0.0, -1.0], [0.0, 1.0], [-1.0, 0.0]])
    model = tt.Model([2] * 4, [((i,), row) for i, row in enumerate(scores)])
    counts = [[3, -3], [-1, -3], [1, -3], [-2 * large, -3 * large]]
    where = tt.Statistic([((i,), row) for i, row in enumerate(counts)], name="sum") >= -3 * large - 3
    seen = []
    found = tt.relax(model, where=where, progress=seen.append)
    best = brute_force(model).best(where=where).score
    assert found.optimal and found.solution.score == best
    assert all(np.isfinite(one.multipliers).all() and one.upper_bound >= best for one in seen)


def test_what_large_prices_lose_is_not_taken_for_rounding():
    """At the first prices, sums are off by more than the scores of labellings with this tally differ."""
    small = [[0.2, -0.7], [-0.3, 0.8], [-1.0, 1.4]], [[0.0, 3e-5], [1e-4, 0.0]]
    factors = [((0, 1), small[0]), ((2,), [1e6, 0.0]), ((1, 3), small[1])]
    model = tt.Model([3, 2, 2, 2], factors)
    counts = [((0,), [-72628558, 11618514, 28220077]), ((1,), [5677955, -51220062])]
    where = tt.Statistic(counts, name="sum") == 28220077 + 5677955
    best = brute_force(model).best(where=where).score
    for iterations in (1, 2, 3, 5):
        found = tt.relax(model, where=where, iterations=iterations, candidates=0)
        assert found.upper_bound >= best
        assert not found.optimal or found.solution.score == best
    found = tt.relax(model, where=where)
    assert found.optimal and found.solution.score == best
