"""Sufficient statistics: the score is linear in counts, so a range of scores is a set of counts."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generators, models

import tallytree as tt
from tallytree.answers.profile import Profile
from tallytree.model.rounding import rounding
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.score_ranges.lattice import Values
from tallytree.score_ranges.search import Search
from tallytree.score_ranges.window import Window
from tallytree.testing import brute_force, score_tolerance

WEATHER = {"walk": [1.0, 0.3], "shop": [0.6, 0.7], "clean": [0.1, 1.1]}
STAY = [[0.8, 0.2], [0.4, 0.6]]


@st.composite
def chains(draw, *, longest=7):
    """Draw the sufficient statistics of a chain: up to three symbols and states, weights that may be -inf."""
    rng = draw(generators())
    places, symbols, states = draw(st.integers(1, longest)), draw(st.integers(1, 3)), draw(st.integers(1, 3))
    emissions, transitions = rng.normal(size=(symbols, states)), rng.normal(size=(states, states))
    if draw(st.booleans()):  # ties
        emissions, transitions = np.sign(emissions), np.sign(transitions)
    if states > 1 and draw(st.booleans()):
        transitions[0, states - 1] = -np.inf
    return tt.sufficient_statistics(rng.integers(symbols, size=places).tolist(), emissions, transitions)


@given(chains())
def test_the_score_is_a_linear_function_of_the_counts(chain):
    enumeration = brute_force(chain.model, chain.statistics)
    possible = enumeration.scores > -np.inf
    scores = np.broadcast_to(chain.score(*enumeration.tallies.T), possible.shape)
    assert scores[possible] == pytest.approx(enumeration.scores[possible], abs=1e-12)


@given(chains(longest=6), st.integers(0, 12))
def test_a_constraint_that_is_not_linear(chain, bound):
    first, last = chain.statistics[0], chain.statistics[-1]

    def product_is_small(score, a, b):
        return np.where(a * b <= bound, score, -np.inf)

    enumeration = brute_force(chain.model, [first, last])
    wanted = product_is_small(enumeration.scores, *enumeration.tallies.T).max()
    if wanted == -np.inf:
        with pytest.raises(tt.InfeasibleError, match="the objective is -inf at every attainable tally"):
            tt.solve(chain.model, [first, last], product_is_small)
        return
    found = tt.solve(chain.model, [first, last], product_is_small)
    assert found.value == pytest.approx(wanted, abs=1e-12)
    assert found.tally[0] * found.tally[1] <= bound


@given(chains(longest=6), st.floats(0, 1), st.floats(0, 0.5))
def test_the_papers_objective_on_a_range_is_score_between(chain, where, width):
    scores = brute_force(chain.model).scores
    scores = scores[scores > -np.inf]
    high = scores.min() + where * np.ptp(scores)
    low = high - width * np.ptp(scores)

    def in_range(score, *counts):
        total = chain.score(*counts)
        return np.where((total >= low - 1e-9) & (total <= high + 1e-9), score, -np.inf)

    inside = scores[(scores >= low - 1e-9) & (scores <= high + 1e-9)]
    if not len(inside):
        with pytest.raises(tt.InfeasibleError):
            tt.profile(chain.model, chain.statistics).best(in_range)
        return
    found = tt.profile(chain.model, chain.statistics).best(in_range)
    assert found.score == pytest.approx(inside.max(), abs=1e-9)
    assert tt.score_between(chain.model, low, high).score == pytest.approx(found.score, abs=2e-9)


def test_only_symbols_that_occur_have_counts():
    chain = tt.sufficient_statistics(["walk", "clean", "walk"], WEATHER, STAY, states=["sun", "rain"])
    assert chain.symbols == ("walk", "clean")
    assert [s.name for s in chain.statistics][:3] == ["walk_sun", "walk_rain", "clean_sun"]
    assert chain.emission("walk", "rain").tally([1, 1, 0]) == 1
    assert chain.transition("rain", "rain").tally([1, 1, 0]) == 1
    assert chain.weights.tolist() == [1.0, 0.3, 0.1, 1.1, 0.8, 0.2, 0.4, 0.6]
    with pytest.raises(tt.ModelError, match="no emission of 'shop' with 'sun': the symbol does not occur"):
        chain.emission("shop", "sun")
    again = pickle.loads(pickle.dumps(chain))
    assert again.statistics == chain.statistics
    assert again.emission("clean", 1) == chain.emission("clean", "rain")


@pytest.mark.parametrize(
    ("symbols", "emissions", "transitions", "text"),
    [
        (["run"], WEATHER, STAY, "no emission scores for the symbol 'run'"),
        ([3], np.zeros((3, 2)), STAY, "no emission scores for the symbol 3"),
        ([-1], np.zeros((3, 2)), STAY, "no emission scores for the symbol -1"),
        (["walk"], np.zeros((3, 2)), STAY, "no emission scores for the symbol 'walk'"),
        ([], WEATHER, STAY, "at least one symbol"),
        (["walk"], WEATHER, [[0.0, 1.0]], r"shape \(N, N\)"),
        (["walk"], WEATHER, np.zeros((3, 3)), "'walk' needs 3 emission scores"),
    ],
)
def test_what_does_not_fit_is_refused(symbols, emissions, transitions, text):
    with pytest.raises(tt.ModelError, match=text):
        tt.sufficient_statistics(symbols, emissions, transitions)


def test_a_score_needs_all_tallies():
    chain = tt.sufficient_statistics(["walk"], WEATHER, STAY)
    with pytest.raises(tt.ModelError, match="all 2 statistics, got 1"):
        chain.score(1)


# --- counts of distinct entries, as score_between uses them


@given(models(largest=5))
def test_labellings_of_one_tally_have_one_score(model):
    values = Values(model)
    if values.few:
        enumeration = brute_force(model, values.statistics)
        possible = enumeration.scores > -np.inf
        tallies, which = np.unique(enumeration.tallies[possible], axis=0, return_inverse=True)
        for group in range(len(tallies)):
            assert np.ptp(enumeration.scores[possible][which.reshape(-1) == group]) <= score_tolerance(model)


@given(models(largest=5))
def test_the_bound_on_tallies_holds(model):
    values = Values(model)
    if values.few:
        plan = Plan(model, values.statistics, PlanOptions(layout="cells"))
        assert len(Profile.of(model, values.statistics, plan)) <= values.most_tallies


@given(data=st.data(), model=models(largest=5))
def test_counts_against_enumeration(data, model):
    scores = brute_force(model).scores
    scores = np.sort(scores[scores > -np.inf])
    low, high = sorted(data.draw(st.lists(st.floats(scores[0] - 1, scores[-1] + 1), min_size=2, max_size=2)))
    if data.draw(st.booleans()):
        high = float(data.draw(st.sampled_from(scores.tolist())))
        low = min(low, high)
    found = by_counts(model, low, high)
    slack = score_tolerance(model)
    inside = scores[(scores >= low - slack) & (scores <= high + slack)]
    if found is None:
        assert not len(scores[(scores >= low) & (scores <= high)])
    else:
        assert found.score == pytest.approx(inside.max(), abs=slack)
        assert found.gap == 0


def by_counts(model, low, high):
    """Ask the counts alone; None where they prove that there is nothing."""
    values = Values(model)
    search = Search(model, Window(low, high, rounding(model.blocks)), 0, None)
    plan = Plan(model, values.statistics, PlanOptions(order="sweep", layout="cells"))
    try:
        return search._by_counts(values, plan)
    except tt.InfeasibleError:
        return None


def test_weights_that_repeat_need_no_lattice():
    rng = np.random.default_rng(3)
    chain = tt.sufficient_statistics(
        rng.integers(2, size=24).tolist(), rng.normal(size=(2, 2)), rng.normal(size=(2, 2))
    )
    best = tt.solve(chain.model).score
    found = tt.score_between(chain.model, best - 12, best - 10, labellings=10)
    assert best - 12 <= found.score <= best - 10
    assert found.gap == 0
    assert "the score of every combination of its 5 distinct entries is known" in found.explain()
    finer = tt.score_between(chain.model, best - 12, best - 10, labellings=10, resolution=1e-4)
    assert finer.score <= found.score + 1e-9


def test_a_lattice_that_is_cheaper_is_taken():
    chain = tt.sufficient_statistics([0, 1] * 12, [[0.0, 1.25], [0.5, 0.0]], [[0.0, 0.25], [0.5, 0.75]])
    found = tt.score_between(chain.model, 5, 6, labellings=10)
    assert found.score == 6
    assert "multiple of 0.25" in found.explain()


def test_too_many_counts_are_refused_at_once():
    rng = np.random.default_rng(0)
    chain = tt.sufficient_statistics(
        rng.integers(3, size=200).tolist(), rng.normal(size=(3, 5)), rng.normal(size=(5, 5))
    )
    half = tt.solve(chain.model).score / 2
    with pytest.raises(tt.BudgetError, match="give a resolution, such as"):
        tt.score_between(chain.model, half - 0.1, half, labellings=10)
