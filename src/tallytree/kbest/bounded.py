"""The k best labellings under a constraint, for problems whose full table would be large.

The best labelling is found by bounds. At its prices, states whose labellings all have a large regret are
removed, and the k best labellings of the smaller model are found by tables. The score of the last one
bounds the regret: once all states within that regret are included, the list is complete.
"""

from __future__ import annotations

from itertools import islice

import numpy as np

from tallytree.answers.certificate import Proof
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.bounding import Question, bounded, check_operations, price_of
from tallytree.bounding.states import Ends, PrunedEvidence, regrets, without_states
from tallytree.bounding.strategy import first_work
from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.planning.options import Options
from tallytree.planning.planner import plan_graph
from tallytree.planning.query import Query
from tallytree.statistics.statistic import Statistic

_WORTH_TRYING = 1e7  # units of work of a full table


def best_by_bounds(query: Query[Statistic], count: int, options: Options) -> list[Solution] | None:
    """Return the best labellings, in order; None if this is not cheaper or not supported."""
    if options.strategy == "full" or not count or not isinstance(query.subject, Model):
        return None
    if options.strategy == "bounds" and price_of(query, options) is None:
        return None
    question = Question()
    work = first_work(query, options, question, _WORTH_TRYING)
    table = bounded(query, question, options, work) if work else None
    if table is None or not table.finished:
        return None
    ends = regrets(table, options.plan)
    budget = _first_budget(ends, float(table.scores.max()), count)
    for _ in range(40):
        try:
            found = _within(query, ends, budget, count, options)
        except BudgetError:
            return None
        complete = budget >= ends.largest
        needed = ends.ceiling - found[-1].score if len(found) == count else 4 * budget + 1e-6
        if complete or needed <= budget:
            return found
        budget = needed
    return None


def _first_budget(ends: Ends, best: float, count: int) -> float:
    """Return a budget that leaves slightly more states than there are labellings to find."""
    gaps = np.sort(np.concatenate(ends.gaps))
    free = len(ends.gaps) + 4 * count + 40
    return max(ends.ceiling - best, 0.0) + float(gaps[min(free, len(gaps) - 1)])


def _within(
    query: Query[Statistic], ends: Ends, budget: float, count: int, options: Options
) -> list[Solution]:
    """Return the best labellings that only use states within a budget."""
    smaller, options = without_states(query, ends.kept(budget)), options.with_every_table()
    plan = plan_graph(smaller, options.plan)
    check_operations(plan, options.operation_limit)
    evidence = PrunedEvidence(plan.price, ends, budget)
    best = islice(Profile(smaller, plan, options.run).ranked(keep=True), count)
    return [_resting_on(evidence, solution) for solution in best]


def _resting_on(evidence: PrunedEvidence, solution: Solution) -> Solution:
    proof = solution.proof
    assert isinstance(proof, Proof)
    found = solution.value, solution.score, solution.tally, solution.assignment, solution.model
    return Solution(*found, proof._replace(plan=evidence))
