"""Tables of scores and integers in a problem file, as nested lists whose shapes are checked."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError
from tallytree.io.documents import At
from tallytree.io.factors import MOST_AXES
from tallytree.model.blocks import LARGEST_INTEGER, Block
from tallytree.values import read_only


def afford(cells: int, limit: float, at: At) -> None:
    """Raise an error if this many entries exceed the memory limit."""
    if 8 * cells > limit:
        raise BudgetError(
            f"{at.file}: {at.path}: its tables would have {cells} entries, at least {8 * cells:.3g} bytes, "
            f"but the memory limit is {limit:.3g}"
        )


def array(at: At, convert: Convert) -> NDArray[Any]:
    """Take nested lists, whose shape is determined by the first entries."""
    shape: list[int] = []
    value = at.value
    while isinstance(value, list) and len(shape) < 5:
        shape.append(len(value))
        value = value[0] if value else None
    entries = at.entries(tuple(shape), convert, _WHAT[convert]) if all(shape) else []
    return np.array(entries, dtype=_DTYPES[convert]).reshape(shape)


def score(value: Any) -> float:
    """Take a finite number or ``"-inf"``; raise ValueError for anything else."""
    kind = type(value)
    if kind is float or (kind is int and abs(value) < 2**1023):
        number = float(value)
        if math.isfinite(number):
            return number
    elif value == "-inf" and kind is str:
        return -math.inf
    raise ValueError


def integer(value: Any) -> int:
    """Take an integer below 2**40; raise ValueError for anything else."""
    if type(value) is float and value.is_integer():
        value = int(value)
    if type(value) is int and abs(value) < LARGEST_INTEGER:
        return value
    raise ValueError


Convert = Callable[[Any], Any]

_WHAT: dict[Convert, str] = {
    score: 'a finite number, or "-inf" to forbid',
    integer: "an integer below 2**40 in magnitude",
}
_DTYPES: dict[Convert, Any] = {score: np.float64, integer: np.int64}


class Tables:
    """Reads ``{"scope", "table"}``, ``{"scopes", "table"}`` (shared) and ``{"scopes", "tables"}``."""

    def __init__(
        self, cardinalities: Sequence[int], variables: Sequence[str], convert: Convert, limit: float
    ) -> None:
        self.cardinalities, self.convert, self.limit = cardinalities, convert, limit
        self.variables = {name: i for i, name in enumerate(variables)}
        self.cells = 0

    def block(self, at: At) -> Block:
        """Take one item of a list of factors."""
        single = isinstance(at.value, dict) and "scope" in at.value
        several = isinstance(at.value, dict) and "tables" in at.value
        parts = at.object(
            ("scope", "table") if single else ("scopes", "tables") if several else ("scopes", "table")
        )
        given = [parts["scope"]] if single else parts["scopes"].items()
        scopes = [self._scope(one) for one in given]
        shapes = {tuple(self.cardinalities[v] for v in scope) for scope in scopes}
        if len(shapes) > 1:
            raise at.error("the scopes of one item must have variables with the same numbers of states")
        shape = shapes.pop() if shapes else ()
        self.cells += math.prod(shape) * max(len(scopes), 1)
        afford(self.cells, self.limit, at)
        tables = parts["tables"].items(len(scopes)) if several else [parts["table"]]
        entries = [one.entries(shape, self.convert, _WHAT[self.convert]) for one in tables]
        return Block(
            np.array(scopes, dtype=np.int32).reshape(len(scopes), len(shape)),
            read_only(np.array(entries, dtype=_DTYPES[self.convert]).reshape(len(tables), *shape)),
        )

    def _scope(self, at: At) -> tuple[int, ...]:
        scope = tuple(self._variable(one) for one in at.items(what="a list of variables"))
        if len(set(scope)) < len(scope) or len(scope) > MOST_AXES:
            at.refuse(f"at most {MOST_AXES} variables, all different")
        return scope

    def _variable(self, at: At) -> int:
        if isinstance(at.value, str):
            if at.value not in self.variables:
                at.refuse("the name or number of a variable")
            return self.variables[at.value]
        return at.whole("the name or number of a variable", 0, len(self.cardinalities) - 1)
