"""Writing problem files, and their JSON Schema."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from functools import lru_cache
from importlib import resources
from typing import Any

from tallytree.io.files import PathLike, write_atomically
from tallytree.io.problem_parts import Parameter
from tallytree.io.problem_reading import VERSION
from tallytree.io.problems import ProblemFile
from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.statistics.statistic import Statistic

_WIDTH = 100


def write_problem(problem: ProblemFile, path: PathLike) -> None:
    """Write a problem file; the file appears only once it is complete.

    Scores are written with enough digits to read the same doubles back. Statistics are written
    as tables.

    Parameters
    ----------
    problem : ProblemFile
        The problem.
    path : path
        The file to write. An existing file is replaced.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> import numpy as np
    >>> from tallytree import count
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "one.json"
    >>> model = Model([2], [((0,), [0.5, -np.inf])])
    >>> write_problem(ProblemFile(model, [count(state=1, name="ones")], "score - ones"), file)
    >>> print(file.read_text().strip())
    {
      "tallytree": 1,
      "model": {"cardinalities": [2], "factors": [{"scopes": [[0]], "table": [0.5, "-inf"]}]},
      "statistics": [{"name": "ones", "tables": [{"scopes": [[0]], "table": [0, 1]}]}],
      "objective": "score - ones"
    }
    """
    write_atomically(path, _pretty(_document(problem)))


def _document(problem: ProblemFile) -> dict[str, Any]:
    document: dict[str, Any] = {"tallytree": VERSION, "model": _model_json(problem.model)}
    if problem.statistics:
        document["statistics"] = [_statistic_json(s) for s in problem.statistics]
    if problem.parameters:
        document["parameters"] = {name: _parameter_json(p) for name, p in problem.parameters.items()}
    if problem.objective is not None:
        document["objective"] = problem.objective.text
    if problem.where is not None:
        document["where"] = problem.where.text
    return document


def _model_json(model: Model) -> dict[str, Any]:
    parts: dict[str, Any] = {"cardinalities": model.cardinalities.tolist()}
    if len(model.shape) == 2:
        parts["shape"] = list(model.shape)
    if model.variables is not None:
        parts["variables"] = list(model.variables)
    if model.states is not None:
        parts["states"] = list(model.states)
    parts["factors"] = [_block_json(block) for block in model.blocks]
    return parts


def _statistic_json(statistic: Statistic) -> dict[str, Any]:
    tables = [_block_json(block) for block in statistic.blocks]
    cap = {} if statistic.cap is None else {"cap": statistic.cap}
    return {"name": statistic.name, "tables": tables, **cap}


def _block_json(block: Block) -> dict[str, Any]:
    tables = _without_infinity(block.tables.tolist())
    shared = {"table": tables[0]} if len(tables) == 1 else {"tables": tables}
    return {"scopes": block.scopes.tolist(), **shared}


def _without_infinity(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_infinity(item) for item in value]
    return "-inf" if value == -math.inf else value


def _parameter_json(parameter: Parameter) -> Any:
    ends = {"low": parameter.low, "high": parameter.high}
    known = {key: end for key, end in ends.items() if end is not None}
    return {"value": parameter.value, **known} if known else parameter.value


def _pretty(value: Any, before: str = "", after: str = "", indent: str = "") -> Iterator[str]:
    """Yield lines of at most about a hundred characters; what fits on one line is on one line."""
    line = f"{indent}{before}{json.dumps(value, allow_nan=False, ensure_ascii=False)}{after}"
    if not isinstance(value, (dict, list)) or not value or (indent and len(line) <= _WIDTH):
        yield line
        return
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    if isinstance(value, dict):
        named = [(f"{json.dumps(key, ensure_ascii=False)}: ", one) for key, one in value.items()]
    else:
        named = [("", one) for one in value]
    yield f"{indent}{before}{opening}"
    for number, (key, one) in enumerate(named, start=1):
        yield from _pretty(one, key, "," if number < len(named) else "", indent + "  ")
    yield f"{indent}{closing}{after}"


@lru_cache(maxsize=1)
def _schema_text() -> str:
    return resources.files("tallytree.io").joinpath("problem.schema.json").read_text("utf-8")


def problem_schema() -> dict[str, Any]:
    """Return the JSON Schema of problem files.

    Examples
    --------
    >>> problem_schema()["title"]
    'tallytree problem'
    """
    schema: dict[str, Any] = json.loads(_schema_text())
    return schema
