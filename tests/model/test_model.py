"""Models: every constructor compared with its definition, labellings, errors, immutability."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from model_arrays import FREE, arrays, refusal

from tallytree.model.blocks import Block
from tallytree.model.model import Model


def labellings(model):
    for y in itertools.product(*(range(n) for n in model.cardinalities.tolist())):
        yield np.array(y, dtype=np.int64).reshape(model.shape)


def assert_scores(model, score):
    for y in labellings(model):
        assert model.score(y) == pytest.approx(score(y), abs=1e-9)


# --- constructors against their definitions -----------------------------------------------------------------


@given(st.data(), st.integers(0, 4), st.integers(1, 3), st.booleans())
def test_chain(data, size, n, shared):
    unary = data.draw(arrays(size, n))
    pairwise = data.draw(arrays(n, n) if shared else arrays(max(size - 1, 0), n, n))
    model = Model.chain(unary, pairwise)
    each = np.broadcast_to(pairwise, (max(size - 1, 0), n, n))
    assert model.shape == (size,)
    assert model.alike == n
    assert_scores(
        model,
        lambda y: (
            sum(unary[i, y[i]] for i in range(size)) + sum(each[i, y[i], y[i + 1]] for i in range(size - 1))
        ),
    )


@given(st.data(), st.integers(0, 5), st.integers(1, 2), st.booleans())
def test_tree(data, size, n, shared):
    order = data.draw(st.permutations(range(size)))  # parents come before or after their children
    parents = np.full(size, -1)
    for k, i in enumerate(order):
        parents[i] = data.draw(st.sampled_from([-1, -7, *order[:k]]))
    unary = data.draw(arrays(size, n))
    pairwise = data.draw(arrays(n, n) if shared else arrays(size, n, n))
    each = np.broadcast_to(pairwise, (size, n, n))
    assert_scores(
        Model.tree(parents, unary, pairwise),
        lambda y: (
            sum(unary[i, y[i]] for i in range(size))
            + sum(each[i, y[p], y[i]] for i, p in enumerate(parents) if p >= 0)
        ),
    )


@given(st.data(), st.integers(0, 3), st.integers(0, 3), st.booleans(), st.booleans())
def test_grid(data, rows, columns, shared_down, shared_right):
    unary = data.draw(arrays(rows, columns, 2))
    down_shape, right_shape = (max(rows - 1, 0), columns, 2, 2), (rows, max(columns - 1, 0), 2, 2)
    vertical = data.draw(arrays(2, 2) if shared_down else arrays(*down_shape))
    horizontal = data.draw(arrays(2, 2) if shared_right else arrays(*right_shape))
    down, right = np.broadcast_to(vertical, down_shape), np.broadcast_to(horizontal, right_shape)
    model = Model.grid(unary, vertical, horizontal)
    assert model.shape == (rows, columns)

    def score(y):
        places = itertools.product(range(rows), range(columns))
        return sum(
            unary[r, c, y[r, c]]
            + (down[r, c, y[r, c], y[r + 1, c]] if r + 1 < rows else 0)
            + (right[r, c, y[r, c], y[r, c + 1]] if c + 1 < columns else 0)
            for r, c in places
        )

    for y in itertools.islice(labellings(model), 20):
        assert model.score(y) == pytest.approx(score(y), abs=1e-9)


@given(st.data(), st.lists(st.integers(1, 3), max_size=4))
def test_general_models(data, cardinalities):
    factors = []
    for _ in range(data.draw(st.integers(0, 5))):
        scope = tuple(data.draw(st.permutations(range(len(cardinalities))))[: data.draw(st.integers(0, 3))])
        factors.append((scope, data.draw(arrays(*(cardinalities[v] for v in scope)))))
    model = Model(cardinalities, factors)
    assert_scores(model, lambda y: sum(float(t[tuple(y[list(s)])]) for s, t in factors))
    again = Model.from_blocks(model.cardinalities, model.blocks)
    assert again.key == model.key
    assert_scores(again, model.score)


def test_chain_tree_and_pairs_are_the_same_model():
    rng = np.random.default_rng(0)
    unary, pairwise = rng.normal(size=(4, 3)), rng.normal(size=(3, 3, 3))
    one = Model.chain(unary, pairwise)
    two = Model.tree([-1, 0, 1, 2], unary, np.concatenate((np.full((1, 3, 3), np.nan), pairwise)))
    pairs = [((i,), unary[i]) for i in range(4)] + [((i, i + 1), pairwise[i]) for i in range(3)]
    three = Model([3] * 4, pairs)
    assert one.key == two.key == three.key
    for model in (two, three):
        assert [b.tables.tolist() for b in model.blocks] == [b.tables.tolist() for b in one.blocks]


def test_models_without_variables():
    for model in (Model([]), Model.chain(np.zeros((0, 2)), FREE), Model.tree([], np.zeros((0, 2)), FREE)):
        assert len(model) == 0
        assert model.score([]) == 0.0
        assert model.encode([]).shape == (0,)
        assert model.labels([]).shape == (0,)
        assert model.blocks == ()
    assert Model([], [((), 1.5), ((), 2.0)]).score([]) == 3.5
    assert Model.grid(np.zeros((0, 3, 2)), FREE, FREE).labels([]).shape == (0, 3)


def test_single_states_and_isolated_variables():
    model = Model([1, 2, 1], [((1, 0), [[1.0], [2.0]])])
    assert model.score([0, 1, 0]) == 2.0
    assert Model.chain([[5.0]], [[0.0]]).score([0]) == 5.0


def test_forbidden_labellings_score_minus_infinity():
    assert Model.chain([[0, -np.inf], [1, 1]], FREE).score([1, 0]) == -np.inf


def test_lists_integers_and_booleans_are_scores():
    model = Model.chain([[0, 1], [True, False]], np.eye(2, dtype=np.float32))
    assert model.score([1, 1]) == 2.0
    assert all(block.tables.dtype == np.float64 for block in model.blocks)


def test_a_long_tree_is_checked_without_recursion():
    size = 100_000
    parents = np.random.default_rng(0).permutation(size)
    above = np.full(size, -1)
    above[parents[1:]] = parents[:-1]
    assert len(Model.tree(above, np.zeros((size, 1)), [[0.0]])) == size


# --- refusals of data ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_are_named(bad):
    text = refusal(Model, [2, 2], [((0,), [0, 0]), ((1, 0), [[0, 0], [bad, 0]])])
    assert f"entry (1, 0) of factor 1 with scope (1, 0) is {bad}" in text
    assert refusal(Model.chain, [[0, 0], [0, bad]], FREE).startswith(f"unary[1, 1] is {bad}: a score must be")
    assert refusal(Model.chain, np.zeros((3, 2)), [FREE, [[0, bad], [0, 0]]]).startswith(
        "pairwise[1, 0, 1] is"
    )
    assert refusal(Model.chain, np.zeros((1, 2)), [[0, bad], [0, 0]]).startswith("pairwise[0, 1] is")
    vertical = np.zeros((1, 3, 2, 2))
    vertical[0, 2, 1, 0] = bad
    assert refusal(Model.grid, np.zeros((2, 3, 2)), vertical, FREE).startswith("vertical[0, 2, 1, 0] is")
    text = refusal(Model.tree, [-1, 0], np.zeros((2, 2)), [FREE, [[bad, 0], [0, 0]]])
    assert text.startswith("pairwise[1, 0, 0] is")


@pytest.mark.parametrize(
    ("pairwise", "got"), [(np.zeros((3, 3)), "(3, 3)"), (np.zeros((4, 2, 2)), "(4, 2, 2)"), (0.0, "()")]
)
def test_pairwise_shapes(pairwise, got):
    text = refusal(Model.chain, np.zeros((4, 2)), pairwise)
    assert text.startswith(
        f"pairwise must have shape (2, 2), one table for all, or (3, 2, 2), one for each, got {got}"
    )


def test_other_shapes():
    assert "unary must have shape (M, N), one row" in refusal(Model.chain, np.zeros(3), FREE)
    assert "unary must have shape (R, C, N), one entry" in refusal(Model.grid, np.zeros((3, 2)), FREE, FREE)
    assert "at least one" in refusal(Model.chain, np.zeros((3, 0)), np.zeros((0, 0)))
    assert "or (1, 3, 2, 2), one for each" in refusal(Model.grid, np.zeros((2, 3, 2)), np.zeros((3, 3)), FREE)
    assert "or (2, 2, 2, 2), one for each" in refusal(Model.grid, np.zeros((2, 3, 2)), FREE, np.zeros((3, 3)))
    assert "or (2, 2, 2), one for each" in refusal(Model.tree, [-1, 0], np.zeros((2, 2)), np.zeros((1, 2, 2)))


def test_what_is_no_array_of_numbers():
    assert "unary is not a rectangular array" in refusal(Model.chain, [[0], [0, 1]], FREE)
    assert "pairwise must hold numbers" in refusal(Model.chain, np.zeros((3, 2)), [["a", "b"], ["c", "d"]])
    assert "unary must hold numbers" in refusal(Model.chain, np.zeros((3, 2), dtype=complex), FREE)


@pytest.mark.parametrize(
    ("parents", "text"),
    [
        ([-1, 2, 3, 1], "cycle: 1 → 2 → 3 → 1"),
        ([0, -1, -1, -1], "cycle: 0 → 0"),
        ([-1, 0, 9, 0], "variable 2 has parent 9, but variables are 0 to 3"),
        ([-1, 0, 0], r"4 integers, .* got an array of shape (3,)"),
        ([-1.0, 0.0, 0.0, 0.0], "dtype float64"),
    ],
)
def test_parents_that_make_no_tree(parents, text):
    got = refusal(Model.tree, parents, np.zeros((4, 2)), FREE)
    for part in text.split(" .* "):
        assert part in got


def test_a_long_circle_is_shortened():
    parents = np.roll(np.arange(50), 1)
    assert "→ … →" in refusal(Model.tree, parents, np.zeros((50, 2)), FREE)


def test_a_circle_is_found_from_its_tail():
    text = refusal(Model.tree, [1, 2, 1, 0, 3], np.zeros((5, 2)), FREE)
    assert "cycle: 1 → 2 → 1" in text or "cycle: 2 → 1 → 2" in text


@pytest.mark.parametrize(
    ("cardinalities", "text"),
    [
        ([2, 0], "variable 1 has cardinality 0"),
        ([2, -3], "variable 1 has cardinality -3"),
        ([2, 2**31], "variable 1 has cardinality 2147483648"),
        ([2.0, 2.0], "must be a sequence of integers"),
        (3, "must be a sequence of integers, one per variable, got 3"),
        ([[2], [2]], "must be a sequence of integers"),
        ([2, 2**70], "must be a sequence of integers"),
    ],
)
def test_cardinalities_that_make_no_model(cardinalities, text):
    assert text in refusal(Model, cardinalities)


def test_factors_that_do_not_fit():
    text = refusal(Model, [2, 3], [((0,), [0, 0]), ((0, 1), np.zeros((3, 2)))])
    assert "factor 1 with scope (0, 1) needs a table of shape (2, 3)" in text


def test_from_blocks_checks():
    assert "there is no variable 1" in refusal(
        Model.from_blocks, [2], [Block(np.array([[1]]), np.zeros((1, 2)))]
    )
    assert "shape (2, 2) has 4 entries" in refusal(Model.from_blocks, [2], [], shape=(2, 2))
    bad = Block(np.array([[0]]), np.array([[np.inf, 0.0]]))
    assert "is inf" in refusal(Model.from_blocks, [2], [bad])


def test_from_blocks_shares_arrays_and_drops_empty_blocks():
    chain = Model.chain(np.zeros((3, 2)), FREE, states=["a", "b"])
    none = Block(np.empty((0, 1), dtype=np.int32), np.zeros((0, 2)))
    again = Model.from_blocks(
        chain.cardinalities,
        (*chain.blocks, none),
        shape=(3, 1),
        states=chain.states,
        variables=["x", "y", "z"],
    )
    assert again.blocks == chain.blocks
    assert again.cardinalities is chain.cardinalities
    assert again.shape == (3, 1)
    assert again.states == ("a", "b")
    assert again.variables == ("x", "y", "z")
