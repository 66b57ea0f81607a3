"""What statistics can be combined and compared with, and how constraints are written."""

import pickle

import numpy as np
import pytest

import tallytree as tt

wet = tt.count(state=1, name="wet")
bound = tt.Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="bound")
TERMS = {"recipe": wet, "statistic": bound, "combination": 2 * wet - 1}
CHAIN = tt.Model.chain([[0, 1.5], [0, -2.5], [0, 3.0]], np.eye(2))


@pytest.mark.parametrize("name", TERMS)
@pytest.mark.parametrize("number", [1, 1.0, np.int64(1)])
def test_missing_parentheses_are_explained(name, number):
    term = TERMS[name]
    for wrong in (
        lambda: term >= number & term <= 2,
        lambda: term >= number | term <= 2,
        lambda: term & 1,
        lambda: term | term,
    ):
        with pytest.raises(
            tt.ModelError, match=r"bind more tightly .* write `\(ones >= 2\) & \(ones <= 5\)`"
        ):
            wrong()
    for wrong in (lambda: (term >= 1) & term <= 2, lambda: (term >= 1) | term):
        with pytest.raises(tt.ModelError, match="Put each comparison in parentheses"):
            wrong()


def test_membership_is_explained():
    with pytest.raises(tt.ModelError, match=r"instead of `ones in \(1, 2\)` write `\(ones == 1\) \| "):
        wet in (1, 2)  # noqa: B015


@pytest.mark.parametrize("number", [2.0, np.float32(2), np.float64(2)])
def test_floats_without_a_fraction_are_integers(number):
    assert (wet == number) == (wet == 2)
    assert (wet <= number) == (wet <= 2)
    assert (wet != number) == (wet != 2)
    assert repr(number * wet - number) == "2*wet - 2"
    assert tt.count(state=1, cap=number).cap == 2
    profile, spread = tt.profile(CHAIN, [wet]), tt.distribution(CHAIN, [wet])
    assert profile.at(number).score == profile.at(2).score
    assert profile.at(wet=number).tally == (2,)
    assert np.array_equal(spread.marginals(wet=number), spread.marginals(2))
    assert spread.sample(4, wet=number, rng=0).sum(axis=1).tolist() == [2] * 4
    assert spread.sample(1, tally=[number], rng=0).sum() == 2


@pytest.mark.parametrize("number", [2.5, np.float64(0.1), float("inf"), float("nan")])
def test_fractions_are_refused(number):
    for wrong in (lambda: wet == number, lambda: wet < number, lambda: wet + number):
        with pytest.raises(tt.ModelError, match=r"math\.floor for <=|Give a single integer"):
            wrong()
    with pytest.raises(tt.ModelError, match="a tally must consist of integers"):
        tt.profile(CHAIN, [wet]).at(number)


def test_text_is_refused_where_it_is_compared():
    for wrong in (lambda: wet <= "2", lambda: bound + "2"):
        with pytest.raises(tt.ModelError, match=r"integers, got '2'\. Convert it with int\(…\)"):
            wrong()
    for wrong in (wet == "2", wet == np.array([2]), wet == wet):
        with pytest.raises(tt.ModelError, match="from a statistic and a single integer: write `ones == 2`"):
            tt.solve(CHAIN, where=wrong)


def test_constraints_are_shown_as_they_are_written():
    shown = {
        "wet > 9": wet > 9,
        "wet < 9": wet < 9,
        "wet <= 9": ~(wet > 9),
        "2*wet - bound < 4": 2 * wet < 4 + bound,
        "wet < 3": -wet > -3,
        "(wet > 1) & (wet < 5)": (wet > 1) & (wet < 5),
    }
    for text, constraint in shown.items():
        assert repr(constraint) == text
        assert repr(pickle.loads(pickle.dumps(constraint))) == text
    assert repr((wet > 9).on(CHAIN)) == "wet > 9"
    assert (wet > 9) == (wet >= 10)
    assert hash(wet > 9) == hash(wet >= 10)
    with pytest.raises(tt.InfeasibleError, match="no labelling satisfies 'wet > 9'"):
        tt.solve(CHAIN, where=wet > 9)


def test_what_is_not_linear():
    dry = tt.count(state=0, name="dry")
    for ask, advice in (
        (lambda: abs(wet - dry) <= 1, r"`\(a - b <= 1\) & \(b - a <= 1\)`"),
        (lambda: wet % 2 == 0, r"\(wet\) % 2 is not linear; compute it in the objective"),
        (lambda: abs(wet) <= 1, r"in the objective, .*np\.where\(abs\(a - b\) <= 1, score, -np\.inf\)`$"),
        (lambda: wet / 2 >= 1, r"Multiply out: `a == 2` instead of `a / 2 == 1`"),
        (lambda: wet // 2 >= 1, r"np\.where\(a // 2 == 1, score, -np\.inf\)"),
        (lambda: tt.solve(CHAIN, where=[wet == 1, dry == 2]), "Join several with &"),
        (lambda: tt.solve(CHAIN, where=wet), "Compare it with an integer, as in `wet == 2`"),
        (lambda: tt.solve(CHAIN, where={"wet": 2}), "with the names of the statistics: 'wet == 2'"),
    ):
        with pytest.raises(tt.ModelError, match=advice):
            ask()
    with pytest.raises(AttributeError, match=r"it needs a model first. .*\.on\(model\)\.tally"):
        tt.segments(state=1).tally([0, 1, 1])
