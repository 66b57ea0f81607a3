"""Constraints that allow several boxes of tallies, solved without a table over all of them."""

import runpy
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bounding import BoundsCertificate, question
from tallytree.bounding.alternatives import boxes
from tallytree.running.bounds import Wanted
from tallytree.testing import check_bounds

CHECK = runpy.run_path(str(Path(__file__).parents[2] / "tools" / "bounds_check"))
MODEL = tt.Model([3] * 6)
STATISTICS = (tt.count(MODEL, state=1, name="a"), tt.count(MODEL, state=2, name="b").capped(3))


def comparisons():
    """Return a strategy for comparisons of a statistic with a number."""
    return st.builds(
        lambda which, relation, bound: relation(STATISTICS[which], bound),
        st.integers(0, 1),
        st.sampled_from([lambda x, b: x == b, lambda x, b: x <= b, lambda x, b: x >= b, lambda x, b: x != b]),
        st.integers(-1, 8),
    )


def constraints():
    return st.recursive(
        comparisons(),
        lambda inner: st.builds(lambda a, b, both: a & b if both else a | b, inner, inner, st.booleans()),
        max_leaves=5,
    )


@given(where=constraints())
def test_boxes_hold_what_a_constraint_allows_and_nothing_else(where):
    found = boxes(where, STATISTICS, Wanted([0, 0], [6, 6]))
    sums = np.array([(a, b) for a in range(7) for b in range(7)])
    seen = dict(zip(STATISTICS, (sums[:, 0], np.minimum(sums[:, 1], 3)), strict=True))
    inside = [((sums >= one.low) & (sums <= one.high)).all(axis=1) for one in found]
    assert np.array_equal(np.any([np.zeros(len(sums), bool), *inside], axis=0), where.holds(seen))


@pytest.mark.parametrize("part", range(3))
def test_random_problems_without_tables_of_tallies(part, monkeypatch):
    monkeypatch.setattr(question, "MOST_TALLIES", 0)
    tally = Counter()
    wrong = [
        CHECK["check"](500_000 + 10_000 * part + number, 10, tally, ("solve", "loss", "function"))
        for number in range(80)
    ]
    assert [words for words in wrong if words] == []
    assert tally["by bounds"] > 20


def test_alternatives_of_a_long_chain():
    rng = np.random.default_rng(2)
    model = tt.Model.chain(rng.normal(size=(5000, 3)), rng.normal(size=(3, 3)))
    ones, twos = tt.count(model, state=1), tt.count(model, state=2)
    pairs = [(1500, 1600), (1700, 1500)]
    where = [(ones == a) & (twos == b) for a, b in pairs]
    found = tt.solve(model, where=where[0] | where[1], strategy="bounds")
    each = [tt.solve(model, where=one, strategy="bounds").score for one in where]
    assert isinstance(found.certificate, BoundsCertificate) and len(found.certificate.parts) >= 2
    assert found.score == max(each) and tuple(found.tally) == pairs[int(np.argmax(each))]


def test_the_verifier_goes_over_all_boxes(monkeypatch):
    monkeypatch.setattr(question, "MOST_TALLIES", 0)
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(30, 3)), rng.normal(size=(3, 3)))
    where = (tt.count(model, state=1) == 4) | (tt.count(model, state=1) >= 17)
    found = tt.solve(model, where=where, strategy="bounds")
    assert found.score == pytest.approx(tt.solve(model, where=where, strategy="full").score)
    check_bounds(found)
    evidence = found.proof.plan
    evidence.parts = tuple(part for part in evidence.parts if part.low[0] <= found.tally[0] <= part.high[0])
    evidence.value -= 1.0
    with pytest.raises(AssertionError):
        check_bounds(found)
