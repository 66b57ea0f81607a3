"""Round trips through files."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from draws import USUAL, Rng, case, model_of, statistics_of
from oracle import Case, expect
from questions import where

import tallytree as tt

FOLDER = Path(tempfile.mkdtemp(prefix="hammer"))


def files(rng: Rng) -> None:
    """Files are read back with the same scores, tallies and answer."""
    drawn = case(rng, styles=USUAL)
    model, statistics = model_of(drawn), statistics_of(drawn)
    constraint = where(rng, statistics, drawn.tallies, parts=1)
    problem = tt.io.ProblemFile(model, statistics, where=None if constraint is None else constraint.given)
    path = FOLDER / "problem.json"
    tt.io.write_problem(problem, path)
    read = tt.io.read_problem(path)
    some = drawn.labellings[rng.integers(0, len(drawn.labellings), 20)]
    for y in some:
        row = drawn.number(y)
        same = read.model.score(y) == model.score(y)
        expect(same or abs(read.model.score(y) - drawn.scores[row]) <= drawn.slack, "score from a file", y)
        tally = [s.tally(y) for s in read.statistics]
        expect(tally == drawn.tallies[row].tolist(), "tally from a file", y, tally)
    expect(answer(read.solve) == answer(problem.solve), "answer from a file")
    _check_uai(drawn, model, some)


def _check_uai(drawn: Case, model: tt.Model, some: np.ndarray) -> None:
    path = FOLDER / "model.uai"
    tt.io.write_uai(model, path)
    read = tt.io.read_uai(path)
    for y in some:
        score = drawn.scores[drawn.number(y)]
        close = read.score(y) == score or abs(read.score(y) - score) <= 1e-9 * (1 + abs(score))
        expect(close, "score from uai", y, read.score(y), score)


def answer(question: Callable[[], Any]) -> Any:
    """Return an answer as something to compare."""
    try:
        found = question()
    except tt.InfeasibleError:
        return "infeasible"
    return found.value, found.assignment.tolist()
