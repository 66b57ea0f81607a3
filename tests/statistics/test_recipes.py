"""Counts, matches and recipes, compared with their definitions."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from small_statistics import chain, labellings
from strategies import problems

import tallytree as tt
from tallytree.errors import ModelError
from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.model import Model
from tallytree.statistics.recipes import CountRecipe, count, matches, mismatches
from tallytree.statistics.statistic import Recipe, Statistic

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
    with pytest.raises(tt.InfeasibleError, match="the entries of ones add up to between 0 and 720"):
        tt.solve(grid, where=tt.count(state=1, name="ones") == 2000)


def test_a_statistic_of_an_array():
    entries = np.random.default_rng(0).integers(-3, 9, size=(200, 4))
    given_ = tt.node_statistic(entries, name="cost")
    assert given_ == Statistic([((v,), row) for v, row in enumerate(entries)])
    y = np.random.default_rng(1).integers(4, size=200)
    assert given_.tally(y) == entries[np.arange(200), y].sum()
    assert tt.node_statistic(entries.reshape(20, 10, 4)) == given_
    with pytest.raises(ModelError, match=r"an array of shape \(200, 4\).* use tallytree\.node_statistic"):
        Statistic(entries)
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


def test_a_node_statistic_has_a_row_for_every_variable():
    model = tt.Model([2] * 7)
    with pytest.raises(ModelError, match="made for a model with 4 variables"):
        tt.solve(model, [tt.node_statistic(np.ones((4, 2), dtype=int))])
    text = (
        r"the grid of statistic 'area' has the shape \(8, 4\), but that of the model has the shape \(8, 8\)$"
    )
    with pytest.raises(ModelError, match=text):
        tt.profile(
            tt.Model.grid(np.zeros((8, 8, 2)), np.zeros((2, 2)), np.zeros((2, 2))),
            [tt.node_statistic(np.ones((8, 4, 2), dtype=int), name="area")],
        )


def grid(rows, columns):
    return tt.Model.grid(np.zeros((rows, columns, 2)), np.eye(2), np.eye(2))


def test_a_statistic_of_the_transposed_grid_is_refused():
    entries = np.arange(24).reshape(4, 3, 2)
    given_, model = tt.node_statistic(entries, name="area"), grid(3, 4)
    text = (
        r"the grid of statistic 'area' has the shape \(4, 3\), but that of the model has the shape \(3, 4\); "
        r"swap its rows and columns, as in array\.swapaxes\(0, 1\)$"
    )
    for wrong in (given_, given_.capped(5), pickle.loads(pickle.dumps(given_)), copy.copy(given_)):
        with pytest.raises(ModelError, match=text):
            tt.solve(model, [wrong])
        with pytest.raises(ModelError, match=text):
            tt.solve(model, where=wrong >= 1)
    right = tt.node_statistic(entries.swapaxes(0, 1), name="area")
    y = np.random.default_rng(0).integers(2, size=(3, 4))
    assert (
        right.on(model).tally(y)
        == given_.tally(y.T)
        == sum(entries[c, r, y[r, c]] for r, c in np.ndindex(3, 4))
    )


@pytest.mark.parametrize("made", [lambda m: count(m, state=1), lambda m: matches(m, np.zeros(12, dtype=int))])
def test_counts_of_a_grid_are_of_its_shape(made):
    with pytest.raises(
        ModelError, match=r"has the shape \(3, 4\), but that of the model has the shape \(4, 3\)"
    ):
        tt.solve(grid(4, 3), [made(grid(3, 4))])
    with pytest.raises(ModelError, match=r"the labelling has the shape \(4, 3\), but the grid of statistic"):
        made(grid(3, 4)).tally(np.zeros((4, 3), dtype=int))


def test_flat_entries_fit_any_model_with_as_many_variables():
    entries = np.random.default_rng(0).integers(5, size=(12, 2))
    flat, shaped = tt.node_statistic(entries), tt.node_statistic(entries.reshape(3, 4, 2))
    y = np.random.default_rng(1).integers(2, size=12)
    assert flat.on(grid(3, 4)).tally(y.reshape(3, 4)) == shaped.on(grid(3, 4)).tally(y)
    assert flat.on(grid(4, 3)).tally(y) == shaped.on(chain(12)).tally(y)


def test_an_array_with_a_number_per_pixel_is_told_what_is_missing():
    grid = tt.Model.grid(np.zeros((3, 4, 2)), np.zeros((2, 2)), np.zeros((2, 2)))
    pixels = tt.node_statistic(np.ones((3, 4), dtype=int), name="ink")
    with pytest.raises(tt.ModelError, match=r"a number for each state, as one of shape \(3, 4, 2\) has$"):
        tt.profile(grid, [pixels])
    with pytest.raises(tt.ModelError, match="make it for this model, or use a recipe"):
        tt.profile(grid, [tt.node_statistic(np.ones((3, 5), dtype=int), name="ink")])


def test_the_range_in_an_error_is_attained():
    """Forbidden entries leave fewer tallies than the entries of a count add up to."""
    both = np.array([[0, -np.inf], [0, 0]])  # a 1 is followed by either, a 0 by a 0
    model = tt.Model.grid(np.zeros((14, 30, 2)), both, both).restricted({13 * 30 + 29: 1})
    ones = tt.count(model, state=1, name="ones")
    with pytest.raises(tt.InfeasibleError, match="ones ranges from 420 to 420"):
        tt.solve(model, where=ones <= 60)


@pytest.mark.parametrize("make", [tt.matches, tt.mismatches])
def test_a_labelling_needs_its_model(make):
    model = tt.Model.chain(np.zeros((2, 2)), np.eye(2))
    for wrong in (([0, 1],), ([0, 1], model), (model,)):
        with pytest.raises(
            tt.ModelError, match=r"pass the model and a labelling of it, as in tt\.mismatches\("
        ):
            make(*wrong)
