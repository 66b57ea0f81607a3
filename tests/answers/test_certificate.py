"""Every answer states that it is optimal and why; budget errors suggest methods that need no tallies."""

import dataclasses
import pickle

import numpy as np
import pytest
from hypothesis import given
from strategies import problems

import tallytree as tt
from tallytree.model.rounding import rounding
from tallytree.testing import brute_force


@given(problems())
def test_the_certificate_of_a_random_problem(problem):
    model, statistics = problem
    plan = tt.plan(model, statistics)
    found = tt.profile(model, statistics, plan=plan).best()
    certificate = found.certificate
    assert certificate.optimal
    assert certificate.score == found.score
    assert certificate.difference <= certificate.allowance == rounding(model.blocks)
    assert list(certificate.tally.values()) == list(found.tally)
    assert (certificate.width, certificate.tallies) == (plan.width, plan.tallies)
    assert certificate.operations == plan.operations
    assert found.score >= brute_force(model).scores.max() - certificate.allowance


def test_solve_says_what_it_maximised(week, wet):
    text = tt.solve(week, where=wet == 4).explain()
    assert text.startswith("optimal: no labelling that satisfies 'wet == 4' has a higher score\n")
    assert "the score 8 and the tally (wet=4)" in text
    assert "width τ = 1, tallies R = " in text
    assert "has a higher value" in tt.solve(week, [wet], lambda score, k: score - k).explain()
    assert tt.solve(week).explain().startswith("optimal: no labelling has a higher score\n")


def test_each_use_case_has_its_claim(week, wet):
    profile = tt.profile(week, [wet])
    claims = {
        "no labelling with this tally has a higher score": profile.at(3),
        "no labelling that satisfies 'wet <= 2' has a higher score": profile.best(where=wet <= 2),
        "no labelling, except the 2 before it, has a higher score": tt.k_best(week, 3)[2],
        "no labelling that satisfies 'wet <= 2', except the 1 before it, has a higher score": tt.k_best(
            week, 2, where=wet <= 2
        )[1],
        "no labelling that satisfies 'distance_1 >= 3' has a higher score": tt.diverse_k_best(week, 2, 3)[1],
    }
    for claim, solution in claims.items():
        assert solution.certificate.claim == claim
        assert solution.certificate.optimal
    first, second = profile.top(2)
    assert first.certificate.claim == "no labelling has a higher score"
    assert second.certificate.claim == "no labelling with this tally has a higher score"


@pytest.mark.parametrize("method", ["ranking", "statistics"])
def test_exclusion_has_the_same_claim_both_ways(week, wet, method):
    found = tt.exclude(week, tt.k_best(week, 2), where=wet >= 3, method=method)
    claim = "no labelling that satisfies 'wet >= 3' outside the 2 excluded ones has a higher score"
    assert found.certificate.claim == claim


def test_ranges_of_scores_say_how_it_was_settled(week):
    best, between = tt.score_between(week, 0, 10), tt.score_between(week, 4, 5)
    assert best.certificate.claim.endswith("it is the best of all")
    claim = "no labelling with a score from 4 to 5 has a higher one: all that score more were examined"
    assert between.certificate.claim == claim
    lattice = tt.score_between(week, 4, 5, labellings=0)
    assert lattice.certificate.claim.endswith(
        "the best score of every multiple of 0.25 in the range is known"
    )
    coarse = tt.Model.chain(np.random.default_rng(0).normal(size=(30, 3)), np.zeros((3, 3)))
    high = tt.solve(coarse).score / 2
    unsettled = tt.score_between(coarse, high - 3, high, resolution=0.1, labellings=0)
    assert not unsettled.certificate.optimal
    assert unsettled.explain().startswith("attained: it is one with a score from")
    assert "up to the end of the range, is not ruled out" in unsettled.explain()


def test_a_relaxation_explains_its_bound(week, wet):
    closed = tt.relax(week, where=wet == 4)
    assert closed.solution.certificate.optimal
    assert "scores above 8" in closed.solution.explain()
    assert closed.explain().startswith("optimal: no labelling that satisfies the constraint scores above 8")
    open_ = tt.relax(week, where=wet == 4, candidates=0)
    assert open_.explain().endswith(
        "no labelling that satisfies it was found; use more iterations=, another order=, or tallytree.solve"
    )


def test_certificates_survive_pickling_without_a_plan(week, wet):
    for found in (
        tt.solve(week, where=wet == 4),
        tt.score_between(week, 4, 5),
        tt.relax(week, where=wet == 4).solution,
    ):
        again = pickle.loads(pickle.dumps(found))
        assert again.certificate == found.certificate
        assert again.explain() == found.explain()
        assert len(pickle.dumps(found)) < 3000


def test_a_labelling_that_nobody_found_has_none(week):
    made = tt.Solution(0.0, 0.0, (), np.zeros(7, dtype=np.int64), week)
    assert made.certificate is None
    assert made.explain().startswith("no certificate")


# --- too dear: what needs no tallies


@pytest.fixture
def long():
    model = tt.Model.chain(np.zeros((3000, 3)), np.zeros((3, 3)))
    return model, tt.count(model, state=1, name="a"), tt.count(model, state=2, name="b")


def test_budget_errors_offer_relax(long):
    model, a, b = long
    linear = (a == 1000) & (b == 900)
    for call in (tt.plan, tt.solve):
        with pytest.raises(tt.BudgetError, match=r"tallytree\.relax\(model, where=…\) gives an upper bound"):
            call(model, where=linear, memory_limit=1e7)
    with pytest.raises(tt.BudgetError, match="relax the alternatives of this constraint one by one"):
        tt.solve(model, where=linear | ((a == 900) & (b == 1000)), memory_limit=1e7)
    with pytest.raises(tt.BudgetError, match=r"solve\(model, where=…\) .* tallytree\.relax"):
        tt.plan(model, [a, b], memory_limit=1e7)
    with pytest.raises(tt.BudgetError, match=r"tallytree\.relax"):
        tt.profile(model, [a, b], memory_limit=1e7)
    found = tt.relax(model, where=linear, memory_limit=1e7)  # what is offered works
    assert found.upper_bound >= 0


def test_relax_is_not_offered_where_it_does_not_fit_either(long):
    model, a, _ = long
    with pytest.raises(tt.BudgetError) as error:
        tt.solve(model, where=a == 1000, memory_limit=1000)
    assert "relax" not in str(error.value)
    dense = tt.Model([2] * 60, [((i, j), np.eye(2)) for i in range(60) for j in range(i)])
    with pytest.raises(tt.BudgetError) as error:
        tt.profile(dense, [tt.count(dense, state=1)], memory_limit=1e9)
    assert "relax" not in str(error.value)


def test_equal_and_rounded_scores_are_told_apart():
    exact = tt.solve(tt.Model.chain([[0.0, 1.0]] * 3, [[0.5, 0.0], [0.0, 0.5]]))
    assert "the messages' score is the same\n" in exact.explain()
    rounded = dataclasses.replace(exact.certificate, promised=exact.score + 1e-15)
    assert "differs by 8.9e-16, and rounding can cause up to" in str(rounded)
