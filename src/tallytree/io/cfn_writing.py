"""Writing problems as cost function networks in toulbar2's ``.cfn`` format."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import count

from tallytree.io.files import PathLike, write_atomically
from tallytree.io.network_writing import CostScale, IntegerNetwork, integer_network
from tallytree.io.problems import ProblemFile
from tallytree.model.model import Model

_PLAIN_NAME = re.compile(r'[^0-9\-.+\s/#\[\]{}",:][^\s/#\[\]{}",:]*')


def write_cfn(problem: ProblemFile, path: PathLike, *, decimals: int | None = None) -> CostScale:
    """Write a problem as a cost function network, to be minimised.

    Costs are decimals: a score ``f`` of a table whose largest score is ``m`` costs ``m - f``, rounded to the
    given decimals. The constraint is written as knapsacks, which have the names of the statistics that they
    limit. Names of variables and of states are kept if the format supports all of them.

    Parameters
    ----------
    problem, path, decimals
        As for :func:`write_wcsp`.

    Returns
    -------
    CostScale
        Converts a cost back to a score.

    Raises
    ------
    ModelError
        As for :func:`write_wcsp`.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tallytree import Model, count
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "one.cfn"
    >>> model = Model([2, 2], [((0,), [0, 1.5])], variables=["mo", "tu"])
    >>> problem = ProblemFile(model, [count(state=1, name="ones")], where="ones <= 1")
    >>> scale = write_cfn(problem, file, decimals=1)
    >>> print(file.read_text().strip())
    {"problem": {"name": "tallytree", "mustbe": "<1.6"},
     "variables": {"mo": 2, "tu": 2},
     "functions": {
      "f0": {"scope": ["mo"], "costs": [1.5, 0.0]},
      "ones": {"scope": ["mo", "tu"], "type": "knapsackv", "params": {"capacity": -1,
       "weightedvalues": [["mo", 1, -1], ["tu", 1, -1]]}}
     }}
    >>> scale.score(0.1)
    1.4
    """
    network = integer_network(problem, decimals)
    write_atomically(path, _lines(problem, network))
    return CostScale(network.scale.offset, 1.0)


def _lines(problem: ProblemFile, network: IntegerNetwork) -> Iterator[str]:
    model = problem.model
    variables = _written(model.variables, len(model), "x")
    yield f'{{"problem": {{"name": "tallytree", "mustbe": "<{_decimal(network.top, network.decimals)}"}},'
    domains = (
        f'"{name}": {_domain_text(model.states_of(v), n)}'
        for v, (name, n) in enumerate(zip(variables, network.cardinalities, strict=True))
    )
    yield f' "variables": {{{", ".join(domains)}}},'
    yield ' "functions": {'
    functions = list(_function_lines(network, variables))
    yield from (f"{line}," for line in functions[:-1])
    yield from functions[-1:]
    yield " }}"


def _function_lines(network: IntegerNetwork, variables: Sequence[str]) -> Iterator[str]:
    counts, tables = _function_names(network)
    for name, (scope, table) in zip(tables, network.tables, strict=True):
        among = ", ".join(f'"{variables[v]}"' for v in scope)
        costs = ", ".join(_decimal(cost, network.decimals) for cost in table.ravel().tolist())
        yield f'  "{name}": {{"scope": [{among}], "costs": [{costs}]}}'
    for name, knapsack in zip(counts, network.knapsacks, strict=True):
        among = ", ".join(f'"{variables[v]}"' for v in knapsack.variables)
        triples = ", ".join(f'["{variables[v]}", {a}, {weight}]' for v, a, weight in knapsack.triples)
        yield (
            f'  "{name}": {{"scope": [{among}], "type": "knapsackv", "params": '
            f'{{"capacity": {knapsack.capacity},\n   "weightedvalues": [{triples}]}}}}'
        )


def _function_names(network: IntegerNetwork) -> tuple[list[str], list[str]]:
    """Return distinct names for the counts and the tables.

    A count has the name of its statistic. If a statistic has several limits, such as both ends of a range,
    the others are called ``ones_2``, ``ones_3`` and so on; the reader joins them again.
    """
    given = [k.name if k.name and _PLAIN_NAME.fullmatch(k.name) else None for k in network.knapsacks]
    names = _Names({name for name in given if name is not None})
    counts = [names.unused(f"c{k}") if name is None else names.of(name) for k, name in enumerate(given)]
    return counts, [names.unused(f"f{number}") for number in range(len(network.tables))]


class _Names:
    """Distinct names; the `reserved` ones are kept for their first use."""

    def __init__(self, reserved: set[str]) -> None:
        self._fresh, self._taken = set(reserved), set(reserved)
        self._numbers: dict[str, Iterator[int]] = {}

    def of(self, name: str) -> str:
        """Return a reserved name, at first unchanged, then with a number appended."""
        if name in self._fresh:
            self._fresh.remove(name)
            return name
        return self.unused(name)

    def unused(self, name: str) -> str:
        """Return a name, with a number appended if it is taken."""
        numbers = self._numbers.setdefault(name, count(2))
        chosen = name
        while chosen in self._taken:
            chosen = f"{name}_{next(numbers)}"
        self._taken.add(chosen)
        return chosen


def _decimal(cost: int, decimals: int) -> str:
    """Write ``cost / 10**decimals`` exactly."""
    if decimals == 0:
        return str(cost)
    whole, rest = divmod(cost, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}"


def unsupported_names(model: Model) -> tuple[str | None, str | None]:
    """Return the first name of a variable, and the first of a state, that the format cannot store."""
    states = (name for v in range(len(model)) for name in model.states_of(v) or ())
    variable, state = (
        next((name for name in names if not _PLAIN_NAME.fullmatch(name)), None)
        for names in (model.variables or (), states)
    )
    return variable, state


def _written(names: Sequence[str] | None, size: int, letter: str) -> list[str]:
    if names is not None and all(_PLAIN_NAME.fullmatch(name) for name in names):
        return list(names)
    return [f"{letter}{i}" for i in range(size)]


def _domain_text(names: Sequence[str] | None, size: int) -> str:
    if names is None:
        return str(size)
    return "[" + ", ".join(f'"{name}"' for name in _written(names, size, "v")) + "]"
