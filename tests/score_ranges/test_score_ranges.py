"""The best labelling in a range of scores, compared with enumeration."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators, models

import tallytree as tt
from tallytree.answers.profile import Profile
from tallytree.errors import BudgetError, InfeasibleError, ModelError
from tallytree.model.blocks import Block
from tallytree.testing import brute_force, score_tolerance


def best_in(model, low, high):
    """Return the best score in a range, -inf if there is none; rounding counts as inside."""
    scores, slack = brute_force(model).scores, score_tolerance(model)
    inside = scores[(scores >= low - slack) & (scores <= high + slack)]
    return inside.max(initial=-np.inf)


@st.composite
def ranges(draw, model):
    """Draw a range between, at or around the scores of a model."""
    scores = brute_force(model).scores
    possible = np.unique(scores[scores > -np.inf])
    high = draw(st.sampled_from(possible.tolist())) + draw(st.sampled_from([-0.25, 0.0, 0.25]))
    return high - draw(st.sampled_from([0.0, 0.125, 1.0, 50.0])), high


def decimal(model, digits):
    """Round the scores of a model to decimals."""
    blocks = [Block(b.scopes, np.round(b.tables, digits)) for b in model.blocks]
    return tt.Model.from_blocks(model.cardinalities, blocks)


def check(found, model, low, high):
    wanted, slack = best_in(model, low, high), score_tolerance(model)
    assert wanted > -np.inf
    assert low - slack <= found.score <= high + slack
    assert model.score(found.assignment) == pytest.approx(found.score, abs=slack)
    assert found.upper_bound >= wanted - slack
    if found.gap == 0:
        assert found.score == pytest.approx(wanted, abs=slack)


@given(data=st.data(), model=models(largest=5))
@settings(max_examples=200)
def test_in_order_against_enumeration(data, model):
    low, high = data.draw(ranges(model))
    if best_in(model, low, high) == -np.inf:
        with pytest.raises(InfeasibleError, match="no labelling has a score from"):
            tt.score_between(model, low, high, labellings=10**6)
    else:
        found = tt.score_between(model, low, high, labellings=10**6)
        assert found.gap == 0
        check(found, model, low, high)


@given(data=st.data(), model=models(largest=5), digits=st.integers(0, 3))
@settings(max_examples=200)
def test_decimals_against_enumeration(data, model, digits):
    model = decimal(model, digits)
    low, high = data.draw(ranges(model))
    if best_in(model, low, high) == -np.inf:
        with pytest.raises(InfeasibleError):
            tt.score_between(model, low, high, labellings=3)
    else:
        found = tt.score_between(model, low, high, labellings=3)
        assert found.gap == 0
        check(found, model, low, high)


@given(
    data=st.data(),
    model=models(largest=5),
    resolution=st.sampled_from([0.01, 0.1, 0.3, 1.0, 7.0]),
    labellings=st.sampled_from([0, 2, 10, 10**6]),
)
@settings(max_examples=400)
def test_coarse_resolutions(data, model, resolution, labellings):
    low, high = data.draw(ranges(model))
    try:
        found = tt.score_between(model, low, high, resolution=resolution, labellings=labellings)
    except InfeasibleError:
        assert best_in(model, low, high) == -np.inf
    except BudgetError:
        assert labellings < 10**6
    else:
        check(found, model, low, high)
        assert found.upper_bound in (found.score, high)
        assert found.gap == 0 or labellings < 10**6


@given(data=st.data(), model=models(largest=5), rng=generators())
@settings(max_examples=100)
def test_what_a_resolution_can_miss_is_near_the_upper_end(data, model, rng):
    low, high = data.draw(ranges(model))
    resolution = float(rng.uniform(0.01, 1))
    try:
        found = tt.score_between(model, low, high, resolution=resolution, labellings=0)
    except (InfeasibleError, BudgetError):
        return
    wanted, width = best_in(model, low, high), resolution * sum(map(len, model.blocks))
    assert wanted == pytest.approx(found.score, abs=score_tolerance(model)) or wanted > high - width - 1e-9


def test_many_labellings_above_the_range_need_a_lattice():
    model = tt.Model.chain(np.round(np.random.default_rng(0).normal(size=(40, 3)), 2), np.zeros((3, 3)))
    best = tt.solve(model).score
    found = tt.score_between(model, best / 2 - 0.005, best / 2 + 0.005)
    assert abs(found.score - best / 2) <= 0.005 + 1e-9
    assert found.gap == 0
    assert repr(found) == f"BoundedSolution(score={found.score:.6g}, upper_bound={found.score:.6g})"


def test_labellings_above_the_range_are_passed_over(monkeypatch):
    model = tt.Model.chain(np.random.default_rng(0).normal(size=(20, 4)), np.zeros((4, 4)))
    wanted = tt.k_best(model, 2000)[-1]
    made = []
    certified = Profile._certified
    monkeypatch.setattr(Profile, "_certified", lambda *args: made.append(args) or certified(*args))
    found = tt.score_between(model, wanted.score - 1e-9, wanted.score, labellings=2000)
    assert found.score == wanted.score and found.gap == 0
    assert len(made) < 10
    with pytest.raises(BudgetError, match="labellings=, 1999 now"):
        tt.score_between(model, wanted.score - 1e-9, wanted.score, labellings=1999)


def test_no_lattice_no_answer_but_an_offer_that_works():
    model = tt.Model.chain(np.random.default_rng(0).normal(size=(40, 3)), np.zeros((3, 3)))
    high = tt.solve(model).score / 2
    with pytest.raises(
        BudgetError, match="but one may exist: the factors are not on a decimal lattice"
    ) as error:
        tt.score_between(model, high - 1, high)
    offered = float(str(error.value).rpartition("resolution=")[2])
    found = tt.score_between(model, high - 1, high, resolution=offered)
    assert high - 1 <= found.score <= high
    assert found.upper_bound == high
    assert found.gap < 40 * offered


def test_too_fine_a_lattice_is_refused_with_an_offer():
    model = tt.Model.chain(np.round(np.random.default_rng(0).normal(size=(40, 3)), 6), np.zeros((3, 3)))
    high = tt.solve(model).score / 2
    with pytest.raises(
        BudgetError, match=r"a lattice of resolution 1e-06 is too fine for the memory limit. .* resolution="
    ) as error:
        tt.score_between(model, high - 1, high, memory_limit=1e7)
    offered = float(str(error.value).rpartition("resolution=")[2])
    assert tt.score_between(model, high - 1, high, resolution=offered, memory_limit=1e7).gap < 40 * offered


def test_too_coarse_a_resolution_claims_nothing():
    model = tt.Model.chain(np.random.default_rng(0).normal(size=(12, 2)), np.zeros((2, 2)))
    with pytest.raises(BudgetError, match="the resolution 100 is too coarse to decide"):
        tt.score_between(model, 0.0, 1e-6, resolution=100, labellings=5)


def test_whole_steps_above_an_odd_offset_are_a_lattice():
    steps = np.random.default_rng(1).integers(0, 4, size=(30, 3)) * 0.75
    model = tt.Model.chain(np.pi + steps, np.zeros((3, 3)))
    low = 30 * np.pi + 30
    found = tt.score_between(model, low, low + 0.1, labellings=0)
    assert found.score == pytest.approx(30 * np.pi + 30)
    assert found.gap == 0


def test_ends_count_as_inside_and_may_be_infinite():
    model = tt.Model.chain([[0, 0.1], [0, 0.2]], np.zeros((2, 2)))
    assert tt.score_between(model, 0.3, 0.3).assignment.tolist() == [1, 1]
    assert tt.score_between(model, -np.inf, 0.25).score == 0.2
    assert tt.score_between(model, 0.1, np.inf).assignment.tolist() == [1, 1]
    assert tt.score_between(model, -np.inf, 0.0, labellings=0).score == 0


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (9, 10, "from 9 to 10: the highest score is 7"),
        (-3, -1, "from -3 to -1: the lowest score is 0"),
        (2.25, 2.5, "from 2.25 to 2.5: the best score below it is 2"),
    ],
)
def test_infeasible_and_why(low, high, text):
    model = tt.Model.chain([[0, 1], [0, 2], [0, 4]], np.zeros((2, 2)))
    with pytest.raises(InfeasibleError, match=text):
        tt.score_between(model, low, high)


def test_no_variables_and_no_factors():
    assert tt.score_between(tt.Model([], [((), 2.5)]), 2, 3).score == 2.5
    assert tt.score_between(tt.Model([2, 3]), 0, 0).score == 0
    with pytest.raises(InfeasibleError):
        tt.score_between(tt.Model([], [((), 2.5)]), 0, 1, resolution=1.0)


def test_forbidden_labellings_are_never_found():
    model = tt.Model([2, 2], [((0,), [0.0, 1.0]), ((1,), [0.0, 2.0]), ((0, 1), [[0, -np.inf], [0, 0]])])
    assert tt.score_between(model, 0, 2.5, labellings=0).assignment.tolist() == [1, 0]
    with pytest.raises(InfeasibleError, match="every labelling is forbidden"):
        tt.score_between(tt.Model([2], [((0,), [-np.inf, -np.inf])]), 0, 1)


def test_infeasible_on_a_lattice():
    model = tt.Model.chain([[0, 1], [0, 2], [0, 4]], np.zeros((2, 2)))
    with pytest.raises(InfeasibleError, match="all tallies of the lattice lie outside"):
        tt.score_between(model, 2.25, 2.5, labellings=0)


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        ((2, 1), {}, "a range of scores needs low <= high; got 2 and 1"),
        ((0, np.nan), {}, "got 0 and nan"),
        ((0, 1), {"resolution": 0.0}, "resolution must be a positive number, got 0.0"),
        ((0, 1), {"labellings": -1}, "labellings must be at least 0, got -1"),
        ((0, 1), {"labellings": 0.5}, "labellings must be an integer, got 0.5"),
    ],
)
def test_what_is_refused(arguments, options, text):
    model = tt.Model.chain([[0, 3.0], [0, 2]], np.zeros((2, 2)))
    with pytest.raises(ModelError, match=text):
        tt.score_between(model, *arguments, **options)


def test_steps_beyond_the_largest_integer_are_refused():
    model = tt.Model.chain([[0, 1e9], [0, 2e9]], np.zeros((2, 2)))
    with pytest.raises(BudgetError, match="times the resolution 1e-06; use a coarser one"):
        tt.score_between(model, 0, 5, resolution=1e-6)


def test_solutions_survive_pickling():
    model = tt.Model.chain([[0, 1.0], [0, 2]], np.zeros((2, 2)), states=["off", "on"])
    found = pickle.loads(pickle.dumps(tt.score_between(model, 0, 2.5)))
    assert (found.score, found.upper_bound, found.gap, found.tally) == (2, 2, 0, ())
    assert list(found.labels) == ["off", "on"]


def test_fixed_and_allowed_states():
    model = tt.Model.chain([[0, 1.5], [0, 2.25], [0, 4]], np.zeros((2, 2)))
    assert tt.score_between(model, 2, 5, fixed={2: 0}).score == 3.75
    assert tt.score_between(model, 2, 5, allowed={0: [1], 1: [0, 1]}).score == 3.75
