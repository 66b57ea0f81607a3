"""Constraints written as formulas over counts."""

from __future__ import annotations

import operator
from argparse import Namespace
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from functools import reduce
from typing import TypeVar

from tallytree.cli.inputs import condition, pairs, unquoted
from tallytree.errors import ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_condition_on
from tallytree.statistics.formulas import name_in_formula
from tallytree.statistics.linear import Term

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
    near = get_close_matches(label, known, n=9, cutoff=0.5)
    # letters that changed places are the likeliest slip
    near.sort(key=lambda one: sorted(one) != sorted(label))
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"unknown label {label!r}{hint} The labels are {', '.join(known)}"


def constraint_of(
    options: Namespace,
    statistics: Sequence[Statistic],
    known: Sequence[str],
    make: Callable[[list[str], str], Statistic],
) -> Constraint | None:
    """Return the conjunction of all ``--where`` constraints; a label stands for its count."""

    def count(label: str) -> Statistic:
        return make([label], label)

    noun = "label or a count"
    read = [condition(text) for text in options.where]
    parts = [as_condition_on("--where", formula, statistics, known, count, noun) for formula in read]
    return reduce(operator.and_, parts) if parts else None
