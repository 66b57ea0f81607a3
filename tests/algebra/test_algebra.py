"""The laws of the algebras, each stated once and checked for all of them."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.algebra import Algebra, Counting, LogSumExp, MaxPlus
from tallytree.algebra.tallies import (
    UNCAPPED,
    cap_array,
    capped_sum,
    move_minima_out,
    put_minima_back,
    unique_rows,
    unique_sums,
)

ALGEBRAS = [MaxPlus(), LogSumExp(), Counting()]
LOG_SCORES = st.just(-np.inf) | st.floats(-1e3, 1e3)
ELEMENTS = {MaxPlus(): LOG_SCORES, LogSumExp(): LOG_SCORES, Counting(): st.integers(0, 10**40)}


def same(algebra: Algebra, a, b) -> bool:
    """Equal, up to rounding where elements are floats; nan equals nothing."""
    if algebra.dtype == object:
        return bool(np.all(a == b))
    return bool(np.allclose(a, b, rtol=1e-12, atol=1e-9))


def check_axioms(algebra: Algebra, a, b, c) -> None:
    """Check that (plus, times, zero, one) is a commutative semiring at these three elements."""
    plus, times, zero, one = algebra.plus, algebra.times, algebra.zero, algebra.one
    for operation in (plus, times):
        assert same(algebra, operation(operation(a, b), c), operation(a, operation(b, c)))
        assert same(algebra, operation(a, b), operation(b, a))
    assert same(algebra, plus(a, zero), a)
    assert same(algebra, times(a, one), a)
    assert same(algebra, times(a, zero), zero)
    assert same(algebra, times(a, plus(b, c)), plus(times(a, b), times(a, c)))
    if algebra.idempotent:
        assert same(algebra, plus(a, a), a)


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
@given(data=st.data())
def test_axioms(algebra, data):
    elements = [np.array([data.draw(ELEMENTS[algebra])], dtype=algebra.dtype) for _ in range(3)]
    check_axioms(algebra, *elements)


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
@given(data=st.data())
def test_reduce_and_accumulate_at_are_repeated_plus(algebra, data):
    elements = data.draw(st.lists(ELEMENTS[algebra], max_size=6))
    array = np.array(elements, dtype=algebra.dtype)
    folded = algebra.zero
    for element in array:
        folded = algebra.plus(folded, element)
    assert same(algebra, algebra.reduce(array, 0), folded)
    out = algebra.full((2,), algebra.zero)
    algebra.accumulate_at(out, np.ones(len(array), dtype=int), array)
    assert same(algebra, out[1], folded)
    assert out[0] == algebra.zero


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
def test_lift_keeps_the_shape_and_maps_the_impossible_to_zero(algebra):
    lifted = algebra.lift([[0.0, -np.inf], [-3.5, 2.0]])
    assert lifted.shape == (2, 2) and lifted.dtype == algebra.dtype
    assert np.array_equal(lifted == algebra.zero, [[False, True], [False, False]])
    assert algebra.lift(0.0).shape == ()
    assert algebra.lift(0.0) == algebra.one


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
def test_reduce_over_nothing_is_zero(algebra):
    assert np.array_equal(algebra.reduce(algebra.full((0, 2), algebra.one), 0), [algebra.zero] * 2)
    assert algebra.reduce(algebra.full((2, 3), algebra.one), (0, 1)).shape == ()
    assert algebra.reduce(algebra.full((2,), algebra.one), ()).shape == (2,)


def test_algebras_are_values():
    assert MaxPlus() == MaxPlus() and MaxPlus() != LogSumExp()
    assert len({*ALGEBRAS, MaxPlus()}) == 3


def test_logsumexp_is_stable():
    algebra = LogSumExp()
    assert algebra.reduce(np.array([1e4, 1e4]), 0) == pytest.approx(1e4 + np.log(2))
    assert algebra.reduce(np.array([-1e4, -np.inf, -1e4]), 0) == pytest.approx(-1e4 + np.log(2))
    assert np.array_equal(algebra.reduce(np.full((2, 3), -np.inf), 1), [-np.inf, -np.inf])
    many = np.log(np.full(10_000, 1e-4))
    assert algebra.reduce(many, 0) == pytest.approx(0, abs=1e-11)


def test_counts_do_not_wrap():
    table = Counting().lift(np.zeros(3))
    product = table
    for _ in range(39):
        product = Counting().times(product, Counting().reduce(table, 0))
    assert int(Counting().reduce(product, 0)) == 3**40


# ---------------------------------------------------------------- tallies

SMALL = st.integers(0, 20)
CAPS = st.none() | st.integers(0, 12)


@given(st.lists(st.tuples(SMALL, SMALL, SMALL, CAPS), max_size=4))
def test_truncated_addition_is_associative_and_commutative_on_nonnegative_numbers(columns):
    a, b, c, caps = [list(column) for column in zip(*columns, strict=True)] or [[]] * 4
    a, b, c, caps = *(np.array(x, dtype=np.int64) for x in (a, b, c)), cap_array(caps)
    left = capped_sum(capped_sum(a, b, caps), c, caps)
    assert np.array_equal(left, capped_sum(a, capped_sum(b, c, caps), caps))
    assert np.array_equal(left, np.minimum(caps, a + b + c))
    assert np.array_equal(capped_sum(a, b, caps), capped_sum(b, a, caps))
    assert np.array_equal(capped_sum(np.minimum(a, caps), np.zeros_like(a), caps), np.minimum(a, caps))


def test_truncated_addition_is_not_associative_on_negative_numbers():
    two, one, minus, cap = np.array([2]), np.array([1]), np.array([-1]), np.array([1])
    assert capped_sum(capped_sum(two, one, cap), minus, cap) != capped_sum(
        two, capped_sum(one, minus, cap), cap
    )


@given(
    st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=3), max_size=4),
    st.none() | st.integers(-30, 30),
)
def test_moving_the_minima_out_changes_no_tally(tables, cap):
    tables = [np.array(table) for table in tables]
    moved, offset, room = move_minima_out(tables, cap)
    assert cap is None or (room >= 0 and all(table.min() == 0 for table in moved))
    for choice in itertools.product(*(range(len(table)) for table in tables)):
        total = sum(int(table[y]) for table, y in zip(tables, choice, strict=True))
        inner = min(room, sum(int(table[y]) for table, y in zip(moved, choice, strict=True)))
        outer = put_minima_back(np.array([[inner]]), np.array([offset]), cap_array([cap]))
        assert outer.item() == (total if cap is None else min(cap, total))


def test_a_cap_at_or_below_the_minimum_leaves_a_constant():
    _, offset, room = move_minima_out([np.array([2, 5])], 1)
    assert (offset, room) == (2, 0)
    assert put_minima_back(np.array([[0]]), np.array([2]), np.array([1])).item() == 1
    assert move_minima_out([np.array([-2, 5])], None)[1:] == (0, UNCAPPED)


ROWS = st.integers(0, 3).flatmap(
    lambda width: st.lists(st.tuples(*[st.integers(-3, 3)] * width), min_size=1, max_size=8)
)


@given(ROWS)
def test_unique_rows_are_sorted_and_can_be_put_back(rows):
    array = np.array(rows, dtype=np.int64).reshape(len(rows), len(rows[0]))
    unique, inverse = unique_rows(array)
    assert [tuple(row) for row in unique.tolist()] == sorted(set(rows))
    assert np.array_equal(unique[inverse], array)


@given(st.data(), st.integers(0, 3))
def test_unique_sums_are_all_sums(data, width):
    rows = st.lists(st.tuples(*[SMALL] * width), min_size=1, max_size=5, unique=True)
    a, b = (
        np.array(data.draw(rows), dtype=np.int64).reshape(-1, width) if width else np.zeros((1, 0), int)
        for _ in range(2)
    )
    caps = cap_array(data.draw(st.lists(CAPS, min_size=width, max_size=width)))
    sums, index = unique_sums(a, b, caps)
    assert index.shape == (len(a), len(b))
    assert np.array_equal(sums[index], np.minimum(caps, a[:, None] + b[None]))
    assert sorted({tuple(row) for row in sums.tolist()}) == [tuple(row) for row in sums.tolist()]
