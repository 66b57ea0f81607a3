"""Helpers for tests of networks."""

from __future__ import annotations

from math import inf

import numpy as np
from hypothesis import strategies as st

import tallytree as tt
from tallytree.io import ProblemFile, read_cfn, read_wcsp
from tallytree.io.files import Source


def wcsp(text: str | bytes) -> ProblemFile:
    return read_wcsp(Source("file", text if isinstance(text, bytes) else text.encode()))


def cfn(text: str | bytes) -> ProblemFile:
    return read_cfn(Source("file", text if isinstance(text, bytes) else text.encode()))


def least(problem: ProblemFile) -> float | None:
    """The least cost, None if nothing is below the bound."""
    try:
        return -problem.solve().value
    except tt.InfeasibleError:
        return None


# --- networks, by the definition ----------------------------------------------------------------------------


def gap(k: int, low: float, high: float) -> float:
    return max(0, low - k, k - high)


POWER = {"lin": 1, "quad": 2}


def priced(metric: str, cost: float, gaps: list[float]) -> float:
    if metric == "hard":  # a flat cost, which forbids where it reaches the bound
        return cost * float(np.count_nonzero(gaps))
    return sum(cost * g ** POWER[metric] for g in gaps)


RELATIONS = {
    "==": lambda k, b: gap(k, b, b),
    "<=": lambda k, b: gap(k, -inf, b),
    ">=": lambda k, b: gap(k, b, inf),
    "<": lambda k, b: gap(k, -inf, b - 1),
    ">": lambda k, b: gap(k, b + 1, inf),
    "!=": lambda k, b: float(k == b),
}


class Function:
    """A cost function of the states of its scope, as words of both formats."""

    def __init__(self, scope, wcsp, cfn, cost) -> None:
        self.scope, self.wcsp, self.cfn, self.cost = scope, wcsp, cfn, cost


def words(*parts: object) -> str:
    flat = [x for part in parts for x in (part if isinstance(part, (list, tuple)) else [part])]
    return " ".join(map(str, flat))


def listed(items: object) -> str:
    return f"[{' '.join(map(listed, items))}]" if isinstance(items, (list, tuple)) else str(items)


def table(scope, costs) -> Function:
    places = list(np.ndindex(costs.shape))
    entries = [words(list(place), int(costs[place])) for place in places]
    text = words(len(scope), scope, 0, len(entries), *entries) if scope else f"0 {int(costs)} 0"
    return Function(
        scope,
        text,
        f"{{scope: {listed([f'x{v}' for v in scope])} costs: {listed(costs.ravel().tolist())}}}",
        lambda y: float(costs[tuple(y)]),
    )


def intension(scope, keyword, in_wcsp, in_cfn, cost) -> Function:
    parameters = " ".join(f"{key}: {listed(value)}" for key, value in in_cfn.items())
    return Function(
        scope,
        words(len(scope), scope, -1, keyword, in_wcsp),
        f"{{scope: {listed([f'x{v}' for v in scope])} type: {keyword} params: {{{parameters}}}}}",
        cost,
    )


def arithmetic(scope, keyword, parameters, cost) -> Function:
    return Function(
        scope,
        words(2, scope, -1, keyword, parameters),
        f'{{scope: {listed([f"x{v}" for v in scope])} type: "{keyword}" params: {listed(parameters)}}}',
        cost,
    )


@st.composite
def networks(draw: st.DrawFn, *, without: str = ""):
    """Draw numbers of states, an upper bound and cost functions."""
    sizes = draw(st.lists(st.integers(1, 3), min_size=2, max_size=4))
    top = draw(st.sampled_from([8, 15, 1000]))
    functions = []
    for _ in range(draw(st.integers(1, 4))):
        order = draw(st.permutations(range(len(sizes))))
        scope = tuple(order[: draw(st.integers(0, 2))])
        shape = tuple(sizes[v] for v in scope)
        cells = int(np.prod(shape))
        costs = draw(st.lists(st.integers(0, 9) | st.just(top), min_size=cells, max_size=cells))
        functions.append(table(scope, np.array(costs).reshape(shape)))
    for _ in range(draw(st.integers(0, 2))):
        order = draw(st.permutations(range(len(sizes))))
        scope = tuple(order[: draw(st.integers(2, len(sizes)))])
        kind = draw(st.sampled_from(sorted(KINDS.keys() - {without})))
        functions.append(
            KINDS[kind](
                draw, scope, [sizes[v] for v in scope], draw(st.sampled_from(["hard", "lin", "quad"])), top
            )
        )
    return sizes, top, functions


def knapsack(draw, scope, sizes, metric, top):
    w, c = (
        draw(st.lists(st.integers(-2, 3), min_size=len(scope), max_size=len(scope))),
        draw(st.integers(-3, 4)),
    )
    cost = lambda y: 0.0 if sum(a for a, b in zip(w, y, strict=True) if b == 1) >= c else inf  # noqa: E731
    return intension(scope, "knapsack", [c, *w], {"capacity": c, "weights": w}, cost)


def drawn_weights(draw, sizes):
    return [[draw(st.integers(-2, 3)) for _ in range(n)] for n in sizes]


def by_weights(w, c):
    return lambda y: 0.0 if sum(a[b] for a, b in zip(w, y, strict=True)) >= c else inf


def knapsackp(draw, scope, sizes, metric, top):
    w, c = drawn_weights(draw, sizes), draw(st.integers(-3, 4))
    pairs = [[[a, x] for a, x in enumerate(row)] for row in w]
    flat = [z for row in pairs for z in (len(row), *(n for pair in row for n in pair))]
    return intension(
        scope, "knapsackp", [c, *flat], {"capacity": c, "weightedvalues": pairs}, by_weights(w, c)
    )


def knapsackv(draw, scope, sizes, metric, top):
    w, c = drawn_weights(draw, sizes), draw(st.integers(-3, 4))
    triples = [[v, a, x] for v, row in zip(scope, w, strict=True) for a, x in enumerate(row)]
    named = [[f"x{v}", a, x] for v, a, x in triples]
    flat = [n for triple in triples for n in triple]
    in_cfn = {"capacity": c, "weightedvalues": named}
    return intension(scope, "knapsackv", [c, len(triples), *flat], in_cfn, by_weights(w, c))


def drawn_cost(draw, metric, top):
    return draw(st.integers(1, 3) if metric != "hard" else st.sampled_from([0, 1, 3, top - 1, top, 2 * top]))


def wamong(draw, scope, sizes, metric, top):
    values = draw(st.lists(st.integers(0, 2), min_size=1, max_size=2, unique=True))
    low, high = sorted(draw(st.tuples(st.integers(0, 4), st.integers(0, 4))))
    cost = drawn_cost(draw, metric, top)
    return intension(
        scope,
        "wamong",
        [metric, cost, len(values), *values, low, high],
        {"metric": metric, "cost": cost, "values": values, "min": low, "max": high},
        lambda y: priced(metric, cost, [gap(sum(b in values for b in y), low, high)]),
    )


def wgcc(draw, scope, sizes, metric, top):
    bounds = [[a, *sorted(draw(st.tuples(st.integers(0, 3), st.integers(0, 4))))] for a in range(min(sizes))]
    cost = drawn_cost(draw, metric, top)
    return intension(
        scope,
        "wgcc",
        [metric, cost, len(bounds), *(n for b in bounds for n in b)],
        {"metric": metric, "cost": cost, "bounds": bounds},
        lambda y: priced(metric, cost, [gap(list(y).count(a), low, high) for a, low, high in bounds]),
    )


def walldiff(draw, scope, sizes, metric, top):
    cost = drawn_cost(draw, metric, top)
    return intension(
        scope,
        "walldiff",
        [metric, cost],
        {"metric": metric, "cost": cost},
        lambda y: priced(metric, cost, [gap(list(y).count(a), 0, 1) for a in set(y)]),
    )


def salldiff(draw, scope, sizes, metric, top):
    metric, cost = draw(st.sampled_from(["hard", "var", "dec"])), draw(st.integers(1, 3))
    pairs = {"hard": lambda k: k - 1, "var": lambda k: k - 1, "dec": lambda k: k * (k - 1) // 2}[metric]
    return intension(
        scope,
        "salldiff",
        [metric, cost],
        {"metric": metric, "cost": cost},
        lambda y: float(sum(cost * pairs(list(y).count(a)) for a in set(y))),
    )


def wsum(draw, scope, sizes, metric, top):
    relation = draw(st.sampled_from(["==", "<=", ">="] if metric != "hard" else sorted(RELATIONS)))
    bound, cost = draw(st.integers(0, 5)), drawn_cost(draw, metric, top)
    return intension(
        scope,
        "wsum",
        [metric, cost, relation, bound],
        {"metric": metric, "cost": cost, "comparator": f'"{relation}"', "to": bound},
        lambda y: priced(metric, cost, [RELATIONS[relation](sum(y), bound)]),
    )


def wvarsum(draw, scope, sizes, metric, top):
    relation, cost = draw(st.sampled_from(sorted(RELATIONS))), drawn_cost(draw, "hard", top)
    return intension(
        scope,
        "wvarsum",
        ["hard", cost, relation],
        {"metric": "hard", "cost": cost, "comparator": f'"{relation}"'},
        lambda y: priced("hard", cost, [RELATIONS[relation](sum(y[:-1]), y[-1])]),
    )


def wvaramong(draw, scope, sizes, metric, top):
    value, cost = draw(st.integers(0, 2)), drawn_cost(draw, "hard", top)
    return intension(
        scope,
        "wvaramong",
        ["hard", cost, 1, value],
        {"metric": "hard", "cost": cost, "values": [value]},
        lambda y: priced("hard", cost, [gap(list(y[:-1]).count(value), y[-1], y[-1])]),
    )


def wdiverse(draw, scope, sizes, metric, top):
    values, distance = [draw(st.integers(0, n - 1)) for n in sizes], draw(st.integers(0, len(scope)))
    return intension(
        scope,
        "wdiverse",
        [distance, *values],
        {"distance": distance, "values": values},
        lambda y: 0.0 if sum(a != b for a, b in zip(y, values, strict=True)) >= distance else inf,
    )


def clique(draw, scope, sizes, metric, top):
    values = [draw(st.lists(st.integers(0, n - 1), max_size=2, unique=True)) for n in sizes]
    return intension(
        scope,
        "clique",
        [1, *(n for row in values for n in (len(row), *row))],
        {"rhs": 1, "values": values},
        lambda y: 0.0 if sum(a in row for a, row in zip(y, values, strict=True)) <= 1 else inf,
    )


def soft(cost, delta):
    return max(cost if cost <= delta else inf, 0.0)


def pair(draw, scope, sizes, metric, top):
    keyword = draw(st.sampled_from([">=", ">", "<=", "<", "=", "disj", "sdisj"]))
    p = [draw(st.integers(0, 2)) for _ in range({"disj": 3, "sdisj": 6}.get(keyword, 2))]
    costs = {
        ">=": lambda x, y: soft(y + p[0] - x, p[1]),
        ">": lambda x, y: soft(y + p[0] + 1 - x, p[1]),
        "<=": lambda x, y: soft(x - p[0] - y, p[1]),
        "<": lambda x, y: soft(x - p[0] + 1 - y, p[1]),
        "=": lambda x, y: soft(abs(y + p[0] - x), p[1]),
        "disj": lambda x, y: 0.0 if x >= y + p[1] or y >= x + p[0] else p[2],
        "sdisj": lambda x, y: (
            (p[4] * (x == p[2]) + p[5] * (y == p[3]))
            if x <= p[2] and y <= p[3] and (x == p[2] or y == p[3] or x >= y + p[1] or y >= x + p[0])
            else inf
        ),
    }
    return arithmetic(scope[:2], keyword, p, lambda y: costs[keyword](*y))


KINDS = {
    f.__name__: f
    for f in (
        knapsack,
        knapsackp,
        knapsackv,
        wamong,
        wgcc,
        walldiff,
        salldiff,
        wsum,
        wvarsum,
        wvaramong,
        wdiverse,
        clique,
        pair,
    )
}


def as_wcsp(sizes, top, functions) -> str:
    head = words("p", len(sizes), max(sizes), len(functions), top, "\n", sizes)
    return "\n".join([head, *(f.wcsp for f in functions)])


def as_cfn(sizes, top, functions) -> str:
    variables = " ".join(f"x{v}: {n}" for v, n in enumerate(sizes))
    named = "\n".join(f"f{i}: {f.cfn}" for i, f in enumerate(functions))
    return f'{{problem: {{name: p, mustbe: "<{top}"}}\nvariables: {{{variables}}}\nfunctions: {{{named}}}}}'
