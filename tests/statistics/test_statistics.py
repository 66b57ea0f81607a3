"""Statistics: tallies, identity by content, counts and matches on models of every kind, recipes."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_statistics import chain, labellings

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Statistic

FLIP = np.array([[0, 1], [1, 0]])

# --- tallies ------------------------------------------------------------------------------------------------


def test_tally_sums_the_parts():
    statistic = Statistic([((0, 1), FLIP), ((1, 2), FLIP), ((0,), [0, -3]), ((), 10)])
    for y in itertools.product(range(2), repeat=3):
        assert statistic.tally(y) == (y[0] != y[1]) + (y[1] != y[2]) - 3 * y[0] + 10


@given(st.integers(-5, 5), st.lists(st.integers(-3, 3), min_size=1, max_size=5))
def test_the_cap_is_the_minimum_with_the_sum(cap, entries):
    pairs = [((i,), [0, entry]) for i, entry in enumerate(entries)]
    y = [1] * len(entries)
    assert Statistic(pairs, cap=cap).tally(y) == min(cap, sum(entries))
    assert Statistic(pairs).capped(cap).tally(y) == min(cap, sum(entries))
    assert Statistic(pairs, cap=cap).capped(None).tally(y) == sum(entries)


def test_tally_is_a_plain_int_and_takes_arrays_of_any_shape():
    statistic = Statistic([((i,), [0, 1]) for i in range(4)])
    assert type(statistic.tally(np.array([[0, 1], [1, 1]], dtype=np.uint8))) is int
    assert statistic.tally(np.array([[0, 1], [1, 1]])) == 3
    assert statistic.tally([True, False, True, False]) == 2


def test_the_empty_statistic():
    assert Statistic([]).tally([]) == 0
    assert Statistic([], cap=-2).tally([0, 1]) == -2


@pytest.mark.parametrize(
    ("labelling", "text"),
    [
        ([0.0, 1.0], r"dtype float64; use model.encode\(y\)"),
        (["a", "b"], r"use model.encode\(y\)"),
        ([0, 2], "does not fit statistic 'flips'.*out of bounds"),
        ([0, -1], "does not fit statistic 'flips': there is no state -1"),
        ([0], "does not fit statistic 'flips'.*out of bounds"),
    ],
)
def test_labellings_that_do_not_fit(labelling, text):
    with pytest.raises(ModelError, match=text):
        Statistic([((0, 1), FLIP)], name="flips").tally(labelling)


# --- refusals -----------------------------------------------------------------------------------------------


def test_entries_must_be_integers():
    with pytest.raises(ModelError) as caught:
        Statistic([((0,), [0, 1]), ((1,), [0, 0.5])], name="half")
    assert "entry (1,) of statistic 'half', part 1 with scope (1,) is 0.5" in str(caught.value)
    assert "scale the table" in str(caught.value)


def test_magnitudes_are_limited():
    Statistic([((0,), [2**40 - 1, 1 - 2**40])])
    with pytest.raises(ModelError, match=r"below 2\*\*40"):
        Statistic([((0,), [2**40, 0])])


@pytest.mark.parametrize("name", ["", None, 3])
def test_names_are_texts(name):
    with pytest.raises(ModelError, match="non-empty string"):
        Statistic([], name=name)


@pytest.mark.parametrize("cap", [1.5, "2", 2**62])
def test_caps_are_integers(cap):
    with pytest.raises(ModelError, match="the cap of statistic 'statistic'"):
        Statistic([], cap=cap)
    with pytest.raises(ModelError, match="the cap of statistic"):
        count(state=0, cap=cap)


# --- identity -----------------------------------------------------------------------------------------------


def test_equal_by_content_whatever_the_name():
    one, two = Statistic([((0, 1), FLIP)], name="one"), Statistic([((0, 1), FLIP)], name="two")
    assert one == two
    assert hash(one) == hash(two)
    assert one.key == two.key
    assert {one: "known"}[two] == "known"
    assert one.named("three") == one
    assert one.named("three").name == "three"


@pytest.mark.parametrize(
    "other",
    [
        Statistic([((1, 0), FLIP)]),
        Statistic([((0, 1), FLIP)], cap=1),
        Statistic([((0, 1), -FLIP)]),
        Statistic([((0, 1), np.pad(FLIP, (0, 1)))]),
        Statistic([((0, 1), FLIP), ((0, 1), FLIP)]),
        Statistic([((0, 1), FLIP), ((), 0)]),
        Statistic([]),
    ],
)
def test_different_content_is_different(other):
    assert other != Statistic([((0, 1), FLIP)])


def test_a_shared_table_is_the_same_content_as_equal_ones():
    model = chain(5)
    assert count(model, state=1) == Statistic([((i,), [0, 1]) for i in range(5)])


@pytest.mark.parametrize("clone", [lambda s: pickle.loads(pickle.dumps(s)), copy.copy, copy.deepcopy])
def test_copies_are_equal_and_frozen(clone):
    for statistic in (count(chain(4), state=1, cap=2), Statistic([((0, 1), FLIP), ((), 1)], name="x")):
        again = clone(statistic)
        assert again == statistic
        assert (again.name, again.cap) == (statistic.name, statistic.cap)
        assert all(not a.flags.writeable for block in again.blocks for a in (block.scopes, block.tables))
        if statistic.cardinalities is not None:
            np.testing.assert_array_equal(again.cardinalities, statistic.cardinalities)
            assert not again.cardinalities.flags.writeable


def test_statistics_are_immutable():
    table = np.array([0, 1])
    statistic = Statistic([((0,), table)])
    with pytest.raises(AttributeError, match="Statistic is immutable"):
        statistic.name = "x"
    table[:] = 7
    assert statistic.tally([1]) == 1
    assert not hasattr(statistic, "__dict__")


def test_repr():
    assert repr(count(chain(4), state=1, cap=2)) == "Statistic('count_1', 4 parts, cap=2)"
    assert repr(Statistic([((0,), [0, 1])], name="x")) == "Statistic('x', 1 part)"


# --- combinations as statistics -----------------------------------------------------------------------------


def test_a_combination_is_a_statistic_of_its_own():
    model = chain(3)
    ones, flips = count(model, state=1), Statistic([((0, 1), FLIP), ((1, 2), FLIP)], name="flips")
    whole = Statistic.combination(3 * ones - 2 * flips + 7)
    assert whole.name == "3*count_1 - 2*flips + 7"
    for y in labellings(model):
        assert whole.tally(y) == 3 * ones.tally(y) - 2 * flips.tally(y) + 7
    assert Statistic.combination(ones, name="ones") == ones


def test_combinations_of_capped_statistics_and_recipes_are_refused():
    with pytest.raises(ModelError, match=r"'count_1' is capped at 2.*\.capped\(None\)"):
        Statistic.combination(count(chain(3), state=1, cap=2) + 1)
    with pytest.raises(ModelError, match="is a recipe"):
        Statistic.combination(count(state=1) + 1)


# --- fitting a model ----------------------------------------------------------------------------------------


def test_a_bound_statistic_refuses_a_model_of_another_shape():
    ones = count(chain(3), state=1)
    assert ones.on(chain(3)) is ones
    assert ones.on(Model([2, 2, 2])) is ones
    with pytest.raises(ModelError) as caught:
        ones.on(chain(12))
    assert "'count_1' was made for a model with 3 variables of (2, 2, 2) states" in str(caught.value)
    assert "12 variables of (2, 2, 2, 2, 2, 2, 2, 2, …) states" in str(caught.value)
    assert "recipe" in str(caught.value)
    with pytest.raises(ModelError, match=r"\(2, 3, 2\) states"):
        ones.on(Model([2, 3, 2]))


def test_a_statistic_from_pairs_fits_every_model_that_has_its_variables():
    statistic = Statistic([((0,), [0, 1]), ((1, 2), FLIP)], name="x")
    assert statistic.on(chain(3)) is statistic
    assert statistic.on(chain(9)) is statistic
    with pytest.raises(ModelError, match=r"statistic 'x', part with scope \(1, 2\): there is no var"):
        statistic.on(chain(2))
    with pytest.raises(ModelError, match=r"needs a table of shape \(3,\)"):
        statistic.on(chain(3, states=3))


def test_parts_of_a_combination_with_the_same_scopes_are_added_up():
    model = Model([3] * 4)
    ones, twos = count(model, state=1), count(model, state=2)
    (block,) = Statistic.combination(ones - 2 * twos).blocks
    assert block.tables.tolist() == [[0, 1, -2]]
    some = Statistic([((0,), [0, 1, 5])], name="some")
    assert len(Statistic.combination(ones + some).blocks) == 2
    large = Statistic([((0,), [0, 2**39, 0])], name="large")
    again = Statistic([((0,), [0, 2**39 + 1, 0])], name="again")
    both = Statistic.combination(large + again)  # one entry would be too large
    assert len(both.blocks) == 2 and both.tally([1]) == 2**40 + 1
