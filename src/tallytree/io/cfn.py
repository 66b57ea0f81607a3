"""Cost function networks in toulbar2's ``.cfn`` format: relaxed JSON with decimal costs.

    {problem: {name: week, mustbe: "<100.0"}
     variables: {mo: [dry wet], tu: [dry wet]}
     functions: {f: {scope: [mo tu], costs: [0 1.5 1.5 0]},
                 most: {scope: [mo tu], type: wamong,
                        params: {metric: hard cost: 100 values: [1] min: 0 max: 1}}}}

A file is a tree of words (``cfn_words.py``); their meaning depends on their order, and some tags may be
omitted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.io.cfn_words import Group, Item, Word, tree
from tallytree.io.counts import ARITHMETIC, arithmetic_table, counted
from tallytree.io.factors import MOST_AXES
from tallytree.io.files import Readable, source
from tallytree.io.networks import Network
from tallytree.io.problems import ProblemFile

MOST_STATES = 2**31 - 1
LONGEST_NUMBER = 40
EXPANSION = 200  # a word of two bytes becomes two objects with their position

Scope = tuple[int, ...]

_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)")
_BOUND = re.compile(r"([<>])(.*)")


def read_cfn(path: Readable) -> ProblemFile:
    """Read a cost function network.

    Parameters
    ----------
    path : path
        A ``.cfn`` file: tables, arithmetic functions of two variables, and count constraints.

    Returns
    -------
    ProblemFile
        Scores are negated costs, or the costs themselves if the file asks for a maximum
        (``mustbe: ">…"``). Entries that no solution within the bound can have are forbidden. Count
        constraints become statistics with conditions, and prices on them become terms of the objective.

    Raises
    ------
    ModelError
        The text does not follow the format, or a cost function is neither a table nor a count.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.cfn"
    >>> _ = file.write_text('''
    ... {problem: {name: two, mustbe: "<10.0"}
    ...  variables: {mo: [dry wet], tu: [dry wet]}
    ...  functions: {f: {scope: [mo tu], costs: [1.5 0.5 0.5 0]}
    ...              wet: {scope: [mo tu], type: wsum,
    ...                    params: {metric: hard cost: 10 comparator: "<=" to: 1}}}}''')
    >>> problem = read_cfn(file)
    >>> problem.solve()
    Solution(value=-0.5, score=-0.5, tally=(wet=1))
    """
    origin = source(path, EXPANSION)
    reader = _Reader(origin.name)
    return reader.problem(tree(origin))


# --- what the words mean ------------------------------------------------------------------------------------


class _Reader:
    """Reads the parts in the order of the format."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.digits = 0
        self.variables: dict[str, int] = {}
        self.states: list[list[str] | None] = []
        self.sizes: list[int] = []

    def problem(self, whole: Group) -> ProblemFile:
        parts = [item for item in whole.items if isinstance(item, Group)]
        if len(parts) != 3:
            raise self._error(whole, f"expected problem, variables and functions, got {len(parts)} parts")
        bound, maximise = self._bound(parts[0])
        named = self._variables(parts[1])
        network = Network(self.sizes, bound, maximise=maximise)
        self._functions(parts[2], network)
        network.step = 10.0**-self.digits
        try:
            return network.problem(
                variables=list(self.variables) if named else None, states=self._state_names()
            )
        except ModelError as error:
            raise ModelError(f"{self.file}: {error}") from None

    def _error(self, item: Item, text: str) -> ModelError:
        return ModelError(f"{self.file}, line {item.line}: {text}")

    def _bound(self, group: Group) -> tuple[float, bool]:
        """Read ``{name: p, mustbe: "<10.0"}``; the words ``name`` and ``mustbe`` may be missing."""
        words = [item for item in group.items if isinstance(item, Word)]
        match = _BOUND.fullmatch(words[-1].text) if words else None
        if match is None:
            raise self._error(group, 'expected a name and a bound, such as mustbe: "<10.0"')
        return self.number(Word(match[2], words[-1].line)), match[1] == ">"

    def number(self, item: Item) -> float:
        """Take a decimal number."""
        text = item.text if isinstance(item, Word) else "a list"
        if len(text) > LONGEST_NUMBER or not _NUMBER.fullmatch(text):
            raise self._error(item, f"expected a decimal number, got {text[:40]!r}")
        self.digits = max(self.digits, len(text.partition(".")[2]))
        return float(text)

    def whole(self, item: Item) -> int:
        """Take an integer."""
        number = self.number(item)
        if number != int(number) or abs(number) >= 2**53:
            raise self._error(item, f"expected an integer, got {number:g}")
        return int(number)

    def _variables(self, group: Group) -> bool:
        """Read sizes or lists of states, with or without names; return whether there are names."""
        items = list(group.items)
        named = bool(items) and isinstance(items[0], Word) and not _NUMBER.fullmatch(items[0].text)
        if named and len(items) % 2:
            raise self._error(group, "expected a domain for each variable name")
        names = items[::2] if named else [Word(f"x{i}", group.line) for i in range(len(items))]
        for name, domain in zip(names, items[1::2] if named else items, strict=True):
            if not isinstance(name, Word) or name.text in self.variables:
                raise self._error(name, "expected distinct variable names")
            self.variables[name.text] = len(self.variables)
            self._domain(domain)
        return named

    def _domain(self, domain: Item) -> None:
        if isinstance(domain, Group):
            states = [item.text for item in domain.items if isinstance(item, Word)]
            if not states or len(set(states)) < len(domain.items):
                raise self._error(domain, "expected distinct names of values")
            self.states.append(states)
            self.sizes.append(len(states))
            return
        size = abs(self.whole(domain))
        if not 1 <= size <= MOST_STATES:
            raise self._error(domain, f"expected a number of values, 1 to {MOST_STATES}")
        self.states.append(None)
        self.sizes.append(size)

    def _state_names(self) -> list[list[str]] | None:
        """Return names for all variables, if any has names and there are few enough numbers to write out."""
        if not any(states is not None for states in self.states):
            return None
        total = sum(n for n, states in zip(self.sizes, self.states, strict=True) if states is None)
        if total > 1_000_000:
            return None
        pairs = zip(self.sizes, self.states, strict=True)
        return [states if states is not None else [str(a) for a in range(n)] for n, states in pairs]

    # --- functions ----------------------------------------------------------------------------------------

    def _functions(self, group: Group, network: Network) -> None:
        later: list[tuple[Scope, Word]] = []
        tables: dict[str, tuple[Scope, NDArray[np.float64]]] = {}
        name = ""
        for number, item in enumerate(group.items):
            if isinstance(item, Word):
                name = item.text
                continue
            self._function(name or f"function_{number}", item, network, later, tables)
            name = ""
        for scope, reference in later:
            if reference.text not in tables:
                raise self._error(reference, f"unknown function {reference.text[:40]!r} to share costs with")
            shape, costs = tables[reference.text]
            if shape != network.shape(scope):
                raise self._error(reference, "the two functions have different numbers of values")
            network.add(scope, costs)

    def _function(
        self,
        name: str,
        group: Group,
        network: Network,
        later: list[tuple[Scope, Word]],
        tables: dict[str, tuple[Scope, NDArray[np.float64]]],
    ) -> None:
        parts = self._tagged(group, ("scope", "defaultcost", "costs", "type", "params"))
        if "scope" not in parts or not ({"costs", "type"} & parts.keys()):
            raise self._error(group, "a function needs a scope, and costs or a type")
        scope = self._scope(parts["scope"])
        if "type" in parts:
            self._intension(name, group, scope, parts, network)
            return
        costs = parts["costs"]
        if isinstance(costs, Word):
            later.append((scope, costs))
            return
        if len(scope) > MOST_AXES:
            raise self._error(group, f"a table can have at most {MOST_AXES} variables")
        shape = network.shape(scope)
        table = (
            self._sparse(parts["defaultcost"], costs, scope, shape)
            if "defaultcost" in parts
            else self._dense(costs, shape)
        )
        tables[name] = (shape, table)
        network.add(scope, table)

    def _tagged(self, group: Group, tags: Sequence[str]) -> dict[str, Item]:
        """Take ``tag item tag item …``."""
        items = list(group.items)
        tagged: dict[str, Item] = {}
        for tag, item in zip(items[::2], items[1::2], strict=False):
            if not isinstance(tag, Word) or tag.text not in tags or tag.text in tagged:
                raise self._error(tag, f"expected one of {', '.join(tags)}, at most once each")
            tagged[tag.text] = item
        if len(items) % 2:
            raise self._error(group, f"expected a value after each of {', '.join(tags)}")
        return tagged

    def _scope(self, item: Item) -> Scope:
        if not isinstance(item, Group):
            raise self._error(item, "expected a list of variables")
        scope = tuple(self._variable(one) for one in item.items)
        if len(set(scope)) < len(scope):
            raise self._error(item, "a scope must not repeat a variable")
        return scope

    def _variable(self, item: Item) -> int:
        if isinstance(item, Word) and item.text in self.variables:
            return self.variables[item.text]
        text = item.text if isinstance(item, Word) else ""
        if not (text.isascii() and text.isdigit() and len(text) < 12 and int(text) < len(self.sizes)):
            raise self._error(item, f"expected the name or number of a variable, got {text[:40]!r}")
        return int(text)

    def _value(self, item: Item, variable: int) -> int:
        states, size = self.states[variable], self.sizes[variable]
        if isinstance(item, Word) and states is not None and item.text in states:
            return states.index(item.text)
        value = self.whole(item)
        if not 0 <= value < size:
            raise self._error(item, f"expected a value of the variable, 0 to {size - 1}, or its name")
        return value

    def _flat(self, item: Item) -> list[Item]:
        """Flatten nested lists of words."""
        if isinstance(item, Word):
            return [item]
        return list(chain.from_iterable(map(self._flat, item.items)))

    def _dense(self, costs: Group, shape: Scope) -> NDArray[np.float64]:
        entries = self._flat(costs)
        if len(entries) != prod(shape):
            raise self._error(costs, f"expected {prod(shape)} costs, got {len(entries)}")
        return np.array([self.number(entry) for entry in entries], dtype=np.float64).reshape(shape)

    def _sparse(self, default: Item, costs: Group, scope: Scope, shape: Scope) -> NDArray[np.float64]:
        table = np.full(shape, self.number(default))
        entries, size = self._flat(costs), len(scope) + 1
        if len(entries) % size:
            raise self._error(costs, f"expected groups of {size - 1} values and a cost")
        for at in range(0, len(entries), size):
            place = tuple(self._value(entries[at + i], v) for i, v in enumerate(scope))
            table[place] = self.number(entries[at + size - 1])
        return table

    def _intension(
        self, name: str, group: Group, scope: Scope, parts: dict[str, Item], network: Network
    ) -> None:
        keyword = parts["type"].text if isinstance(parts["type"], Word) else ""
        given = parts.get("params", Group((), group.line))
        if keyword in ARITHMETIC:
            if network.sign < 0:
                raise self._error(
                    group, "arithmetic cost functions are only supported if costs are minimised"
                )
            table = arithmetic_table(
                keyword, network.shape(scope), [self.number(p) for p in self._flat(given)]
            )
            network.add(scope, table)
            return
        if not isinstance(given, Group):
            raise self._error(given, "expected the parameters of the function in brackets")
        parameters = self._parameters(given)
        try:
            for one in counted(keyword, scope, network.sizes(scope, keyword, parameters), parameters):
                network.count(name, one)
        except ModelError as error:
            raise self._error(group, str(error)) from None

    def _parameters(self, group: Group) -> dict[str, Any]:
        """Take the parameters of a count; the variables of a knapsack are resolved, the rest are numbers."""
        tags = ("capacity", "weights", "weightedvalues", "metric", "cost", "bounds", "values", "min", "max")
        tagged = self._tagged(group, (*tags, "comparator", "to", "rhs", "distance"))
        return {tag: self._plain(item, tag == "weightedvalues") for tag, item in tagged.items()}

    def _plain(self, item: Item, variables: bool) -> Any:
        if isinstance(item, Group):
            return [self._plain(one, variables) for one in item.items]
        if variables and item.text in self.variables:
            return self.variables[item.text]
        if not _NUMBER.fullmatch(item.text):
            return item.text
        number = self.number(item)
        return int(number) if number == int(number) else number
