"""The program of a plan, as values to look at: one step per table, three verbs.

The executor runs these steps natively; here they are unpacked for printing, for checking and for teaching.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tallytree.kernels import native

__all__ = ["Step", "steps"]

Verb = Literal["unit", "join", "eliminate"]
_VERBS: dict[int, Verb] = {
    native.Verb.UNIT: "unit",
    native.Verb.JOIN: "join",
    native.Verb.ELIMINATE: "eliminate",
}


@dataclass(frozen=True, slots=True)
class Step:
    """One step: the table that it makes, from which tables, with which factors.

    Attributes
    ----------
    number : int
        The table that the step makes.
    verb : str
        ``unit`` (a table of no score over a variable), ``join`` or ``eliminate`` (absorb and project).
    inputs : tuple of int
        The tables that it consumes.
    variable : int or None
        The variable that is eliminated, or that a unit is over.
    scope : tuple of int
        The variables of the table that it makes, outermost first.
    factors, shifts : tuple of (int, int)
        Block and row of the factors and of the statistics' factors that it absorbs.
    """

    number: int
    verb: Verb
    inputs: tuple[int, ...]
    variable: int | None
    scope: tuple[int, ...]
    factors: tuple[tuple[int, int], ...]
    shifts: tuple[tuple[int, int], ...]

    def __str__(self) -> str:
        scope = ", ".join(map(str, self.scope[:8])) + (", …" if len(self.scope) > 8 else "")
        if self.verb == "join":
            return f"join on ({scope})"
        return f"{self.verb} variable {self.variable} onto ({scope})" if self.verb == "eliminate" else "unit"


def steps(skeleton: native.Skeleton) -> tuple[Step, ...]:
    """Unpack a skeleton."""
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
