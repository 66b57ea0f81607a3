"""Cost function networks in toulbar2's formats: the least cost is that of the definition, and toulbar2's."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from itertools import product
from math import inf
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, reject, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.io import ProblemFile, read_cfn, read_wcsp, write_cfn, write_wcsp
from tallytree.io.files import Source

in_a_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)


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


def by_definition(sizes, top, functions) -> float | None:
    costs = [
        sum(f.cost([y[v] for v in f.scope]) for f in functions) for y in product(*(range(n) for n in sizes))
    ]
    return min(costs) if min(costs) < top else None


@settings(deadline=None, max_examples=100)
@given(networks())
def test_the_least_cost_is_that_of_the_definition(network):
    expected = by_definition(*network)
    assert least(wcsp(as_wcsp(*network))) == pytest.approx(expected)
    assert least(cfn(as_cfn(*network))) == pytest.approx(expected)


# --- toulbar2 itself ----------------------------------------------------------------------------------------


PEER = """
import sys
import pytoulbar2

for line in sys.stdin:
    network = pytoulbar2.CFN()
    try:
        network.Read(line.strip())
        found = network.Solve()
    except pytoulbar2.pytoulbar2.tb2.Contradiction:
        found = None
    print("cost", None if found is None else found[1], flush=True)
"""


class Peer:
    """toulbar2 in a process of its own; one for each format, which it remembers from file to file."""

    def __init__(self) -> None:
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def __call__(self, path: Path) -> float | None:
        if path.suffix not in self.processes:
            self.processes[path.suffix] = subprocess.Popen(
                [sys.executable, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        process = self.processes[path.suffix]
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        while not (line := process.stdout.readline()).startswith("cost"):
            if not line:  # it crashed, as it does on some networks without a solution
                self.processes.pop(path.suffix).communicate()
                reject()
        return None if line.split()[1] == "None" else float(line.split()[1])


@pytest.fixture(scope="module")
def toulbar2() -> Iterator[Peer]:
    pytest.importorskip("pytoulbar2")
    peer = Peer()
    yield peer
    for process in peer.processes.values():
        process.communicate()


@in_a_folder
@given(network=networks(without="knapsackp"))  # which toulbar2 does not read from .cfn files
def test_toulbar2_agrees_on_files_written_by_hand(network, tmp_path: Path, toulbar2: Peer):
    for suffix, text in ((".wcsp", as_wcsp(*network)), (".cfn", as_cfn(*network))):
        if suffix == ".cfn" and 'type: "<' in text:
            continue  # toulbar2 1.4 takes < of .cfn files for >, and < of .wcsp files for <
        path = tmp_path / f"network{suffix}"
        path.write_text(text)
        ours = {".wcsp": read_wcsp, ".cfn": read_cfn}[suffix](path)
        assert least(ours) == pytest.approx(toulbar2(path))


def simple_problem(drawn, data) -> ProblemFile:
    """A problem that cost function networks have words for, with scores on a lattice."""
    model, _ = drawn
    if len(model) == 0:
        model = tt.Model([2])
    rounded = tt.Model(
        model.cardinalities,
        [
            (scope, np.round(t, 2))
            for block in model.blocks
            for scope, t in zip(
                block.scopes.tolist(),
                np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:])),
                strict=True,
            )
        ],
    )
    single = [
        tt.Statistic(
            [((v,), np.arange(n) % 3 - 1) for v, n in enumerate(rounded.cardinalities.tolist())], name="g"
        ),
        tt.count(rounded, state=0, name="zeros"),
    ]
    low = data.draw(st.integers(-2, 3))
    where = data.draw(
        st.sampled_from([None, f"g >= {low}", f"g - 2*zeros <= {low} and zeros >= 1", f"zeros == {low}"])
    )
    return ProblemFile(rounded, single, where=where)


@in_a_folder
@given(drawn=problems(largest=4), data=st.data())
def test_a_written_problem_has_the_same_optimum(drawn, data, tmp_path: Path):
    problem = simple_problem(drawn, data)
    for suffix, write, read in ((".wcsp", write_wcsp, read_wcsp), (".cfn", write_cfn, read_cfn)):
        path = tmp_path / f"problem{suffix}"
        scale = write(problem, path, decimals=3)
        back = read(path)
        try:
            expected = problem.solve().value
        except tt.InfeasibleError:
            assert least(back) is None
            continue
        assert scale.score(least(back)) == pytest.approx(expected, abs=1e-9)


@in_a_folder
@given(drawn=problems(largest=4), data=st.data())
def test_toulbar2_solves_what_is_written(drawn, data, tmp_path: Path, toulbar2: Peer):
    problem = simple_problem(drawn, data)
    for suffix, write in ((".wcsp", write_wcsp), (".cfn", write_cfn)):
        path = tmp_path / f"problem{suffix}"
        scale = write(problem, path, decimals=3)
        cost = toulbar2(path)
        try:
            expected = problem.solve().value
        except tt.InfeasibleError:
            assert cost is None
            continue
        assert scale.score(cost) == pytest.approx(expected, abs=1e-9)


# --- the formats --------------------------------------------------------------------------------------------


def test_shared_tables_of_wcsp():
    text = "a 4 4 6 1  4 4 4 4  -2 0 1 0 4  0 0 1 1 1 1 2 2 1 3 3 1  " + "".join(
        f"2 {a} {b} 0 -1  " for a, b in [(0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    )
    assert sorted(wcsp(text).solve().assignment.tolist()) == [0, 1, 2, 3]


def test_freedom_of_cfn():
    full = """{"problem": {"name": "p", "mustbe": "<10.0"},
        "variables": {"u": ["a", "b"], "v": 2, "w": -2},
        "functions": {"f": {"scope": ["u", "v"], "defaultcost": "0.25", "costs": ["b", 1, 3.5, "a", 0, -1]},
                      "g": {"scope": [1, 2], "costs": "h"},
                      "h": {"scope": [0, 1], "costs": [[1, 2], [3, 0.5]]}}}"""
    terse = """
# a comment
[[p <10.0] {u [a b] v 2 w 2}
# another
{{scope [u v] defaultcost 0.25 costs [b 1 3.5 a 0 -1]}
 {scope [v w] costs [1 2 3 0.5]} h {scope [u v] costs [1 2 3 .5]}}]"""
    for text in (full, terse):
        problem = cfn(text)
        assert problem.model.score([1, 1, 1]) == -(3.5 + 0.5 + 0.5)
        assert problem.model.score([0, 0, 0]) == -(-1 + 1 + 1)
        assert problem.model.labels([1, 0, 1]).tolist() == ["b", "0", "1"]
        assert problem.model.variables == ("u", "v", "w")
    assert cfn("{{p <5} [2 2] {}}").model.variables is None


def test_maximisation():
    problem = cfn('{{p ">1.5"} {x: 3 y: 2} {f: {scope: [x] costs: [1 2.5 3]} g: {scope: [y] costs: [-1 0]}}}')
    assert problem.solve().value == 3
    assert problem.model.score([0, 0]) == -np.inf
    with pytest.raises(tt.InfeasibleError):
        cfn(
            '{{p ">3.0"} {x: 3 y: 2} {f: {scope: [x] costs: [1 2.5 3]} g: {scope: [y] costs: [-1 0]}}}'
        ).solve()


@pytest.mark.parametrize(
    ("asked", "text", "cost"),  # what toulbar2 says
    [
        ("0001", "wamong hard 3 1 0 4 4", 3),
        ("0001", "wamong hard 100 1 0 4 4", None),
        ("0001", "wamong hard 0 1 0 4 4", 0),
        ("0001", "wamong hard 99 1 0 4 4", 99),
        ("0011", "wgcc hard 3 2 0 0 0 1 0 0", 6),
        ("0011", "wgcc hard 3 2 0 3 4 1 2 4", 3),
        ("0011", "walldiff hard 3", 6),
        ("0001", "walldiff hard 3", 3),
        ("0001", "salldiff hard 3", 6),
        ("0001", "salldiffdp hard 3", 6),
        ("0011", "wsum hard 3 > 4", 3),
        ("0011", "wsum hard 3 != 2", 3),
        ("0111", "wsum hard 3 != 2", 0),
        ("0011", "wvarsum hard 3 <", 3),
        ("0011", "wvaramong hard 3 1 0", 3),
        ("0011", "wvaramong hard 3 1 1", 0),
    ],
)
def test_a_hard_count_below_the_bound_has_a_flat_cost(asked, text, cost):
    single = "".join(f"1 {v} 100 1 {state} 0\n" for v, state in enumerate(asked))
    assert least(wcsp(f"p 4 2 5 100  2 2 2 2\n{single} 4 0 1 2 3 -1 {text}")) == cost


def test_a_hard_count_without_a_cost_forbids():
    text = "{{p <9} [2 2] {c: {scope: [0 1] type: wsum params: {metric: hard comparator: '==' to: 2}}}}"
    assert cfn(text.replace("'", '"')).solve().labels.tolist() == [1, 1]


@pytest.mark.parametrize("text", ["sgcc hard 3 1 0 1 1", "samong hard 3 1 1 1 0", "salldiffkp hard 3"])
def test_a_hard_count_of_another_kind_below_the_bound_is_refused(text):
    with pytest.raises(tt.ModelError, match="has a cost of 3, below the upper bound, which is not supported"):
        wcsp(f"p 2 2 1 100  2 2  2 0 1 -1 {text}")
    wcsp(f"p 2 2 1 3  2 2  2 0 1 -1 {text}").solve()


def test_a_flat_cost_is_for_minimisation():
    count = '{scope: [0 1] type: wsum params: {metric: hard cost: 3 comparator: "==" to: 2}}'
    with pytest.raises(tt.ModelError, match="prices on counts are only supported if costs are minimised"):
        cfn(f'{{{{p ">-100.0"}} [2 2] {{c: {count}}}}}')


@pytest.mark.parametrize("number", ["99999999999999999999", "-99999999999999999999"])
@pytest.mark.parametrize(
    "text",
    [">= {} 1", ">= 1 {}", "< {} 1", "= {} 0", "disj {} 1 1", "disj 1 1 {}", "sdisj {} 1 1 1 1 1",
     "sdisj 1 1 {} 1 1 1", "knapsack {} 1 1", "knapsack 1 {} 1", "wsum hard 3 == {}", "wamong lin 3 1 1 {} 2",
     "wamong hard 3 1 {} 1 2", "knapsackv 1 1 0 1 {}"],
)  # fmt: skip
def test_numbers_beyond_machine_words_are_read_or_refused_in_words(text, number):
    try:
        wcsp(f"p 2 2 1 100  2 2  2 0 1 -1 {text.format(number)}").solve()
    except tt.TallytreeError as error:
        assert not isinstance(error.__cause__, OverflowError)


def test_the_bound_is_on_the_whole_cost():
    text = "p 2 2 2 {top}  2 2  1 0 0 2 0 3 1 9  1 1 0 2 0 4 1 9"
    assert least(wcsp(text.format(top=8))) == 7
    assert least(wcsp(text.format(top=7))) is None


def test_decimals_do_not_blur_the_bound():
    text = '{{p "<0.3"} [2 2] {{scope [0] costs [0.1 0.2]} {scope [1] costs [0.2 0.25]}}}'
    assert least(cfn(text)) is None
    assert least(cfn(text.replace("<0.3", "<0.31"))) == pytest.approx(0.3)


def test_names_survive_where_they_can(tmp_path: Path):
    model = tt.Model([2, 2], [((0, 1), [[0, 1], [2, 0]])], variables=["mo", "tu"], states=["dry", "wet"])
    write_cfn(ProblemFile(model), tmp_path / "a.cfn")
    assert read_cfn(tmp_path / "a.cfn").model.variables == ("mo", "tu")
    assert read_cfn(tmp_path / "a.cfn").model.states == ("dry", "wet")
    odd = tt.Model([2, 2], [((0, 1), [[0, 1], [2, 0]])], variables=["1 a", "b:c"], states=["{", "wet"])
    write_cfn(ProblemFile(odd), tmp_path / "b.cfn")
    assert read_cfn(tmp_path / "b.cfn").model.variables == ("x0", "x1")
    assert read_cfn(tmp_path / "b.cfn").model.states == ("v0", "v1")


@pytest.mark.parametrize(
    ("arguments", "where", "decimals", "message"),
    [
        ({"objective": "score - ones"}, None, 6, "can only maximise the score"),
        ({}, "ones != 1", 6, "cannot express 'ones != 1'"),
        ({}, "ones == 1 or ones == 2", 6, "cannot express"),
        ({}, "flips <= 1", 6, "counts over 2 variables at a time"),
        ({}, None, 16, "decimals must be 0 to 15"),
        ({}, None, 15, "too large for 64 bits; use fewer decimals"),
    ],
)
def test_what_cannot_be_written_is_refused(arguments, where, decimals, message, tmp_path: Path):
    model = tt.Model.chain([[0, 1e6], [0, 1]], [[0, 1], [1, 0]])
    flips = tt.Statistic([((0, 1), [[0, 1], [1, 0]])], name="flips")
    problem = ProblemFile(model, [tt.count(state=1, name="ones"), flips], where=where, **arguments)
    for write in (write_wcsp, write_cfn):
        with pytest.raises(tt.ModelError, match=message):
            write(problem, tmp_path / "x", decimals=decimals)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected the name of the problem, got the end of the file"),
        ("p 2", "expected the number of variables, at most 0"),
        ("p 1 2 0 5 0", "expected the number of states of variable 0, got '0'"),
        ("p 1 2 1 5 2 1 1 0 0", "expected a variable of function 0, 0 to 0, got '1'"),
        ("p 2 2 1 5 2 2 2 0 0 0 0", "expected distinct variables of function 0"),
        ("p 1 2 1 5 2 1 0 0 1 2 7", "expected a state, 0 to 1, got '2'"),
        ("p 1 2 1 5 2 1 0 0 1 1 -7", "expected a non-negative cost, got '-7'"),
        ("p 1 2 1 5 2 1 0 0 9 1 7", "expected the number of entries of function 0, at most 1"),
        ("p 1 2 1 5 2 1 0 0 -1", "expected the number of a shared function of the same shape, got '-1'"),
        (
            "p 1 2 1 5 2 1 0 -1 sregular var 1 2",
            "column 20: the cost function 'sregular' is not supported; use tables",
        ),
        ("p 1 2 1 5 2 1 0 -1 wamong hard x", "expected a cost, got 'x'"),
        ("p 1 2 1 5 2 1 0 -1 wamong soft 1 1 0 0 1", "column 20: the metric 'soft' is not supported"),
        ("p 1 2 1 5 2 1 0 -1 wsum hard 5 ~ 1", "unknown comparator '~'"),
        ("p 1 2 1 5 2 1 0 -1 wsum lin 5 < 1", "prices on '<' are not supported"),
        ("p 1 2 1 5 2 1 0 -1 >= 1 1", "'>=' takes two variables and 2 parameters"),
        ("p 1 2 1 5 2 1 0 -1 knapsackv 1 1 5 0 1", "uses variable 5, which is not in its scope"),
        ("p 1 2 1 5 2 1 0 -1 knapsackp 1 1 9 1", "there is no value 9; values are 0 to 1"),
        (
            "p 1 2 1 5 2 1 0 -1 sgcc wdec 5 1 0 0 1 1 1",
            "expected the metric hard, lin, quad or dec, got 'wdec'",
        ),
        ("p 1 2 0 5 2 7", "expected the end of the file, got '7'"),
    ],
)
def test_malformed_wcsp_is_refused_where_it_is_wrong(text, message):
    with pytest.raises(tt.ModelError, match=re.escape(message)):
        wcsp(text)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "file: expected one pair of brackets around everything"),
        ("{", "file, line 1: this bracket is never closed"),
        ("}", "file, line 1: unmatched closing bracket '}'"),
        ('{"a', "file, line 1: a quote is not closed on its line"),
        ("[" * 50, "nested over 32 levels deep"),
        ("{a}", "expected problem, variables and functions, got 0 parts"),
        ("{{p} {} {}}", "expected a name and a bound, such as mustbe"),
        ("{{p <x} {} {}}", "expected a decimal number, got 'x'"),
        ("{{p <1e5} {} {}}", "expected a decimal number, got '1e5'"),
        ("{{p <5} {x} {}}", "expected a domain for each variable name"),
        ("{{p <5}\n{x 2 x 2} {}}", "file, line 2: expected distinct variable names"),
        ("{{p <5} {x 0} {}}", "expected a number of values, 1 to"),
        ("{{p <5} {x [a a]} {}}", "expected distinct names of values"),
        ("{{p <5} {x 2} {f {scope [x]}}}", "a function needs a scope, and costs or a type"),
        ("{{p <5} {x 2} {f {scope [y] costs [1 2]}}}", "expected the name or number of a variable, got 'y'"),
        ("{{p <5} {x 2} {f {scope [x x] costs [1 2]}}}", "a scope must not repeat a variable"),
        ("{{p <5} {x 2} {f {scope [x] costs [1]}}}", "expected 2 costs, got 1"),
        ("{{p <5} {x 2} {f {scope [x] costs [1 b]}}}", "expected a decimal number, got 'b'"),
        (
            "{{p <5} {x 2} {f {scope [x] defaultcost 0 costs [1]}}}",
            "expected groups of 1 values and a cost",
        ),
        (
            "{{p <5} {x 2} {f {scope [x] defaultcost 0 costs [2 1]}}}",
            "expected a value of the variable, 0 to 1",
        ),
        ("{{p <5} {x 2} {f {scope [x] costs g}}}", "unknown function 'g' to share costs with"),
        (
            "{{p <5} {x 2 y 3} {f {scope [x] costs g} g {scope [y] costs [1 2 3]}}}",
            "different numbers of values",
        ),
        (
            "{{p <5} {x 2} {f {scope [x] cost [1 2]}}}",
            "expected one of scope, defaultcost, costs, type, params",
        ),
        ("{{p <5} {x 2} {f {scope [x] type MST}}}", "the cost function 'MST' is not supported"),
        ("{{p <5} {x 2} {f {scope [x] type wsum params {}}}}", "wsum needs the parameter 'comparator'"),
        ("{{p <5} {x 2} {f {scope [x] type wamong params {values 3 min 0 max 1}}}}", "are malformed"),
        (
            '{{p ">5"} {x 2} {f {scope [x] type wamong params {metric lin cost 1 values [0] min 0 max 0}}}}',
            "prices on counts are only supported if costs are minimised",
        ),
    ],
)
def test_malformed_cfn_is_refused_where_it_is_wrong(text, message):
    with pytest.raises(tt.ModelError, match=re.escape(message)):
        cfn(text)


def test_a_declaration_makes_no_table():
    with pytest.raises(tt.BudgetError):
        wcsp("p 3 2 1 5  2000000000 2000000000 2 2 0 1 0 0")
    with pytest.raises(tt.BudgetError):
        wcsp("p 3 2 1 5  2000000000 2000000000 2 2 0 1 -1 = 0 1")
    with pytest.raises(tt.BudgetError):
        wcsp("p 3 2 1 5  2000000000 2000000000 2 2 0 1 -1 walldiff hard 5")
    with pytest.raises(tt.BudgetError):
        cfn("{{p <5} [2000000000 2000000000] {{scope [0 1] defaultcost 0 costs []}}}")


# --- fuzzing ------------------------------------------------------------------------------------------------

ODD = st.sampled_from(
    [
        "0",
        "-1",
        "1",
        "7",
        "2.5",
        "1e400",
        "nan",
        "9" * 30,
        "x0",
        "hard",
        "{",
        "]",
        '"',
        "#",
        "wamong",
        "knapsackp",
        "\xff",
    ]
)


@settings(deadline=None, max_examples=60)
@given(network=networks(), data=st.data())
def test_mutations_are_read_or_refused(network, data):
    for read, text in ((wcsp, as_wcsp(*network)), (cfn, as_cfn(*network))):
        parts = re.split(r"(\s)", text)
        for _ in range(data.draw(st.integers(1, 3))):
            parts[data.draw(st.integers(0, len(parts) - 1))] = data.draw(ODD)
        try:
            problem = read("".join(parts))
            problem.solve(memory_limit=1e8, operation_limit=1e7)
        except tt.TallytreeError:
            continue


@settings(deadline=None)
@given(noise=st.binary(max_size=120), front=st.sampled_from([b"", b"p 1 2 1 5 2 ", b"{{p <5} {x 2} {f {"]))
@example(noise=b"\x00", front=b"")
def test_noise_is_read_or_refused(noise, front):
    for read in (wcsp, cfn):
        try:
            read(front + noise)
        except tt.TallytreeError:
            continue
