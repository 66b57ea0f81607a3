"""Coefficients and bounds of any size are exact or raise an error."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.model.blocks import Block

SIZE = 3
labellings = list(np.ndindex((2,) * SIZE))
large = st.one_of(
    st.integers(-3, 3), st.integers(-(2**66), 2**66), st.sampled_from([2**40, 2**61, 2**62, 2**63, 2**64])
)


def statistics() -> list[tt.Statistic]:
    entries = ([0, 1], [-2, 5], [3, -(2**39)])
    return [tt.Statistic([((v,), table)], name=f"s{v}") for v, table in enumerate(entries)]


def model() -> tt.Model:
    return tt.Model([2] * SIZE, [((v,), [0.0, -1.0 - v / 4]) for v in range(SIZE)])


@given(st.lists(large, min_size=SIZE, max_size=SIZE), large, st.sampled_from(["<=", ">=", "==", "!="]))
def test_constraints_are_exact(coefficients: list[int], bound: int, relation: str) -> None:
    asked = sum(c * s for c, s in zip(coefficients, statistics(), strict=True))
    where = {"<=": asked <= bound, ">=": asked >= bound, "==": asked == bound, "!=": asked != bound}[relation]
    meets = {"<=": int.__le__, ">=": int.__ge__, "==": int.__eq__, "!=": int.__ne__}[relation]
    totals = {
        y: sum(c * s.tally(y) for c, s in zip(coefficients, statistics(), strict=True)) for y in labellings
    }
    scores = sorted((model().score(y) for y in labellings if meets(totals[y], bound)), reverse=True)
    assert [found.score for found in tt.k_best(model(), 8, where=where)] == scores
    if scores:
        assert tt.solve(model(), where=where).score == scores[0]
    else:
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model(), where=where)
    if relation != "!=":
        check_relaxation(where, scores)


def check_relaxation(where: tt.Constraint, scores: list[float]) -> None:
    try:
        found = tt.relax(model(), where=where)
    except tt.InfeasibleError:
        assert not scores
    except tt.ModelError as error:
        assert "below 2**40" in str(error)
    else:
        assert found.upper_bound >= max(scores, default=-np.inf)
        assert found.solution is None or found.solution.score in scores


@given(st.lists(large, min_size=SIZE, max_size=SIZE), large)
def test_combinations_are_exact_or_refused(coefficients: list[int], constant: int) -> None:
    parts = statistics()
    try:
        whole = tt.Statistic.combination(
            sum((c * s for c, s in zip(coefficients, parts, strict=True)), constant)
        )
    except tt.ModelError as error:
        assert "below 2**40" in str(error) or "fit 64 bits" in str(error)
        return
    for y in labellings:
        total = sum(c * s.tally(y) for c, s in zip(coefficients, parts, strict=True)) + constant
        assert whole.tally(y) == total
    best = {tuple(t): s for t, s in zip(*_profile(whole), strict=True)}
    expected: dict[tuple[int, ...], float] = {}
    for y in labellings:
        tally = (whole.tally(y),)
        expected[tally] = max(model().score(y), expected.get(tally, -np.inf))
    assert best == expected


def _profile(statistic: tt.Statistic) -> tuple[list[list[int]], list[float]]:
    found = tt.profile(model(), [statistic])
    return found.tallies.tolist(), found.scores.tolist()


def test_a_multiple_that_does_not_fit_is_refused() -> None:
    ones = tt.count(model(), state=1)
    for coefficient in (2**40, 2**61, 2**62, 2**63, -(2**80)):
        with pytest.raises(tt.ModelError, match=r"has an entry of .* below 2\*\*40"):
            tt.Statistic.combination(coefficient * ones)
        with pytest.raises(tt.ModelError, match=r"below 2\*\*40"):
            tt.relax(model(), where=coefficient * ones + statistics()[0] >= 1)
    nothing = tt.Statistic([((0,), [0, 0])], name="nothing")
    assert tt.Statistic.combination(2**80 * nothing).tally([1, 1, 1]) == 0


def test_constants_beyond_64_bits_are_compared() -> None:
    ones = tt.count(model(), state=1)
    assert tt.solve(model(), where=(ones - ones) <= 2**63).score == 0.0
    for where in ((ones - ones) >= 2**63, (ones - ones) == -(2**63), (ones - ones) <= -(2**70)):
        with pytest.raises(tt.InfeasibleError, match="compares only numbers"):
            tt.solve(model(), where=where)
        assert tt.k_best(model(), 2, where=where) == []


def test_tables_in_bulk_are_checked_too() -> None:
    scopes = np.arange(SIZE, dtype=np.int32)[:, None]
    wide = tt.Statistic.from_blocks([Block(scopes, np.full((SIZE, 2), 2**60))], "wide")
    with pytest.raises(tt.ModelError, match=r"below 2\*\*40"):
        tt.profile(model(), [wide])
    many = Block(np.zeros((2**21, 1), dtype=np.int32), np.array([[0, 2**40 - 1]]))
    with pytest.raises(tt.ModelError, match=r"can reach \d+, but tallies must stay below 2\*\*60"):
        tt.Statistic.from_blocks([many], "many")
