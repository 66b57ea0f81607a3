"""Output of the commands: tables for people, JSON for programs."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.distribution import Distribution
from tallytree.answers.objective import values_to_show
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.bounding import BoundsCertificate
from tallytree.cli.speed import Speed
from tallytree.cli.text import visible
from tallytree.io import ProblemFile
from tallytree.planning.plan import Plan
from tallytree.planning.search_price import SearchPrice
from tallytree.values import counted

MOST_ROWS = 40
_CHANCE = 6  # characters of a probability
_BAR = 30  # characters of the longest bar


def as_json(value: Any) -> str:
    """Write one JSON document; infinities and nan, which JSON does not have, become null."""
    return _NOT_PLAIN.sub(_coded, json.dumps(_finite(value), allow_nan=False, ensure_ascii=False))


_NOT_PLAIN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069]")  # obeyed by terminals, not escaped by JSON


def _coded(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def print_values(values: Mapping[str, Any], *, machine: bool) -> None:
    """Print named values, as JSON or as text."""
    if machine:
        print(as_json(dict(values)))
        return
    size = max(map(len, values))
    for name, value in values.items():
        print(f"{name:<{size}}  {f'{value:.4f}' if isinstance(value, float) else visible(value)}")


# --- solutions ----------------------------------------------------------------------------------------------


def solution_json(problem: ProblemFile, solution: Solution) -> dict[str, Any]:
    """Return a solution for JSON."""
    return {
        "value": solution.value,
        "score": solution.score,
        "tally": dict(zip(problem.names, map(int, solution.tally), strict=True)),
        "assignment": solution.assignment.tolist(),
        "labels": solution.labels.tolist(),
    }


def solution_lines(problem: ProblemFile, solution: Solution, width: int) -> Iterator[str]:
    """Format a solution as text."""
    if problem.objective is not None:
        yield f"value  {solution.value:.10g}"
    yield f"score  {solution.score:.10g}"
    if solution.gap:
        yield f"gap    {solution.gap:.2g}"
    if problem.names:
        tally = zip(problem.names, solution.tally, strict=True)
        yield "tally  " + ", ".join(f"{visible(name)} = {number}" for name, number in tally)
    yield ""
    yield from _labelling(solution, width)


def proof_json(solution: Solution) -> dict[str, Any]:
    """Return the proof of a solution by bounds for JSON."""
    certificate = solution.certificate
    if not isinstance(certificate, BoundsCertificate):
        return {}
    parts = [part._asdict() for part in certificate.parts]
    return {
        "bounds": {"counted": list(certificate.counted), "passes": len(certificate.passes), "parts": parts}
    }


def proof_lines(solution: Solution) -> Iterator[str]:
    """Summarise the proof of a solution by bounds in one line."""
    certificate = solution.certificate
    if isinstance(certificate, BoundsCertificate):
        yield ""
        passes, cells = counted(len(certificate.passes), "plain pass"), counted(certificate.cells, "cell")
        yield f"optimal by bounds: {passes}, {cells}"


def _labelling(solution: Solution, width: int) -> Iterator[str]:
    labels = solution.labels
    if labels.ndim == 2:
        rows = [[visible(label) for label in row] for row in labels.tolist()]
        size = max((len(label) for row in rows for label in row), default=0)
        yield from (" ".join(label.ljust(size) for label in row).rstrip() for row in rows)
        return
    names = solution.model.variables or [str(i) for i in range(len(labels))]
    columns = [(visible(name), visible(label)) for name, label in zip(names, labels.tolist(), strict=True)]
    yield from _wrapped(columns, width)


def _wrapped(columns: Sequence[tuple[str, str]], width: int) -> Iterator[str]:
    """Print names above labels, wrapped to the width."""
    rest = iter(columns)
    upper: list[str] = []
    lower: list[str] = []
    used = 0
    for name, label in rest:
        size = max(len(name), len(label)) + 1
        if used + size > width and upper:
            yield from ("".join(upper).rstrip(), "".join(lower).rstrip(), "")
            upper, lower, used = [], [], 0
        upper.append(name.ljust(size))
        lower.append(label.ljust(size))
        used += size
    yield from ("".join(upper).rstrip(), "".join(lower).rstrip())


def ranked_lines(problem: ProblemFile, found: Sequence[Solution], width: int) -> Iterator[str]:
    """Format several labellings, one per line, marking those that differ from the first."""
    heads = ["", *(["value"] if problem.objective is not None else []), "score", *problem.names, "labelling"]
    rows = []
    for number, solution in enumerate(found, start=1):
        numbers = [solution.value] if problem.objective is not None else []
        values = [f"{value:.8g}" for value in (*numbers, solution.score)]
        labels = " ".join(map(visible, np.ravel(solution.labels).tolist()))
        rows.append([str(number), *values, *map(str, solution.tally), labels])
    yield from _cut(_table(heads, rows), width)


def _cut(lines: Iterable[str], width: int) -> Iterator[str]:
    yield from (line if len(line) <= width else f"{line[: width - 1]}…" for line in lines)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Align numbers to the right, and the last column to the left."""
    heads = list(map(visible, heads))
    sizes = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in (heads, *rows):
        cells = [cell.rjust(size) for cell, size in zip(row[:-1], sizes, strict=False)]
        yield "  ".join([*cells, row[-1]]).rstrip()


# --- profiles -----------------------------------------------------------------------------------------------


def _columns(problem: ProblemFile, profile: Profile) -> tuple[Any, Any, int | None]:
    """Return the values (None without an objective), whether the constraint holds, and the best row."""
    values, holds = None, np.ones(len(profile), dtype=bool)
    if problem.constraint is not None:
        holds = problem.constraint.holds(dict(zip(profile.statistics, profile.tallies.T, strict=True)))
        holds = np.broadcast_to(holds, len(profile))
    if problem.objective is not None:
        function = problem.function(problem.statistics)
        assert function is not None
        values = values_to_show(function, profile.scores, profile.tallies, problem.names, holds)
    ranked = np.where(holds, profile.scores if values is None else values, -np.inf)
    best = int(np.argmax(ranked)) if len(ranked) and np.max(ranked) > -np.inf else None
    return values, holds, best


def profile_json(problem: ProblemFile, profile: Profile) -> dict[str, Any]:
    """Return a profile for JSON."""
    values, holds, best = _columns(problem, profile)
    document = {
        "statistics": list(problem.names),
        "tallies": profile.tallies.tolist(),
        "scores": profile.scores.tolist(),
        "allowed": holds.tolist(),
        "best": best,
    }
    return document if values is None else {**document, "values": values.tolist()}


def profile_lines(problem: ProblemFile, profile: Profile, limit: int | None) -> Iterator[str]:
    """Format a profile: one row per tally, with an arrow at the best one that is allowed."""
    values, holds, best = _columns(problem, profile)
    heads = [*problem.names, "score", *(["value"] if values is not None else []), ""]
    chosen = _shown_rows(holds, best, limit)
    rows, last = [], -1
    for row in chosen.tolist():
        if row > last + 1:
            rows.append(["…"] * (len(heads) - 1) + [""])
        rows.append(_row(profile, values, holds, best, row))
        last = row
    yield from _table(heads, rows)
    if len(chosen) < len(profile):
        yield f"{len(chosen)} of {counted(len(profile), 'tally')}; --limit 0 shows all"


def _shown_rows(holds: Any, best: int | None, limit: int | None) -> NDArray[np.int64]:
    """Return the rows of a profile to show: if there are too many, allowed ones that include the best."""
    if limit is None or len(holds) <= limit:
        return np.arange(len(holds))
    allowed = np.flatnonzero(holds)
    if best is None or not len(allowed):
        return np.arange(limit)
    place = int(np.searchsorted(allowed, best))
    begin = 0 if place < limit else min(place - limit // 2, len(allowed) - limit)
    return allowed[begin : begin + limit]


def _row(profile: Profile, values: Any, holds: Any, best: int | None, row: int) -> list[str]:
    numbers = [profile.scores[row], *([values[row]] if values is not None else [])]
    mark = "<- best" if row == best else "" if holds[row] else "not allowed"
    return [*map(str, profile.tallies[row].tolist()), *(f"{number:.8g}" for number in numbers), mark]


# --- probabilities ------------------------------------------------------------------------------------------


def distribution_json(problem: ProblemFile, found: Distribution) -> dict[str, Any]:
    """Return the probabilities of all tallies for JSON."""
    where = found.query.where
    return {
        **({} if where is None else {"where": str(where)}),
        "statistics": list(problem.names),
        "tallies": found.tallies.tolist(),
        "probabilities": found.probabilities.tolist(),
        "log_partition": found.log_partition,
    }


def distribution_lines(problem: ProblemFile, found: Distribution, limit: int | None) -> Iterator[str]:
    """Format the probability of each tally, with a bar; of many, the most probable ones."""
    shown = np.sort(np.argsort(-found.probabilities, kind="stable")[:limit])
    chances = found.probabilities[shown]
    largest = float(found.probabilities.max())
    rows = [
        [*map(str, tally), f"{chance:.6f}", "#" * round(_BAR * chance / largest)]
        for tally, chance in zip(found.tallies[shown].tolist(), chances.tolist(), strict=True)
    ]
    yield from _table([*problem.names, "probability", ""], rows)
    if len(shown) < len(found.tallies):
        rest = max(1.0 - float(chances.sum()), 0.0)
        some = f"the {len(shown)} most probable of {counted(len(found.tallies), 'tally')}"
        yield f"{some}; the others have {rest:.2g} together; --limit 0 shows all"
    if found.query.where is not None:
        yield f"given {visible(found.query.where)}"


def marginal_lines(problem: ProblemFile, tables: Sequence[NDArray[np.float64]]) -> Iterator[str]:
    """Format the probability of each state, one line per variable."""
    model = problem.model
    names = [visible(name) for name in model.variables or range(len(tables))]
    size = max(map(len, names), default=0)
    heads: Sequence[Any] = ()
    for variable, (name, table) in enumerate(zip(names, tables, strict=True)):
        states = [visible(state) for state in model.states_of(variable) or range(len(table))]
        widths = [max(len(state), _CHANCE) for state in states]
        if states != heads:  # a header for variables with the same states
            heads = states
            yield "  ".join([" " * size, *(s.rjust(w) for s, w in zip(states, widths, strict=True))])
        chances = (f"{chance:.4f}".rjust(width) for chance, width in zip(table, widths, strict=True))
        yield "  ".join([name.ljust(size), *chances])


def drawn_json(problem: ProblemFile, labelling: NDArray[np.int64]) -> dict[str, Any]:
    """Return a sampled labelling for JSON."""
    return {
        "score": problem.model.score(labelling),
        "tally": {s.name: int(s.tally(labelling)) for s in problem.statistics},
        "assignment": labelling.tolist(),
        "labels": problem.model.labels(labelling).tolist(),
    }


def drawn_lines(problem: ProblemFile, drawn: NDArray[np.int64], width: int) -> Iterator[str]:
    """Format sampled labellings, one per line."""
    rows = []
    for labelling in drawn:
        labels = " ".join(map(visible, np.ravel(problem.model.labels(labelling)).tolist()))
        tally = [str(s.tally(labelling)) for s in problem.statistics]
        rows.append([f"{problem.model.score(labelling):.8g}", *tally, labels])
    yield from _cut(_table(["score", *problem.names, "labelling"], rows), width)


# --- plans --------------------------------------------------------------------------------------------------


def plan_json(plan: Plan, speed: Speed) -> dict[str, Any]:
    """Return the cost of a plan for JSON."""
    return {
        "variables": len(plan.order),
        "statistics": list(plan.names),
        "width": plan.width,
        "degree": plan.degree,
        "tallies": plan.tallies,
        "operations": plan.operations,
        "seconds": speed.seconds(plan),
        "peak_bytes": plan.peak_bytes,
        "every_table_bytes": plan.every_table_bytes,
        "memory_limit": plan.limit,
        "segments": plan.segments,
        "precision": plan.precision,
        "order": plan.order.tolist(),
        "bounds": search_json(plan.search, speed),
    }


def search_json(price: SearchPrice | None, speed: Speed) -> dict[str, Any] | None:
    """Return the expected cost of a search by bounds for JSON."""
    if price is None:
        return None
    return {**price._asdict(), "seconds": speed.seconds(price), "tried": price.tried}
