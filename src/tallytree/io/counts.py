"""The count constraints of toulbar2, by keyword, as counts in a range (``networks.py``).

Each function takes the scope, the numbers of states and the parameters by name, as in the ``.cfn``
format; the reader of ``.wcsp`` files converts its own. Anything that is not a count raises an error.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.io.networks import Counted, Metric

Scope = tuple[int, ...]
Parameters = Mapping[str, Any]
"""Numbers, words, and lists of numbers."""

_METRICS: dict[str, dict[str, Metric]] = {
    "w": {"hard": "flat", "lin": "lin", "quad": "quad"},
    "salldiff": {"hard": "lin", "var": "lin", "dec": "pairs", "decbi": "pairs"},
    "salldiffkp": {"hard": "unknown", "var": "lin", "dec": "pairs", "decbi": "pairs"},
    "samong": {"hard": "unknown", "var": "lin"},
    "sgcc": {"hard": "unknown", "dec": "lin"},
}
"""What toulbar2 charges for violating a count; ``hard`` forbids if its cost is at least the upper bound."""


def counted(keyword: str, scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    """Read a count constraint.

    Raises ModelError if the keyword is not a count, or a parameter is invalid.

    Examples
    --------
    >>> counted("wsum", (4, 7), (2, 2), {"metric": "hard", "cost": 9, "comparator": "<=", "to": 1})
    [Counted(entries=((4, (0, 1)), (7, (0, 1))), low=None, high=1, other_than=None, metric='flat', cost=9)]
    """
    if keyword not in COUNTS:
        raise ModelError(
            f"the cost function {keyword!r} is not supported; use tables, {', '.join(sorted(ARITHMETIC))} or "
            f"{', '.join(sorted(COUNTS))}"
        )
    try:
        return COUNTS[keyword](scope, sizes, parameters)
    except ModelError:
        raise
    except KeyError as error:
        raise ModelError(f"{keyword} needs the parameter {error.args[0]!r}") from None
    except (TypeError, ValueError):
        raise ModelError(f"the parameters of {keyword} are malformed") from None


def _metric(family: str, parameters: Parameters) -> tuple[Metric, float]:
    metric, known = str(parameters.get("metric", "hard")), _METRICS[family]
    if metric not in known:
        raise ModelError(f"the metric {metric!r} is not supported; use {' or '.join(known)}")
    cost = parameters.get("cost", inf) if metric == "hard" else parameters["cost"]
    if not isinstance(cost, (int, float)) or cost < 0:
        raise ModelError(f"a cost must be a non-negative number, got {cost!r}")
    return known[metric], cost


def _whole(number: Any) -> int:
    if number != int(number):
        raise ValueError
    return int(number)


def _among(
    scope: Scope, sizes: Sequence[int], values: Sequence[Any]
) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Count the variables of the scope that take one of some values."""
    chosen = set(map(_whole, values))
    return tuple((v, tuple(int(a in chosen) for a in range(n))) for v, n in zip(scope, sizes, strict=True))


def _sum(scope: Scope, sizes: Sequence[int], sign: int = 1) -> tuple[tuple[int, tuple[int, ...]], ...]:
    return tuple((v, tuple(sign * a for a in range(n))) for v, n in zip(scope, sizes, strict=True))


def _knapsack(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    """``Σ weight_i [y_i = 1] >= capacity``."""
    weights = list(map(_whole, parameters["weights"]))
    entries = [
        (v, tuple(w if a == 1 else 0 for a in range(n)))
        for v, n, w in zip(scope, sizes, weights, strict=True)
    ]
    return [_at_least(tuple(entries), _whole(parameters["capacity"]))]


def _knapsack_by_value(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    """``weightedvalues`` has, for each variable, pairs of a value and its weight."""
    entries = []
    for v, n, pairs in zip(scope, sizes, parameters["weightedvalues"], strict=True):
        weights = [0] * n
        for value, weight in pairs:
            weights[_within(value, n)] += _whole(weight)
        entries.append((v, tuple(weights)))
    return [_at_least(tuple(entries), _whole(parameters["capacity"]))]


def _knapsack_by_triple(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    """``weightedvalues`` has triples of a variable, a value and its weight."""
    tables = {v: [0] * n for v, n in zip(scope, sizes, strict=True)}
    for variable, value, weight in parameters["weightedvalues"]:
        if variable not in tables:
            raise ModelError(f"a knapsack uses variable {variable}, which is not in its scope")
        tables[variable][_within(value, len(tables[variable]))] += _whole(weight)
    entries = tuple((v, tuple(weights)) for v, weights in tables.items())
    return [_at_least(entries, _whole(parameters["capacity"]))]


def _at_least(entries: tuple[tuple[int, tuple[int, ...]], ...], capacity: int) -> Counted:
    """Return a knapsack, which is at least its capacity; without positive weights, it is an upper limit."""
    if any(weight > 0 for _, weights in entries for weight in weights):
        return Counted(entries, low=capacity)
    return Counted(tuple((v, tuple(-w for w in weights)) for v, weights in entries), high=-capacity)


def _within(value: Any, size: int) -> int:
    number = _whole(value)
    if not 0 <= number < size:
        raise ModelError(f"there is no value {number}; values are 0 to {size - 1}")
    return number


def _among_range(family: str) -> Callable[..., list[Counted]]:
    def read(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
        metric, cost = _metric(family, parameters)
        entries = _among(scope, sizes, parameters["values"])
        low, high = _whole(parameters["min"]), _whole(parameters["max"])
        return [Counted(entries, low, high, metric=metric, cost=cost)]

    return read


def _cardinalities(family: str) -> Callable[..., list[Counted]]:
    def read(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
        metric, cost = _metric(family, parameters)
        return [
            Counted(_among(scope, sizes, [value]), _whole(low), _whole(high), metric=metric, cost=cost)
            for value, low, high in parameters["bounds"]
        ]

    return read


def _all_different(family: str) -> Callable[..., list[Counted]]:
    def read(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
        metric, cost = _metric(family, parameters)
        values = range(max(sizes, default=0))
        return [Counted(_among(scope, sizes, [a]), high=1, metric=metric, cost=cost) for a in values]

    return read


def _compared(comparator: str, bound: int, metric: Metric) -> dict[str, int]:
    ranges = {
        "==": {"low": bound, "high": bound},
        "<=": {"high": bound},
        ">=": {"low": bound},
        "<": {"high": bound - 1},
        ">": {"low": bound + 1},
        "!=": {"other_than": bound},
    }
    if comparator not in ranges:
        raise ModelError(f"unknown comparator {comparator!r}; expected one of {', '.join(ranges)}")
    if comparator in ("<", ">", "!=") and metric != "flat":
        raise ModelError(f"prices on '{comparator}' are not supported; ==, <= and >= are")
    return ranges[comparator]


def _total(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    metric, cost = _metric("w", parameters)
    ends = _compared(str(parameters["comparator"]), _whole(parameters["to"]), metric)
    return [Counted(_sum(scope, sizes), metric=metric, cost=cost, **ends)]


def _total_of_last(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    """Compare the sum of all but the last variable with the last: their difference with 0."""
    metric, cost = _metric("w", parameters)
    entries = _sum(scope[:-1], sizes[:-1]) + _sum(scope[-1:], sizes[-1:], -1)
    ends = _compared(str(parameters["comparator"]), 0, metric)
    return [Counted(entries, metric=metric, cost=cost, **ends)]


def _among_of_last(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    metric, cost = _metric("w", parameters)
    entries = _among(scope[:-1], sizes[:-1], parameters["values"]) + _sum(scope[-1:], sizes[-1:], -1)
    return [Counted(entries, 0, 0, metric=metric, cost=cost)]


def _diverse(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    """At least this many differences from given values."""
    given = zip(scope, sizes, parameters["values"], strict=True)
    entries = tuple((v, tuple(int(a != _whole(value)) for a in range(n))) for v, n, value in given)
    return [Counted(entries, low=_whole(parameters["distance"]))]


def _clique(scope: Scope, sizes: Sequence[int], parameters: Parameters) -> list[Counted]:
    """At most one variable takes a value of its list."""
    lists = zip(scope, sizes, parameters["values"], strict=True)
    entries = tuple((v, tuple(int(a in set(values)) for a in range(n))) for v, n, values in lists)
    return [Counted(entries, high=_whole(parameters["rhs"]))]


COUNTS: dict[str, Callable[[Scope, Sequence[int], Parameters], list[Counted]]] = {
    "knapsack": _knapsack,
    "knapsackp": _knapsack_by_value,
    "knapsackv": _knapsack_by_triple,
    "wamong": _among_range("w"),
    "samong": _among_range("samong"),
    "samongdp": _among_range("samong"),
    "wgcc": _cardinalities("w"),
    "sgcc": _cardinalities("sgcc"),
    "walldiff": _all_different("w"),
    "salldiff": _all_different("salldiff"),
    "salldiffdp": _all_different("salldiff"),
    "salldiffkp": _all_different("salldiffkp"),
    "wsum": _total,
    "wvarsum": _total_of_last,
    "wvaramong": _among_of_last,
    "wdiverse": _diverse,
    "whdiverse": _diverse,
    "wtdiverse": _diverse,
    "clique": _clique,
}


# --- arithmetic on two variables ----------------------------------------------------------------------------


def _soft(gap: NDArray[Any], delta: float) -> NDArray[Any]:
    """``gap`` if it is at most ``delta``, otherwise infinite; never negative."""
    return np.maximum(np.where(gap <= delta, gap, np.inf), 0.0)


def _special(x: Any, y: Any, p: Sequence[float]) -> NDArray[Any]:
    cx, cy, most_x, most_y, price_x, price_y = p
    apart = (x >= y + cy) | (y >= x + cx) | (x >= most_x) | (y >= most_y)
    allowed = apart & (x <= most_x) & (y <= most_y)
    return np.where(
        allowed, np.where(x == most_x, price_x, 0.0) + np.where(y == most_y, price_y, 0.0), np.inf
    )


ARITHMETIC: dict[str, tuple[int, Callable[[Any, Any, Sequence[float]], NDArray[Any]]]] = {
    ">=": (2, lambda x, y, p: _soft(y + p[0] - x, p[1])),
    ">": (2, lambda x, y, p: _soft(y + p[0] + 1 - x, p[1])),
    "<=": (2, lambda x, y, p: _soft(x - p[0] - y, p[1])),
    "<": (2, lambda x, y, p: _soft(x - p[0] + 1 - y, p[1])),
    "=": (2, lambda x, y, p: _soft(np.abs(y + p[0] - x), p[1])),
    "disj": (3, lambda x, y, p: np.where((x >= y + p[1]) | (y >= x + p[0]), 0.0, p[2])),
    "sdisj": (6, _special),
}
"""For each keyword the number of parameters, and the cost of two values, infinite if forbidden."""


def arithmetic_table(keyword: str, shape: tuple[int, ...], parameters: Sequence[float]) -> NDArray[Any]:
    """Return the table of an arithmetic cost function of two variables."""
    number, cost = ARITHMETIC[keyword]
    if len(shape) != 2 or len(parameters) != number:
        raise ModelError(f"{keyword!r} takes two variables and {number} parameters")
    x, y = np.ogrid[: shape[0], : shape[1]]
    numbers = [float(parameter) for parameter in parameters]  # large enough for any file
    return np.broadcast_to(np.asarray(cost(x, y, numbers), dtype=np.float64), shape)
