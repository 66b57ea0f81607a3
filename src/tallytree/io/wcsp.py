"""Cost function networks in toulbar2's ``.wcsp`` format: words and integers, as in UAI files.

A file has a header, the numbers of states and the cost functions::

    name 3 2 2 100            name, variables, largest number of states, functions, upper bound
    2 2 2                     the numbers of states
    2 0 1  0 1                a function over two variables: default cost 0, and 1 entry
    1 1 7                       that differs: states 1 and 1 cost 7
    3 0 1 2  -1 wamong hard 100 1 1 0 2       default -1: a keyword with its parameters follows

A scope with a negative length starts a function whose table others share, by its number; the number of
entries of those others is the negative of that number.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.io.counts import ARITHMETIC, Parameters, arithmetic_table, counted
from tallytree.io.factors import MOST_AXES
from tallytree.io.files import PathLike, Readable, write_atomically
from tallytree.io.network_writing import CostScale, IntegerNetwork, integer_network
from tallytree.io.networks import Network
from tallytree.io.problems import ProblemFile
from tallytree.io.words import Words

MOST_STATES = 2**31 - 1
EXPANSION = 128  # a function of eight bytes becomes a separate table
Scope = tuple[int, ...]


def read_wcsp(path: Readable) -> ProblemFile:
    """Read a cost function network.

    Parameters
    ----------
    path : path
        A ``.wcsp`` file: tables, arithmetic functions of two variables, and count constraints.

    Returns
    -------
    ProblemFile
        Scores are negated costs. Entries that no solution below the upper bound can have are
        forbidden. Count constraints become statistics with conditions, prices on them terms of the objective.

    Raises
    ------
    ModelError
        The text does not follow the format, or a cost function is neither a table nor a count.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.wcsp"
    >>> _ = file.write_text("two 2 2 2 10   2 2   1 0 0 1  0 3   2 0 1 -1 wsum hard 10 == 1")
    >>> problem = read_wcsp(file)
    >>> problem.where.text, problem.solve()
    ('(wsum_1 >= 1 and wsum_1 <= 1)', Solution(value=0, score=0, tally=(wsum_1=1)))
    """
    words = Words(path, EXPANSION)
    words.word("the name of the problem")
    variables = words.length("variables")
    words.whole("the largest number of states")
    functions = words.length("cost functions", each=3)
    top = words.integer("the upper bound")
    sizes = [words.integer(f"the number of states of variable {v}", -MOST_STATES) for v in range(variables)]
    for v, size in enumerate(sizes):
        if not 1 <= abs(size) <= MOST_STATES:
            words.refuse(words.at - variables + v, f"the number of states of variable {v}")
    network = Network(list(map(abs, sizes)), float(top))
    shared: list[_Shared] = []
    for number in range(functions):
        _function(words, network, number, shared)
    words.finish()
    return network.problem()


class _Shared(NamedTuple):
    shape: tuple[int, ...]
    table: NDArray[np.float64]


def _function(words: Words, network: Network, number: int, shared: list[_Shared]) -> None:
    start = words.at
    arity = words.integer(f"the number of variables of function {number}", -MOST_AXES, len(words.words))
    scope = _scope(words, network, abs(arity), number)
    default = words.integer(f"the default cost of function {number}", -1)
    if default == -1:
        _intension(words, network, scope, number)
        return
    if len(scope) > MOST_AXES:
        words.refuse(start, f"at most {MOST_AXES} variables in a table")
    shape = network.shape(scope)
    entries = words.integer(f"the number of entries of function {number}")
    if entries < 0:
        if -entries > len(shared) or shared[-entries - 1].shape != shape:
            words.refuse(words.at - 1, "the number of a shared function of the same shape")
        table = shared[-entries - 1].table
    else:
        words.at -= 1
        table = _table(words, shape, float(default), number)
    if arity < 0:
        shared.append(_Shared(shape, table))
    network.add(scope, table)


def _scope(words: Words, network: Network, arity: int, number: int) -> Scope:
    high = len(network.cardinalities) - 1
    if arity > words.left:
        words.refuse(words.at - 1, f"the number of variables of function {number}")
    scope = tuple(words.whole(f"a variable of function {number}, 0 to {high}", 0, high) for _ in range(arity))
    if len(set(scope)) < len(scope):
        words.refuse(words.at - 1, f"distinct variables of function {number}")
    return scope


def _table(words: Words, shape: tuple[int, ...], default: float, number: int) -> NDArray[np.float64]:
    table = np.full(shape, default)
    for _ in range(words.length(f"entries of function {number}", each=len(shape) + 1)):
        place = tuple(words.whole(f"a state, 0 to {n - 1}", 0, n - 1) for n in shape)
        table[place] = words.integer("a non-negative cost", 0)
    return table


# --- cost functions in intension ----------------------------------------------------------------------------


def _intension(words: Words, network: Network, scope: Scope, number: int) -> None:
    keyword = words.word("the keyword of a cost function").decode("ascii", "backslashreplace")
    at = words.at - 1
    if keyword in ARITHMETIC:
        parameters = [words.integer("a parameter") for _ in range(ARITHMETIC[keyword][0])]
        with words.blamed(at):
            network.add(scope, arithmetic_table(keyword, network.shape(scope), parameters))
        return
    read = _PARAMETERS.get(keyword)
    values = read(words, len(scope)) if read else {}
    with words.blamed(at):
        for one in counted(keyword, scope, network.sizes(scope, keyword, values), values):
            network.count(f"{keyword}_{number}", one)


def _list(words: Words, what: str = "values") -> list[int]:
    return [words.integer("a value") for _ in range(words.length(what))]


def _tuples(words: Words, size: int) -> list[list[int]]:
    count = words.length("tuples", each=size)
    return [[words.integer("a number") for _ in range(size)] for _ in range(count)]


def _priced(words: Words) -> dict[str, Any]:
    metric = words.word("a metric").decode("ascii", "backslashreplace")
    return {"metric": metric, "cost": words.integer("a cost", 0)}


def _capacity(words: Words) -> dict[str, Any]:
    return {"capacity": words.integer("a capacity")}


def _comparator(words: Words) -> dict[str, Any]:
    return {"comparator": words.word("a comparator").decode("ascii", "backslashreplace")}


def _global_cardinality(words: Words, arity: int) -> Parameters:
    priced = _priced(words)
    if priced["metric"] == "wdec":
        words.refuse(words.at - 2, "the metric hard, lin, quad or dec")
    return {**priced, "bounds": _tuples(words, 3)}


_PARAMETERS: dict[str, Callable[[Words, int], Parameters]] = {
    "knapsack": lambda w, n: {**_capacity(w), "weights": [w.integer("a weight") for _ in range(n)]},
    "knapsackp": lambda w, n: {**_capacity(w), "weightedvalues": [_tuples(w, 2) for _ in range(n)]},
    "knapsackv": lambda w, n: {**_capacity(w), "weightedvalues": _tuples(w, 3)},
    "wamong": lambda w, n: {
        **_priced(w),
        "values": _list(w),
        "min": w.integer("a bound"),
        "max": w.integer("a bound"),
    },
    **dict.fromkeys(
        ("samong", "samongdp"),
        lambda w, n: {
            **_priced(w),
            "min": w.integer("a bound"),
            "max": w.integer("a bound"),
            "values": _list(w),
        },
    ),
    **dict.fromkeys(("wgcc", "sgcc"), _global_cardinality),
    **dict.fromkeys(("walldiff", "salldiff", "salldiffdp", "salldiffkp"), lambda w, n: _priced(w)),
    "wsum": lambda w, n: {**_priced(w), **_comparator(w), "to": w.integer("a number")},
    "wvarsum": lambda w, n: {**_priced(w), **_comparator(w)},
    "wvaramong": lambda w, n: {**_priced(w), "values": _list(w)},
    **dict.fromkeys(
        ("wdiverse", "whdiverse", "wtdiverse"),
        lambda w, n: {
            "distance": w.integer("a distance"),
            "values": [w.integer("a value") for _ in range(n)],
        },
    ),
    "clique": lambda w, n: {"rhs": w.integer("a bound"), "values": [_list(w) for _ in range(n)]},
}


# --- writing ------------------------------------------------------------------------------------------------


def write_wcsp(problem: ProblemFile, path: PathLike, *, decimals: int | None = None) -> CostScale:
    """Write a problem as a cost function network.

    Costs are non-negative integers: a score ``f`` of a table whose largest score is ``m``
    costs ``(m - f) · 10**decimals``, rounded. The constraint is written as knapsacks.

    Parameters
    ----------
    problem : ProblemFile
        A model, optionally with a constraint: comparisons joined by ``and``, of statistics over single
        variables. The format has no objective other than the score.
    path : path
        The file to write. An existing file is replaced.
    decimals : int, optional
        The number of decimals of a score to keep; by default as many as needed, at most fifteen, and as many
        as costs can have that doubles hold exactly. If scores are rounded by more than their own rounding, a
        warning says by how much.

    Returns
    -------
    CostScale
        Converts a cost back to a score.

    Raises
    ------
    ModelError
        The problem has an objective, or a constraint that the format cannot express.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from tallytree import Model, count
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "one.wcsp"
    >>> model = Model([2, 2], [((0,), [0, 1.5])])
    >>> problem = ProblemFile(model, [count(state=1, name="ones")], where="ones <= 1")
    >>> scale = write_wcsp(problem, file, decimals=1)
    >>> print(file.read_text().strip())
    tallytree 2 2 2 16
    2 2
    1 0 0 1
    0 15
    2 0 1 -1 knapsackv -1 2 0 1 -1 1 1 -1
    >>> scale.score(0)
    1.5
    """
    network = integer_network(problem, decimals)
    write_atomically(path, _lines(network), encoding="ascii")
    return network.scale


def _lines(network: IntegerNetwork) -> Iterator[str]:
    sizes = network.cardinalities
    functions = len(network.tables) + len(network.knapsacks)
    yield f"tallytree {len(sizes)} {max(sizes, default=0)} {functions} {network.top}"
    yield " ".join(map(str, sizes))
    for scope, table in network.tables:
        default = 0 if scope else int(table)
        others: list[list[int]] = np.argwhere(table != default).tolist()
        yield " ".join(map(str, (len(scope), *scope, default, len(others))))
        for place in others:
            yield " ".join(map(str, (*place, int(table[tuple(place)]))))
    for knapsack in network.knapsacks:
        variables = knapsack.variables
        numbers = [number for triple in knapsack.triples for number in triple]
        scope_of = " ".join(map(str, (len(variables), *variables)))
        counted_of = " ".join(map(str, (knapsack.capacity, len(knapsack.triples), *numbers)))
        yield f"{scope_of} -1 knapsackv {counted_of}"
