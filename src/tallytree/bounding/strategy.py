"""The strategy for a single question: the full table, or bounds.

``strategy="bounds"`` searches by bounds wherever it can, for objective functions up to a few times the cost
of the table; ``"full"`` never does. ``"auto"`` counts what the full table takes at least. Unless that is
negligible, it tries bounds first, for a share of that time, and then falls back to the full table; if
the table does not fit in memory, the search continues. Questions that a search does not support also fall
back to the table.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.nearest import unsatisfiable
from tallytree.answers.solution import Solution
from tallytree.bounding.alternatives import Several
from tallytree.bounding.objectives import ObjectiveSearch
from tallytree.bounding.question import Question, all_tallies
from tallytree.bounding.table import BoundedTable
from tallytree.errors import BudgetError
from tallytree.model.model import Model
from tallytree.model.rounding import rounding
from tallytree.planning.options import Options
from tallytree.planning.query import Query
from tallytree.planning.search_price import (
    LARGEST_WEIGHT,
    MOST_STATISTICS,
    SLOWER,
    SearchPrice,
    search_price,
)
from tallytree.running.bounds import Found, Search, Searcher, Wanted, lost_digits
from tallytree.running.engine import engine_of
from tallytree.statistics.statistic import Statistic

_TIMES, _LEAST, _LEAST_OF_TREES = 2, 1.3e8, 1e7
"""With ``strategy="bounds"``, a search for the best value of a function may take this multiple of the cost of
the table, and at least this much work, most of which are evaluations (for trees, these are not counted). If
nearly all tallies have the same value, an unlimited search would examine nearly all labellings."""

_LARGE, _USUAL = 1 << 10, 64
"""How much larger than scores are sums with prices that may lose digits, and counts that may need such ones;
and how many times the rounding of scores may be lost."""

_SHORT_PASS = 1e8
"""Operations of a pass that is always made, for the bound that it gives."""


class Known(Protocol):
    """What an unfinished search knows: the best value found, and a bound."""

    @property
    def value(self) -> float:
        """The best value found."""

    @property
    def bound(self) -> float:
        """An upper bound on all values."""


def price_of(query: Query[Any], options: Options, least: float = 0.0) -> SearchPrice | None:
    """Return the expected cost of a search.

    None if bounds do not support the query, or if its table takes less than `least` work.
    """
    if not isinstance(query.subject, Model):
        return None
    plan = options.plan
    return search_price(query.subject, query.carried, query.window, plan.order, plan.check_size, least)


def first_work(query: Query[Any], options: Options, question: Question, least: float = 0.0) -> float:
    """Return how much work a search may take before using the full table; 0 if the table is cheaper.

    Also 0 with ``strategy="auto"`` if the table takes less than `least` work.
    """
    limit, function = work_limit(query.subject, options), question.objective is not None
    outline = engine_of(query.subject).outline
    if options.strategy != "auto":
        if not function:
            return limit
        if outline is not None:
            return min(max(_LEAST_OF_TREES, outline(query, options.plan).work(share=_TIMES)), limit)
        price = price_of(query, options)
        return limit if price is None else min(max(_LEAST, _TIMES * price.table_work), limit)
    if outline is not None:
        return min(outline(query, options.plan).work(searches=question.searches), limit)
    price = price_of(query, options, least)
    if price is None or not price.tried or price.table_work < question.least_table(query, price):
        return 0.0
    return min(price.allowance(question.listing_work(query)), limit)


def work_limit(subject: Any, options: Options) -> float:
    """Return how much work a search may take in total."""
    slower = SLOWER if isinstance(subject, Model) else 1  # a pass over a chart goes over long rows
    return inf if options.operation_limit is None else options.operation_limit / slower


def bounded(
    query: Query[Any],
    question: Question,
    options: Options,
    most_work: float = inf,
    searcher: Searcher | None = None,
) -> BoundedTable | None:
    """Answer a question about a query by bounds; None if bounds do not support it.

    `searcher`: of the query, if it was made before. If the search reached a limit of work or memory, the
    table holds what is known. If it proves that no labelling satisfies the constraint, this is an error.
    """
    if not supported(query, options):
        return None
    room = options.plan.limit - options.plan.beside
    searcher = searcher or engine_of(query.subject).search(query, options.plan)
    ask = _Asking(query, searcher, options, most_work)
    asked = question.wanted(query, room, ask.searcher.ends)
    if asked is None:
        several = question.alternatives(query, ask.searcher.ends)
        return None if several is None else _by_boxes(query, question, *several, ask)
    counted, wanted = asked
    if question.objective is not None:
        return _by_function(query, counted, (question, wanted), ask)
    found = ask(wanted, _starts(question), question.prices)
    return None if found is None else _table(query, counted, found, (question, wanted), options)


def supported(query: Query[Any], options: Options) -> bool:
    """Whether there is a search for a query."""
    if options.run.backend != "native" or options.plan.precision != "double" or not len(query.subject):
        return False
    return 0 < len(query.carried) <= MOST_STATISTICS and _pass_affordable(query, options)


def unsupported(query: Query[Any], options: Options) -> str:
    """Say why there is no search for a query whose table does not fit in memory."""
    if options.run.backend != "native" or options.plan.precision != "double":
        reason = "they need the native backend and double precision"
    elif len(query.carried) > MOST_STATISTICS:
        reason = (
            f"they support up to {MOST_STATISTICS} statistics, and this question has {len(query.carried)}"
        )
    elif any(s.scale >= LARGEST_WEIGHT for s in query.carried):
        reason = "they support statistics with weights below 2**30"
    else:
        reason = (
            "they support up to a million combinations of tallies for an objective function, and four "
            "million for other losses and constraints, if the limit has room for them"
        )
    return f"Bounds do not help here: {reason}"


def _pass_affordable(query: Query[Any], options: Options) -> bool:
    """Whether a search may make its first pass: within the operation limit, or in a fraction of a second."""
    if options.operation_limit is None or not isinstance(query.subject, Model):
        return True
    price = price_of(query, options)
    return price is None or price.pass_operations <= max(options.operation_limit, _SHORT_PASS)


def _starts(question: Question) -> list[NDArray[np.int64]]:
    return [] if question.start is None else [question.start]


def _table(
    query: Query[Any],
    counted: tuple[Statistic, ...],
    found: Found | Several,
    asked: tuple[Question, Wanted],
    options: Options,
) -> BoundedTable:
    kind: type[BoundedTable] = engine_of(query.subject).bounded or BoundedTable
    if found.impossible and query.constraint is not None:
        raise unsatisfiable(query, options.plan, kind.noun)
    return kind(query, counted, found, asked, options.plan.order)


def _by_boxes(
    query: Query[Any],
    question: Question,
    counted: tuple[Statistic, ...],
    hull: Wanted,
    boxes: Sequence[Wanted],
    ask: _Asking,
) -> BoundedTable | None:
    """Search each of the boxes that a constraint allows."""
    each = (ask(box, _starts(question), question.prices) for box in boxes)
    found = [one for one in each if one is not None]
    if not found or len(found) < len(boxes):
        return None
    return _table(query, counted, Several(found), (question, hull), ask.options)


class _Asking:
    """Searches about one model or sentence, which share a limit."""

    def __init__(self, query: Query[Any], searcher: Searcher, options: Options, most_work: float) -> None:
        self.query, self.searcher, self.options, self.left = query, searcher, options, most_work
        self.all: list[Found] = []

    def __call__(
        self, wanted: Wanted, starts: list[NDArray[np.int64]], prices: NDArray[np.float64] | None
    ) -> Found | None:
        plan = self.options.plan
        found = self.searcher(Search(wanted, starts, prices, self.left, plan.limit - plan.beside))
        if found is not None:
            self.left -= found.work
            self.all.append(found)
        return None if found is not None and _loses_digits(self.query, found) else found


def _loses_digits(query: Query[Any], found: Found) -> bool:
    """Whether a search has compared labellings at prices that leave too few digits for their scores.

    That takes prices far larger than the scores, for factors whose counts differ by thousands.
    """
    most = max((abs(most) for _, most, *_ in found.proven), default=0.0)
    if most <= _LARGE * abs(found.value) or not isinstance(query.subject, Model):
        return False
    if max(s.largest_entry for s in query.carried) < _LARGE:
        return False
    prices = (prices for prices, *_ in found.proven)
    return lost_digits(query.subject, query.carried, prices) > _USUAL * rounding(query.subject.blocks)


def _by_function(
    query: Query[Any], counted: tuple[Statistic, ...], asked: tuple[Question, Wanted], ask: _Asking
) -> BoundedTable | None:
    """Search for the best value of an objective given as a function."""
    question, wanted = asked
    assert question.objective is not None
    names = tuple(s.name for s in query.read)
    whole, auto = ask.left, ask.options.strategy == "auto"
    limit = work_limit(query.subject, ask.options)
    most = whole if auto and whole < limit else inf
    search = ObjectiveSearch(
        question.objective, names, wanted, all_tallies(wanted, query), ask.searcher, most
    )

    def with_evaluations(*asked: Any) -> Found | None:
        ask.left = whole - sum(one.work for one in ask.all) - search.work
        return ask(*asked)

    found = search.run(with_evaluations if auto else ask)
    if found is None or (not found.finished and whole < limit):
        return None  # the full table follows, so that what is known so far is not needed
    bound = search.value if found.finished else search.bound(found)
    passes = [(tuple(prices), most) for one in ask.all for prices, most in one.passes]
    table = _table(query, counted, found, asked, ask.options)
    return table.knowing(bound, search.value, passes)


def also(error: BudgetError, text: str) -> str:
    """Return the message of an error with another sentence: on its own line, if it prints a plan."""
    cause, *plan = str(error).splitlines()
    return "\n".join([cause, text, *plan]) if plan else f"{cause}. {text}"


def known_so_far(
    error: BudgetError | None,
    found: Known,
    best: Solution | None = None,
    remedy: str = "Raise operation_limit= or memory_limit=",
    noun: str = "labelling",
) -> BudgetError:
    """Report what an unfinished search by bounds knows if no full table fits in memory."""
    if found.value == float("-inf"):
        known = f"no {noun} has a value above {found.bound:.10g}, and no allowed {noun} was found"
    else:
        known = (
            f"no {noun} has a value above {found.bound:.10g}, and one of value {found.value:.10g} was "
            f"found: a gap of {found.bound - found.value:.4g}"
        )
    if error is None:
        text = f"the search by bounds reached its limit: {known}. {remedy}"
    else:
        text = also(error, f"A search by bounds also reached its limit: {known}")
    reached = BudgetError(text)
    reached.bound, reached.best = found.bound, best
    return reached
