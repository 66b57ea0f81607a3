"""Cost function networks, written by hand in both formats and solved by enumeration."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from draws import Rng
from oracle import Case, expect

import tallytree as tt
from tallytree.io import Source

POWERS: dict[str, Callable[[int], int]] = {
    "hard": lambda g: int(g > 0),
    "lin": lambda g: g,
    "quad": lambda g: g * g,
}


class Function(NamedTuple):
    """A cost function: as both formats write it, and the cost of each labelling."""

    wcsp: str
    cfn: str
    costs: np.ndarray


def joined(*parts: Any) -> str:
    """Join words with spaces."""
    return " ".join(
        " ".join(map(str, part)) if isinstance(part, (list, tuple)) else str(part) for part in parts
    )


def named(scope: list[int]) -> str:
    """Write a scope as the second format does."""
    return f"[{joined([f'x{v}' for v in scope])}]"


def table(rng: Rng, sizes: list[int], labellings: np.ndarray, top: int) -> Function:
    """Draw a table of costs, some of them forbidding."""
    scope = rng.permutation(len(sizes))[: int(rng.integers(1, 3))].tolist()
    shape = tuple(sizes[v] for v in scope)
    costs = np.where(rng.random(shape) < 0.1, top, rng.integers(0, 10, shape))
    default = int(rng.integers(0, 5))
    entries = [joined(place, int(costs[place])) for place in np.ndindex(shape) if costs[place] != default]
    return Function(
        joined(len(scope), scope, default, len(entries), *entries),
        f"{{scope: {named(scope)} costs: [{joined(costs.ravel().tolist())}]}}",
        costs[tuple(labellings[:, v] for v in scope)],
    )


def among(rng: Rng, sizes: list[int], labellings: np.ndarray, top: int) -> Function:
    """Draw a cost for the number of variables with certain values."""
    scope = rng.permutation(len(sizes))[: int(rng.integers(2, len(sizes) + 1))].tolist()
    values = sorted({int(v) for v in rng.integers(0, 3, 2)})
    low = int(rng.integers(0, len(scope) + 1))
    high = int(rng.integers(low, len(scope) + 1))
    metric, cost = str(rng.choice([*POWERS])), int(rng.choice([1, 3, top]))
    counts = np.isin(labellings[:, scope], values).sum(axis=1)
    gaps = np.maximum(np.maximum(low - counts, counts - high), 0)
    return Function(
        joined(len(scope), scope, -1, "wamong", metric, cost, len(values), values, low, high),
        f"{{scope: {named(scope)} type: wamong params: {{metric: {metric} cost: {cost} "
        f"values: [{joined(values)}] min: {low} max: {high}}}}}",
        cost * np.array([POWERS[metric](int(g)) for g in gaps]),
    )


def total(rng: Rng, sizes: list[int], labellings: np.ndarray, top: int) -> Function:
    """Draw a cost for the sum of the states."""
    scope = rng.permutation(len(sizes))[: int(rng.integers(2, len(sizes) + 1))].tolist()
    bound, relation = int(rng.integers(0, 6)), str(rng.choice(["==", "<=", ">="]))
    metric, cost = str(rng.choice([*POWERS])), int(rng.choice([1, 3, top]))
    beyond = labellings[:, scope].sum(axis=1) - bound
    gaps = {"==": np.abs(beyond), "<=": np.maximum(beyond, 0), ">=": np.maximum(-beyond, 0)}[relation]
    return Function(
        joined(len(scope), scope, -1, "wsum", metric, cost, relation, bound),
        f"{{scope: {named(scope)} type: wsum params: {{metric: {metric} cost: {cost} "
        f'comparator: "{relation}" to: {bound}}}}}',
        cost * np.array([POWERS[metric](int(g)) for g in gaps]),
    )


def networks(rng: Rng) -> None:
    """The least cost of a network, from a file of either format."""
    sizes = [int(n) for n in rng.integers(1, 4, int(rng.integers(2, 6)))]
    top = int(rng.choice([8, 20, 1000]))
    labellings = Case(sizes, [], []).labellings
    functions = [table(rng, sizes, labellings, top) for _ in range(int(rng.integers(1, 5)))]
    kinds = (among, total)
    functions += [
        kinds[int(rng.integers(0, 2))](rng, sizes, labellings, top) for _ in range(int(rng.integers(0, 3)))
    ]
    costs = np.sum([f.costs for f in functions], axis=0)
    least = int(costs.min()) if costs.min() < top else None
    header = joined("drawn", len(sizes), max(sizes), len(functions), top, sizes)
    wcsp = joined(header, *(f.wcsp for f in functions))
    states = " ".join(f"x{v}: {n}" for v, n in enumerate(sizes))
    listed = " ".join(f"f{k}: {f.cfn}" for k, f in enumerate(functions))
    cfn = f'{{problem: {{name: drawn mustbe: "<{top}"}} variables: {{{states}}} functions: {{{listed}}}}}'
    for read, text in ((tt.io.read_wcsp, wcsp), (tt.io.read_cfn, cfn)):
        try:
            found = read(Source("drawn", text.encode())).solve()
        except tt.InfeasibleError:
            expect(least is None, "network: infeasible, but there is", least, text)
            continue
        cost = int(costs[Case(sizes, [], []).number(found.assignment)])
        expect(
            least is not None and -found.value == least == cost, "least cost", -found.value, cost, least, text
        )
