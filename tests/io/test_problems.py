"""Problem files: what they mean, what they refuse, and that they follow their schema."""

import copy
import json
import pickle
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.io import Parameter, ProblemFile, problem_schema, read_problem, write_problem
from tallytree.io.files import Source
from tallytree.testing import brute_force

jsonschema = pytest.importorskip("jsonschema")
VALIDATOR = jsonschema.Draft202012Validator(problem_schema())

WEEK = {
    "tallytree": 1,
    "title": "a week",
    "model": {
        "chain": {
            "unary": [[0, 1.5], [0, -2.5], [0, 3], [0, -1.25], [0, 0.5], [0, -0.75], [0, 2]],
            "pairwise": [[1, 0], [0, 1]],
        },
        "states": ["dry", "wet"],
        "variables": ["mo", "tu", "we", "th", "fr", "sa", "su"],
    },
    "statistics": [
        {"name": "wet", "count": {"state": "wet"}},
        {"name": "weekend", "count": {"state": ["wet"], "variables": ["sa", 6]}, "cap": 1},
        {"name": "tp", "matches": {"labelling": ["wet", "wet", 1, 1, 0, 0, 0], "background": "dry"}},
        {"name": "fp", "mismatches": {"labelling": [1, 1, 1, 1, 0, 0, 0], "background": 0}},
        {
            "name": "changes",
            "tables": [{"scopes": [[i, i + 1] for i in range(6)], "table": [[0, 1], [1, 0]]}],
        },
    ],
    "parameters": {"most": 5, "weight": {"value": 2, "low": 0, "high": 9}},
    "objective": "score + weight * (1 - 2*tp/(4 + tp + fp))",
    "where": "1 <= wet <= most and (changes <= 3 or not weekend == 0)",
    "fixed": {"th": "dry"},
    "allowed": {"0": ["dry", "wet"], "we": [1]},
}


def read(document: object) -> ProblemFile:
    return read_problem(Source("file", json.dumps(document).encode()))


def changed(**parts: object) -> dict:
    document = copy.deepcopy(WEEK)
    document.update(parts)
    return {key: part for key, part in document.items() if part is not None}


def test_a_file_means_what_it_says():
    problem = read(WEEK)
    model = tt.Model.chain(
        WEEK["model"]["chain"]["unary"], [[1, 0], [0, 1]], states=["dry", "wet"]
    ).restricted({3: "dry"}, {2: [1]})
    truth = [1, 1, 1, 1, 0, 0, 0]
    wet = tt.count(model, state=1, name="wet")
    weekend = tt.count(model, state=1, variables=[5, 6], name="weekend", cap=1)
    tp = tt.matches(model, truth, background=0, name="tp")
    fp = tt.mismatches(model, truth, background=0, name="fp")
    changes = tt.Statistic([((i, i + 1), [[0, 1], [1, 0]]) for i in range(6)], name="changes")
    where = (wet >= 1) & (wet <= 5) & ((changes <= 3) | ~(weekend == 0))
    assert problem.statistics == (wet, weekend, tp, fp, changes)
    assert problem.model.variables == ("mo", "tu", "we", "th", "fr", "sa", "su")
    best = brute_force(model, [tp, fp]).best(
        lambda score, tp, fp: score + 2 * (1 - 2 * tp / (4 + tp + fp)), where
    )
    found = problem.solve()
    assert found.value == pytest.approx(best.value)
    assert found.tally._fields == ("wet", "weekend", "tp", "fp", "changes")
    assert found.tally == tuple(s.tally(found.assignment) for s in problem.statistics)
    assert found.certificate.optimal
    ranked = problem.k_best(3)
    assert ranked[0].value == found.value
    assert ranked[0].tally._fields == found.tally._fields
    assert len(problem.profile().names) == 5
    assert problem.plan().names == ("tp", "fp", *problem.plan().names[2:])


def test_parameters_can_be_changed():
    problem = read(WEEK).with_parameters(weight=0, most=1)
    assert problem.parameters["weight"] == Parameter(0.0, 0.0, 9.0)
    assert problem.solve().tally.wet == 1
    with pytest.raises(tt.ModelError, match="unknown parameter 'high'; the parameters are most, weight"):
        problem.with_parameters(high=1)


def test_shapes():
    tree = read(
        {
            "tallytree": 1,
            "model": {
                "tree": {"parents": [-1, 0, 0], "unary": [[0, 1]] * 3, "pairwise": [[1, "-inf"], [0, 5]]}
            },
        }
    )
    assert tree.model.score([1, 1, 0]) == 2 + 5 + 0
    assert tree.model.score([0, 1, 0]) == -np.inf
    grid = {
        "grid": {"unary": [[[0, 1], [0, 2]]], "vertical": [[0, 0], [0, 0]], "horizontal": [[3, 0], [0, 3]]}
    }
    statistic = {"name": "same", "matches": {"labelling": [[0, 1]]}}
    problem = read({"tallytree": 1, "model": grid, "statistics": [statistic]})
    assert problem.model.shape == (1, 2)
    assert problem.solve().labels.tolist() == [[1, 1]]
    assert problem.solve().tally.same == 1


def test_general_models():
    model = {
        "cardinalities": [2, 3, 2],
        "variables": ["a", "b", "c"],
        "states": [["x", "y"], ["p", "q", "r"], ["x", "y"]],
        "factors": [
            {"scope": ["b", 0], "table": [[0, 1], [2, 3], [4, "-inf"]]},
            {"scopes": [["a"], ["c"]], "table": [0, 10]},
            {"scopes": [["a"], [2]], "tables": [[0, 100], [0, 1000]]},
            {"scope": [], "table": 0.5},
            {"scopes": [], "tables": []},
        ],
    }
    problem = read({"tallytree": 1, "model": model})
    assert problem.model.score(["y", "q", "y"]) == 3 + 20 + 1100 + 0.5
    assert problem.model.score([1, 2, 1]) == -np.inf


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(drawn=problems(largest=5), data=st.data())
def test_a_written_problem_reads_back(drawn, data, tmp_path: Path):
    model, statistics = drawn
    named = [s.named(f"s{i}") for i, s in enumerate(statistics)]
    where = None
    if named:
        where = (sum(named) <= data.draw(st.integers(-3, 8))) | ~(named[0] != data.draw(st.integers(-2, 3)))
    objective = " - ".join(["2*score", *(f"k*{s.name}" for s in named)])
    problem = ProblemFile(model, named, objective, where=where, parameters={"k": Parameter(0.25, 0, 1)})
    write_problem(problem, tmp_path / "problem.json")
    document = json.loads((tmp_path / "problem.json").read_text())
    VALIDATOR.validate(document)
    back = read_problem(tmp_path / "problem.json")
    assert back.statistics == problem.statistics
    assert back.names == problem.names
    assert back.parameters == problem.parameters
    assert (back.model.states, back.model.shape) == (model.states, model.shape)
    enumerated = brute_force(model, named)
    try:
        best = enumerated.best(lambda score, *tallies: 2 * score - sum(0.25 * t for t in tallies), where)
    except tt.InfeasibleError:
        with pytest.raises(tt.InfeasibleError):
            back.solve()
        assert back.k_best(2) == []
        return
    found = back.solve()
    assert found.value == pytest.approx(best.value, abs=1e-9)
    assert found.score == pytest.approx(back.model.score(found.assignment), abs=1e-9)
    assert len(back.profile()) == len(enumerated.profile()[1])


STRUCTURED = {
    "all": [
        {"terms": {"wet": 1}, "relation": ">=", "bound": 1},
        {"terms": {"wet": 1, "changes": -2}, "relation": "<=", "bound": "most"},
        {"any": [{"not": "weekend == 0"}, {"not": {"terms": {"changes": 1}, "relation": ">", "bound": 3.5}}]},
    ]
}


def test_structured_constraints_say_the_same():
    text = "wet >= 1 and wet - 2*changes <= most and (not weekend == 0 or not changes > 3.5)"
    a, b = read(changed(where=STRUCTURED)), read(changed(where=text))
    columns = dict(zip(a.statistics, a.profile().tallies.T, strict=True))
    assert a.constraint.holds(columns).tolist() == b.constraint.holds(columns).tolist()
    assert 0 < a.constraint.holds(columns).sum() < len(a.profile())
    VALIDATOR.validate(changed(where=STRUCTURED))


def test_the_examples_follow_the_schema():
    jsonschema.Draft202012Validator.check_schema(problem_schema())
    VALIDATOR.validate(WEEK)
    for wrong in (changed(model=None), changed(tallytree=2), changed(extra=1), changed(objective=3)):
        assert not VALIDATOR.is_valid(wrong)


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ({"tallytree": 2}, "file: tallytree: expected the version of the format, 1 to 1, got 2"),
        ({"model": None}, "file: the document: the key 'model' is missing"),
        ({"modle": {}}, "file: the document: unknown key 'modle'; did you mean 'model'?"),
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
            "file: model.factors[0].scope[0]: expected the name or number of a variable, 0 to 0, got 1",
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
        ({"model": {"cardinalities": [2], "states": ["a"]}}, "file: model: states has 1 names, but each"),
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
        ({"objective": "score + x"}, "file: the document: objective reads 'x', which is neither a statistic"),
        ({"objective": "wet > 1"}, "file: the document: objective must be a number, such as score - ones"),
        ({"objective": "score +"}, 'file: the document: objective: "score +", character 8: expected'),
        ({"where": "wet"}, "file: the document: where must be a condition, such as ones >= 2; got 'wet'"),
        ({"where": "score > 1"}, "file: the document: where reads the score, but a constraint is on"),
        ({"where": "wet * tp <= 1"}, "file: the document: where: (wet) * (tp) is not linear"),
        ({"where": {"all": []}}, "file: where.all: expected at least one constraint, got a list of 0"),
        (
            {"where": {"terms": {"wet": 1}, "relation": "=<", "bound": 1}},
            "file: where.relation: expected one of <, <=, >, >=, == and !=, got '=<'",
        ),
        (
            {"parameters": {"wet": 1}, "objective": None, "where": None},
            "the parameter 'wet' is also the name of",
        ),
        (
            {"parameters": {"a b": 1}, "objective": None, "where": None},
            "the parameter 'a b' is not a valid name",
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
        (b"", "file, line 1, column 1: Expecting value"),
        (b"{", "file, line 1, column 2: Expecting property name"),
        (b"\xff", "file is not UTF-8 text"),
        (b'{"tallytree": 1, "tallytree": 1}', "file: the key 'tallytree' occurs twice in one object"),
        (b'{"tallytree": NaN}', 'file: NaN is not valid JSON; write "-inf", in quotes, for minus infinity'),
        (b'{"tallytree": -Infinity}', "file: -Infinity is not valid JSON"),
        (b"[" * 100_000, "file is nested more than 64 levels deep"),
        (b'{"a": ' * 100_000, "file is nested more than 64 levels deep"),
        (b'{"tallytree": ' + b"9" * 10_000 + b"}", "file: Exceeds the limit"),
        (b"[]", "file: the document: expected an object, got a list of 0"),
        (b"null", "file: the document: expected an object, got null"),
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
    with pytest.raises(tt.ModelError, match="the statistic 'B-NP' is not a valid name in a formula"):
        ProblemFile(model, [tt.count(state=1, name="B-NP")])
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
