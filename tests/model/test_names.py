"""Names of variables and states, labellings by name and number, and models as values."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_arrays import FREE, refusal

import tallytree as tt
from tallytree.model.model import Model

# --- names --------------------------------------------------------------------------------------------------


def test_common_and_own_names():
    assert Model([2, 2], states=["a", "b"]).states == ("a", "b")
    own = Model([2, 3], states=[["a", "b"], ["b", "c", "a"]])
    assert own.states == (("a", "b"), ("b", "c", "a"))
    assert own.states_of(1) == ("b", "c", "a")
    assert own.alike is None
    assert Model([2, 2]).states_of(0) is None
    assert Model([2, 2]).states is None


def test_equal_lists_are_common():
    model = Model([2, 2], states=[["a", "b"], ["a", "b"]])
    assert model.states == ("a", "b")
    assert model.alike == 2


def test_same_cardinalities_and_other_names_are_not_alike():
    model = Model([2, 2], states=[["a", "b"], ["b", "a"]])
    assert model.alike is None
    assert model.state_codes("a").tolist() == [0, 1]
    assert model.key == Model([2, 2]).key


@pytest.mark.parametrize(
    ("cardinalities", "states", "text"),
    [
        ([2, 2], ["a"], "states has 1 name, but each variable has 2 states"),
        ([2, 3], ["a", "b"], "different numbers of states; give one list of names per variable"),
        ([2, 2], ["a", "a"], "states has the name 'a' twice"),
        ([2, 3], [["a", "b"], ["a", "b"]], "lists of 2, 2 names, but the variables have 2, 3 states"),
        ([2, 2], [["a", "b"]], "lists of 2 names, but the variables have 2, 2 states"),
        ([2, 2], [["a", "b"], ["c", "c"]], "states[1] has the name 'c' twice"),
        ([2, 2], [["a", "b"], "cd"], "states[1] is 'cd'"),
        ([2, 2], [["a", "b"], 3], "states[1] is 3"),
        ([2, 2], [["a", "b"], ["a", 3]], "states[1] must hold strings, got 3 of type int"),
    ],
)
def test_names_of_states_that_do_not_fit(cardinalities, states, text):
    assert text in refusal(Model, cardinalities, states=states)


@pytest.mark.parametrize(
    ("variables", "text"),
    [
        (["x"], "variables has 1 name, but the model has 2 variables"),
        (["x", "x"], "variables has the name 'x' twice"),
        (["x", 1.5], "variables must hold strings, got 1.5"),
    ],
)
def test_names_of_variables_that_do_not_fit(variables, text):
    assert text in refusal(Model, [2, 2], variables=variables)


def test_chains_and_trees_have_named_variables():
    days, unary = ["mon", "tue", "wed"], [[0.0, 1.0], [2.0, 0.0], [0.0, 0.5]]
    chain = Model.chain(unary, [[1, 0], [0, 1]], variables=days, states=["dry", "wet"])
    tree = Model.tree([-1, 0, 0], unary, [[1, 0], [0, 1]], variables=days)
    assert chain.variables == tree.variables == tuple(days)
    assert tt.solve(chain, fixed={"tue": "wet"}).labels.tolist() == ["wet"] * 3
    assert tt.solve(tree, fixed={"wed": 0}).assignment.tolist() == [0, 0, 0]
    assert "variables has 1 name" in refusal(Model.chain, unary, [[0, 0], [0, 0]], variables=["mon"])


def test_variable_indices():
    model = Model([2, 2, 2], variables=["left", "mid", "right"])
    assert model.variable_indices(["right", 0, np.int64(1)]).tolist() == [2, 0, 1]
    text = refusal(model.variable_indices, ["rigth"])
    assert "no variable 'rigth'; the variables are 'left', 'mid', 'right' (or 0 to 2)" in text
    assert "Did you mean 'right'?" in text
    assert "no variable 3" in refusal(model.variable_indices, [3])
    assert "variable 0 is given twice" in refusal(model.variable_indices, [0, "left"])


def test_state_codes():
    mixed = Model([2, 3])
    assert mixed.state_codes(2).tolist() == [-1, 2]
    assert "no variable of this model has the state 3; the states are 0 to 2" in refusal(mixed.state_codes, 3)
    named = Model([2, 3], states=[["a", "b"], ["b", "c", "d"]])
    assert named.state_codes("b").tolist() == [1, 0]
    assert "'a', 'b', 'c', 'd'" in refusal(named.state_codes, "e")


# --- labellings ---------------------------------------------------------------------------------------------


@given(st.data(), st.lists(st.integers(1, 3), max_size=5), st.booleans())
def test_names_and_numbers_mean_the_same(data, cardinalities, own):
    names = [[f"{i if own else ''}s{a}" for a in range(n)] for i, n in enumerate(cardinalities)]
    model = Model(cardinalities, states=names)
    y = [data.draw(st.integers(0, n - 1)) for n in cardinalities]
    mixed = [data.draw(st.sampled_from([a, names[i][a]])) for i, a in enumerate(y)]
    for labelling in (y, np.array(y, dtype=np.uint8), tuple(mixed), np.array(mixed, dtype=object)):
        codes = model.encode(labelling)
        assert codes.tolist() == y
        assert codes.dtype == np.int64
    assert model.labels(y).tolist() == [names[i][a] for i, a in enumerate(y)]
    assert model.encode(model.labels(y)).tolist() == y


def test_encode_takes_arrays_of_names_and_gives_a_fresh_array():
    model = Model.chain(np.zeros((3, 2)), FREE, states=["off", "on"])
    assert model.encode(np.array(["on", "off", "on"])).tolist() == [1, 0, 1]
    assert model.encode([True, False, True]).tolist() == [1, 0, 1]
    y = np.array([0, 1, 1])
    assert not np.shares_memory(model.encode(y), y)


def test_grids_take_two_dimensions_or_one():
    model = Model.grid(np.zeros((2, 3, 2)), FREE, FREE, states=["off", "on"])
    wide = [["on", "off", "off"], ["off", "off", "on"]]
    assert model.encode(wide).tolist() == [1, 0, 0, 0, 0, 1]
    assert model.encode([1, 0, 0, 0, 0, 1]).tolist() == [1, 0, 0, 0, 0, 1]
    assert model.labels(model.encode(wide)).tolist() == wide
    assert Model.grid(np.zeros((2, 3, 2)), FREE, FREE).labels([1, 0, 0, 0, 0, 1]).shape == (2, 3)
    assert "labelling[1, 2] is 'onn'" in refusal(model.encode, [wide[0], ["off", "off", "onn"]])
    assert "Did you mean 'on'?" in refusal(model.encode, [wide[0], ["off", "off", "onn"]])
    assert "shape (2, 3), got shape (3, 2)" in refusal(model.encode, np.zeros((3, 2), dtype=int))


def test_labels_are_plain_strings():
    model = Model.chain(np.zeros((2, 2)), FREE, states=np.array(["off", "on"]))
    assert [type(label) for label in model.labels([0, 1])] == [str, str]


@pytest.mark.parametrize(
    ("labelling", "text"),
    [
        (
            [0, 1, 2],
            "labelling[2] is 2, which is not a state of variable 2 ('z'); its states are 'O', 'B' "
            "(or 0 to 1)",
        ),
        ([0, -1, 0], "labelling[1] is -1"),
        (["O", "X", "B"], "labelling[1] is 'X'"),
        (["O", None, "B"], "labelling[1] is None"),
        (["O", ["B"], "B"], "rectangular array of states"),
        ([0.0, 1.0, 1.0], "labelling[0] is 0.0"),
        ([0.0, 1.0, 1.0], "labelling.astype(int)"),
        (["O", "B", 7], "labelling[2] is 7"),
        ([0, 1], "has shape (3,), got shape (2,)"),
        ("OBB", "got shape ()"),
        (np.array([0, 1, 2**63], dtype=np.uint64), "labelling[2] is 9223372036854775808"),
    ],
)
def test_labellings_that_do_not_fit(labelling, text):
    model = Model([2, 2, 2], states=["O", "B"], variables=["x", "y", "z"])
    assert text in refusal(model.encode, labelling)
    assert text in refusal(model.score, labelling)


def test_names_without_names():
    text = refusal(Model([2]).encode, ["a"])
    assert "labelling[0] is 'a'" in text
    assert "no names" in text
    assert "its states are only 0" in refusal(Model([1]).encode, [1])


def test_long_lists_are_shortened():
    text = refusal(Model([40], states=[f"s{i}" for i in range(40)]).encode, ["t"])
    assert "'s11', …" in text
    assert "'s12'" not in text


# --- values -------------------------------------------------------------------------------------------------


def test_users_arrays_are_copied():
    unary, pairwise, sizes = np.zeros((3, 2)), np.zeros((2, 2, 2)), np.array([2, 3], dtype=np.int32)
    chain, general = Model.chain(unary, pairwise), Model(sizes)
    unary[:], pairwise[:], sizes[:] = 7, 7, 7
    assert chain.score([0, 0, 0]) == 0.0
    assert general.cardinalities.tolist() == [2, 3]
    assert unary.flags.writeable


@pytest.mark.parametrize(
    "model",
    [
        Model.chain(np.zeros((3, 2)), FREE, states=["a", "b"]),
        Model.tree([-1, 0, 0], np.zeros((3, 2)), np.zeros((3, 2, 2))),
        Model.grid(np.zeros((2, 2, 2)), FREE, FREE),
        Model([2, 3], [((1, 0), np.zeros((3, 2))), ((), 1.0)], variables=["x", "y"]),
        Model([2, 3], states=[["a", "b"], ["c", "d", "e"]]),
        Model.chain(np.zeros((0, 2)), FREE),
        Model([]),
    ],
)
@pytest.mark.parametrize("clone", [lambda m: pickle.loads(pickle.dumps(m)), copy.copy, copy.deepcopy])
def test_copies_are_the_same_and_frozen(model, clone):
    for again in (model, clone(model)):
        assert again.key == model.key
        assert (again.shape, again.states, again.variables, again.alike) == (
            model.shape,
            model.states,
            model.variables,
            model.alike,
        )
        for one, two in zip(again.blocks, model.blocks, strict=True):
            np.testing.assert_array_equal(one.tables, two.tables)
        arrays = [again.cardinalities, *(a for b in again.blocks for a in (b.scopes, b.tables))]
        assert not any(array.flags.writeable for array in arrays)
        assert all(array.flags.c_contiguous for array in arrays)
        assert again.cardinalities.dtype == np.int32


def test_models_are_immutable():
    model = Model.chain(np.zeros((3, 2)), FREE)
    with pytest.raises(AttributeError, match="a Model is immutable"):
        model.blocks = ()
    with pytest.raises(ValueError, match="read-only"):
        model.blocks[0].tables[0, 0] = 1.0
    assert not hasattr(model, "__dict__")


def test_the_key_is_the_shape_and_not_the_scores():
    one, two = Model.chain(np.zeros((3, 2)), FREE), Model.chain(np.ones((3, 2)), np.ones((2, 2, 2)))
    assert one.key == two.key
    assert one.key != Model.chain(np.zeros((3, 3)), np.zeros((3, 3))).key
    assert one.key != Model.chain(np.zeros((4, 2)), FREE).key
    assert one.key != Model.tree([-1, 0, 0], np.zeros((3, 2)), FREE).key
    assert isinstance(hash(one.key), int)


def test_repr_and_len():
    chain = Model.chain(np.zeros((3, 2)), FREE)
    assert len(chain) == 3
    assert repr(chain) == "Model(3 variables of 2 states, 5 factors)"
    assert repr(Model([2, 3], [((0,), [0, 0])])) == "Model(2 variables, 1 factor)"
    assert (
        repr(Model.grid(np.zeros((2, 2, 2)), FREE, FREE))
        == "Model(2 x 2 grid, 4 variables of 2 states, 8 factors)"
    )
