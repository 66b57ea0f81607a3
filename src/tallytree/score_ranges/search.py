"""The search for the best labelling in a window of scores."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

import numpy as np

from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.answers.tally_table import Where
from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.carried import Window as TallyWindow
from tallytree.planning.options import LayoutName, PlanOptions
from tallytree.planning.plan import Plan
from tallytree.score_ranges.enumeration import MOST_LABELLINGS, best_by_enumeration, labelling_count
from tallytree.score_ranges.lattice import Lattice, Values, decimal
from tallytree.score_ranges.window import BoundedSolution, Window
from tallytree.statistics.statistic import Statistic
from tallytree.values import counted, read_only

_ORDERS = ("sweep", "natural", None)
_MODES: tuple[LayoutName, ...] = ("rows", "cells")
_DEAR = 1e9  # operations of a lattice from which on counts of distinct entries are also planned
_MOST_COUNTS = 2**24  # tallies by the bound, of which a few percent are reachable
_MANY = 10_000  # labellings in order, which take longer than enumerating all
_LISTED_BYTES = 2.0**29  # listing tallies takes about ten times longer than passing them on
_TALLIES = 4096  # the resolution to suggest: about this many tallies in total


class Search:
    """The ways to find the best labelling in a window, cheapest first; None if one does not succeed."""

    def __init__(self, model: Model, window: Window, labellings: int, memory_limit: float | None) -> None:
        self.model, self.window = model, window
        self.labellings, self.limit = labellings, memory_limit
        self.unconstrained = Profile.of(model, (), Plan(model, (), PlanOptions(memory_limit=memory_limit)))
        self.best = self.unconstrained.best()
        self.worst = 0.0 - Profile.of(_negated(model), (), self.unconstrained.plan).best().score

    def plain(self) -> BoundedSolution | None:
        """Use the best labelling of all, or prove that all scores are on one side of the window."""
        if self.best.score < self.window.least:
            raise self.window.infeasible(f"the highest score is {self.best.score:.10g}")
        if self.worst > self.window.most:
            raise self.window.infeasible(f"the lowest score is {self.worst:.10g}")
        inside = self.best.score <= self.window.most
        return self._answer(self.best, "it is the best of all") if inside else None

    def in_order(self) -> BoundedSolution | None:
        """Examine labellings in order until one is in the window, or below it."""
        if self._small and min(self.labellings, labelling_count(self.model)) > _MANY:
            return self.by_enumeration()
        found, _ = self._below(self.unconstrained)
        if found is not None and found.score < self.window.least:
            raise self.window.infeasible(f"the best score below it is {found.score:.10g}")
        return None if found is None else self._answer(found, "all that score more were examined")

    def _below(self, profile: Profile, where: Where = None) -> tuple[Solution | None, bool]:
        """Return the best labelling that is not above the window, and whether the search is complete."""
        if not profile.plan.every_table:  # labellings in order need them
            return None, False
        visited = 0
        try:
            for scores, solution in profile.in_batches(where):
                # the others are above the range, regardless of rounding
                near = scores[: self.labellings - visited] <= self.window.beyond
                for place in near.nonzero()[0].tolist():
                    if (found := solution(place)).score <= self.window.most:
                        return found, True
                visited += len(scores)
                if visited > self.labellings:
                    return None, False
            return None, True
        except BudgetError:  # no room to look further
            return None, False

    def by_tallies(self) -> BoundedSolution:
        """Constrain tallies that determine the score: a lattice, or counts of distinct entries."""
        lattice = decimal(self.model)
        on_lattice = None if lattice is None else self._lattice_plan(lattice)
        if on_lattice is None or on_lattice.operations > _DEAR:
            values = Values(self.model)
            if self._small and not (values.few and values.tell):
                return self.by_enumeration()
            by_counts = self._counting_plan(values)
            if by_counts and (on_lattice is None or by_counts.operations < on_lattice.operations):
                return self._by_counts(values, by_counts)
        if lattice is None:
            raise self._beyond("the factors are not on a decimal lattice")
        return self._on(lattice, on_lattice)

    def by_enumeration(self) -> BoundedSolution:
        """Enumerate all labellings, if that is faster than listing tallies."""
        states = best_by_enumeration(self.model, self.window)
        if states is None:
            raise self.window.infeasible("all labellings were enumerated")
        chosen = self.model.restricted(states)
        found = Profile.of(chosen, (), Plan(chosen, (), PlanOptions(memory_limit=self.limit))).best()
        return self._answer(found, "all labellings were enumerated")

    @property
    def _small(self) -> bool:
        return labelling_count(self.model) <= MOST_LABELLINGS

    def on_lattice(self, lattice: Lattice) -> BoundedSolution:
        """Round the score to multiples of a resolution."""
        return self._on(lattice, self._lattice_plan(lattice))

    def _on(self, lattice: Lattice, plan: Plan | None) -> BoundedSolution:
        """Take the best of the tallies that end in the window, then examine those at its border.

        A tally whose best score is in the window has no better labelling there, and one whose best score
        is below has none at all. Only if it is above must further labellings be examined.
        """
        if plan is None:
            raise self._beyond(
                f"a lattice of resolution {lattice.resolution:.3g} is too fine for the memory limit"
            )
        profile = Profile.of(self.model, (lattice.statistic,), plan)
        scores, tallies = profile.scores, profile.tallies[:, 0]
        found = self._inside(profile)
        cut = tallies[(scores > self.window.most) & (lattice.least_scores(tallies) <= self.window.beyond)]
        settled = True
        if len(cut):
            further, settled = self._below(profile, lattice.statistic >= int(cut.min()))
            found += [further] if further is not None and further.score >= self.window.least else []
        return self._best_of(found, settled, lattice)

    def _best_of(self, found: Sequence[Solution], settled: bool, lattice: Lattice) -> BoundedSolution:
        reason = f"the best score of every multiple of {lattice.resolution:.3g} in the range is known"
        if found:
            return self._answer(max(found, key=lambda solution: solution.score), reason, settled)
        if settled:
            raise self.window.infeasible("all tallies of the lattice lie outside")
        raise self._beyond(f"the resolution {lattice.resolution:.3g} is too coarse to decide")

    def _by_counts(self, values: Values, plan: Plan) -> BoundedSolution:
        """Take the best of the counts of distinct entries: all labellings with one tally have one score."""
        entries = counted(len(values.statistics), "distinct entry").replace("entrys", "entries")
        found = self._inside(Profile.of(self.model, values.statistics, plan))
        if not found:
            raise self.window.infeasible(f"no combination of its {entries} gives such a score")
        return self._answer(found[0], f"the score of every combination of its {entries} is known")

    def _inside(self, profile: Profile) -> list[Solution]:
        """Return the best labelling of the best tally in the window, or None."""
        scores = profile.scores
        inside = np.flatnonzero((scores >= self.window.least) & (scores <= self.window.most))
        return [profile.at(*profile.tallies[inside[scores[inside].argmax()]])] if len(inside) else []

    def _answer(self, found: Solution, reason: str, settled: bool = True) -> BoundedSolution:
        if settled:
            claim = f"no labelling {self.window} has a higher one: {reason}"
            return BoundedSolution(found.claiming(claim), found.score)
        claim = f"it is one {self.window}; a better one, up to the end of the range, is not ruled out"
        return BoundedSolution(found.claiming(claim, optimal=False), self.window.high)

    # --- plans

    def _lattice_plan(self, lattice: Lattice) -> Plan | None:
        """Return the cheapest plan of a few.

        Thousands of tallies make joins expensive: an order without joins may be a hundred times cheaper than
        one that is best for counts. Listing the reachable tallies takes long, and is the last resort.
        """
        window = {0: lattice.tallies(self.window)}
        for mode in _MODES:
            attempts = (
                self._attempt((lattice.statistic,), order, mode, self.limit, window) for order in _ORDERS
            )
            plans = [plan for plan in attempts if plan is not None]
            if plans:
                return min(plans, key=lambda plan: plan.operations)
        return None

    def _counting_plan(self, values: Values) -> Plan | None:
        """Return a plan that lists the counts; None if there are too many of them."""
        if not values.few or values.most_tallies > _MOST_COUNTS:
            return None
        limit = _LISTED_BYTES if self.limit is None else self.limit
        return self._attempt(values.statistics, "sweep", "cells", limit)

    def _attempt(
        self,
        statistics: tuple[Statistic, ...],
        order: str | None,
        mode: LayoutName,
        limit: float | None,
        window: TallyWindow | None = None,
    ) -> Plan | None:
        try:
            return Plan(self.model, statistics, PlanOptions(order, limit, mode), window)
        except BudgetError:
            return None

    def _beyond(self, reason: str) -> BudgetError:
        offered = (self.best.score - self.worst) / _TALLIES
        return BudgetError(
            f"no labelling with a score from {self.window.low:.10g} to {self.window.high:.10g} was found, "
            f"but one may exist: {reason}. Examine more labellings in order (labellings=, "
            f"{self.labellings} now), or give a resolution, such as resolution={offered:.0e}"
        )


def _negated(model: Model) -> Model:
    """Negate all scores; forbidden entries stay forbidden."""
    turned = [np.where(np.isneginf(block.tables), -inf, -block.tables) for block in model.blocks]
    blocks = [block.with_tables(read_only(t)) for block, t in zip(model.blocks, turned, strict=True)]
    return Model.from_blocks(model.cardinalities, blocks)
