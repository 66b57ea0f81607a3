"""Files that once broke a reader, or were designed to: found by fuzzing and by review."""

import json
import tracemalloc

import pytest

import tallytree as tt
from tallytree.io import ProblemFile, Source, read_cfn, read_problem, read_uai, read_wcsp

BIG = 1.7e308


def problem(**parts: object) -> bytes:
    return json.dumps({"tallytree": 1, **parts}).encode()


CASES = {
    # a cost that is a word was added to numbers
    "cost is a word": (
        read_cfn,
        b"{{p <9} {x 2} {k {scope [x] type wgcc params {metric quad cost 1iii bounds [[0 1 1]]}}}}",
        "a cost must be a non-negative number, got '1iii'",
    ),
    # sums of such scores are infinite, which said that all labellings are forbidden
    "scores that add up to infinity": (
        read_problem,
        problem(model={"cardinalities": [2], "factors": [{"scopes": [[0]] * 3, "table": [-BIG, -BIG]}]}),
        "divide all scores by a constant",
    ),
    "a negative price": (
        read_cfn,
        b"{{p <9} {x 2} {k {scope [x] type wamong params {metric lin cost -1 values [0] min 0 max 0}}}}",
        "a cost must be a non-negative number, got -1",
    ),
    "variables of a tree in a circle": (
        read_problem,
        problem(model={"tree": {"parents": [1, 0], "unary": [[0], [0]], "pairwise": [[0]]}}),
        "parents contain a cycle",
    ),
    "a labelling of dictionaries": (
        read_problem,
        problem(
            model={"cardinalities": [2]}, statistics=[{"name": "a", "matches": {"labelling": [{"x": 1}]}}]
        ),
        "expected a state",
    ),
    "surrogates in a name": (
        read_problem,
        b'{"tallytree": 1, "model": {"cardinalities": [2], "variables": ["\\ud800"]}}',
        "model.variables[0]: '\\ud800' has an unpaired surrogate",
    ),
    "a shared function that is not there yet": (
        read_wcsp,
        b"p 1 2 2 5 2 1 0 0 -2 -1 0 0 1 1 1",
        "the number of a shared function of the same shape",
    ),
    "an upper bound of no digits": (read_wcsp, b"p 1 2 0 - 2", "the upper bound"),
    "weights as lists": (
        read_cfn,
        b"{{p <9} {x 2} {k {scope [x] type knapsack params {capacity 1 weights [[1]]}}}}",
        "are malformed",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_found_cases(name):
    read, data, message = CASES[name]
    with pytest.raises(tt.ModelError) as error:
        read(Source("file", data))
    assert message in str(error.value)


@pytest.mark.parametrize(
    "data",
    [
        problem(model={"cardinalities": []}),
        problem(model={"cardinalities": [1000000] * 3}, where="1 <= 2"),
        problem(
            model={"cardinalities": [2, 2]},
            statistics=[
                {"name": "a", "tables": [{"scopes": [[0]] * 50, "table": [0, 2**40 - 1]}], "cap": -(2**61)},
                {"name": "b", "tables": [{"scopes": [[1]] * 50, "table": [1 - 2**40, 2**40 - 1]}]},
            ],
            where="1000000*b >= 5 or a + b == 3",
        ),
        problem(
            model={"cardinalities": [2] * 60},
            statistics=[
                {"name": f"s{i}", "tables": [{"scopes": [[j] for j in range(60)], "table": [0, i + 1]}]}
                for i in range(8)
            ],
        ),
    ],
)
def test_odd_files_that_have_an_answer(data):
    found = read_problem(Source("file", data))
    assert found.solve().score == 0.0


@pytest.mark.parametrize(
    "data",
    [
        problem(model={"cardinalities": [2147483647]}),
        problem(
            model={"cardinalities": [30] * 31, "factors": [{"scope": list(range(31)), "table": []}]},
        ),
        b'{"tallytree": 1, "model": {"cardinalities": [' + b"2," * 400 + b'2], "factors": ['
        + b",".join(
            b'{"scope": [%d, %d], "table": [[0, 1], [1, 0]]}' % (a, b) for a in range(40) for b in range(a)
        )
        + b"]}}",
    ],
)  # fmt: skip
def test_the_budget_speaks_before_the_memory(data):
    with pytest.raises(tt.BudgetError):
        read_problem(Source("file", data)).solve(memory_limit=1e9)


DIGITS = {
    "json": (read_problem, b'{"tallytree": 1, "model": {"cardinalities": [' + b"2," * 10_000 + b"2]}}", 64),
    "scopes": (
        read_problem,
        b'{"tallytree": 1, "model": {"cardinalities": [2], "factors": [{"table": [0, 1], "scopes": ['
        + b"[0]," * 10_000
        + b"[0]]}]}}",
        64,
    ),
    "uai": (read_uai, b"MARKOV 1 2 4000 " + b"1 0 " * 4_000 + b"2 1 1 " * 4_000, 64),
    "wcsp": (read_wcsp, b"p 1 2 4000 9 2 " + b"1 0 0 0 " * 4_000, 128),
    "cfn": (read_cfn, b"{{p <9} [" + b"2 " * 10_000 + b"] {}}", 200),
}


@pytest.mark.parametrize("name", DIGITS)
def test_a_parser_takes_no_more_memory_than_its_limit_on_length_supposes(name):
    read, data, expansion = DIGITS[name]
    tracemalloc.start()
    try:
        read(Source("file", data))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < expansion * len(data)


def test_a_file_that_is_too_long_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tallytree.io.files.default_memory_limit", lambda: 64e3)
    (tmp_path / "long.json").write_bytes(b" " * 1001)
    with pytest.raises(tt.BudgetError, match="has more than 1000 bytes; reading it could take 64 times"):
        read_problem(tmp_path / "long.json")


def test_an_uai_file_goes_through_a_problem():
    model = read_uai(Source("file", b"MARKOV 1 2 1 1 0 2 1 0"))
    assert ProblemFile(model).solve().assignment.tolist() == [0]
