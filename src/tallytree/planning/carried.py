"""What a constraint needs from the messages: as few statistics, and as few tallies of each, as possible.

Three simplifications are exact, because the objective does not depend on what they change:

- statistics that are only read in one combination are carried as that combination, ``Σ_p c_p · G_p``;
- a statistic that only the constraint reads is capped where it does not distinguish larger tallies (``>= m``
  needs a cap of m; ``<=``, ``==``, ``!= b`` need b + 1);
- a range that a statistic must be in, whatever the others are, is a window: tallies that can no longer end
  inside it are never computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import gcd
from typing import Any, Generic, NamedTuple, TypeVar, cast

from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.kernels.limits import NO_LIMIT
from tallytree.statistics.constraints import And, Constraint, Or
from tallytree.statistics.linear import Comparison, Counted, Linear, Term

Bounds = tuple[int | None, int | None]
Window = Mapping[int, Bounds]
"""For a statistic's position: the smallest and the largest relevant tally; None for no limit."""

Terms = tuple[tuple[Term, int], ...]
Direction = frozenset[frozenset[tuple[Term, int]]]
S = TypeVar("S", bound=Counted)


class Carried(NamedTuple, Generic[S]):
    """What the messages carry for an objective and a constraint."""

    # what the tally of a solution shows: the statistics of the objective, then those only read by the
    # constraint
    reported: tuple[S, ...]
    # what the messages carry: those of the objective, then what the constraint needs, combined and capped
    statistics: tuple[S, ...]
    window: Window  # the relevant range, for positions in ``statistics``
    remaining: Constraint | None  # the constraint in terms of ``statistics``
    windowed: bool  # whether the window is equivalent to the constraint


def carried_for(read: tuple[S, ...], constraint: Constraint | None) -> Carried[S]:
    """Return what the messages carry if the objective reads some statistics.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model([2, 2, 2])
    >>> ones = tt.count(model, state=1, name="ones")
    >>> carried_for((), ones >= 2).statistics
    (Statistic('ones', 3 parts, cap=2),)
    """
    if constraint is None:
        return Carried(read, read, {}, None, True)
    return _Carrier(read, constraint).carried


class _Carrier(Generic[S]):
    """Converts a constraint to what the messages carry for it."""

    def __init__(self, read: tuple[S, ...], constraint: Constraint) -> None:
        combined = _combined(constraint, read)
        reported = _with_those_read(read, constraint)
        self._read = reported if combined is constraint else _with_those_read(read, combined)
        self._numbers = {id(s): i for i, s in enumerate(self._read)}
        self.window: dict[int, Bounds] = {}
        windowed = self._narrow(combined)
        self.statistics = self._capped(self._thresholds(combined, len(read)))
        self.carried: Carried[S] = Carried(
            reported, self.statistics, self.window, self._rewritten(combined), windowed
        )

    def _capped(self, thresholds: Mapping[int, int | None]) -> tuple[S, ...]:
        if all(cap is None for cap in thresholds.values()):
            return self._read
        return tuple(
            s if (threshold := thresholds.get(i)) is None else s.merged_from(threshold)
            for i, s in enumerate(self._read)
        )

    def _number(self, term: Term) -> int:
        found = self._numbers.get(id(term))
        return next(i for i, s in enumerate(self._read) if s == term) if found is None else found

    def _narrow(self, constraint: Constraint) -> bool:
        """Add the ranges that a constraint implies to the window; return whether they are equivalent."""
        if isinstance(constraint, And):
            # A list, because every part narrows, regardless of the others.
            equivalent = [self._narrow(part) for part in constraint.parts]
            return all(equivalent)
        if (
            not isinstance(constraint, Comparison)
            or len(constraint.terms) != 1
            or constraint.relation == "!="
        ):
            return False
        (term, factor), bound = constraint.terms[0], constraint.bound
        number = self._number(term)
        low, high = self.window.get(number, (None, None))
        if constraint.relation in (">=", "=="):
            least = within_limits(-(-bound // factor))
            low = least if low is None else max(least, low)
        if constraint.relation in ("<=", "=="):
            most = within_limits(bound // factor)
            high = most if high is None else min(most, high)
        self.window[number] = (low, high)
        return True

    def _thresholds(self, constraint: Constraint, read: int) -> dict[int, int | None]:
        """Return the smallest cap of each hidden statistic that no comparison can detect.

        None if several statistics are compared together, if it already has a cap, or if the
        window ends anyway.
        """
        thresholds: dict[int, int | None] = {}
        for comparison in _comparisons(constraint):
            for term, _ in comparison.terms:
                number = self._number(term)
                if number < read:
                    continue
                free = len(comparison.terms) == 1 and self._read[number].cap is None
                free = free and abs(_threshold(comparison)) < NO_LIMIT
                ends = self.window.get(number, (None, None))[1] is not None
                known = thresholds.get(number, _threshold(comparison))
                if not free or ends or known is None:
                    thresholds[number] = None
                else:
                    thresholds[number] = max(known, _threshold(comparison))
        return thresholds

    def _rewritten(self, constraint: Constraint) -> Constraint:
        """Return the constraint in terms of the carried statistics."""
        if isinstance(constraint, Comparison):
            terms = tuple((self.statistics[self._number(term)], factor) for term, factor in constraint.terms)
            return Comparison(terms, constraint.relation, constraint.bound)
        assert isinstance(constraint, (And, Or))
        return type(constraint)(tuple(map(self._rewritten, constraint.parts)))


def _with_those_read(read: tuple[Any, ...], constraint: Constraint) -> tuple[Any, ...]:
    return (*read, *(s for s in _counted(constraint) if s not in read))


def _counted(constraint: Constraint) -> tuple[Counted, ...]:
    return cast(tuple[Counted, ...], constraint.statistics)  # bound: no recipes are left


def _comparisons(constraint: Constraint) -> Iterator[Comparison]:
    if isinstance(constraint, Comparison):
        yield constraint
    elif isinstance(constraint, (And, Or)):
        for part in constraint.parts:
            yield from _comparisons(part)


def within_limits(bound: int) -> int:
    """Clip a bound that no tally reaches, so that it fits in 64 bits and means the same.

    Tallies and caps are below ``NO_LIMIT`` in magnitude. A lower end of ``-NO_LIMIT`` means none, and nothing
    reaches one of ``NO_LIMIT``; for upper ends it is the other way round.
    """
    return max(-NO_LIMIT, min(NO_LIMIT, bound))


def window_ends(window: Window, positions: Iterable[int]) -> tuple[list[int], list[int]]:
    """Return the smallest and the largest relevant tally, for statistics at these positions."""
    lows, highs = [], []
    for position in positions:
        low, high = window.get(position, (None, None))
        lows.append(-NO_LIMIT if low is None else low)
        highs.append(NO_LIMIT if high is None else high)
    return lows, highs


def tally_limits(statistics: Sequence[Counted], window: Window) -> tuple[list[int], list[int], list[int]]:
    """Return the cap of each statistic, and the smallest and the largest relevant tally."""
    caps = [native.UNCAPPED if s.cap is None else s.cap for s in statistics]
    return caps, *window_ends(window, range(len(caps)))


def is_linear(constraint: Constraint) -> bool:
    """Whether a constraint is a conjunction of ranges of uncapped statistics, so that prices apply."""
    if isinstance(constraint, And):
        return all(map(is_linear, constraint.parts))
    uncapped = all(s.cap is None for s in _counted(constraint))
    return isinstance(constraint, Comparison) and constraint.relation != "!=" and uncapped


def _threshold(comparison: Comparison) -> int:
    """Return the number from which on all tallies have the same answer to ``c·G ? b`` (c > 0)."""
    (_, factor), bound = comparison.terms[0], comparison.bound
    if comparison.relation == ">=":
        return -(-bound // factor)
    return bound // factor + 1


# --- combinations -------------------------------------------------------------------------------------------


class _Combination(NamedTuple):
    """One statistic for several: ``c · whole`` is their part of a comparison in which ``first`` has ``c``."""

    whole: Counted
    first: Term
    unit: int
    parts: frozenset[Term]


def _combined(constraint: Constraint, read: Sequence[Counted]) -> Constraint:
    """Return the constraint with one statistic in place of those that are only read in one combination.

    Statistics that the objective reads, that are capped, or that are read in two different combinations stay
    as they are: each of them is needed, or is not a sum over scopes.
    """
    several = [c for c in _comparisons(constraint) if len(c.terms) > 1]
    if not several:
        return constraint
    directions: dict[Term, set[Direction]] = {}
    for comparison in _comparisons(constraint):
        direction = _direction(comparison.terms)  # once: it goes through all of them
        for term, _ in comparison.terms:
            directions.setdefault(term, set()).add(direction)
    free = {s for s in _counted(constraint) if s.cap is None and s not in read and len(directions[s]) == 1}
    combinations: dict[Direction, _Combination] = {}
    for comparison in several:
        parts = tuple((term, c) for term, c in comparison.terms if term in free)
        direction = _direction(comparison.terms)
        if direction not in combinations and len(parts) > 1 and (made := _combination(parts)) is not None:
            combinations[direction] = made
    return _in_terms_of(constraint, combinations) if combinations else constraint


def _direction(terms: Terms) -> Direction:
    """Return the common direction of ``a - 2b``, ``3a - 6b`` and ``2b - a``."""
    divisor = gcd(*(c for _, c in terms))
    return frozenset(frozenset((term, sign * c // divisor) for term, c in terms) for sign in (1, -1))


def _combination(parts: Terms) -> _Combination | None:
    """Combine statistics, without their common divisor; None if the entries would not fit."""
    divisor = gcd(*(c for _, c in parts))
    scaled = [(term, c // divisor) for term, c in parts]
    first, unit = scaled[0]
    kind = cast(Any, type(first))
    if sum(abs(c) * cast(Counted, term).largest_entry for term, c in scaled) >= kind.entry_limit:
        return None
    try:
        whole: Counted = kind.combination(Linear(scaled))
    except ModelError:  # the sum of many parts does not fit, though each of them does
        return None
    return _Combination(whole, first, unit, frozenset(t for t, _ in scaled))


def _in_terms_of(constraint: Constraint, combinations: dict[Direction, _Combination]) -> Constraint:
    if isinstance(constraint, (And, Or)):
        return type(constraint)(tuple(_in_terms_of(part, combinations) for part in constraint.parts))
    assert isinstance(constraint, Comparison)
    made = combinations.get(_direction(constraint.terms)) if constraint.terms else None
    if made is None:
        return constraint
    others = [(term, c) for term, c in constraint.terms if term not in made.parts]
    factor = dict(constraint.terms)[made.first] // made.unit
    return constraint.with_terms([*others, (made.whole, factor)])


def check_window(planned: Window, wanted: Window) -> None:
    """Raise an error if a plan leaves out tallies that are needed, or keeps those that are not."""
    if planned == wanted:
        return
    if wanted:
        raise ModelError(
            "this plan was made for another constraint, or for none; make one with tallytree.plan(model, "
            "statistics, where=…)"
        )
    raise ModelError(
        "this plan leaves out tallies that a constraint rules out, so it cannot be used for a full "
        "profile; make one with tallytree.plan(model, statistics), without where="
    )
