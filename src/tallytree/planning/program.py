"""The program of a plan, for inspection: one step per table, six operations.

The executor runs these steps natively; here they are unpacked for printing, checking and teaching.
Programs of models eliminate variables: ``unit``, ``join``, ``eliminate``. Programs of charts go from short
spans to long ones: ``word``, ``combine``, ``unary``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tallytree.kernels import native

Verb = Literal["unit", "join", "eliminate", "word", "combine", "unary"]
_VERBS: dict[int, Verb] = {
    native.Verb.UNIT: "unit",
    native.Verb.JOIN: "join",
    native.Verb.ELIMINATE: "eliminate",
    native.Verb.WORD: "word",
    native.Verb.COMBINE: "combine",
    native.Verb.UNARY: "unary",
}
Refs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the table that it makes, and its input tables."""

    number: int  # the table that the step makes
    # of a model: ``unit`` (a table of no score over a variable), ``join`` or ``eliminate`` (absorb and
    # project). Of a chart: ``word`` (the tags of a word), ``combine`` (all splits and binary rules over a
    # span) or ``unary`` (all chains of unary rules over a span).
    verb: Verb
    inputs: tuple[int, ...]  # the tables that it reads
    variable: int | None = None  # the variable that is eliminated, or the variable of a unit
    scope: tuple[int, ...] = ()  # the variables of the table that it makes, outermost first
    # block and row of the factors and of the statistics' factors that it absorbs
    factors: Refs = ()
    shifts: Refs = ()
    span: tuple[int, int] = (0, 0)  # for charts: the first word, and the one after the last

    def __str__(self) -> str:
        match self.verb:
            case "join":
                return f"join on ({self._scope})"
            case "eliminate":
                return f"eliminate variable {self.variable} onto ({self._scope})"
            case "word":
                return f"tags of word {self.span[0]}"
            case "combine":
                return f"combine splits of words {self.span[0]} to {self.span[1]}"
            case "unary":
                return f"unary rules over words {self.span[0]} to {self.span[1]}"
            case _:
                return self.verb

    @property
    def _scope(self) -> str:
        return ", ".join(map(str, self.scope[:8])) + (", …" if len(self.scope) > 8 else "")


def steps(skeleton: native.Skeleton) -> tuple[Step, ...]:
    """Unpack the skeleton of a model."""
    begin, data = skeleton.scope_begin.tolist(), skeleton.scope_data.tolist()
    rows = skeleton.steps.tolist()
    factors: list[list[tuple[int, int]]] = [[] for _ in rows]
    shifts: list[list[tuple[int, int]]] = [[] for _ in rows]
    for into, refs in ((factors, skeleton.score_refs), (shifts, skeleton.shift_refs)):
        for step, block, row in refs.tolist():
            into[step].append((block, row))
    return tuple(
        Step(
            number,
            _VERBS[verb],
            tuple(table for table in (a, b) if table >= 0),
            None if variable < 0 else variable,
            tuple(data[begin[number] : begin[number + 1]]),
            tuple(factors[number]),
            tuple(shifts[number]),
        )
        for number, (verb, a, b, variable) in enumerate(rows)
    )


def step_at(skeleton: native.Skeleton, number: int) -> Step:
    """Unpack one step of a model's skeleton, without its factors: large programs have millions of steps."""
    (verb, a, b, variable), scope = skeleton.step(number)
    inputs = tuple(table for table in (a, b) if table >= 0)
    return Step(number, _VERBS[verb], inputs, None if variable < 0 else variable, tuple(scope))


def chart_steps(layout: native.ChartLayout) -> tuple[Step, ...]:
    """Unpack the program of a chart.

    A ``combine`` reads the closed tables of the two parts of every split; ``unary`` reads the open table of
    its own span.
    """
    rows = [(_VERBS[verb], (start, start + width)) for verb, start, width in layout.steps.tolist()]
    closed = {span: number for number, (verb, span) in enumerate(rows) if verb == "unary"}
    opened = {span: number for number, (verb, span) in enumerate(rows) if verb != "unary"}

    def inputs(verb: Verb, start: int, end: int) -> tuple[int, ...]:
        if verb == "unary":
            return (opened[start, end],)
        parts = (((start, split), (split, end)) for split in range(start + 1, end))
        return tuple(closed[part] for pair in parts for part in pair)

    return tuple(
        Step(number, verb, inputs(verb, *span), span=span) for number, (verb, span) in enumerate(rows)
    )
