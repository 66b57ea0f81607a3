"""Helpers for tests of problem files."""

import copy
import json

import pytest

from tallytree.io import ProblemFile, problem_schema, read_problem
from tallytree.io.files import Source

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


STRUCTURED = {
    "all": [
        {"terms": {"wet": 1}, "relation": ">=", "bound": 1},
        {"terms": {"wet": 1, "changes": -2}, "relation": "<=", "bound": "most"},
        {"any": [{"not": "weekend == 0"}, {"not": {"terms": {"changes": 1}, "relation": ">", "bound": 3.5}}]},
    ]
}
