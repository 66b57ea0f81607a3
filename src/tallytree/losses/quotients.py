"""Losses that are quotients of linear functions of their counts, such as the F-measure.

A search by bounds can minimise such a function over a box of tallies without a table.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tallytree.losses.base import Line, Loss
from tallytree.losses.nodes import FBeta, IntersectionOverUnion, NodeLoss, Recall

Quotient = tuple[Line, Line]


def _f_beta(loss: FBeta) -> Quotient:
    """``(β²·|y*| + FP - β²·TP) / (β²·|y*| + FP + TP)``."""
    weight, size = loss.beta**2, float(loss.size)
    return (weight * size, (-weight, 1.0)), (weight * size, (1.0, 1.0))


def _recall(loss: Recall) -> Quotient:
    """``(|y*| - TP) / |y*|``, which is exactly 0 if nothing is missing."""
    return (float(loss.size), (-1.0,)), (float(loss.size), (0.0,))


def _overlap(loss: IntersectionOverUnion) -> Quotient:
    """``(|y*| + FP - TP) / (|y*| + FP)``."""
    return (float(loss.size), (-1.0, 1.0)), (float(loss.size), (0.0, 1.0))


_KNOWN: tuple[tuple[type[NodeLoss], Callable[[Any], Quotient]], ...] = (
    (FBeta, _f_beta),
    (Recall, _recall),
    (IntersectionOverUnion, _overlap),
)


def quotient(loss: Loss) -> Quotient | None:
    """Return the value as a quotient of linear functions of uncapped statistics; None if it is not one.

    The numerator is non-negative and the denominator positive for all possible tallies. Subclasses that
    compute their value differently are excluded.

    Examples
    --------
    >>> import tallytree as tt
    >>> quotient(tt.losses.FBeta([1, 0, 1], background=0))
    ((2.0, (-1.0, 1.0)), (2.0, (1.0, 1.0)))
    """
    for kind, made in _KNOWN:
        if isinstance(loss, kind) and not loss.one_tally and loss.size:
            same = type(loss).of_counts is kind.of_counts and type(loss).value is NodeLoss.value
            return made(loss) if same else None
    line = loss.linear()
    return None if line is None else (line, (1.0, (0.0,) * len(line[1])))
