"""Constraints written as formulas over counts."""

from __future__ import annotations

import operator
from argparse import Namespace
from collections.abc import Callable, Sequence
from functools import reduce
from typing import TypeVar

from tallytree.cli.exits import UsageError
from tallytree.cli.inputs import condition, pairs, unquoted
from tallytree.errors import ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_condition_on
from tallytree.statistics.formulas import name_in_formula
from tallytree.statistics.linear import Term
from tallytree.values import nearest

Statistic = TypeVar("Statistic", bound=Term)


def counts_of(
    options: Namespace, known: Sequence[str], make: Callable[[list[str], str], Statistic]
) -> list[Statistic]:
    """Return the counts of ``--count NAME=LABEL,…``; ``make`` is called with known labels and the name."""
    statistics = []
    for name, text in pairs(options.count, "--count"):
        name_in_formula(name, "--count:")
        written = [label.strip() for label in text.split(",")]
        labels = [label if label in known else unquoted(label) for label in written]
        for label in labels:
            if label not in known:
                raise ModelError(f"--count {name}: {_unknown(label, known)}")
        statistics.append(make(labels, name))
    return statistics


def _unknown(label: str, known: Sequence[str]) -> str:
    near = nearest(label, known, cutoff=0.5)
    hint = f"; did you mean {near!r}?" if near else "."
    return f"unknown label {label!r}{hint} The labels are {', '.join(known)}"


def constraint_of(
    options: Namespace,
    statistics: Sequence[Statistic],
    known: Sequence[str],
    make: Callable[[list[str], str], Statistic],
    *,
    printed: bool = False,
) -> Constraint | None:
    """Return the conjunction of all ``--where`` constraints; a label stands for its count.

    A count that none of them uses is an error, unless counts are printed.
    """

    def count(label: str) -> Statistic:
        return make([label], label)

    noun = "label or a count"
    read = [condition(text) for text in options.where]
    parts = [as_condition_on("--where", formula, statistics, known, count, noun) for formula in read]
    used = {name for formula in read for name in formula.names}
    for statistic in statistics:
        if statistic.name not in used and not printed:
            raise UsageError(f"--count {statistic.name} has no effect; use it in --where, or remove it")
    return reduce(operator.and_, parts) if parts else None
