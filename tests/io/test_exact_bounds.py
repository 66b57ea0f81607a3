"""Bounds in problem files are exact beyond 2**53, where doubles no longer represent every integer."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.errors import ModelError
from tallytree.io import ProblemFile, read_problem, write_problem
from tallytree.io.files import Source
from tallytree.statistics.formula_constraints import as_constraint_of, as_text
from tallytree.statistics.formulas import Formula
from tallytree.statistics.statistic import Statistic

BIG = 2**40 - 1
A = Statistic([((v,), [0, BIG]) for v in range(3)], name="a")
NUMBERS = st.one_of(
    st.integers(0, 9),
    st.integers(2**52, 2**54),
    st.integers(0, 2**80),
    st.sampled_from([2**53, 10**16, 2**63]),
)
SUMS = st.recursive(
    NUMBERS.map(str),
    lambda part: st.one_of(
        st.tuples(part, st.sampled_from(["+", "-", "*"]), part).map("({0[0]} {0[1]} {0[2]})".format),
        st.tuples(part, part).map("max({0[0]}, {0[1]})".format),
        part.map("(-{})".format),
    ),
    max_leaves=5,
)


@given(SUMS, st.sampled_from(["<", "<=", ">", ">=", "==", "!="]))
def test_whole_numbers_are_exact(text: str, relation: str) -> None:
    bound = eval(text)
    found = as_constraint_of(Formula(f"a {relation} {text}"), [A], {})
    for tally in (0, bound - 1, bound, bound + 1):
        assert bool(found.holds({A: np.array(tally, dtype=object)})) == eval(f"{tally} {relation} ({bound})")
    assert as_constraint_of(Formula(as_text(found, {A: "a"})), [A], {}) == found


def test_tallies_beyond_the_doubles_are_told_apart() -> None:
    model = tt.Model([2] * 3, [((v,), [0.0, 1.0]) for v in range(3)])
    large = 10**6
    for where, best in (
        (f"{large}*a >= {large * 2 * BIG}", 3.0),
        (f"{large}*a >= 10**16", 3.0),
        (f"{large}*a <= {large * 2 * BIG}", 2.0),
        (f"{large}*a < {large * 2 * BIG} + 1", 2.0),
        (f"{large}*a == {large * BIG}", 1.0),
        (f"not {large}*a > low", 1.0),
    ):
        problem = ProblemFile(model, [A], where=where, parameters={"low": large * BIG})
        assert problem.solve().score == best
    with pytest.raises(tt.InfeasibleError):
        ProblemFile(model, [A], where=f"{large}*a >= {large * 3 * BIG + 1}").solve()


def test_files_keep_large_numbers(tmp_path) -> None:
    model = tt.Model([2] * 3, [((v,), [0.0, 1.0]) for v in range(3)])
    bound = 2**53 + 1
    where = {"terms": {"a": 1}, "relation": "<=", "bound": bound}
    document = {
        "tallytree": 1,
        "model": {"cardinalities": [2], "factors": []},
        "statistics": [{"name": "a", "tables": [{"scope": [0], "table": [0, 1]}]}],
        "parameters": {"most": bound},
    }
    for written in (where, f"a <= {bound}", "a <= most", {**where, "bound": "most"}):
        problem = read_problem(Source("file", json.dumps({**document, "where": written}).encode()))
        assert str(problem.constraint) == f"a <= {bound}"
    for constraint in (A - 1 <= 2**60, 3 * A >= 2**63 + 1, A != -(2**70)):
        write_problem(ProblemFile(model, [A], where=constraint), tmp_path / "p.json")
        assert read_problem(tmp_path / "p.json").constraint == constraint


@pytest.mark.parametrize("cap", [2**62 - 1, 1 - 2**62, 2**61 + 1, 2**53 + 1, 0])
def test_every_cap_that_is_written_is_read(cap: int, tmp_path) -> None:
    model = tt.Model([2] * 3, [((v,), [0.0, 1.0]) for v in range(3)])
    write_problem(ProblemFile(model, [A.capped(cap)]), tmp_path / "p.json")
    (read,) = read_problem(tmp_path / "p.json").statistics
    assert read.cap == cap and read == A.capped(cap)


def test_powers_are_those_of_ieee_754() -> None:
    """For a single exponent of 0.5 a square root would be taken: nan at -inf."""
    for text in ("s**0.5", "s**p"):
        found = Formula(text)({"s": [-np.inf, -0.0, 4.0], "p": [0.5] * 3})
        assert found.tolist() == [np.inf, 0.0, 2.0]
        assert not np.signbit(found).any()
    assert Formula("(-inf)**0.5")({}) == np.inf
    assert np.isnan(Formula("(-4)**0.5")({}))


def test_what_is_not_whole_is_refused() -> None:
    for text in ("a + 0.5 >= 0", "a + inf >= 0", "0.5*a >= 0", "2**40*a >= 0"):
        with pytest.raises(ModelError, match="must be an integer"):
            as_constraint_of(Formula(text), [A], {})
