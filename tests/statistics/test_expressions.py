"""Expressions and constraints: their algebra, their text, and errors for chained comparisons."""

import copy
import operator
import pickle
import re
from decimal import Decimal
from fractions import Fraction
from numbers import Real

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.statistics.constraints import And, Or, as_constraint
from tallytree.statistics.linear import Comparison, Linear
from tallytree.statistics.recipes import count
from tallytree.statistics.statistic import Statistic, read_by


def statistic(name, variable):
    return Statistic([((variable,), [0, 1])], name=name)


A, B, C = statistic("a", 0), statistic("b", 1), statistic("c", 2)
VALUES = {A: np.array([0, 1, 2, -3]), B: np.array([5, 1, 0, 2]), C: np.array([7, 7, -1, 0])}


# --- the algebra, against Python's own ----------------------------------------------------------------------


@st.composite
def linears(draw):
    """Draw the text of a combination: it means the same over statistics and over arrays."""
    text = draw(st.sampled_from("ABC"))
    for _ in range(draw(st.integers(0, 4))):
        n, name = draw(st.integers(-4, 4)), draw(st.sampled_from("ABC"))
        text = draw(
            st.sampled_from(
                [
                    f"({text} + {n})",
                    f"({n} + {text})",
                    f"({n} - {text})",
                    f"({n} * {text})",
                    f"({text} * {n})",
                    f"(-{text})",
                    f"(+{text})",
                    f"({text} + {name})",
                    f"({text} - {n} * {name})",
                ]
            )
        )
    return text


RELATIONS = ["<", "<=", ">", ">=", "==", "!="]


@st.composite
def constraints(draw, depth=2):
    if depth and draw(st.booleans()):
        left, right = draw(constraints(depth - 1)), draw(constraints(depth - 1))
        return draw(st.sampled_from([f"(({left}) & ({right}))", f"(({left}) | ({right}))", f"(~({left}))"]))
    left = draw(linears())
    right = draw(linears().map(lambda text: f"({text} + 0)") | st.integers(-9, 9).map(str))
    return f"{left} + 0 {draw(st.sampled_from(RELATIONS))} {right}"


SYMBOLS = {"A": A, "B": B, "C": C}
ARRAYS = {name: VALUES[term] for name, term in SYMBOLS.items()}


@given(linears())
def test_a_combination_evaluates_like_its_text(text):
    symbolic = eval(text, SYMBOLS.copy())
    np.testing.assert_array_equal(symbolic.linear().evaluate(VALUES), eval(text, ARRAYS.copy()))


@given(constraints())
def test_a_constraint_holds_where_its_text_does(text):
    constraint = eval(text, SYMBOLS.copy())
    np.testing.assert_array_equal(constraint.holds(VALUES), eval(text, ARRAYS.copy()))


@given(constraints())
def test_a_negation_holds_where_the_constraint_does_not(text):
    constraint = eval(text, SYMBOLS.copy())
    np.testing.assert_array_equal((~constraint).holds(VALUES), ~constraint.holds(VALUES))
    assert ~~constraint == constraint


@given(constraints())
def test_the_text_of_a_constraint_reads_back_as_itself(text):
    constraint = eval(text, SYMBOLS.copy())
    # where all statistics cancelled the text is `0 <= 3`, which Python would answer at once
    written = re.sub(r"(^|\()0 ", r"\1zero ", repr(constraint))
    again = eval(written, {"a": A.linear(), "b": B.linear(), "c": C.linear(), "zero": Linear(())})
    assert again == constraint


@given(constraints(), constraints())
def test_pickled_constraints_are_equal(left, right):
    constraint = eval(f"({left}) | ({right})", SYMBOLS.copy())
    again = pickle.loads(pickle.dumps(constraint))
    assert again == constraint
    assert hash(again) == hash(constraint)
    assert copy.deepcopy(constraint) == constraint


# --- texts --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("thing", "text"),
    [
        (2 * A - B, "2*a - b"),
        (2 * A - B + 3, "2*a - b + 3"),
        (-A, "-a"),
        (-3 * A - 2, "-3*a - 2"),
        (A - A, "0"),
        (A - A - 1, "-1"),
        (sum([A, B, C]), "a + b + c"),
        (2 * A - B <= 4, "2*a - b <= 4"),
        (2 * A - B + 3 <= 4, "2*a - b <= 1"),
        (A < 5, "a < 5"),
        (A > 5, "a > 5"),
        (A <= B + 0, "a - b <= 0"),
        (A <= B, "a - b <= 0"),
        (3 - A >= 1, "a <= 2"),
        (A != 3, "a != 3"),
        ((A >= 2) & (A <= 5) & (B == 0), "(a >= 2) & (a <= 5) & (b == 0)"),
        ((A >= 2) & ((A <= 5) | (B == 0)), "(a >= 2) & ((a <= 5) | (b == 0))"),
        (~((A >= 2) & (B == 0)), "(a <= 1) | (b != 0)"),
        (A - A <= 3, "0 <= 3"),
    ],
)
def test_texts(thing, text):
    assert repr(thing) == text
    assert str(thing) == text.replace(" & ", " and ").replace(" | ", " or ")  # as in formulas


def test_kinds():
    assert isinstance(A >= 2, Comparison)
    assert isinstance((A >= 2) & (B >= 2), And)
    assert isinstance((A >= 2) | (B >= 2), Or)
    assert (A >= 2) == (A >= 2)
    assert (A >= 2) != (A >= 3)
    assert ((A >= 2) & (B >= 2)) != ((A >= 2) | (B >= 2))


def test_a_comparison_shows_its_parts():
    comparison = 2 * A - B < 4
    assert comparison.terms == ((A, 2), (B, -1))
    assert (comparison.relation, comparison.bound) == ("<=", 3)


def test_numpy_integers_on_either_side():
    three = np.int64(3)
    assert repr(three * A + three) == "3*a + 3"
    assert repr(three >= A) == repr(three >= A) == "a <= 3"
    assert repr(three - A == np.uint8(1)) == "a == 2"
    assert isinstance((three == A), Comparison)
    assert isinstance((three == A), Comparison)


# --- statistics as keys -------------------------------------------------------------------------------------


def test_statistics_compare_by_content_and_combinations_build_constraints():
    again = statistic("another name", 0)
    assert (again == A) is True
    assert (again != A) is False
    assert (A == B) is False
    assert (A != B) is True
    assert isinstance(A == B + 0, Comparison)
    assert isinstance(A + 0 == B, Comparison)
    assert isinstance(A != 3, Comparison)
    assert (A == "a") is False
    assert (A != None) is True  # noqa: E711


def test_equal_statistics_are_put_together():
    combination = A + statistic("again", 0) - B + B
    assert combination.statistics == (A,)
    assert combination.terms == ((A, 2),)


def test_statistics_are_listed_once_in_order_of_first_use():
    constraint = (B >= 1) & ((A + B <= 3) | ~(C == A + 0))
    assert constraint.statistics == (B, A, C)
    assert read_by(constraint) == (B, A, C)


def test_combinations_are_no_keys():
    with pytest.raises(TypeError, match="builds a constraint"):
        hash(A + B)


# --- holds --------------------------------------------------------------------------------------------------


def test_holds_takes_plain_integers():
    assert bool(((A >= 2) & (B == 0)).holds({A: 2, B: 0}))
    assert not bool((A >= 2).holds({A: np.int64(1)}))


def test_holds_has_the_shape_of_the_values_even_where_statistics_cancel():
    mask = (A - A <= 3).holds({A: np.zeros(4, dtype=np.int64)})
    assert mask.tolist() == [True] * 4
    assert ((A >= 0) & (B >= 1)).holds({A: np.zeros(2), B: np.zeros((3, 1))}).shape == (3, 2)


@given(st.integers(-(2**80), 2**80), st.integers(-(2**80), 2**80), st.integers(-(2**62), 2**62))
def test_nothing_wraps(coefficient, bound, tally):
    constraint = coefficient * A + 1 <= bound
    assert bool(constraint.holds({A: np.array([tally])})[0]) == (coefficient * tally + 1 <= bound)


# --- refusals -----------------------------------------------------------------------------------------------


def test_a_constraint_has_no_truth_value():
    with pytest.raises(ModelError) as caught:
        _ = 2 <= A <= 5
    text = str(caught.value)
    assert "'a >= 2'" in text
    assert "(ones >= 2) & (ones <= 5)" in text
    for ask in (
        lambda: A >= 2 and B >= 2,
        lambda: A >= 2 or B >= 2,
        lambda: not A >= 2,
        lambda: bool(A + B == 2),
    ):
        with pytest.raises(ModelError, match="no truth value"):
            ask()


@pytest.mark.parametrize("number", [2.5, np.float64(0.1), Fraction(1, 2), Decimal(1), 1j, None])
@pytest.mark.parametrize("operation", [operator.add, operator.sub, operator.mul, operator.le, operator.gt])
def test_numbers_that_are_no_integers(operation, number):
    with pytest.raises(ModelError, match="compared with integers") as caught:
        operation(A, number)
    assert repr(number) in str(caught.value)
    fractional = "Multiply out" if operation is operator.mul else "math.ceil for >="
    assert (fractional if isinstance(number, Real) else "Give a single integer") in str(caught.value)


def test_equality_with_a_float_is_refused_too():
    for ask in (lambda: A == 0.5, lambda: A != 2.5, lambda: A + B == 2.5):
        with pytest.raises(ModelError, match="compared with integers"):
            ask()


def test_arrays_are_refused():
    with pytest.raises(ModelError, match="compared with integers"):
        _ = np.array([1, 2]) <= A
    with pytest.raises(ModelError, match="compared with integers"):
        _ = np.array([1, 2]) + A


def test_products_are_refused():
    with pytest.raises(ModelError, match=r"\(a\) \* \(b - 1\) is not linear.* objective"):
        _ = A * (B - 1)


def test_the_slip_of_comparing_two_statistics():
    for slip in (
        lambda: (A >= 2) & (A == B),
        lambda: (A == B) | (A >= 2),
        lambda: as_constraint(np.bool_(True)),
    ):
        with pytest.raises(ModelError, match="`a - b == 0`"):
            slip()


def test_what_is_no_constraint():
    assert as_constraint(A >= 2) == (A >= 2)
    with pytest.raises(ModelError, match=r"`ones >= 2`.*; got Statistic\('a', 1 part\)"):
        as_constraint(A)
    with pytest.raises(ModelError, match="got 3"):
        _ = (A >= 2) & 3


def test_combinations_are_immutable():
    with pytest.raises(AttributeError, match="Linear is immutable"):
        (A + B).constant = 3
    with pytest.raises(AttributeError):
        (A >= 2).bound = 3


# --- recipes ------------------------------------------------------------------------------------------------

CHAIN = Model.chain(np.zeros((3, 2)), np.zeros((2, 2)), states=["O", "B"])


def test_recipes_take_part_and_are_bound_later():
    recipe = count(state="B")
    constraint = (recipe >= 2) & (recipe + count(state="O") == 3) | ~(count(CHAIN, state="O") > 1)
    bound = constraint.on(CHAIN)
    ones, zeros = count(CHAIN, state="B"), count(CHAIN, state="O")
    assert read_by(bound) == (ones, zeros)
    assert bound == (ones >= 2) & (ones + zeros == 3) | (zeros <= 1)
    assert repr(recipe >= 2) == "count_B >= 2"


def test_bound_constraints_return_themselves():
    constraint = (count(CHAIN, state=1) >= 2) & ~(count(CHAIN, state=0) == 1)
    assert constraint.on(CHAIN) is constraint


def test_binding_puts_equal_statistics_together():
    both = (count(state="B") + count(state=1) <= 4).on(CHAIN)
    assert repr(both) == "2*count_B <= 4"
    assert (count(state="B") - count(state=1) <= 4).on(CHAIN).statistics == ()


def test_recipes_are_equal_by_content():
    assert (count(state="B") == count(state="B", name="other")) is True
    assert (count(state="B") == count(state="B", cap=2)) is False
    assert (count(state="B") == count(CHAIN, state="B")) is False
    assert isinstance(count(state="B") == 2, Comparison)


def test_an_unbound_constraint_is_no_list_of_statistics():
    with pytest.raises(ModelError, match=r"count\(state='B'.* is a recipe.*\.on\(model\)"):
        read_by(count(state="B") >= 1)


def test_binding_refuses_a_model_of_another_shape():
    longer = Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
    with pytest.raises(ModelError, match="'count_1' was made for a model with 3 variables"):
        (count(CHAIN, state=1) >= 1).on(longer)


@pytest.mark.parametrize("number", [3, 40])  # few are told apart by comparing them, many by their digests
def test_distinct_statistics_in_order_of_first_use(number):
    made = [Statistic([((0,), [0, i]), ((1,), [i, 0])], name=f"s{i}") for i in range(number)]
    again = [Statistic([((0,), [0, i]), ((1,), [i, 0])], name="other") for i in range(number)]
    recipes = [count(state=i) for i in range(number)]
    terms = [*made, *again, *recipes, *made]
    found = And(tuple(term >= 1 for term in terms)).statistics
    assert [term is wanted for term, wanted in zip(found, [*made, *recipes], strict=True)] == [
        True
    ] * 2 * number
