"""Tallies by name and by position: any name can be displayed, and every way to pass a tally is accepted."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.answers.tallies import tally_type

MODEL = tt.Model.chain([[0.0, 2.0], [0.0, -1.0], [0.0, 4.0]], np.eye(2), states=["O", "B-NP"])
NAMED = tt.count(MODEL, state="B-NP", name="B-NP")
CHANGES = tt.Statistic([((i, i + 1), [[0, 1], [1, 0]]) for i in range(2)], name="class")


@given(st.lists(st.text(min_size=1), unique=True, max_size=4))
def test_a_tally_has_its_names_whatever_they_are(names):
    tally = tally_type(tuple(names))(*range(len(names)))
    assert tally == tuple(range(len(names)))
    assert tally._fields == tuple(names)
    assert tally._asdict() == {name: i for i, name in enumerate(names)}
    assert [tally[name] for name in names] == [tally[i] for i in range(len(names))] == list(tally)
    assert tally[:2] == tuple(tally)[:2]
    assert repr(tally) == f"Tally({', '.join(f'{name}={i}' for i, name in enumerate(names))})"
    for back in (pickle.loads(pickle.dumps(tally)), copy.copy(tally), copy.deepcopy(tally)):
        assert (back, back._fields, type(back)) == (tally, tally._fields, type(tally))


@given(st.lists(st.text(min_size=1), unique=True, min_size=1, max_size=4))
def test_values_of_a_tally_are_replaced_by_name(names):
    tally = tally_type(tuple(names))(*range(len(names)))
    assert tally._replace() == tally
    for i, name in enumerate(names):
        changed = tally._replace(**{name: 7})
        assert changed == (*range(i), 7, *range(i + 1, len(names)))
        assert changed._fields == tally._fields
    with pytest.raises(ValueError, match="not among"):
        tally._replace(**{"".join(names) + "x": 1})


def test_names_that_are_not_identifiers_are_shown():
    found = tt.solve(MODEL, [NAMED, CHANGES])
    assert repr(found.tally) == "Tally(B-NP=3, class=0)"
    assert repr(found).endswith("tally=(B-NP=3, class=0))")
    assert "B-NP" in found._repr_html_() and "_0" not in found._repr_html_()
    assert found.certificate.tally == {"B-NP": 3, "class": 0}
    assert (found.tally["B-NP"], getattr(found.tally, "class"), found.tally[0]) == (3, 0, 3)
    back = pickle.loads(pickle.dumps(found))
    assert repr(back) == repr(found)
    assert (back.tally["B-NP"], back.tally) == (3, found.tally)
    assert repr(tt.k_best(MODEL, 2, [NAMED])[1].tally) == "Tally(B-NP=2)"


def test_names_that_a_tally_does_not_have():
    tally = tt.solve(MODEL, [NAMED]).tally
    with pytest.raises(AttributeError, match=r"no attribute 'ones': ones is not one of \(B-NP\)"):
        tally.ones  # noqa: B018
    with pytest.raises(KeyError, match=r"ones is not one of \(B-NP\)"):
        tally["ones"]


def test_a_tally_is_passed_in_order_or_by_name_everywhere():
    profile, shares = tt.profile(MODEL, [NAMED, CHANGES]), tt.distribution(MODEL, [NAMED, CHANGES])
    row = profile.tallies.tolist().index([2, 2])
    expected = float(profile.scores[row])
    whole = ((2, 2), [2, 2], np.array([2, 2]), {"class": 2, "B-NP": 2}, profile.at(2, 2).tally)
    for tally in whole:
        assert profile.at(tally).score == expected
        assert (profile.max_marginals(tally)[0] == profile.max_marginals(2, 2)[0]).all()
        assert (shares.sample(3, tally=tally, rng=0) == [[1, 0, 1]] * 3).all()
        assert (shares.marginals(tally)[1] == [1.0, 0.0]).all()
    assert profile.at(2, **{"class": 2}).score == profile.at(**{"class": 2, "B-NP": 2}).score == expected


@pytest.mark.parametrize("tally", [3, np.int64(3), [3], (3,), {"B-NP": 3}])
def test_an_integer_is_the_tally_of_one_statistic(tally):
    profile, shares = tt.profile(MODEL, [NAMED]), tt.distribution(MODEL, [NAMED])
    assert profile.at(tally).assignment.tolist() == [1, 1, 1]
    assert shares.sample(2, tally=tally).tolist() == [[1, 1, 1]] * 2
    assert shares.marginals(tally)[0].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("tally", "says"),
    [
        (1, r"one integer for each of \(B-NP, class\), in order or by name; got \(1\)"),
        ((1, 2, 3), r"got \(1, 2, 3\)"),
        ({"B-NP": 1, "clas": 0}, r"got \(B-NP=1, clas=0\). Did you mean 'class'\?"),
        ((1.5, 0), "must consist of integers"),
    ],
)
def test_what_is_not_a_tally(tally, says):
    profile, shares = tt.profile(MODEL, [NAMED, CHANGES]), tt.distribution(MODEL, [NAMED, CHANGES])
    for ask in (profile.at, profile.max_marginals, shares.marginals, lambda t: shares.sample(5, tally=t)):
        with pytest.raises(tt.ModelError, match=says):
            ask(tally)


def test_tallies_are_integers():
    text = (
        r"'\(B-NP <= 2\) and \(B-NP >= 3\)'; tallies are integers, and none is between 2 and 3; the nearest"
    )
    where = "'B-NP' == 2.5"
    for ask in (
        lambda: tt.solve(MODEL, [NAMED], where=where),
        lambda: tt.profile(MODEL, [NAMED]).best(where=where),
    ):
        with pytest.raises(tt.InfeasibleError, match=text.replace("B-NP", '"?B-NP"?')):
            ask()


def test_nothing_is_attainable():
    nothing = tt.profile(tt.Model([2], [((0,), [-np.inf] * 2)]), [tt.count(state=1, name="ones")])
    with pytest.raises(tt.InfeasibleError, match=r"has the tally \(ones=1\); no tally is attainable$"):
        nothing.at(1)


def test_a_tally_that_nothing_has():
    profile, shares = tt.profile(MODEL, [NAMED]), tt.distribution(MODEL, [NAMED])
    text = r"no labelling has the tally \(B-NP=9\); the nearest attainable tallies are \(B-NP=3\), \(B-NP=2\)"
    for ask in (profile.at, lambda t: shares.sample(tally=t)):
        with pytest.raises(tt.InfeasibleError, match=text):
            ask(9)
