"""What a batch needs for a search by bounds: the strategy, the tallies that are allowed, and the evidence.

Most constraints are windows on tallies. For others, the allowed tallies are listed once for all models with
the same statistics; the full table is then searched natively, too.
"""

from __future__ import annotations

from math import prod

import numpy as np

from tallytree.answers.certificate import Evidence, Proof
from tallytree.answers.certification import certify_value
from tallytree.bounding.answering import answered
from tallytree.bounding.question import Question
from tallytree.kernels import native
from tallytree.model.rounding import rounding
from tallytree.planning.options import Options, PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.price import Price
from tallytree.planning.query import Query
from tallytree.solving import best_of
from tallytree.statistics.statistic import Statistic

STRATEGIES = {
    "auto": native.Strategy.AUTO,
    "full": native.Strategy.FULL,
    "bounds": native.Strategy.BOUNDS,
}

_MOST_LISTED = 1 << 16  # tallies: beyond this, evaluating the constraint on all of them takes milliseconds


def allowed_tallies(query: Query[Statistic]) -> native.TallySet | None:
    """List the tallies that a constraint allows; None if there are too many, or no statistics.

    Without statistics, a constraint such as ``0 >= 1`` allows all labellings or none.
    """
    assert query.remaining is not None
    if not query.carried:
        return None
    low, high = [], []
    for number, statistic in enumerate(query.carried):
        (least, most), (above, below) = statistic.extent, query.window.get(number, (None, None))
        low.append(least if above is None else max(least, above))
        high.append(most if below is None else min(most, below))
    sizes = [max(b - a + 1, 0) for a, b in zip(low, high, strict=True)]
    if max(sizes) > _MOST_LISTED or prod(sizes) > _MOST_LISTED:
        return None
    axes = [
        (np.arange(size) + first).reshape([-1 if i == number else 1 for i in range(len(sizes))])
        for number, (first, size) in enumerate(zip(low, sizes, strict=True))
    ]
    held = query.remaining.holds(dict(zip(query.carried, axes, strict=True)))  # equal statistics are one key
    return native.TallySet(np.ascontiguousarray(np.broadcast_to(held, sizes)), low)


def evidence(query: Query[Statistic], options: PlanOptions, score: float) -> Price | Plan | Evidence:
    """Return what proves that no labelling has a higher score than one found by bounds in a batch.

    A separate search is run for it: that of the batch rules out single tallies, and has no boxes that a
    certificate could show. If that does not support the query, the full table is computed.
    """
    best = best_of(answered(query, Options(options, strategy="bounds"), Question))
    model = query.subject if query.reduction is None else query.reduction.original
    certify_value(best.score <= score + rounding(model.blocks, best.score), best.score, repr(score))
    assert isinstance(best.proof, Proof)
    return best.proof.rests_on()
