"""Problem files: their meaning, their errors, and their schema."""

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from problem_files import STRUCTURED, VALIDATOR, WEEK, changed, jsonschema, read
from strategies import problems

import tallytree as tt
from tallytree.io import Parameter, ProblemFile, problem_schema, read_problem, write_problem
from tallytree.testing import brute_force


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


def test_names_that_are_quoted_in_formulas(tmp_path):
    content = {
        "tallytree": 1,
        "model": {"chain": {"unary": [[0, 1], [0, 2], [0, 4]], "pairwise": [[0, 0], [0, 0]]}},
        "statistics": [{"name": "B-NP", "count": {"state": 1}}],
        "parameters": {"at most": 1},
        "objective": 'score - 0 * "B-NP"',
        "where": {"terms": {"B-NP": 1}, "relation": "<=", "bound": "at most"},
    }
    problem = read(content)
    assert problem.solve().score == 4
    write_problem(problem, tmp_path / "again.json")
    assert read_problem(tmp_path / "again.json").with_parameters(**{"at most": 2}).solve().score == 6
    same = ProblemFile(problem.model, problem.statistics, where=problem.statistics[0] <= 1)
    assert same.where.text == "'B-NP' <= 1"
    VALIDATOR.validate(content)


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
