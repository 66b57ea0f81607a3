"""Constraints written as formulas over counts."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from typing import TypeVar

from tallytree.cli.inputs import condition, pairs
from tallytree.errors import ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formula_constraints import as_constraint_of
from tallytree.statistics.formulas import minus_hint, name_in_formula
from tallytree.statistics.linear import Term

Statistic = TypeVar("Statistic", bound=Term)


def counts_of(
    options: Namespace, known: Sequence[str], make: Callable[[list[str], str], Statistic]
) -> list[Statistic]:
    """Return the counts of ``--count NAME=LABEL,…``; ``make`` is called with known labels and the name."""
    found = []
    for name, text in pairs(options.count, "--count"):
        name_in_formula(name, "--count:")
        labels = [label.strip() for label in text.split(",")]
        for label in labels:
            if label not in known:
                raise ModelError(f"--count {name}: {_unknown(label, known)}")
        found.append(make(labels, name))
    return found


def _unknown(label: str, known: Sequence[str]) -> str:
    near = get_close_matches(label, known, n=9, cutoff=0.5)
    # letters that changed places are the likeliest slip
    near.sort(key=lambda one: sorted(one) != sorted(label))
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"unknown label {label!r}{hint} The labels are {', '.join(known)}"


def constraint_of(options: Namespace, statistics: Sequence[Term]) -> Constraint | None:
    """Return the conjunction of all ``--where`` constraints."""
    if not options.where:
        return None
    known = [statistic.name for statistic in statistics]
    parts = [condition(text) for text in options.where]
    for formula in parts:
        if formula.kind != "truth":
            raise ModelError(f"--where takes a condition, such as nps >= 2; got '{formula.text}'")
        unknown = next((name for name in formula.names if name not in known), None)
        if unknown is not None:
            hint = minus_hint(formula.text, known) or f"; add --count {unknown}=LABEL"
            raise ModelError(
                f"--where uses {unknown!r}, but the counts are {', '.join(known) or 'none'}{hint}"
            )
    whole = as_constraint_of(parts[0], statistics, {})
    for formula in parts[1:]:
        whole = whole & as_constraint_of(formula, statistics, {})
    return whole
