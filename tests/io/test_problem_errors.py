"""Malformed problem files."""

import copy
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from problem_files import STRUCTURED, VALIDATOR, WEEK, changed, read

import tallytree as tt
from tallytree.io import ProblemFile, read_problem, write_problem
from tallytree.io.files import Source


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"tallytree": 2}, "file: tallytree: expected the version of the format, 1, got 2"),
        ({"model": None}, "file: the key 'model' is missing"),
        ({"modle": {}}, "file: unknown key 'modle'; did you mean 'model'?"),
        ({"model": 3}, "file: model: expected an object, got 3"),
        ({"model": {}}, "file: model: expected one of the keys cardinalities, chain, tree, grid, got none"),
        (
            {"model": {"chain": {"unary": [[0, 1], [0]], "pairwise": [[0, 0], [0, 0]]}}},
            "file: model.chain.unary[1]: expected a list of 2, got a list of 1",
        ),
        (
            {"model": {"chain": {"unary": [[0, 1], [0, "inf"]], "pairwise": [[0, 0], [0, 0]]}}},
            "file: model.chain.unary[1][1]: expected a finite number, or \"-inf\" to forbid, got 'inf'",
        ),
        (
            {"model": {"chain": {"unary": [[0, 1]], "pairwise": [[0, 0]]}}},
            "file: model.chain: pairwise must have shape (2, 2)",
        ),
        ({"model": {"chain": {"unary": [], "pairwise": []}}}, "file: model.chain: unary must have shape"),
        ({"model": {"cardinalities": [2, 0]}}, "file: model.cardinalities[1]: expected a number of states"),
        ({"model": {"cardinalities": [True]}}, "file: model.cardinalities[0]: expected a number of states"),
        (
            {"model": {"cardinalities": [2], "factors": [{"scope": [1], "table": [0, 0]}]}},
            "file: model.factors[0].scope[0]: expected the name or number of a variable, 0, got 1",
        ),
        (
            {"model": {"cardinalities": [2], "factors": [{"scope": ["x"], "table": [0, 0]}]}},
            "file: model.factors[0].scope[0]: expected the name or number of a variable, got 'x'",
        ),
        (
            {"model": {"cardinalities": [2], "factors": [{"scope": [0, 0], "table": [[0, 0], [0, 0]]}]}},
            "file: model.factors[0].scope: expected at most 31 variables, all different",
        ),
        (
            {"model": {"cardinalities": [2], "factors": [{"scope": [0], "table": [0, 1, 2]}]}},
            "file: model.factors[0].table: expected a list of 2, got a list of 3",
        ),
        (
            {"model": {"cardinalities": [2, 3], "factors": [{"scopes": [[0], [1]], "table": [0, 1]}]}},
            "file: model.factors[0]: the scopes of one item must have variables with the same numbers of",
        ),
        (
            {"model": {"cardinalities": [2], "factors": [{"scope": [0], "table": [0, 10**400]}]}},
            "file: model.factors[0].table[1]: expected a finite number",
        ),
        ({"model": {"cardinalities": [2, 2], "shape": [3, 1]}}, "file: model: shape (3, 1) has 3 entries"),
        ({"model": {"cardinalities": [2], "states": ["a"]}}, "file: model: states has 1 name, but each"),
        ({"statistics": [{"name": "n"}]}, "file: statistics[0]: expected one of the keys count, matches"),
        ({"statistics": [{"name": "", "count": {"state": 1}}]}, "file: statistics[0]: the name of a"),
        (
            {"statistics": [{"name": "n", "count": {"state": "foggy"}}]},
            "file: statistics[0].count: no variable of this model has the state 'foggy'; the states are",
        ),
        ({"statistics": [{"name": "n", "count": {}}]}, "file: statistics[0].count: the key 'state'"),
        (
            {"statistics": [{"name": "n", "matches": {"labelling": [1]}}]},
            "file: statistics[0].matches: a labelling of this model has shape (7,), got shape (1,)",
        ),
        (
            {"statistics": [{"name": "n", "tables": [{"scope": [0], "table": [0, 0.5]}]}]},
            "file: statistics[0].tables[0].table[1]: expected an integer below 2**40 in magnitude, got 0.5",
        ),
        ({"objective": "score + x"}, "file: objective uses 'x', which is neither a statistic"),
        ({"objective": "wet > 1"}, "file: objective must be a number, such as score - ones"),
        ({"objective": "score +"}, 'file: objective: "score +", character 8: expected'),
        ({"where": "wet"}, "file: where must be a condition, such as ones >= 2; got 'wet'"),
        ({"where": "score > 1"}, "file: where uses the score, but a constraint can only use"),
        ({"where": "wet * tp <= 1"}, "file: where: (wet) * (tp) is not linear"),
        ({"where": {"all": []}}, "file: where.all: expected at least one constraint, got a list of 0"),
        (
            {"where": {"terms": {"wet": 1}, "relation": "=<", "bound": 1}},
            "file: where.relation: expected one of <, <=, >, >=, == and !=, got '=<'",
        ),
        (
            {"parameters": {"wet": 1}, "objective": None, "where": None},
            "the parameter 'wet' is also the name of a statistic;",
        ),
        (
            {"parameters": {"a\tb": 1}, "objective": None, "where": None},
            "the parameter 'a\\tb' is not a valid name in a formula, even with quotes",
        ),
        ({"parameters": {"most": {"value": 1, "low": 2, "high": 1}}}, "has an empty range, 2.0 to 1.0"),
        ({"parameters": {"most": "1"}}, "file: parameters.most: expected a finite number, got '1'"),
        ({"fixed": {"xx": 1}}, "file: fixed: this model has no variable 'xx'"),
        ({"fixed": {"mo": 5}}, "file: fixed: fixed['mo'] is 5, which is not a state of variable 0"),
        ({"allowed": {"mo": []}}, "file: fixed: allowed['mo'] is empty"),
    ],
)
def test_what_is_wrong_is_said_with_its_path(parts, message):
    with pytest.raises(tt.ModelError, match=re.escape(message)):
        read(changed(**parts))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "file, line 1, column 1: the file is empty"),
        (b"{", "file, line 1, column 2: Expecting property name"),
        (b"\xff", "file is not UTF-8 text"),
        (b'{"tallytree": 1, "tallytree": 1}', "file: the key 'tallytree' occurs twice in one object"),
        (b'{"tallytree": NaN}', 'file: NaN is not valid JSON; write "-inf", in quotes, for minus infinity'),
        (b'{"tallytree": -Infinity}', "file: -Infinity is not valid JSON"),
        (b"[" * 100_000, "file is nested more than 64 levels deep"),
        (b'{"a": ' * 100_000, "file is nested more than 64 levels deep"),
        (b'{"tallytree": ' + b"9" * 10_000 + b"}", "file: Exceeds the limit"),
        (b"[]", "file: expected an object, got a list of 0"),
        (b"null", "file: expected an object, got null"),
    ],
)
def test_what_is_no_json_is_refused(text, message):
    with pytest.raises(tt.ModelError, match=re.escape(message)):
        read_problem(Source("file", text))


def test_brackets_inside_texts_are_no_nesting():
    assert read(changed(title='[[{{"\\' * 100)).names == read(WEEK).names


def test_a_declaration_makes_no_table():
    huge = {"cardinalities": [2**31 - 1] * 40}
    count = {"name": "n", "count": {"state": 1}}
    with pytest.raises(tt.BudgetError, match="file: model: its tables would have"):
        read({"tallytree": 1, "model": huge, "statistics": [count]})
    with pytest.raises(tt.BudgetError):
        read({"tallytree": 1, "model": huge, "fixed": {"0": 1}})
    with pytest.raises(tt.BudgetError):
        read({"tallytree": 1, "model": {**huge, "factors": [{"scope": [0, 1], "table": []}]}})
    shared = {"cardinalities": [1000], "factors": [{"scopes": [[0]] * 1000, "table": [0] * 1000}]}
    with pytest.raises(tt.BudgetError, match=r"model.factors\[0\]: its tables would have 1000000 entries"):
        read_problem(Source("file", json.dumps({"tallytree": 1, "model": shared}).encode()), memory_limit=1e6)


def test_budgets():
    problem = read(WEEK)
    with pytest.raises(tt.BudgetError, match="operation_limit is 10;"):
        problem.solve(operation_limit=10)
    with pytest.raises(tt.BudgetError, match="operation_limit"):
        problem.k_best(2, operation_limit=10)
    with pytest.raises(tt.BudgetError, match="operation_limit"):
        problem.profile(operation_limit=10)
    with pytest.raises(tt.BudgetError, match="the limit is"):
        problem.solve(memory_limit=100)
    assert problem.solve(operation_limit=None).value == problem.solve().value


def test_a_problem_is_a_value():
    problem = read(WEEK)
    again = pickle.loads(pickle.dumps(problem))
    assert again.solve().value == problem.solve().value
    assert repr(problem) == (
        "ProblemFile(Model(7 variables of 2 states, 13 factors), statistics=(wet, weekend, tp, fp, changes), "
        "objective='score + weight * (1 - 2*tp/(4 + tp + fp))', "
        "where='1 <= wet <= most and (changes <= 3 or not weekend == 0)')"
    )


def test_statistics_need_names_for_formulas():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match=r"the statistic 'B\\n' is not a valid name in a formula"):
        ProblemFile(model, [tt.count(state=1, name="B\n")])
    with pytest.raises(tt.ModelError, match="the statistic 'a' is also the name of another statistic"):
        ProblemFile(model, [tt.count(state=1, name="a"), tt.count(state=0, name="a")])
    with pytest.raises(tt.ModelError, match="the statistic 'score' is also the name of the score"):
        ProblemFile(model, [tt.count(state=1, name="score")])
    with pytest.raises(tt.ModelError, match="the parameter 'p' is nan"):
        ProblemFile(model, parameters={"p": np.nan})
    with pytest.raises(tt.ModelError, match="the parameter 'p' is 'x'"):
        ProblemFile(model, parameters={"p": "x"})


def test_a_decreasing_objective_is_refused():
    with pytest.raises(tt.ObjectiveError, match="decreases in the score"):
        read(changed(objective="-score")).solve()


def test_a_failed_write_leaves_nothing(tmp_path: Path):
    with pytest.raises(FileNotFoundError):
        write_problem(read(WEEK), tmp_path / "no" / "where.json")
    assert list(tmp_path.iterdir()) == []


# --- mutations of a good file: read or refused, and what is read follows the schema -------------------------

ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 8),
    st.sampled_from(
        [2**31, 2**63, 10**30, -1e300, 0.5, "", "wet", "-inf", "a", "score", [], {}, [[]], [0, 0]]
    ),
    st.sampled_from(["wet", "model", "chain", "cardinalities"]).map(lambda key: {key: 1}),
)


def paths(value: object, path: tuple = ()) -> list[tuple]:
    steps = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(p for key, one in steps for p in paths(one, (*path, key)))]


PATHS = [path for path in paths(WEEK) if path]

GENERAL = {
    "tallytree": 1,
    "model": {
        "cardinalities": [2, 3],
        "variables": ["a", "b"],
        "states": [["x", "y"], ["p", "q", "r"]],
        "factors": [
            {"scope": ["b", 0], "table": [[0, 1], [2, 3], [4, "-inf"]]},
            {"scopes": [["a"], [0]], "tables": [[0, 100], [0, 1000]]},
        ],
    },
    "statistics": [{"name": "s", "tables": [{"scope": [0], "table": [0, 1]}], "cap": 1}],
    "where": STRUCTURED["all"][0] | {"terms": {"s": 1}},
}


def mutated(document: dict, data: st.DataObject) -> dict:
    document = copy.deepcopy(document)
    for _ in range(data.draw(st.integers(1, 3))):
        *front, last = data.draw(st.sampled_from([path for path in paths(document) if path]))
        place = document
        for step in front:
            place = place[step]
        if isinstance(place, dict) and data.draw(st.booleans()):
            place[data.draw(st.sampled_from(["cap", "name", "x", "low", "scopes", "any", "not"]))] = (
                place.pop(last)
            )
        else:
            place[last] = data.draw(ODD)
    return document


@settings(deadline=None, max_examples=150)
@given(base=st.sampled_from([WEEK, GENERAL]), data=st.data())
def test_mutations_are_read_or_refused(base, data):
    document = mutated(base, data)
    try:
        problem = read(document)
    except tt.TallytreeError:
        return
    assert VALIDATOR.is_valid(document)
    try:
        problem.solve(memory_limit=1e8, operation_limit=1e7)
    except tt.TallytreeError:
        return


@settings(deadline=None)
@given(noise=st.binary(max_size=60), at=st.integers(0, 300), cut=st.integers(0, 20))
def test_noise_is_read_or_refused(noise, at, cut):
    text = json.dumps(GENERAL).encode()
    try:
        read_problem(Source("file", text[:at] + noise + text[at + cut :]))
    except tt.TallytreeError:
        return
