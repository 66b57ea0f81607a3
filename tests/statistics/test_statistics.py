"""Statistics: tallies, identity by content, counts and matches on models of every kind, recipes."""

import copy
import itertools
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.errors import ModelError
from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.model import Model
from tallytree.statistics.recipes import CountRecipe, count, matches, mismatches
from tallytree.statistics.statistic import Recipe, Statistic

FLIP = np.array([[0, 1], [1, 0]])


def chain(size, states=2):
    return Model.chain(np.zeros((size, states)), np.zeros((states, states)))


def labellings(model):
    return itertools.product(*(range(n) for n in model.cardinalities.tolist()))


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


@pytest.mark.parametrize("cap", [1.0, "2", 2**62])
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
    with pytest.raises(
        ModelError, match=r"statistic 'x', part 0 of block 1 with scope \(1, 2\): there is no var"
    ):
        statistic.on(chain(2))
    with pytest.raises(ModelError, match=r"needs a table of shape \(3,\)"):
        statistic.on(chain(3, states=3))


# --- count --------------------------------------------------------------------------------------------------


def test_the_common_case_is_one_block_with_one_shared_table():
    model = chain(200, states=3)
    (block,) = count(model, state=1).blocks
    assert block.scopes is unary_scopes(200)[0]
    assert block.tables.tolist() == [[0, 1, 0]]
    assert count(model, state=1).cardinalities is model.cardinalities


@given(st.lists(st.integers(1, 4), min_size=1, max_size=5), st.data())
def test_count_follows_its_definition(cardinalities, data):
    model = Model(cardinalities)
    states = data.draw(st.lists(st.integers(0, max(cardinalities) - 1), min_size=1, max_size=3))
    variables = data.draw(st.none() | st.lists(st.integers(0, len(cardinalities) - 1), unique=True))
    chosen = range(len(cardinalities)) if variables is None else variables
    if all(any(s < cardinalities[v] for v in chosen) for s in states) or not len(chosen):
        statistic = count(model, state=states, variables=variables)
        for y in labellings(model):
            assert statistic.tally(y) == sum(y[v] in states for v in chosen)
    else:
        with pytest.raises(ModelError, match="has the state"):
            count(model, state=states, variables=variables)


def test_count_by_name():
    model = chain(3, 3)
    named = Model.chain(np.zeros((3, 3)), np.zeros((3, 3)), states=["O", "B-NP", "I-NP"])
    assert count(named, state="B-NP") == count(model, state=1)
    assert count(named, state=["B-NP", "I-NP"]).tally([0, 1, 2]) == 2
    assert count(named, state=["B-NP", 1]) == count(named, state=1)
    assert count(named, state=np.int64(2)) == count(named, state="I-NP")
    assert count(named, state=np.str_("I-NP")) == count(named, state="I-NP")


def test_default_names_can_be_fields():
    assert count(state="B-NP").name == "count_B_NP"
    assert count(state=["B-NP", 3]).name == "count_B_NP_3"
    assert all(count(state=s).name.isidentifier() for s in ("B-NP", 0, "…", ("a b", "ü")))
    assert count(state=1, name="ones").name == "ones"


def test_count_by_names_that_differ_by_variable():
    model = Model([2, 3, 2], states=[["no", "yes"], ["yes", "no", "maybe"], ["off", "on"]])
    yes = count(model, state="yes")
    for y in labellings(model):
        assert yes.tally(y) == (y[0] == 1) + (y[1] == 0)
    with pytest.raises(ModelError, match=r"none of the variables 0, 2 has the state 'maybe'"):
        count(model, state="maybe", variables=[0, 2])


def test_count_over_some_variables():
    model = Model([2, 2, 2], variables=["x", "y", "z"])
    assert count(model, state=1, variables=["x", 2]).tally([1, 1, 1]) == 2
    assert count(model, state=1, variables=(i for i in [1])) == Statistic([((1,), [0, 1])])
    assert count(model, state=1, variables=[]).tally([1, 1, 1]) == 0


@pytest.mark.parametrize("model", [chain(0), Model([])])
def test_count_without_variables(model):
    statistic = count(model, state=0)
    assert statistic.blocks == ()
    assert statistic.tally([]) == 0


@pytest.mark.parametrize(
    ("options", "text"),
    [
        (
            {"state": "B-VP"},
            r"no variable of this model has the state 'B-VP'.*'O', 'B-NP'.*Did you mean 'B-NP'\?",
        ),
        ({"state": 2}, r"has the state 2; the states are 'O', 'B-NP' \(or 0 to 1\)"),
        ({"state": -1}, "has the state -1"),
        ({"state": []}, "empty collection"),
        ({"state": 1.5}, "must be a name, a number or a collection of them, got 1.5"),
        ({"state": [None]}, "must be a name, a number or a collection"),
        ({"state": 0, "variables": [3]}, "no variable 3; the variables are 0 to 2"),
        ({"state": 0, "variables": ["x"]}, "no variable 'x'.* no names for them"),
        ({"state": 0, "variables": [1, 1]}, "variable 1 is given twice"),
    ],
)
def test_count_refusals(options, text):
    model = Model.chain(np.zeros((3, 2)), np.zeros((2, 2)), states=["O", "B-NP"])
    with pytest.raises(ModelError, match=text):
        count(model, **options)


# --- recipes ------------------------------------------------------------------------------------------------


def test_a_count_without_a_model_is_a_recipe():
    recipe = count(state=1, cap=2, variables=range(2), name="few")
    assert isinstance(recipe, Recipe)
    for model in (chain(3), chain(5, states=4)):
        assert recipe.on(model) == count(model, state=1, cap=2, variables=[0, 1])
        assert recipe.on(model).name == "few"


def test_recipes_rename_and_cap():
    recipe = count(state=1)
    assert recipe.capped(3).on(chain(5)) == count(chain(5), state=1, cap=3)
    assert recipe.named("ones").on(chain(5)).name == "ones"
    assert recipe.capped(3).capped(None) == recipe


def test_recipes_pickle_and_are_immutable():
    recipe = count(state=["a", 1], variables=[0], cap=1)
    again = pickle.loads(pickle.dumps(recipe))
    assert isinstance(again, CountRecipe)
    assert again == recipe
    assert copy.deepcopy(recipe) == recipe
    with pytest.raises(AttributeError, match="immutable"):
        recipe.cap = 2


def test_recipes_from_numpy_values_are_the_same():
    assert count(state=np.int32(1), variables=np.array([0, 1])) == count(state=1, variables=[0, 1])


def test_recipe_repr():
    assert repr(count(state="B")) == "count(state='B', name='count_B')"
    text = repr(count(state=[0, 1], variables=[2], name="x", cap=3))
    assert text == "count(state=(0, 1), variables=(2,), name='x', cap=3)"


# --- matches ------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 3), min_size=0, max_size=4), st.data())
def test_matches_and_mismatches_follow_their_definitions(cardinalities, data):
    model = Model(cardinalities)
    truth = [data.draw(st.integers(0, n - 1)) for n in cardinalities]
    background = data.draw(st.none() | st.integers(0, max(cardinalities, default=1) - 1))
    right, wrong = matches(model, truth, background), mismatches(model, truth, background)
    for y in labellings(model):
        assert right.tally(y) == sum(a == b != background for a, b in zip(y, truth, strict=True))
        assert wrong.tally(y) == sum(a != b and a != background for a, b in zip(y, truth, strict=True))


def test_matches_by_name_on_a_grid():
    free = np.zeros((2, 2))
    model = Model.grid(np.zeros((2, 2, 2)), free, free, states=["off", "on"])
    truth = [["on", "off"], ["off", "on"]]
    assert matches(model, truth, background="off").tally([[1, 1], [1, 0]]) == 1
    assert mismatches(model, truth, background="off").tally([[1, 1], [1, 0]]) == 2
    assert mismatches(model, truth, cap=1, name="wrong").tally([[1, 1], [1, 0]]) == 1
    (block,) = matches(model, truth).blocks
    assert block.tables.shape == (4, 2)


def test_matches_refuses_what_the_model_does_not_know():
    with pytest.raises(ModelError, match="has the state 7"):
        matches(chain(2), [0, 1], background=7)
    with pytest.raises(ModelError, match=r"labelling\[1\] is 3"):
        mismatches(chain(2), [0, 3])
    with pytest.raises(ModelError, match=r"has the state 0\.5"):
        matches(chain(2), [0, 1], background=0.5)


def test_from_blocks_shares_what_it_gets():
    scopes, key = unary_scopes(3)
    block = Block(scopes, np.array([[0, 1]]), key)
    statistic = Statistic.from_blocks([block], "ones", 2, chain(3).cardinalities)
    assert statistic.blocks == (block,)
    assert statistic == count(chain(3), state=1, cap=2)


@given(problems())
def test_no_tally_is_beyond_the_extent(problem):
    model, statistics = problem
    for statistic in statistics:
        low, high = statistic.extent
        tallies = tt.profile(model, [statistic]).tallies
        assert len(tallies) == 0 or (low <= tallies.min() and tallies.max() <= high)


def test_the_extent_of_a_count_is_attained():
    model = tt.Model.chain(np.zeros((5, 2)), np.eye(2))
    assert tt.count(model, state=1).extent == (0, 5)
    assert tt.count(model, state=1).capped(3).extent == (0, 3)


def test_an_infeasible_constraint_that_is_dear_to_explain_still_gives_ranges():
    grid = tt.Model.grid(np.zeros((18, 40, 2)), np.eye(2), np.eye(2))
    with pytest.raises(tt.InfeasibleError, match="ones ranges from 0 to 720 at most"):
        tt.solve(grid, where=tt.count(state=1, name="ones") == 2000)


def test_a_statistic_of_an_array():
    entries = np.random.default_rng(0).integers(-3, 9, size=(200, 4))
    given_ = tt.node_statistic(entries, name="cost")
    assert given_ == Statistic([((v,), row) for v, row in enumerate(entries)])
    y = np.random.default_rng(1).integers(4, size=200)
    assert given_.tally(y) == entries[np.arange(200), y].sum()
    assert tt.node_statistic(entries.reshape(20, 10, 4)) == given_
    assert tt.node_statistic(entries, cap=5).tally(y) == min(5, given_.tally(y))
    entries[0, 0] = 1000  # the statistic keeps what it was given
    assert given_.tally(np.zeros(200, dtype=int)) < 1000


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([1, 2], r"shape \(2,\)"),
        ([[0.5, 1]], "variable 0"),
        ([[2**50, 1]], "variable 0"),
        ([["a"]], "numbers"),
    ],
)
def test_what_is_no_array_of_entries(entries, says):
    with pytest.raises(ModelError, match=says):
        tt.node_statistic(entries)
