"""The C++ of ``../shared/limit/pruned`` for single questions, to be measured against.

It has to be built first (``build.sh``). Each function returns a
call without arguments, or None without the C++.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from common import LIMIT

FOLDER = LIMIT / "pruned"

Call = Callable[[], Any]


def module(name: str, library: str) -> Any | None:
    """Import a file of the folder, if its library has been built."""
    if not (FOLDER / f"lib{library}.so").is_file():
        return None
    if str(FOLDER) not in sys.path:
        sys.path.append(str(FOLDER))
    return importlib.import_module(name)


def f_measure(unary: Any, pairs: Any, truth: Any, scaling: str, margin: float) -> Call | None:
    """Return the search for F1 on a chain."""
    c = module("prune", "prune")
    return c and (lambda: c.solve_f1(unary, pairs, truth, scaling, margin))


def count(unary: Any, pairs: Any, number: int) -> Call | None:
    """Return the search for a number of ones on a chain."""
    c = module("prune", "prune")
    return c and (lambda: c.solve_count(unary, pairs, number))


def counts(
    model: Any, order: Sequence[int], states: Sequence[int], numbers: Sequence[int], start: float
) -> Call | None:
    """Return the search for numbers of states on a tree or graph; laying it out is not part of the call."""
    c = module("tree", "tree")
    if c is None:
        return None
    rows = [[np.arange(n) == state for n in model.cardinalities] for state in states]
    tree = c.Tree(model.cardinalities, c.factors_of(model), order, rows)
    return lambda: tree.solve(numbers, start, start / 10)


def f_measures(unary: Any, pairs: Any, truths: Sequence[Any], scaling: str, margin: float) -> Call | None:
    """Return the search for F1 on many chains that share their pairs; arrays are ready before the call."""
    c = module("prune", "many")
    if c is None:
        return None
    many = ctypes.CDLL(str(FOLDER / "libmany.so"))
    many.solve_many.restype = ctypes.c_double
    flat = np.concatenate(truths).astype(np.int32)
    lengths = np.array([len(truth) for truth in truths], np.int32)
    tables = [np.ascontiguousarray(table) for table in (unary, pairs, *c.f1_tables(flat, len(pairs)))]
    warm, values = np.zeros((len(truths), 2)), np.zeros(len(truths))
    labels, sums = np.zeros(len(flat), np.int32), np.zeros(8)
    kind, weight, good = int(scaling == "slack"), ctypes.c_double(margin), ctypes.c_double(1.0)
    u, w, right, wrong = map(c.ptr, tables)

    def call() -> Any:
        many.solve_many(
            len(truths), c.ptr(lengths), len(pairs), u, w, right, wrong, c.ptr(flat),
            kind, weight, good, c.ptr(warm), 0, c.ptr(values), c.ptr(labels), c.ptr(sums),
        )  # fmt: skip
        return values

    call.arrays = tables  # type: ignore[attr-defined]  # kept for the pointers
    return call
