"""Cost function networks, as in toulbar2: the common form of both of its formats.

A network asks for the labelling of smallest cost below an upper bound: ``min { C(y) : C(y) < top }``. Scores
are negated costs. With the smallest cost ``m_t`` of each table, an entry ``c`` of table ``t`` cannot be
part of a solution if ``c + Σ_{s ≠ t} m_s >= top``: it is forbidden. The rest of ``C(y) <
top`` goes into the objective, which may be ``-inf``.

A constraint on a count becomes a statistic and a condition, a price on it becomes a term of the objective.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.io.problems import ProblemFile
from tallytree.model.blocks import LARGEST_INTEGER
from tallytree.model.model import Model
from tallytree.planning.budget import default_memory_limit
from tallytree.statistics.formula_parser import RESERVED
from tallytree.statistics.formulas import name_in_formula
from tallytree.statistics.statistic import Statistic

Metric = Literal["hard", "flat", "lin", "quad", "pairs", "unknown"]
Scope = tuple[int, ...]

_NUMBERED = re.compile(r"_\d+$")


class Counted(NamedTuple):
    """A count that should be in a range, ``low <= K(y) <= high``, or should differ from one number.

    A hard count must do so. Otherwise, being outside costs ``cost`` (flat), ``cost`` per step outside (lin),
    per squared step (quad), or per pair above one (pairs). An unknown price cannot be expressed; that is not
    necessary if it is at least the upper bound, because it then forbids.
    """

    entries: tuple[tuple[int, tuple[int, ...]], ...]
    """For each counted variable, what each of its states adds."""
    low: int | None = None
    high: int | None = None
    other_than: int | None = None
    metric: Metric = "hard"
    cost: float = 0.0

    def condition(self, name: str) -> str:
        """Return the condition that must hold, as a formula."""
        ends = [(f"{name} >= {self.low}", self.low), (f"{name} <= {self.high}", self.high)]
        parts = [text for text, end in ends if end is not None]
        if self.other_than is not None:
            parts.append(f"{name} != {self.other_than}")
        return " and ".join(parts) or "0 <= 0"

    def price(self, name: str) -> str:
        """Return the price of violating it, as a formula."""
        if self.metric == "flat":
            return f"where({self.condition(name)}, 0, {self.cost!r})"
        if self.metric == "pairs":
            return f"{self.cost!r}*{name}*({name} - 1)/2"
        ends = [(f"{self.low} - {name}", self.low), (f"{name} - {self.high}", self.high)]
        gap = ", ".join(["0", *(text for text, end in ends if end is not None)])
        return f"{self.cost!r}*max({gap})" + ("**2" if self.metric == "quad" else "")


@final
class Network:
    """A cost function network while it is being read.

    `cardinalities`: the number of states of each variable. `top`: the upper bound; infinite for none.
    `maximise`: whether costs are gains, and ``top`` a lower bound.
    """

    def __init__(self, cardinalities: Sequence[int], top: float, *, maximise: bool = False) -> None:
        self.cardinalities = list(cardinalities)
        self.top = -top if maximise else top
        self.sign = -1.0 if maximise else 1.0
        self.step = 1.0
        self.cells = 0
        self.tables: list[tuple[Scope, NDArray[np.float64]]] = []
        self.counted: list[tuple[str, Counted]] = []

    def shape(self, scope: Scope) -> tuple[int, ...]:
        """Return the shape of a table, if it fits in memory."""
        shape = tuple(self.cardinalities[v] for v in scope)
        self._afford(math.prod(shape), scope)
        return shape

    def sizes(self, scope: Scope, keyword: str, parameters: Mapping[str, Any]) -> tuple[int, ...]:
        """Return the numbers of states of a scope, if the tables of such a count fit in memory."""
        sizes = tuple(self.cardinalities[v] for v in scope)
        counts = max(sizes, default=0) if "alldiff" in keyword else len(parameters.get("bounds", "1"))
        self._afford(sum(sizes) * counts, scope)
        return sizes

    def _afford(self, cells: int, scope: Scope) -> None:
        self.cells += cells
        limit = default_memory_limit()
        if 64 * self.cells > limit:
            raise BudgetError(
                f"the cost function over {len(scope)} variables has {cells} entries; together with earlier "
                f"ones this exceeds the memory limit of {limit:.3g} bytes"
            )

    def add(self, scope: Scope, costs: NDArray[np.float64]) -> None:
        """Add a table of costs."""
        self.tables.append((scope, self.sign * costs))

    def count(self, name: str, counted: Counted) -> None:
        """Add a count."""
        if counted.metric in ("lin", "quad", "pairs"):
            self._check_prices()
        self.counted.append((name, counted))

    def _check_prices(self) -> None:
        if self.sign < 0:
            raise ModelError("prices on counts are only supported if costs are minimised")

    @property
    def _least(self) -> float:
        return float(sum(table.min(initial=np.inf) for _, table in self.tables))

    @property
    def _highest(self) -> float:
        """Half a step below the upper bound, so that rounding cannot move a cost across it.

        The bound itself if doubles have no number between it and the next cost below.
        """
        middle = self.top - self.step / 2
        return middle if middle > self.top - self.step else self.top

    def problem(
        self, *, variables: Sequence[str] | None = None, states: Sequence[Sequence[str]] | None = None
    ) -> ProblemFile:
        """Return the problem, once everything has been added."""
        model = Model(self.cardinalities, self._factors(), variables=variables, states=states)
        settled = _joined([(name, self._settled(name, counted)) for name, counted in self.counted])
        named = list(zip(_distinct([name for name, _ in settled]), settled, strict=True))
        statistics = [_statistic(model, name, limits[0]) for name, (_, limits) in named]
        limited = [(name_in_formula(name, "the count"), limits) for name, (_, limits) in named]
        pairs = [(name, counted) for name, limits in limited for counted in limits]
        hard = [f"({counted.condition(name)})" for name, counted in pairs if counted.metric == "hard"]
        prices = [counted.price(name) for name, counted in pairs if counted.metric != "hard"]
        return ProblemFile(model, statistics, self._objective(prices), where=" and ".join(hard) or None)

    def _settled(self, name: str, counted: Counted) -> Counted:
        """Return the count; a price that no solution can pay becomes a hard condition."""
        if counted.metric == "hard" or counted.cost + self._least >= self._highest:
            return counted._replace(metric="hard")
        if counted.metric == "unknown":
            raise ModelError(
                f"the hard count {name!r} has a cost of {counted.cost:g}, below the upper bound, which is "
                "not supported; set it to the upper bound, or use wamong or wgcc"
            )
        self._check_prices()
        return counted

    def _factors(self) -> list[tuple[Scope, NDArray[np.float64]]]:
        least, factors = self._least, []
        for scope, table in self.tables:
            with np.errstate(invalid="ignore"):  # inf - inf, if everything is forbidden
                hopeless = ~(table - table.min(initial=np.inf) + least < self._highest)
            factors.append((scope, np.where(hopeless, -np.inf, 0.0 - table)))
        return factors

    def _objective(self, prices: Iterable[str]) -> str | None:
        """``-C(y)``, and -inf from the upper bound on if finite entries can reach it."""
        value = " - ".join(["score", *prices])
        dearest = (np.max(-table, where=table > -np.inf, initial=-np.inf) for _, table in self._factors())
        if value == "score" and sum(map(float, dearest)) < self._highest:
            return None
        if not np.isfinite(self.top):
            return value
        return f"where({value} > {-self._highest!r}, {value}, -inf)"


def _joined(named: Sequence[tuple[str, Counted]]) -> list[tuple[str, list[Counted]]]:
    """Join further hard limits of a count, written as ``ones_2`` and so on, to the first one, ``ones``."""
    joined: list[tuple[str, list[Counted]]] = []
    first: dict[str, list[Counted]] = {}
    for name, counted in named:
        limits = first.get(_NUMBERED.sub("", name), [])
        if limits and limits[0][:1] == counted[:1] and limits[0].metric == counted.metric == "hard":
            limits.append(counted)
            continue
        joined.append((name, [counted]))
        first.setdefault(name, joined[-1][1])
    return joined


def _distinct(names: Sequence[str]) -> Iterable[str]:
    """Return names that are distinct and valid in formulas, the same ones where possible."""
    taken = {"score", *RESERVED}
    for number, name in enumerate(names):
        chosen = name if name not in taken and _is_valid(name) else f"count_{number}"
        while chosen in taken:
            chosen += "_"
        taken.add(chosen)
        yield chosen


def _is_valid(name: str) -> bool:
    try:
        return bool(name_in_formula(name, "the count"))
    except ModelError:
        return False


def _statistic(model: Model, name: str, counted: Counted) -> Statistic:
    sizes: Any = model.cardinalities
    pairs = []
    for variable, weights in counted.entries:
        assert len(weights) == sizes[variable]
        if max(map(abs, weights)) >= LARGEST_INTEGER:
            raise ModelError(f"a weight of the count {name!r} exceeds 2**40")
        pairs.append(((variable,), np.array(weights, dtype=np.int64)))
    return Statistic(pairs, name=name)
