"""Blocks: grouping of (scope, table) pairs, errors for malformed ones, evaluation, immutability."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import ModelError
from tallytree.model.blocks import LARGEST_INTEGER, Block, evaluate, unary_scopes
from tallytree.model.pairs import check_blocks, from_pairs
from tallytree.values import digest, owned, read_only


def refusal(*args, **kwargs):
    with pytest.raises(ModelError) as caught:
        from_pairs(*args, **kwargs)
    return str(caught.value)


# --- strategies ---------------------------------------------------------------------------------------------


@st.composite
def pairs_and_labellings(draw, entries):
    cardinalities = draw(st.lists(st.integers(1, 3), min_size=0, max_size=5))
    variables = st.permutations(range(len(cardinalities)))
    pairs = []
    for _ in range(draw(st.integers(0, 8))):
        scope = tuple(draw(variables)[: draw(st.integers(0, 3))])
        shape = tuple(cardinalities[v] for v in scope)
        size = int(np.prod(shape, dtype=int))
        table = np.array(draw(st.lists(entries, min_size=size, max_size=size))).reshape(shape)
        pairs.append((scope, table))
    y = [draw(st.integers(0, n - 1)) for n in cardinalities]
    return cardinalities, pairs, np.array(y, dtype=np.int64)


def pairs_of(blocks):
    for block in blocks:
        tables = np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:]))
        yield from zip(map(tuple, block.scopes.tolist()), tables, strict=True)


# --- grouping and evaluation --------------------------------------------------------------------------------


@given(pairs_and_labellings(st.integers(-9, 9)))
def test_evaluation_of_integers_is_the_sum_of_the_pairs(problem):
    cardinalities, pairs, y = problem
    blocks = from_pairs(pairs, np.int64, np.array(cardinalities, dtype=np.int32))
    total = evaluate(blocks, y)
    assert total == sum(int(table[tuple(y[list(scope)])]) for scope, table in pairs)
    assert type(total) is int


@given(pairs_and_labellings(st.floats(-9, 9) | st.just(-np.inf)))
def test_evaluation_of_scores_is_the_sum_of_the_pairs(problem):
    cardinalities, pairs, y = problem
    blocks = from_pairs(pairs, np.float64, np.array(cardinalities, dtype=np.int32))
    expected = sum(float(table[tuple(y[list(scope)])]) for scope, table in pairs)
    assert evaluate(blocks, y) == pytest.approx(expected, abs=1e-12)


@given(pairs_and_labellings(st.integers(-9, 9)))
def test_grouping_keeps_every_pair_and_its_order_inside_a_shape(problem):
    _, pairs, _ = problem
    blocks = from_pairs(pairs, np.int64)
    shapes = list(dict.fromkeys(table.shape for _, table in pairs))
    assert [block.tables.shape[1:] for block in blocks] == shapes
    expected = [pair for shape in shapes for pair in pairs if pair[1].shape == shape]
    grouped = list(pairs_of(blocks))
    assert [scope for scope, _ in grouped] == [scope for scope, _ in expected]
    for (_, got), (_, wanted) in zip(grouped, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_axes_follow_the_scope_as_it_was_written():
    blocks = from_pairs([((1, 0), [[0, 1, 2], [3, 4, 5]])], np.int64, np.array([3, 2], dtype=np.int32))
    assert evaluate(blocks, np.array([2, 1])) == 5
    assert evaluate(blocks, np.array([1, 0])) == 1


def test_a_shared_table_counts_once_per_scope():
    block = Block(np.array([[0, 1], [1, 2], [0, 2]]), np.array([[[1, 2], [3, 4]]]))
    assert evaluate([block], np.array([0, 1, 1])) == 2 + 4 + 2


def test_shared_constants_count_once_each():
    block = Block(np.empty((3, 0), dtype=np.int32), np.array([5]))
    assert evaluate([block], np.array([], dtype=np.int64)) == 15


def test_arity_zero_is_a_block_of_constants():
    (block,) = from_pairs([((), 2), ([], 3.0)], np.int64)
    assert block.scopes.shape == (2, 0)
    assert block.tables.tolist() == [2, 3]
    assert block.arity == 0


def test_no_pairs_no_blocks():
    assert from_pairs([], np.float64) == ()
    assert evaluate((), np.array([], dtype=np.int64)) == 0


def test_big_integers_add_up_exactly():
    largest = LARGEST_INTEGER - 1
    blocks = from_pairs([((i,), [largest, -largest]) for i in range(1000)], np.int64)
    assert evaluate(blocks, np.zeros(1000, dtype=np.int64)) == 1000 * largest


def test_scopes_and_tables_may_be_any_iterable_and_dtype():
    pairs = [(iter([0]), np.array([1, 0], dtype=np.uint8)), (np.array([1]), np.array([True, False]))]
    (block,) = from_pairs(pairs, np.int64)
    assert block.scopes.dtype == np.int32
    assert block.tables.dtype == np.int64
    assert block.tables.tolist() == [[1, 0], [1, 0]]


def test_whole_floats_are_integers():
    (block,) = from_pairs([((0,), [2.0, -1.0])], np.int64)
    assert block.tables.tolist() == [[2, -1]]


def test_minus_infinity_forbids():
    blocks = from_pairs([((0,), [-np.inf, 1.0])], np.float64)
    assert evaluate(blocks, np.array([0])) == -np.inf


# --- refusals -----------------------------------------------------------------------------------------------

SIZES = np.array([2, 3], dtype=np.int32)


def test_shape_refusal_names_factor_scope_and_both_shapes():
    text = refusal([((0,), [0, 1]), ((0, 1), np.zeros((3, 2)))], np.float64, SIZES)
    assert "factor 1 with scope (0, 1)" in text
    assert "shape (2, 3)" in text
    assert "got (3, 2)" in text
    assert "axis i" in text


def test_the_right_factor_is_named_behind_others_of_its_shape():
    pairs = [((0,), [0, 1]), ((1,), [0, 0, 1]), ((0,), [1, 1]), ((1,), [0, 1])]
    assert "factor 3 with scope (1,)" in refusal(pairs, np.float64, SIZES)


def test_dimension_refusal():
    text = refusal([((0, 1), [0.0, 1.0])], np.float64, SIZES)
    assert "factor 0 has scope (0, 1) and a table of shape (2,)" in text
    assert "2 here" in text


@pytest.mark.parametrize("variable", [2, -1, 2**31, 2**70])
def test_variables_out_of_range(variable):
    text = refusal([((variable,), [0.0, 1.0])], np.float64, SIZES)
    assert f"factor 0 with scope ({variable},)" in text
    assert f"no variable {variable}" in text
    assert "variables 0 to 1" in text


def test_variables_out_of_range_without_a_model():
    assert "at least 0" in refusal([((-3,), [0, 1])], np.int64)
    assert "at least 0" in refusal([((2**31 - 1,), [0, 1])], np.int64)


def test_variables_of_an_empty_model():
    assert "no variables" in refusal([((0,), [0.0])], np.float64, np.array([], dtype=np.int32))


def test_a_variable_twice():
    text = refusal([((0, 1, 0), np.zeros((2, 3, 2)))], np.float64, SIZES)
    assert "scope (0, 1, 0) has variable 0 twice" in text
    assert "diagonal" in text


@pytest.mark.parametrize("variable", [0.5, "a", None, True])
def test_what_is_no_variable(variable):
    text = refusal([((variable,), [0.0, 1.0])], np.float64, SIZES)
    assert f"{variable!r} is not a variable" in text


def test_a_bare_integer_for_a_scope():
    assert "write (0,) for one variable" in refusal([(0, [0.0, 1.0])], np.float64, SIZES)


def test_a_mapping_and_a_single_pair():
    assert "the factors are a mapping; pass (scope, table) pairs, as in factors.items()" in refusal(
        {(0, 1): np.eye(2)}, np.float64, SIZES
    )
    assert "Write a list of pairs: [((0, 1), table)]" in refusal([(0, 1), np.eye(2)], np.int64)


def test_a_nested_scope():
    assert "(0, 1) is not a variable" in refusal([(((0, 1),), [0.0, 1.0])], np.float64, SIZES)


@pytest.mark.parametrize("pair", [3, ((0,),), ((0,), [1], 2)])
def test_what_is_no_pair(pair):
    assert "factor 0 must be a (scope, table) pair" in refusal([pair], np.float64, SIZES)


def test_ragged_and_textual_tables():
    assert "the table of factor 0 is not a rectangular array" in refusal([((0,), [[1], [1, 2]])], np.float64)
    assert "must hold numbers" in refusal([((0,), ["a", "b"])], np.float64)
    assert "must hold numbers" in refusal([((0,), [2**70, 1])], np.int64)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_nan_and_infinity_name_factor_and_entry(bad):
    text = refusal([((0,), [0, 0]), ((0, 1), [[0, 0, 0], [0, bad, 0]])], np.float64, SIZES)
    assert f"entry (1, 1) of factor 1 with scope (0, 1) is {bad}" in text
    assert "-inf to forbid" in text


@pytest.mark.parametrize("bad", [0.5, np.nan, np.inf, -np.inf, 2.0**40, -(2**40), 2**63])
def test_what_is_no_integer_entry(bad):
    text = refusal([((0,), [0, 1]), ((1,), [0, bad])], np.int64, noun="statistic 'tp', part")
    assert "entry (1,) of statistic 'tp', part 1 with scope (1,)" in text
    assert "2**40" in text


# --- values -------------------------------------------------------------------------------------------------


def test_blocks_are_immutable():
    block = Block(np.array([[0], [1]]), np.array([[1.0, 2.0]]))
    with pytest.raises(AttributeError, match="Block is immutable"):
        block.tables = np.zeros((1, 2))
    with pytest.raises(AttributeError, match="cannot delete 'scopes'"):
        del block.scopes
    for array in (block.scopes, block.tables):
        with pytest.raises(ValueError, match="read-only"):
            array[0, 0] = 7
    assert not hasattr(block, "__dict__")


def test_writable_arrays_are_copied_and_read_only_ones_are_shared():
    scopes, tables = np.zeros((1, 1), dtype=np.int32), np.ones((1, 2))
    block = Block(scopes, tables)
    tables[:] = 9
    assert block.tables.tolist() == [[1.0, 1.0]]
    assert tables.flags.writeable
    assert Block(block.scopes, block.tables).tables is block.tables


def test_owned_arrays_are_contiguous_and_of_the_dtype():
    array = owned(read_only(np.arange(6.0).reshape(2, 3).T), np.float64)
    assert array.flags.c_contiguous
    assert not array.flags.writeable
    assert owned(read_only(np.arange(3)), np.int32).dtype == np.int32


def test_the_key_depends_on_scopes_alone():
    scopes = np.array([[0, 1], [1, 2]])
    one, two = Block(scopes, np.zeros((1, 2, 2))), Block(scopes, np.ones((2, 3, 3)))
    assert one.key == two.key
    assert one.key != Block(scopes[:, ::-1], np.zeros((1, 2, 2))).key
    assert Block(np.zeros((2, 0)), np.zeros(2)).key != Block(np.zeros((3, 0)), np.zeros(3)).key
    assert (
        Block(np.array([[0, 1]]), np.zeros((1, 2, 2))).key
        != Block(np.array([[0], [1]]), np.zeros((1, 2))).key
    )


def test_a_known_key_is_the_computed_one():
    scopes, key = unary_scopes(7)
    assert key == digest(scopes) == Block(scopes.copy(), np.zeros((1, 2))).key
    assert unary_scopes(7)[0] is scopes
    assert scopes.tolist() == [[i] for i in range(7)]


def test_with_tables_keeps_scopes_and_key():
    block = Block(np.array([[0], [1]]), np.array([[1, 2]]))
    other = block.with_tables(block.tables * 2)
    assert other.scopes is block.scopes
    assert other.key == block.key
    assert other.tables.tolist() == [[2, 4]]


@pytest.mark.parametrize("clone", [lambda b: pickle.loads(pickle.dumps(b)), copy.copy, copy.deepcopy])
def test_copies_are_equal_and_frozen(clone):
    block = Block(np.array([[0, 1], [1, 2]]), np.arange(4.0).reshape(1, 2, 2))
    again = clone(block)
    assert again.key == block.key
    np.testing.assert_array_equal(again.scopes, block.scopes)
    np.testing.assert_array_equal(again.tables, block.tables)
    assert not again.scopes.flags.writeable
    assert not again.tables.flags.writeable
    assert again.scopes.dtype == np.int32


def test_repr_says_what_it_holds():
    block = Block(np.array([[0], [1]]), np.zeros((2, 3)))
    assert repr(block) == "Block(2 scopes of 1 variable, 2 (3,) tables)"


# --- checks of whole blocks ---------------------------------------------------------------------------------


@given(pairs_and_labellings(st.integers(-9, 9)))
def test_blocks_that_come_from_pairs_pass_the_check(problem):
    cardinalities, pairs, _ = problem
    sizes = np.array(cardinalities, dtype=np.int32)
    check_blocks(from_pairs(pairs, np.int64, sizes), np.int64, sizes, noun="factor")


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (
            Block(np.array([[0], [5]]), np.zeros((1, 2))),
            r"factor 1 of block 0 with scope \(5,\): there is no",
        ),
        (Block(np.array([[0, 0]]), np.zeros((1, 2, 2))), "variable 0 twice"),
        (Block(np.array([[0], [1]]), np.zeros((1, 2))), r"needs a table of shape \(3,\).* got \(2,\)"),
        (Block(np.array([[0], [0]]), np.zeros((3, 2))), "1 or 2 of them"),
        (Block(np.array([[0]]), np.zeros((1, 2), dtype=np.int64)), "dtype int64; it needs float64"),
        (Block(np.array([[0]]), np.zeros((1, 2, 3))), "1 axes each"),
        (Block(np.array([[0]]), np.array([[0.0, np.nan]])), r"entry \(1,\) of factor 0 .* is nan"),
    ],
)
def test_malformed_blocks_are_refused(block, text):
    with pytest.raises(ModelError, match=text):
        check_blocks([block], np.float64, SIZES, noun="factor")
