"""The test tools, on cases small enough to solve by hand."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from strategies import models, problems

from tallytree.errors import InfeasibleError
from tallytree.model.model import Model
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Statistic
from tallytree.testing import (
    SHAPES,
    brute_force,
    check_distribution,
    check_profile,
    check_solution,
    factors_of,
    random_model,
    random_statistics,
    score_of,
    score_tolerance,
    tally_of,
)

# Two coins. Heads scores 2 on the first and 1 on the second, and both heads is forbidden.
FORBID_BOTH = [[0.0, 0.0], [0.0, -np.inf]]
COINS = Model([2, 2], [((0,), [0.0, 2.0]), ((1,), [0.0, 1.0]), ((0, 1), FORBID_BOTH)])
HEADS = Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="heads")


# ---------------------------------------------------------------- enumeration


def test_enumeration_by_hand():
    coins = brute_force(COINS, [HEADS])
    assert coins.labellings.tolist() == [[0, 0], [0, 1], [1, 0], [1, 1]]
    assert coins.scores.tolist() == [0.0, 1.0, 2.0, -np.inf]
    assert coins.tallies.ravel().tolist() == [0, 1, 1, 2]
    tallies, scores = coins.profile()
    assert tallies.tolist() == [[0], [1]]  # two heads are forbidden
    assert scores.tolist() == [0.0, 2.0]
    assert coins.counts() == (1, 2)


def test_partition_and_marginals_by_hand():
    coins = brute_force(COINS, [HEADS])
    e = math.e
    np.testing.assert_allclose(coins.log_partitions(), [0.0, math.log(e + e**2)])
    assert coins.log_partition() == pytest.approx(math.log(1 + e + e**2))
    np.testing.assert_allclose(coins.probabilities(), [1 / (1 + e + e**2), (e + e**2) / (1 + e + e**2)])
    np.testing.assert_allclose(coins.marginals()[0], [(1 + e) / (1 + e + e**2), e**2 / (1 + e + e**2)])
    np.testing.assert_allclose(
        coins.marginals((1,)), [[1 / (1 + e), e / (1 + e)], [e / (1 + e), 1 / (1 + e)]]
    )
    with pytest.raises(InfeasibleError, match=r"the tally \(2,\)"):
        coins.marginals((2,))


def test_best_by_hand():
    coins = brute_force(COINS, [HEADS])
    best = coins.best()
    assert (best.value, best.score, best.tally, best.assignment.tolist()) == (2.0, 2.0, (1,), [1, 0])
    assert coins.best(lambda score, heads: score - 3 * heads).assignment.tolist() == [0, 0]
    assert coins.best(lambda score, heads: 0 * score).tally == (0,)  # ties go to the first tally
    assert coins.best(where=HEADS <= 0).assignment.tolist() == [0, 0]
    with pytest.raises(InfeasibleError, match="satisfies the constraint"):
        coins.best(where=HEADS >= 2)


def test_recipes_are_bound():
    coins = brute_force(COINS, [count(state=1)])
    assert coins.tallies.ravel().tolist() == [0, 1, 1, 2]
    assert coins.best(where=count(state=0) == 2).assignment.tolist() == [0, 0]


def test_caps_constants_and_the_order_of_a_scope():
    model = Model([2, 3], [((1, 0), np.arange(6.0).reshape(3, 2)), ((), 10.0)])
    statistic = Statistic([((1,), [0, 2, 4]), ((), -1)], name="g", cap=2)
    assert score_of(model, [[1, 2], [0, 1]]).tolist() == [15.0, 12.0]
    assert tally_of(statistic, [[0, 0], [0, 1], [0, 2]]).tolist() == [-1, 1, 2]


def test_no_statistics_and_no_variables():
    tallies, scores = brute_force(COINS).profile()
    assert tallies.shape == (1, 0) and scores.tolist() == [2.0]
    assert brute_force(COINS).best().tally == ()
    nothing = brute_force(Model([], [((), 3.0)]))
    assert nothing.labellings.shape == (1, 0)
    assert nothing.profile()[1].tolist() == [3.0]


def test_an_infeasible_model_has_an_empty_profile():
    model = Model([2], [((0,), [-np.inf, -np.inf])])
    nothing = brute_force(model, [Statistic([((0,), [0, 1])], name="ones")])
    tallies, scores = nothing.profile()
    assert tallies.shape == (0, 1) and scores.shape == (0,)
    assert nothing.log_partition() == -np.inf
    assert nothing.log_partitions().shape == nothing.probabilities().shape == (0,)
    assert nothing.counts() == ()
    with pytest.raises(InfeasibleError):
        nothing.best()


def test_too_many_labellings_are_refused():
    with pytest.raises(ValueError, match="1048576 labellings are too many"):
        brute_force(Model([2] * 20, []))


def test_shared_tables_are_read_for_every_scope():
    model = Model.chain(np.zeros((4, 2)), np.array([[0.0, 1.0], [2.0, 3.0]]))
    pairs = [(scope, table.tolist()) for scope, table in factors_of(model.blocks) if len(scope) == 2]
    assert pairs == [((v, v + 1), [[0.0, 1.0], [2.0, 3.0]]) for v in range(3)]


def test_the_tolerance_grows_with_the_scores():
    assert score_tolerance(Model([1], [((0,), [1e6])])) > 1e5 * score_tolerance(Model([1], [((0,), [1.0])]))
    assert score_tolerance(COINS) < 1e-12


# ---------------------------------------------------------------- generators


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("variables", [1, 2, 3, 7])
def test_shapes(shape, variables):
    model = random_model(
        np.random.default_rng(variables), shape, variables=variables, repeated=2, constants=1
    )
    again = random_model(
        np.random.default_rng(variables), shape, variables=variables, repeated=2, constants=1
    )
    assert len(model.cardinalities) == variables
    assert np.array_equal(brute_force(model).scores, brute_force(again).scores)


def wide_scopes(shape: str, variables: int) -> set[tuple[int, ...]]:
    model = random_model(np.random.default_rng(0), shape, variables=variables)
    return {tuple(sorted(scope)) for scope, _ in factors_of(model.blocks) if len(scope) > 1}


def test_shapes_are_what_they_are_called():
    assert wide_scopes("chain", 4) == {(0, 1), (1, 2), (2, 3)}
    assert wide_scopes("star", 4) == {(0, 1), (0, 2), (0, 3)}
    assert wide_scopes("cycle", 4) == {(0, 1), (1, 2), (2, 3), (0, 3)}
    assert wide_scopes("grid", 4) == {(0, 1), (2, 3), (0, 2), (1, 3)}
    assert len(wide_scopes("tree", 9)) == 8
    assert len(wide_scopes("disconnected", 9)) < 8
    assert any(len(scope) == 3 for scope in wide_scopes("triples", 9))


def test_options_of_models():
    rng = np.random.default_rng(5)
    model = random_model(
        rng, variables=30, single_state=0.5, forbidden=0.5, ties=True, constants=2, repeated=3
    )
    pairs = list(factors_of(model.blocks))
    entries = np.concatenate([table.ravel() for _, table in pairs])
    assert (model.cardinalities == 1).any() and (model.cardinalities > 1).any()
    assert np.isneginf(entries).any()
    assert np.array_equal(entries[entries > -np.inf] % 1, np.zeros(np.isfinite(entries).sum()))
    assert sum(not scope for scope, _ in pairs) == 2
    scopes = [tuple(sorted(scope)) for scope, _ in pairs]
    assert len(scopes) - len(set(scopes)) == 3 + 1  # the two constants share the empty scope


@given(models())
def test_a_feasible_model_has_a_labelling(model):
    assert brute_force(model).log_partition() > -np.inf


def test_models_need_not_be_feasible():
    rng = np.random.default_rng(0)
    assert brute_force(random_model(rng, forbidden=1.0, feasible=False)).log_partition() == -np.inf


def test_options_of_statistics():
    rng = np.random.default_rng(1)
    model = random_model(rng, "chain", variables=6)
    drawn = random_statistics(rng, model, 40, capped=0.5, constants=1)
    caps = [statistic.cap for statistic in drawn]
    assert len({statistic.name for statistic in drawn}) == 40
    assert (
        None in caps
        and any(cap is not None and cap < 0 for cap in caps)
        and any(cap and cap > 0 for cap in caps)
    )
    assert {len(scope) for statistic in drawn for scope, _ in factors_of(statistic.blocks)} == {0, 1, 2, 3}
    assert min(table.min() for statistic in drawn for _, table in factors_of(statistic.blocks)) == -2


def test_local_statistics_lie_inside_factors():
    rng = np.random.default_rng(2)
    model = random_model(rng, "triples", variables=8)
    homes = [set(scope) for scope, _ in factors_of(model.blocks)]
    for statistic in random_statistics(rng, model, 5, local=True):
        assert all(any(set(scope) <= home for home in homes) for scope, _ in factors_of(statistic.blocks))


# ---------------------------------------------------------------- checkers


class Enumerated:
    """A profile and a distribution made by enumeration, as the checkers want them, with room for mistakes."""

    def __init__(self, model, statistics, **mistakes):
        self.everything = brute_force(model, statistics)
        self.tallies, self.scores = self.everything.profile()
        self.log_partitions = self.everything.log_partitions()
        self.probabilities = self.everything.probabilities()
        self.counts = self.everything.counts()
        self.marginals = self.everything.marginals
        self.__dict__.update(mistakes)

    def at(self, *tally):
        here = np.flatnonzero(np.all(self.everything.tallies == np.array(tally, dtype=int), axis=1))
        row = here[np.argmax(self.everything.scores[here])]
        return SimpleNamespace(
            score=self.everything.scores[row], tally=tally, assignment=self.everything.labellings[row]
        )


@given(problems())
def test_checkers_accept_the_truth(problem):
    model, statistics = problem
    check_profile(Enumerated(model, statistics), model, statistics)
    check_distribution(Enumerated(model, statistics), model, statistics)


def other_coin(*tally):
    return SimpleNamespace(score=1.0, tally=tally, assignment=np.array([0, 1]))


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ({"tallies": np.array([[0], [2]])}, "the attainable tallies differ"),
        ({"scores": np.array([0.0, 2.0 + 1e-9])}, "the best scores differ"),
        ({"at": other_coin}, "the best score of tally"),
    ],
)
def test_a_wrong_profile_is_refused(mistake, text):
    with pytest.raises(AssertionError, match=text):
        check_profile(Enumerated(COINS, [HEADS], **mistake), COINS, [HEADS])


@pytest.mark.parametrize(
    ("mistake", "text"),
    [
        ({"tallies": np.array([[0], [2]])}, "the attainable tallies differ"),
        ({"log_partitions": np.array([0.0, 2.0])}, "the log-partitions differ"),
        ({"probabilities": np.array([0.5, 0.5])}, "the probabilities differ"),
        ({"counts": (1, 3)}, "the counts are"),
        ({"marginals": lambda tally: [np.array([0.5, 0.5])] * 2}, "the marginal of variable 0"),
    ],
)
def test_a_wrong_distribution_is_refused(mistake, text):
    with pytest.raises(AssertionError, match=text):
        check_distribution(Enumerated(COINS, [HEADS], **mistake), COINS, [HEADS])


def test_a_wrong_solution_is_refused():
    good = {"score": 2.0, "tally": (1,), "assignment": np.array([1, 0])}
    check_solution(SimpleNamespace(**good), COINS, [HEADS])
    with pytest.raises(AssertionError, match="the assignment's tally is"):
        check_solution(SimpleNamespace(**good | {"tally": (0,)}), COINS, [HEADS])
    with pytest.raises(AssertionError, match="the assignment's score is"):
        check_solution(SimpleNamespace(**good | {"score": 1.0}), COINS, [HEADS])
