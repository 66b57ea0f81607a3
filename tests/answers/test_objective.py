"""The contract of objectives: elementwise, never nan or +inf, and not decreasing in the score."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.answers.objective import values_to_show
from tallytree.testing import brute_force, score_tolerance

GAINS = np.array([1.0, 2.0, 4.0, 8.0, -1.0, -2.0])


@pytest.fixture
def profile():
    model = tt.Model.chain(np.stack([np.zeros(6), GAINS], axis=1), np.zeros((2, 2)))
    return tt.profile(model, [tt.count(model, state=1, name="ones")])


# ---------------------------------------------------------------- what is accepted


OBJECTIVES = {
    "tally only": lambda score, *tally: -np.abs(sum(tally) - 2.5),
    "constant": lambda score, *tally: 1.0,
    "product": lambda score, *tally: np.maximum(sum(tally), 0) * score,
    "squashed": lambda score, *tally: np.tanh(score) + 0.1 * sum(tally),
    "barrier": lambda score, *tally: np.where(sum(tally) % 2 == 0, score, -np.inf),
    "slack": lambda score, *tally: np.abs(sum(tally)) * (1 + score - 0.5),
    "branch": tt.elementwise(lambda score, *tally: score if sum(tally) > 1 else score - 2),
}


@pytest.mark.parametrize("name", sorted(OBJECTIVES))
@given(problem=problems(largest=5, most=2))
@settings(max_examples=60)
def test_the_best_value_is_that_of_enumeration(name, problem):
    model, statistics = problem
    objective = OBJECTIVES[name]
    # a single labelling at a time: enumeration asks for no more than a value per labelling
    wanted = brute_force(model, statistics).best(objective).value
    profile = tt.profile(model, statistics)
    if wanted == -np.inf:
        with pytest.raises(tt.InfeasibleError, match="-inf at every attainable tally"):
            profile.best(objective)
    else:
        solution = profile.best(objective)
        assert solution.value == pytest.approx(wanted, abs=100 * score_tolerance(model))
        value = np.broadcast_to(objective(np.array([solution.score]), *np.array(solution.tally)[:, None]), 1)
        assert float(value[0]) == pytest.approx(wanted, abs=100 * score_tolerance(model))


def test_tallies_come_as_int64_and_scores_as_float64(profile):
    seen = []

    def objective(score, ones):
        seen.append((score.dtype, ones.dtype, score.shape == ones.shape, score.ndim))
        return score

    profile.best(objective)
    assert set(seen) == {(np.dtype(np.float64), np.dtype(np.int64), True, 1)}


def test_integer_tallies_do_not_wrap_or_round():
    big = 2**40 - 1
    model = tt.Model([2] * 12, [])
    statistic = tt.Statistic([((v,), [0, big]) for v in range(12)] + [((0, 1), [[0, 0], [0, 1]])], name="big")
    profile = tt.profile(model, [statistic])
    assert profile.tallies[-1, 0] == 12 * big + 1
    best = profile.best(lambda score, g: np.where((g % 2 == 1) & (g > 11 * big), 1.0, 0.0))
    assert best.tally.big == 12 * big + 1


def test_scalar_functions_are_wrapped(profile):
    def prefer_four(score, ones):
        """Prefer four."""
        return score if ones == 4 else score - 100

    with pytest.raises((tt.ObjectiveError, ValueError)):
        profile.best(prefer_four)
    wrapped = tt.elementwise(prefer_four)
    assert wrapped.__name__ == "prefer_four"
    assert wrapped.__doc__ == "Prefer four."
    assert profile.best(wrapped).tally.ones == 4
    assert isinstance(wrapped(np.array([1.0]), np.array([4])), np.ndarray)


def test_division_by_zero_may_exclude_a_tally(profile):
    precision = profile.best(lambda score, k: np.where(k == 0, -1.0, score / k))
    assert precision.tally.ones == 1
    assert profile.best(lambda score, k: -1.0 / k).tally.ones == 6, "-1/0 is -inf, and never the best"


def test_slack_scaling_may_multiply_by_no_loss(profile):
    """``loss · (1 + F(y) − f)`` is constant in the score where the loss is 0: not decreasing, so allowed."""
    truth = np.array([1, 1, 1, 1, 0, 0])
    model = profile.model
    hamming = tt.mismatches(model, truth, name="loss")
    value = model.score(truth)
    best = tt.profile(model, [hamming]).best(lambda score, loss: loss * (1 + score - value))
    assert best.value == pytest.approx(0.0, abs=1e-12)
    assert best.tally.loss in (0, 1)


# ---------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    "objective",
    [
        lambda score, k: score - score.max(),
        lambda score, k: score / np.abs(score).sum(),
        lambda score, k: np.arange(len(score)) + score,
        lambda score, k: np.sort(score),
    ],
    ids=["max", "normalised", "position", "sorted"],
)
def test_an_objective_that_looks_at_other_rows_is_refused(profile, objective):
    with pytest.raises(tt.ObjectiveError, match="not elementwise"):
        profile.best(objective)


def test_nan_is_refused_with_its_tally(profile):
    with pytest.raises(tt.ObjectiveError, match=r"nan at tally \(ones=3\)"):
        profile.best(lambda score, k: np.where(k == 3, np.nan, score))
    with pytest.raises(tt.ObjectiveError, match=r"nan at tally \(ones=0\)"):
        profile.best(lambda score, k: k / k)


INFINITE = (
    r"^the objective is inf at tally \(ones=0\) with score 0; return a number there, or -inf to exclude"
)


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
@pytest.mark.parametrize(
    "objective",
    ["score + 1/ones", lambda score, k: score + 1 / k, lambda score, k: np.where(k < 1, np.inf, 0)],
)
def test_infinity_is_refused_with_its_tally(profile, objective, strategy):
    ones = tt.count(state=1, name="ones")
    with pytest.raises(tt.ObjectiveError, match=INFINITE):
        profile.best(objective)
    with pytest.raises(tt.ObjectiveError, match=INFINITE):
        tt.solve(profile.model, [ones], objective, strategy=strategy)
    with pytest.raises(tt.ObjectiveError, match=INFINITE):
        list(tt.k_best(profile.model, 2, [ones], objective))
    with pytest.raises(tt.ObjectiveError, match=INFINITE):
        tt.solve_batch([profile.model] * 2, [ones], objective)


def test_infinity_without_statistics_is_refused_with_its_score(profile):
    with pytest.raises(tt.ObjectiveError, match=r"^the objective is inf at score 15; return a number there"):
        tt.solve(profile.model, [], lambda score: score * np.inf)


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
@pytest.mark.parametrize("objective", ["score + 1/ones", lambda score, k: score + 1 / k])
def test_infinity_at_other_tallies_does_not_matter(strategy, objective):
    """Those that no labelling has, or that the constraint excludes."""
    model = tt.Model([2, 2, 2], [((0,), [-np.inf, 0.0]), ((1,), [0, -1]), ((2,), [0, 3])])
    ones = tt.count(model, state=1, name="ones")
    assert tt.solve(model, [ones], objective, strategy=strategy).value == 3.5
    free = tt.Model([2, 2, 2], [((1,), [0, -1]), ((2,), [0, 3])])
    best = tt.solve(free, [ones], objective, where=ones >= 2, strategy=strategy)
    assert (best.value, best.tally.ones) == (3.5, 2)


def test_values_that_are_shown_may_be_infinite_where_the_constraint_does_not_hold(profile):
    arguments = lambda s, k: s + 1 / k, profile.scores, profile.tallies, profile.names
    values = values_to_show(*arguments, profile.tallies[:, 0] > 0)
    assert values[0] == np.inf
    assert values[1:].tolist() == (profile.scores[1:] + 1 / profile.tallies[1:, 0]).tolist()
    assert values_to_show(*arguments, profile.tallies[:, 0] > 9)[0] == np.inf
    with pytest.raises(tt.ObjectiveError, match=INFINITE):
        values_to_show(*arguments, profile.tallies[:, 0] < 9)


@pytest.mark.parametrize(
    "objective",
    [
        lambda score, k: -score,
        lambda score, k: k - score**2,
        lambda score, k: np.where(k >= 3, -score, score),
        lambda score, k: (k - 2) * score,
        lambda score, k: np.where(score > 0, -np.inf, score),
    ],
    ids=["negated", "square", "at some tallies", "negative weight", "limit"],
)
def test_an_objective_that_decreases_in_the_score_is_refused(profile, objective):
    with pytest.raises(
        tt.ObjectiveError, match=r"decreases in the score at tally .* use tallytree\.score_between"
    ):
        profile.best(objective)


def test_probes_stay_below_the_best_score_and_finite(profile):
    best = dict(zip(profile.tallies[:, 0].tolist(), profile.scores.tolist(), strict=True))

    def objective(score, k):
        assert np.isfinite(score).all()
        assert all(s <= best[t] for s, t in zip(score.tolist(), k.tolist(), strict=True))
        return score

    profile.best(objective)


@pytest.mark.parametrize(
    "objective",
    [
        lambda score, k: score[:3],
        lambda score, k: np.stack([score, score]),
        lambda score, k: "best",
        lambda score, k: ["a"] * len(score),
    ],
    ids=["short", "two rows", "text", "texts"],
)
def test_anything_but_one_number_per_row_is_refused(profile, objective):
    with pytest.raises(tt.ObjectiveError, match="one number per row"):
        profile.best(objective)


def test_a_forgotten_return_is_refused(profile):
    with pytest.raises(tt.ObjectiveError):
        profile.best(lambda score, k: None)


def test_minus_infinity_everywhere_is_infeasible(profile):
    with pytest.raises(tt.InfeasibleError, match="-inf at every attainable tally"):
        profile.best(lambda score, k: np.full(len(score), -np.inf))
    with pytest.raises(tt.InfeasibleError, match="-inf at every"):
        profile.top(3, lambda score, k: -np.inf)


def test_errors_of_the_objective_itself_come_through(profile):
    def objective(score, k):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        profile.best(objective)


# ---------------------------------------------------------------- ties and top


@given(problem=problems(most=2), data=st.data())
@settings(max_examples=100)
def test_ties_go_to_the_first_tally(problem, data):
    model, statistics = problem
    profile = tt.profile(model, statistics)
    values = data.draw(st.lists(st.integers(0, 2), min_size=len(profile), max_size=len(profile)))
    table = {tuple(t): float(v) for t, v in zip(profile.tallies.tolist(), values, strict=True)}
    objective = tt.elementwise(lambda score, *tally: table[tally])
    assert tuple(profile.best(objective).tally) == tuple(profile.tallies[int(np.argmax(values))].tolist())


@given(problem=problems(most=2), count=st.integers(1, 6))
@settings(max_examples=100)
def test_top_gives_the_best_tallies_in_order(problem, count):
    model, statistics = problem
    profile = tt.profile(model, statistics)

    def objective(score, *tally):
        return np.round(score) + 0.0 * sum(tally)

    values = np.round(profile.scores)
    wanted = sorted(range(len(profile)), key=lambda row: (-values[row], row))[:count]
    got = profile.top(count, objective)
    assert [tuple(s.tally) for s in got] == [tuple(profile.tallies[row].tolist()) for row in wanted]
    assert [s.value for s in got] == [values[row] for row in wanted]
    assert got[0].tally == profile.best(objective).tally


def test_top_gives_fewer_where_there_are_fewer(profile):
    assert len(profile.top(100)) == 7
    ones = profile.statistics[0]
    assert [s.tally.ones for s in profile.top(9, where=ones <= 1)] == [1, 0]
    accepted = profile.top(9, lambda score, k: np.where(k > 4, score, -np.inf))
    assert [s.tally.ones for s in accepted] == [5, 6]
    with pytest.raises(tt.ModelError, match="at least 1"):
        profile.top(0)


def test_an_objective_of_too_few_arguments_is_refused(profile):
    with pytest.raises(tt.ObjectiveError, match=r"\(score, .*\); this one takes \(score\)"):
        profile.best(lambda score: score)
    with pytest.raises(TypeError, match="ufunc"):  # a fault of its own comes through
        profile.best(lambda score, k: score + "k")


def test_an_objective_that_branches_on_arrays_is_told_of_elementwise():
    model = tt.Model.chain(np.zeros((4, 2)), np.eye(2))
    ones = tt.count(model, state=1)
    with pytest.raises(tt.ObjectiveError, match=r"wrap it in tallytree\.elementwise"):
        tt.solve(model, [ones], lambda score, k: score if k > 2 else 0.0)

    def broken(score, k):
        raise ValueError("of its own")

    with pytest.raises(ValueError, match="of its own"):
        tt.solve(model, [ones], broken)
