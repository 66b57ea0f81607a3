"""Formulas: what they compute, what raises an error, and that they cannot do anything else."""

import pickle
import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tallytree.errors import ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_constraint_of, as_text
from tallytree.statistics.formula_parser import DEEPEST, LONGEST_TEXT, MOST_INSTRUCTIONS
from tallytree.statistics.formulas import Formula, is_name, name_in_formula
from tallytree.statistics.statistic import Statistic

A = Statistic([((0,), [0, 1, 2, 3])], name="a")
B = Statistic([((1,), [-1, 0, 1, 2])], name="b")
GRID = np.array(list(product(range(4), range(-1, 3))))
VALUES = {"a": GRID[:, 0], "b": GRID[:, 1]}

# Python's own grammar and arithmetic, for the part that the two have in common
LEAVES = st.one_of(st.sampled_from(["a", "b"]), st.integers(0, 9).map(str), st.sampled_from(["0.5", "2e1"]))
NUMBERS = st.recursive(
    LEAVES,
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from("+-*"), part).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(part, st.sampled_from("+-*"), part).map("{0[0]} {0[1]} {0[2]}".format),
        part.map("-{}".format),
        st.tuples(part, part).map("min({0[0]}, {0[1]})".format),
        st.tuples(part, part, part).map("max({0[0]}, {0[1]}, {0[2]})".format),
        part.map("abs({})".format),
    ),
    max_leaves=12,
)
RELATIONS = st.sampled_from(["<", "<=", ">", ">=", "==", "!="])


def conditions(numbers: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    comparison = st.one_of(
        st.tuples(numbers, RELATIONS, numbers).map("{0[0]} {0[1]} {0[2]}".format),
        st.tuples(numbers, RELATIONS, numbers, RELATIONS, numbers).map(" ".join),
    )
    return st.recursive(
        comparison,
        lambda part: st.one_of(
            st.tuples(part, st.sampled_from(["and", "or"]), part).map("{0[0]} {0[1]} {0[2]}".format),
            st.tuples(part, st.sampled_from(["and", "or"]), part).map("({0[0]}) {0[1]} ({0[2]})".format),
            part.map("not ({})".format),
            part.map("not {}".format),
        ),
        max_leaves=6,
    )


def by_python(text: str) -> list[float]:
    rows = zip(VALUES["a"].tolist(), VALUES["b"].tolist(), strict=True)
    return [
        eval(text, {"__builtins__": {}, "min": min, "max": max, "abs": abs}, {"a": a, "b": b})
        for a, b in rows
    ]


@given(NUMBERS)
def test_numbers_are_those_of_python(text):
    formula = Formula(text)
    assert formula.kind == "number"
    np.testing.assert_allclose(np.broadcast_to(formula(VALUES), len(GRID)), by_python(text), rtol=1e-12)


@given(conditions(NUMBERS))
def test_conditions_are_those_of_python(text):
    formula = Formula(text)
    assert formula.kind == "truth"
    assert np.broadcast_to(formula(VALUES), len(GRID)).tolist() == by_python(text)


LINEAR = st.recursive(
    st.one_of(st.sampled_from(["a", "b"]), st.integers(0, 9).map(str)),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from("+-"), part).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(st.integers(-3, 3), part).map("{0[0]}*{0[1]}".format),
        part.map("-{}".format),
    ),
    max_leaves=5,
)


@given(conditions(LINEAR))
def test_constraints_hold_where_the_formula_does(text):
    constraint = as_constraint_of(Formula(text), [A, B], {})
    assert isinstance(constraint, Constraint)
    assert constraint.holds({A: VALUES["a"], B: VALUES["b"]}).tolist() == by_python(text)


@given(conditions(LINEAR))
def test_a_constraint_can_be_written_and_read_again(text):
    constraint = as_constraint_of(Formula(text), [A, B], {})
    again = as_constraint_of(Formula(as_text(constraint, {A: "a", B: "b"})), [A, B], {})
    assert again.holds({A: VALUES["a"], B: VALUES["b"]}).tolist() == by_python(text)


@given(
    st.sampled_from(["a", "2*a - b", "b"]),
    RELATIONS,
    st.sampled_from([-1.5, 0.5, 1, 2.25, np.inf, -np.inf, 1e300]),
    st.booleans(),
)
def test_bounds_need_not_be_whole(left, relation, bound, flipped):
    text = f"p {relation} {left}" if flipped else f"{left} {relation} p"
    constraint = as_constraint_of(Formula(text), [A, B], {"p": bound})
    expected = Formula(text)({**VALUES, "p": bound})
    assert constraint.holds({A: VALUES["a"], B: VALUES["b"]}).tolist() == expected.tolist()


def test_functions_and_powers():
    value = Formula("where(a >= 2, exp(log(a)), -inf) + a**2**b / 4")({"a": [1, 2], "b": [1, 2]})
    assert value.tolist() == [-np.inf, 2 + 2**4 / 4]
    assert Formula("-a ** 2")({"a": 3}) == -9
    assert Formula("2 ** -1")({}) == 0.5


def test_nothing_warns_and_nothing_grows():
    text = "log(0) + 9**9**9**9 + 0/0"
    assert np.isnan(Formula(text)({}))
    assert Formula("9" * 400)({}) == np.inf


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "character 1: expected a number, a name or '(', got the end"),
        ("1 +", "character 4: expected a number, a name or '(', got the end"),
        ("(1", "character 3: expected ')', got the end"),
        ("1 2", "character 3: expected an operator or the end, got '2'"),
        ("a.b", "character 2: '.' has no meaning in a formula"),
        ("a[0]", "character 2: '[' has no meaning"),
        ("'x >= 1", 'character 1: "\'" has no closing quote'),
        ("a == ``", "character 6: a name in quotes must not be empty"),
        ("'a\x1b' > 1", "character 1: a name in quotes must not be empty, nor contain line ends or other"),
        ("a 'and' b", "expected an operator or the end, got 'and'"),
        ("a = 1", "character 3: '=' has no meaning in a formula; write =="),
        ("a => 1", "character 3: '=>' has no meaning in a formula; write >="),
        ("a =< 1", "character 3: '=<' has no meaning in a formula; write <="),
        ("a <> 1", "character 3: '<>' has no meaning in a formula; write !="),
        ("a ≤ 1", "character 3: '≤' has no meaning in a formula; write <="),
        ("a < 1 && b < 1", "character 7: '&&' has no meaning in a formula; write and"),
        ("a < 1 | b < 1", "character 7: '|' has no meaning in a formula; write or"),
        ("!(a < 1)", "character 1: '!' has no meaning in a formula; write not"),
        ("a < 1 AND b < 1", "character 7: expected an operator or the end, got 'AND'; write and"),
        ("1_0", "expected an operator or the end, got '_0'"),
        ("a if b else 1", "expected an operator or the end, got 'if'; write where(condition, a, b)"),
        ("lambda: 1", "has no meaning"),
        ("open(a)", "'open' is not a function; the functions are abs"),
        ("valid_bio() and b <= 1", "write the constraint in Python: tt.valid_bio(…) & …"),
        ("a in (2, 3)", "got 'in'; write a == 2 or a == 3"),
        ("'B-NP' not in (2, 3)", "got 'not'; write 'B-NP' != 2 and 'B-NP' != 3"),
        ("in house", "quote a name with spaces: 'in house'"),
        ("min", "'min' is a function"),
        ("min()", "expected a number, a name or '(', got ')'"),
        ("abs(1, 2)", "abs(…) takes 1 argument, got 2"),
        ("where(1, 2, 3)", "where(…) needs a condition, such as ones >= 2 here, not a number"),
        ("where(a < 1, 2)", "takes 3 arguments, got 2"),
        ("(a < 1) + 1", "'+' needs a number here, not a condition"),
        ("a and b", "'and' needs a condition"),
        ("not a", "'not' needs a condition"),
        ("-(a < 1)", "a sign needs a number"),
        ("(a < 1) < 2", "'<' needs a number"),
        ("(a < 1) ** 2", "'**' needs a number"),
        ("not", "expected a number"),
        ("and", "expected a number"),
        ("é", "has no meaning"),
        ("\u0663", "has no meaning"),
    ],
)
def test_what_is_no_formula_is_refused(text, message):
    with pytest.raises(ModelError, match=re.escape(message)):
        Formula(text)


def test_limits_come_before_memory_and_recursion():
    for text in (
        "(" * 5000 + "a" + ")" * 5000,
        "abs(" * 5000 + "a" + ")" * 5000,
        "2**" * 5000 + "2",
        "where(1<" * 200 + "2",
    ):
        with pytest.raises(ModelError, match=f"nested more than {DEEPEST} levels deep"):
            Formula(text)
    with pytest.raises(ModelError, match=f"more than {MOST_INSTRUCTIONS} operations"):
        Formula("+".join("a" * MOST_INSTRUCTIONS))
    with pytest.raises(ModelError, match=f"the limit is {LONGEST_TEXT}"):
        Formula("1" * (LONGEST_TEXT + 1))
    chained = "a"
    for _ in range(DEEPEST - 2):
        chained = f"where(0 < {chained} < 9 < 10, 1, 2)"
    with pytest.raises(ModelError, match="more than"):
        Formula(chained)


def test_long_formulas_need_no_recursion():
    assert Formula("+".join("a" * 5000))({"a": 1}) == 5000
    assert Formula("-" * 50_001 + "a")({"a": 1}) == -1
    assert Formula("max(" + ",".join(map(str, range(5000))) + ")")({}) == 4999
    text = " and ".join(["a >= 1"] * 3000)
    assert as_constraint_of(Formula(text), [A], {}).holds({A: [0, 1]}).tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a*b <= 1", r"\(a\) \* \(b\) is not linear"),
        ("a/2 <= 1", r"multiply out: 'a == 2' instead of 'a / 2 == 1'"),
        ("exp(a) <= 1", r"'exp' of statistics is not linear.*where\(condition, score, -inf\)"),
        ("min(a, 1) <= 1", "'min' of statistics"),
        ("a**2 <= 1", r"'\*\*' of statistics"),
        ("0.5*a <= 1", "the coefficient of a statistic must be an integer"),
        ("a + 0.5 <= 1", "what is added to statistics must be an integer"),
        ("1e15*a <= 1", "the coefficient of a statistic must be an integer below"),
        ("1000000*(1000000*(1000000*a)) <= 1", "the coefficient of a must be an integer below"),
        ("a <= p", "nan"),
        ("a + inf <= 1", "what is added"),
    ],
)
def test_what_is_no_constraint_is_refused(text, message):
    with pytest.raises(ModelError, match=message):
        as_constraint_of(Formula(text), [A, B], {"p": np.nan})


def test_a_constraint_on_something_else_is_refused():
    with pytest.raises(ModelError, match="uses b, which is not one of the statistics"):
        as_text(B >= 1, {A: "a"})


@pytest.mark.parametrize("quote", ["'", '"', "`"])
def test_names_in_quotes_can_be_anything(quote):
    formula = Formula(f"{quote}B-NP{quote} - {quote}max{quote} * {quote}inf{quote} >= 2")
    assert formula.names == ("B-NP", "max", "inf")
    assert formula({"B-NP": [8, 7], "max": 2, "inf": 3}).tolist() == [True, False]


@given(st.text(min_size=1, max_size=12), st.text(min_size=1, max_size=12))
def test_any_name_that_can_be_written_is_read_again(first, second):
    try:
        names = {A: first, B: second}
        text = as_text(2 * A - B >= 1, names)
    except ModelError as error:
        assert "is not a valid name in a formula, even with quotes" in str(error)
        assert not first.isprintable() or not second.isprintable() or {*"'\"`"} <= {*first, *second}
        return
    assert Formula(text).names == (first, second) or first == second
    assert Formula(text).kind == "truth"


@pytest.mark.parametrize("name", ["", "a\nb", "\x1b[1m", "\"'`"])
def test_names_that_no_quotes_help_are_refused(name):
    with pytest.raises(
        ModelError, match=r"the statistic .* is not a valid name in a formula, even with quotes"
    ):
        name_in_formula(name, "the statistic")


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text):
    try:
        formula = Formula(text)
    except ModelError:
        return
    formula(dict.fromkeys(formula.names, 1.0))


@given(st.text(alphabet="ab01.e+-*/()<>=!&|'`, andortwhlgmixsp", max_size=40))
def test_almost_formulas_are_read_or_refused(text):
    try:
        formula = Formula(text)
    except ModelError:
        return
    formula(dict.fromkeys(formula.names, 1.0))


def test_values():
    formula = Formula("a + b")
    assert pickle.loads(pickle.dumps(formula)) == formula
    assert hash(Formula("a+b")) == hash(formula)
    assert repr(formula) == "Formula('a + b')"
    assert [is_name(x) for x in ("a_1", "score", "1a", "and", "min", "a b", "", " a", "inf")] == [
        True,
        True,
        *[False] * 7,
    ]
