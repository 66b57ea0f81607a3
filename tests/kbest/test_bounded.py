"""The k best under a constraint, by bounds, compared with full tables."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.bounding.states import PrunedCertificate
from tallytree.testing import brute_force, score_tolerance


def constraint(statistics, tallies, number):
    one, at = statistics[0], int(tallies[number % len(tallies)][0])
    kinds = [one == at, one <= at, one >= at, (one == at) | (one >= at + 2)]
    where = kinds[number % 4]
    if len(statistics) > 1:
        where = where & (statistics[1] >= int(tallies[number % len(tallies)][1]))
    return where


@given(problem=problems(largest=5), number=st.integers(0, 1000), k=st.integers(1, 30))
def test_scores_are_those_of_enumeration(problem, number, k):
    model, statistics = problem
    every = brute_force(model, statistics)
    possible = every.tallies[every.scores > -np.inf]
    if not statistics or not len(possible):
        return
    where = constraint(statistics, possible, number)
    holds = where.holds(dict(zip(statistics, every.tallies.T, strict=True)))
    scores = np.sort(every.scores[np.asarray(holds) & (every.scores > -np.inf)])[::-1][:k]
    found = tt.k_best(model, k, where=where, strategy="bounds")
    assert len(found) == len(scores)
    assert [s.score for s in found] == pytest.approx(scores.tolist(), abs=4 * score_tolerance(model) + 1e-9)
    assert len({tuple(s.assignment.tolist()) for s in found}) == len(found)


def test_a_list_that_no_table_fits():
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(300, 3)), rng.normal(size=(3, 3)))
    ones, twos = tt.count(model, state=1), tt.count(model, state=2)
    where = (ones == 100) & (twos == 90)
    full = tt.k_best(model, 20, where=where, strategy="full")
    with pytest.raises(tt.BudgetError):
        tt.k_best(model, 20, where=where, strategy="full", memory_limit=1e7)
    found = tt.k_best(model, 20, where=where, strategy="bounds", memory_limit=1e7)
    assert [s.score for s in found] == pytest.approx([s.score for s in full])
    certificate = found[3].certificate
    assert isinstance(
        certificate, PrunedCertificate
    ) and "states: allowed labellings with any other state" in str(certificate)
    assert certificate.below <= found[-1].score and certificate.states[1] < certificate.states[0]
    assert "except the 3 before it" in certificate.claim


def test_a_reduction_comes_back_as_the_original():
    model = tt.Model.chain(np.random.default_rng(4).normal(size=(7, 2)), np.zeros((2, 2)), states=["a", "b"])
    where = (tt.count(model, state="b") == 3) & tt.regular(".* b a .*")
    full, found = (tt.k_best(model, 5, where=where, strategy=s) for s in ("full", "bounds"))
    assert [s.score for s in found] == pytest.approx([s.score for s in full])
    assert [s.labels.tolist() for s in found] == [s.labels.tolist() for s in full]


def test_diverse_lists_by_bounds():
    rng = np.random.default_rng(5)
    model = tt.Model.chain(rng.normal(size=(60, 3)), rng.normal(size=(3, 3)))
    full, found = (tt.diverse_k_best(model, 4, 12, strategy=s) for s in ("full", "bounds"))
    assert [s.score for s in found] == pytest.approx([s.score for s in full])
