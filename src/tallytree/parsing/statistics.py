"""Statistics of trees: integer sums over the spans of a tree.

Constituents are those of the tree before binarisation; symbols without a label count nothing.
All labels over one span are counted together, so that repeated labels over the same words are handled:
of two constituents ``(NP, 0, 2)`` only one is correct if the truth has one.

Statistics are compared and combined like those of models: ``count("NP") <= 3`` is a constraint.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.kernels.limits import NO_LIMIT
from tallytree.parsing.compiled import Compiled
from tallytree.planning.charts import span_number
from tallytree.statistics.linear import Counted, Expression, Linear
from tallytree.trees import Tree


class Chart(NamedTuple):
    """The domain of tree statistics: the bags of a compiled grammar, over the spans of a sentence."""

    compiled: Compiled
    # of all spans
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def number(self, start: int, end: int) -> int:
        """Return the number of a span."""
        return span_number(int(self.ends[-1]), start, end - start)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of constituents in each bag."""
        sizes: NDArray[np.int64] = self.compiled.counts.sum(axis=(1, 2), dtype=np.int64)
        return sizes


@dataclass(frozen=True, eq=False, repr=False)
class TreeStatistic(Counted):
    """An integer statistic of trees, identified by what it counts and not by its name."""

    entry_limit = 2**31

    name: str = field(default="", kw_only=True)
    cap: int | None = field(default=None, kw_only=True)

    @abstractmethod
    def total(self, tree: Tree) -> int:
        """Count on a tree, by definition and without the cap."""

    @abstractmethod
    def weights(self, chart: Chart) -> NDArray[np.int64]:
        """Return what each bag of labels adds over each span, ``[bag][span]``."""

    @abstractmethod
    def content(self) -> tuple[Any, ...]:
        """Return a key that is equal for equal statistics of a type, apart from the cap."""

    @property
    def levels(self) -> int:
        """The number of levels of depth that it distinguishes."""
        return 1

    @property
    def length(self) -> int | None:
        """The number of words that it is for; None for any."""
        return None

    @property
    def signed(self) -> bool:
        """Whether it can decrease: such a statistic cannot be capped."""
        return False

    def tally(self, tree: Tree) -> int:
        """Count on a tree."""
        total = self.total(tree)
        return total if self.cap is None else min(total, self.cap)

    @cached_property
    def _key(self) -> bytes:
        text = f"{type(self).__name__} {self.content()!r} {self.cap}"
        return hashlib.blake2b(text.encode(), digest_size=16).digest()

    @property
    def key(self) -> bytes:
        """A key that is equal for equal statistics."""
        return self._key

    def on(self, model: Any) -> Self:
        """Return itself: it works on every forest."""
        return self

    def capped(self, cap: int | None) -> Self:
        """Return the same statistic with another cap, or without one.

        Raises
        ------
        ModelError
            The cap is invalid, or the statistic can decrease: then parts of a tree do not determine
            whether the whole reaches the cap.
        """
        if self.signed and cap is not None:
            raise ModelError(
                f"{self.name} can decrease, so it cannot be capped (at {cap!r}); cap "
                "its parts, or compare it in where=, which needs no cap"
            )
        return replace(self, cap=checked_cap(cap))

    def merged_from(self, threshold: int) -> Self:
        """Return the same statistic capped there, if possible: at 0 or more, and only if it cannot decrease.

        Tallies of parts are capped, too, and capped sums are those of the whole only if no part counts
        less than 0 and the cap is not negative.
        """
        return self if self.signed else self.capped(max(threshold, 0))

    def named(self, name: str) -> Self:
        """Return the same statistic with another name."""
        return replace(self, name=name)

    @property
    def largest_entry(self) -> int:
        """The maximum that one span adds: no chain is longer."""
        return 2**16

    @classmethod
    def combination(cls, expression: Expression, name: str | None = None) -> TreeStatistic:
        """Return an integer combination of uncapped statistics, without a constant, as a single statistic."""
        linear = expression.linear()
        return _Combination(_checked_parts(linear), name=name or repr(linear))

    def __repr__(self) -> str:
        return self.name + ("" if self.cap is None else f" (at most {self.cap})")


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Combination(TreeStatistic):
    """An integer combination of others."""

    parts: tuple[tuple[TreeStatistic, int], ...]

    def total(self, tree: Tree) -> int:
        return sum(c * part.total(tree) for part, c in self.parts)

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        parts = [(part.weights(chart), c) for part, c in self.parts]
        largest = sum(abs(c) * int(np.abs(weights).max(initial=0)) for weights, c in parts)
        if largest >= self.entry_limit:
            raise ModelError(
                f"{self.name} adds up to {largest} over one span, but charts only count below 2**31. Divide "
                "its coefficients, or keep its parts apart"
            )
        total = np.zeros((len(chart.compiled.bags), len(chart.starts)), dtype=np.int64)
        for weights, c in parts:
            if weights.any():  # the coefficient of zeros may have any size
                total += c * weights
        return total

    @property
    def levels(self) -> int:
        return max((part.levels for part, _ in self.parts), default=1)

    @property
    def length(self) -> int | None:
        return next((part.length for part, _ in self.parts if part.length is not None), None)

    @property
    def signed(self) -> bool:
        return any(c < 0 or part.signed for part, c in self.parts)

    def content(self) -> tuple[Any, ...]:
        return tuple((part.key, c) for part, c in self.parts)


def _checked_parts(linear: Linear) -> tuple[tuple[TreeStatistic, int], ...]:
    """Return the parts of a combination; raise an error if it is not a sum over spans."""
    parts = []
    for term, c in linear.terms:
        if not isinstance(term, TreeStatistic):
            raise ModelError(f"only statistics of trees can be combined with each other; got {term!r}")
        if term.cap is not None:
            raise ModelError(
                f"{term.name} is capped at {term.cap}, so a combination of it is not a sum over spans; use "
                ".capped(None), or keep the two apart"
            )
        parts.append((term, c))
    if linear.constant:
        raise ModelError(
            f"'{linear}' has a constant, but statistics of trees are sums over spans; leave it out, or add "
            "it to the tally"
        )
    return tuple(parts)


def checked_cap(cap: int | None) -> int | None:
    """Raise an error for an invalid cap."""
    if cap is not None and (not isinstance(cap, (int, np.integer)) or not 0 <= cap < NO_LIMIT):
        raise ModelError(f"cap must be a non-negative integer below 2**62, got {cap!r}; use None for no cap")
    return None if cap is None else int(cap)


def checked_statistics(statistics: Iterable[object], words: int) -> tuple[TreeStatistic, ...]:
    """Return statistics of trees over this many words; raise an error for anything else."""
    checked = (statistics,) if isinstance(statistics, TreeStatistic) else tuple(statistics)
    kept = []
    for statistic in checked:
        if not isinstance(statistic, TreeStatistic):
            raise ModelError(
                "expected a statistic of trees, such as tallytree.parsing.count('NP') or true_positives(…); "
                f"got {statistic!r}"
            )
        if statistic.length not in (None, words):
            raise ModelError(
                f"{statistic.name} compares with a truth of {statistic.length} words, but the sentence has "
                f"{words}"
            )
        kept.append(statistic)
    return tuple(kept)
