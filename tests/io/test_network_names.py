"""Names of variables, states and counts in .cfn files."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from networks import cfn

import tallytree as tt
from tallytree.io import ProblemFile, read_cfn, write_cfn


def test_names_survive_where_they_can(tmp_path: Path):
    model = tt.Model([2, 2], [((0, 1), [[0, 1], [2, 0]])], variables=["mo", "tu"], states=["dry", "wet"])
    write_cfn(ProblemFile(model), tmp_path / "a.cfn")
    assert read_cfn(tmp_path / "a.cfn").model.variables == ("mo", "tu")
    assert read_cfn(tmp_path / "a.cfn").model.states == ("dry", "wet")
    odd = tt.Model([2, 2], [((0, 1), [[0, 1], [2, 0]])], variables=["1 a", "b:c"], states=["{", "wet"])
    write_cfn(ProblemFile(odd), tmp_path / "b.cfn")
    assert read_cfn(tmp_path / "b.cfn").model.variables == ("x0", "x1")
    assert read_cfn(tmp_path / "b.cfn").model.states == ("v0", "v1")


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ("ones <= 1", ["ones"]),
        ("ones == 1", ["ones"]),
        ("'B-NP' >= 1 and ones >= 1 and ones <= 2", ["B-NP", "ones"]),
        ("f0 <= 1 and c1 <= 7 and a - ones >= 0", ["f0", "c1", "c2"]),
        ("ones >= 1 and ones <= 2 and ones_2 <= 5", ["ones", "ones_2"]),
        ("'a: b' <= 4 and ones <= 1", ["c0", "ones"]),
        ("debts >= -2", ["c0"]),  # a reader would negate the weights
        ("shifted <= 4", ["c0"]),  # and does not restore constants
    ],
)
def test_counts_keep_their_names(where, expected, tmp_path: Path):
    model = tt.Model.chain([[0, 1.5], [0, 2], [0, -1], [0, 3]], [[0, 1], [1, 0]])
    weights = {"ones": [0, 1], "ones_2": [0, 2], "B-NP": [1, 0], "f0": [0, 1], "c1": [1, 2], "a": [3, 1]}
    weights |= {"a: b": [1, 1], "debts": [0, -1]}
    statistics = [tt.node_statistic([entries] * 4, name=name) for name, entries in weights.items()]
    shifted = tt.Statistic([((0,), [0, 1]), ((), 3)], name="shifted")
    problem = ProblemFile(model, [*statistics, shifted], where=where)
    write_cfn(problem, tmp_path / "p.cfn")
    again = read_cfn(tmp_path / "p.cfn")
    assert [s.name for s in again.statistics] == expected
    for statistic in problem.statistics:
        if statistic.name in expected:
            (same,) = (s for s in again.statistics if s.name == statistic.name)
            for labelling in product(range(2), repeat=4):
                assert same.tally(labelling) == statistic.tally(labelling)
    assert again.solve().assignment.tolist() == problem.solve().assignment.tolist()
    write_cfn(again, tmp_path / "q.cfn")
    assert [s.name for s in read_cfn(tmp_path / "q.cfn").statistics] == expected


def test_only_limits_of_the_same_count_are_joined():
    text = "{{p <9} [2 2] {a: {scope [0 1] type knapsack params {capacity 1 weights [1 1]}}"
    text += " a_2: {scope [0 1] type knapsack params {capacity %s}}}}"
    assert [s.name for s in cfn(text % "-1 weights [-1 -1]").statistics] == ["a"]
    assert [s.name for s in cfn(text % "-1 weights [-1 -2]").statistics] == ["a", "a_2"]
    assert cfn(text % "-1 weights [-1 -1]").solve().tally == (1,)
