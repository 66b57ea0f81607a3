"""Removing states that no good labelling has: a smaller model with the same best labellings.

At prices ``λ`` the max-marginal of a state is the maximum over labellings with it. If that is more than
a budget below the overall maximum, every labelling with the state has a regret above the budget, so its score
is below ``A - D - λ·l``. Without such states most variables have one state left, and tables are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import Certificate, Evidence, Proof
from tallytree.answers.profile import Profile
from tallytree.bounding.certificate import Part, content
from tallytree.bounding.table import BoundedTable
from tallytree.model.model import Model
from tallytree.model.rounding import rounding
from tallytree.planning.options import PlanOptions
from tallytree.planning.plan import Plan
from tallytree.planning.price import Price
from tallytree.planning.query import Query
from tallytree.reductions.folding import folded
from tallytree.reductions.reduction import restricted_states
from tallytree.statistics.statistic import Statistic


class Ends(NamedTuple):
    """An upper bound on the score of labellings with a given regret: ``ceiling - regret``, for any tally.

    Attributes
    ----------
    prices : tuple of float
    ceiling : float
        ``A`` minus the smallest ``λ·l`` of all allowed tallies.
    gaps : list of float arrays
        For each variable and state, the smallest regret of a labelling with it.
    """

    prices: tuple[float, ...]
    ceiling: float
    gaps: list[NDArray[np.float64]]

    @property
    def largest(self) -> float:
        """The largest finite regret of a state."""
        return max(float(gap[gap < np.inf].max(initial=0.0)) for gap in self.gaps)

    def kept(self, budget: float) -> list[NDArray[np.int64]]:
        """Return the states of labellings whose regret is within a budget."""
        return [np.flatnonzero(gap <= budget) for gap in self.gaps]


def regrets(table: BoundedTable, options: PlanOptions) -> Ends:
    """Compute the smallest regret for every state, at the prices at which the best labelling was found."""
    prices = np.array(_part_of_the_best(table).prices)
    model: Model = table.query.subject
    priced = folded(model, list(zip(table.counted, prices.tolist(), strict=True)))
    plain = Profile.of(priced, (), Plan(priced, (), options))
    marginals = priced.by_variable(plain.max_marginals())
    most = max(float(one.max()) for one in marginals)
    allowance = 4 * rounding(priced.blocks)
    box = table.asked[1]
    least = float(np.minimum(prices * np.array(box.low), prices * np.array(box.high)).sum())
    gaps = [np.maximum(most - one - allowance, 0.0) for one in marginals]
    return Ends(tuple(prices.tolist()), most + allowance - least, gaps)


def _part_of_the_best(table: BoundedTable) -> Part:
    """Return the part of the proof whose box contains the best tally."""
    sums = table.found.tallies[int(table.cells[int(table.scores.argmax())])]
    parts = table.evidence.parts
    boxes = zip(parts, (zip(part.low, sums, part.high, strict=True) for part in parts), strict=True)
    return next((part for part, box in boxes if all(a <= t <= b for a, t, b in box)), parts[0])


def without_states(query: Query[Statistic], kept: Sequence[NDArray[np.int64]]) -> Query[Statistic]:
    """Return the same query about a model with fewer states."""
    assert query.reduction is not None
    reduction, moved = restricted_states(query.reduction, kept, (*query.read, *query.reported))
    constraint = None if query.constraint is None else query.constraint.mapped(moved)
    read = tuple(moved(statistic) for statistic in query.read)
    return Query(reduction.model, read, query.where, constraint, reduction)


class PrunedEvidence(Evidence):
    """A pass over a model with some states removed, and the reason."""

    def __init__(self, price: Price, ends: Ends, budget: float) -> None:
        self.price, self.prices, self.budget = price, ends.prices, budget
        self.states = sum(map(len, ends.gaps)), sum(map(len, ends.kept(budget)))
        self.below = ends.ceiling - budget

    def certificate(self, proof: Proof, model: Model, score: float, tally: Any) -> PrunedCertificate:
        """Assemble the certificate of a labelling."""
        held = content(proof, model, score, dict(zip(tally._fields, tally, strict=True)))
        return PrunedCertificate(
            **held,
            **self.price._asdict(),
            prices=self.prices,
            budget=self.budget,
            states=self.states,
            below=self.below,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class PrunedCertificate(Certificate):
    """Why a labelling is the next best; print it to read it.

    Attributes
    ----------
    prices : tuple of float
        For the statistics of the constraint.
    budget : float
        At these prices, labellings with a removed state have a regret above this.
    below : float
        They score less than this.
    states : (int, int)
        The number of states, and how many of them remain.
    """

    prices: tuple[float, ...]
    budget: float
    below: float
    states: tuple[int, int]

    def __str__(self) -> str:
        every, left = self.states
        return (
            f"{Certificate.__str__(self)}\n"
            f"  over {left:,} of {every:,} states: allowed labellings with any other state score less than "
            f"{self.below:.10g}\n"
            f"  (max-marginals at the prices {', '.join(f'{price:.6g}' for price in self.prices)})"
        )
