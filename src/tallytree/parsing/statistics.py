"""Statistics of trees: integers that add up over the spans of a tree.

Constituents are those of the tree as it was before it was binarised; symbols without a label count nothing.
All labels over one span are counted together, so that a label that comes twice over the same words is seen
to do so: of two constituents ``(NP, 0, 2)`` only one is right where the truth has one.

Statistics are compared and combined as those of models are: ``count("NP") <= 3`` is a constraint.
"""

from __future__ import annotations

import hashlib
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Self, final

import numpy as np
from numpy.typing import NDArray

from tallytree.core.expressions import Counted, Expression, Linear
from tallytree.errors import ModelError
from tallytree.parsing.compiled import Compiled
from tallytree.trees import Constituent, Tree

__all__ = [
    "Chart",
    "TreeStatistic",
    "count",
    "crossing_brackets",
    "false_positives",
    "true_positives",
    "wrong_nodes",
]


class Chart(NamedTuple):
    """Where statistics are counted: the bags of a compiled grammar, over the spans of a sentence.

    Attributes
    ----------
    compiled : Compiled
    starts, ends : int64 arrays
        Of all spans.
    """

    compiled: Compiled
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def number(self, start: int, end: int) -> int:
        """Return the number of a span."""
        words, width = int(self.ends[-1]), end - start
        return (width - 1) * (2 * words - width + 2) // 2 + start

    @property
    def sizes(self) -> NDArray[np.int64]:
        """The number of constituents in each bag."""
        sizes: NDArray[np.int64] = self.compiled.counts.sum(axis=(1, 2), dtype=np.int64)
        return sizes


@dataclass(frozen=True, eq=False, repr=False)
class TreeStatistic(Counted):
    """An integer statistic of trees, known by what it counts and not by its name."""

    name: str = field(default="", kw_only=True)
    cap: int | None = field(default=None, kw_only=True)

    @abstractmethod
    def total(self, tree: Tree) -> int:
        """Count on a tree, by the definition and without the cap."""

    @abstractmethod
    def weights(self, chart: Chart) -> NDArray[np.int64]:
        """Return what each bag of labels adds over each span, ``[bag][span]``."""

    @abstractmethod
    def content(self) -> tuple[Any, ...]:
        """Return what two equal statistics of a kind have in common, besides the cap."""

    @property
    def levels(self) -> int:
        """How many levels of depth it tells apart."""
        return 1

    @property
    def signed(self) -> bool:
        """Whether it can count downwards: such a statistic cannot be capped."""
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
        """What two equal statistics have in common."""
        return self._key

    def on(self, model: Any) -> Self:
        """Return itself: what trees it counts on is decided by the forest."""
        return self

    def capped(self, cap: int | None) -> Self:
        """Return the same statistic with another cap; without one where it can count downwards."""
        return self if self.signed and cap is not None else replace(self, cap=cap)

    def named(self, name: str) -> Self:
        """Return the same statistic under another name."""
        return replace(self, name=name)

    @property
    def largest_entry(self) -> int:
        """The most that one span adds: no chain is longer."""
        return 2**16

    @classmethod
    def combination(cls, expression: Expression, name: str | None = None) -> TreeStatistic:
        """Make one statistic of an integer combination of uncapped ones."""
        linear = expression.linear()
        return _Combination(linear, name=name or repr(linear))

    def __repr__(self) -> str:
        return self.name + ("" if self.cap is None else f" (at most {self.cap})")


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Count(TreeStatistic):
    """Constituents with some labels, lengths and depths."""

    labels: tuple[str, ...] | None
    lengths: tuple[int, int | None]
    depths: tuple[int, int | None]

    def _has(self, label: str, length: int, depth: int) -> bool:
        return (
            (self.labels is None or label in self.labels)
            and self.lengths[0] <= length
            and (self.lengths[1] is None or length <= self.lengths[1])
            and self.depths[0] <= depth
            and (self.depths[1] is None or depth <= self.depths[1])
        )

    def total(self, tree: Tree) -> int:
        return sum(
            self._has(node.tree.label, node.end - node.start, node.depth)
            for node in tree.nodes()
            if node.tree.label and not node.tree.is_tag
        )

    @property
    def levels(self) -> int:
        low, high = self.depths
        return max(low + 1, 1 if high is None else high + 2)

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        names, counts = chart.compiled.grammar.labels, chart.compiled.counts
        chosen = np.array([self.labels is None or name in self.labels for name in names], dtype=np.int64)
        level = np.arange(chart.compiled.levels)  # the last one stands for all that are deeper
        deep = (level >= self.depths[0]) & (True if self.depths[1] is None else level <= self.depths[1])
        length = chart.ends - chart.starts
        long = (length >= self.lengths[0]) & (True if self.lengths[1] is None else length <= self.lengths[1])
        per_bag = (counts * deep).sum(axis=2, dtype=np.int64) @ chosen
        return np.outer(per_bag, long)

    def content(self) -> tuple[Any, ...]:
        return (self.labels, self.lengths, self.depths)


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Positives(TreeStatistic):
    """Constituents that the truth has, or those that it does not have."""

    gold: tuple[tuple[Constituent, int], ...]
    true: bool

    def total(self, tree: Tree) -> int:
        found, gold = tree.constituents(), Counter(dict(self.gold))
        return (found & gold if self.true else found - gold).total()

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        counts = chart.compiled.counts.sum(axis=2, dtype=np.int64)
        numbers = {label: i for i, label in enumerate(chart.compiled.grammar.labels)}
        right = np.zeros((len(counts), len(chart.starts)), dtype=np.int64)
        for (label, start, end), often in self.gold:
            if label in numbers:
                right[:, chart.number(start, end)] += np.minimum(counts[:, numbers[label]], often)
        return right if self.true else chart.sizes[:, None] - right

    def content(self) -> tuple[Any, ...]:
        return (self.true, self.gold)


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Crossing(TreeStatistic):
    """Constituents that cross one of the truth."""

    gold: tuple[tuple[int, int], ...]

    def _crosses(self, start: int, end: int) -> bool:
        return any(s < start < e < end or start < s < end < e for s, e in self.gold)

    def total(self, tree: Tree) -> int:
        return sum(n for (_, start, end), n in tree.constituents().items() if self._crosses(start, end))

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        pairs = zip(chart.starts.tolist(), chart.ends.tolist(), strict=True)
        return np.outer(chart.sizes, [self._crosses(start, end) for start, end in pairs])

    def content(self) -> tuple[Any, ...]:
        return self.gold


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Wrong(TreeStatistic):
    """Spans and words that are not labelled as in the truth, order and tags included."""

    truth: Tree

    def total(self, tree: Tree) -> int:
        right = _by_span(self.truth)
        found = sum(labels != right.get(span, []) for span, labels in _by_span(tree).items())
        return found + sum(a != b for a, b in zip(tree.tags, self.truth.tags, strict=True))

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        compiled, words = chart.compiled, len(self.truth)
        names, right, tags = compiled.names, _by_span(self.truth), self.truth.tags
        labels = [[names[label] for label, _ in bag.labels] for bag in compiled.bags]
        result = np.zeros((len(labels), len(chart.starts)), dtype=np.int64)
        for span, place in enumerate(zip(chart.starts.tolist(), chart.ends.tolist(), strict=True)):
            wanted = right.get(place, [])
            result[:, span] = [bool(found) and found != wanted for found in labels]
            if span < words:
                result[:, span] += [names[bag.tag] != tags[span] for bag in compiled.bags]
        return result

    def content(self) -> tuple[Any, ...]:
        return (str(self.truth),)


def _by_span(tree: Tree) -> dict[tuple[int, int], list[str]]:
    """Return the labels over each span that has some, from the top."""
    result: dict[tuple[int, int], list[str]] = {}
    for node in tree.nodes():
        if node.tree.label and not node.tree.is_tag:
            result.setdefault((node.start, node.end), []).append(node.tree.label)
    return result


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Combination(TreeStatistic):
    """An integer combination of others."""

    linear_: Linear

    @property
    def _parts(self) -> list[tuple[TreeStatistic, int]]:
        return [(term, c) for term, c in self.linear_.terms if isinstance(term, TreeStatistic)]

    def total(self, tree: Tree) -> int:
        return sum(c * part.total(tree) for part, c in self._parts)

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        total = np.zeros((len(chart.compiled.bags), len(chart.starts)), dtype=np.int64)
        for part, c in self._parts:
            total += c * part.weights(chart)
        return total

    @property
    def levels(self) -> int:
        return max(part.levels for part, _ in self._parts)

    @property
    def signed(self) -> bool:
        return any(c < 0 or part.signed for part, c in self._parts)

    def content(self) -> tuple[Any, ...]:
        return tuple((part.key, c) for part, c in self._parts)


# --- what users call ----------------------------------------------------------------------------------------


def count(
    label: str | Iterable[str] | None = None,
    *,
    min_length: int = 1,
    max_length: int | None = None,
    min_depth: int = 0,
    max_depth: int | None = None,
    cap: int | None = None,
    name: str | None = None,
) -> TreeStatistic:
    """Count constituents.

    Parameters
    ----------
    label : str or iterable of str, optional
        Only those with this label, or one of these; by default all: the size of the tree.
    min_length, max_length : int
        Only those of at least, or at most, so many words.
    min_depth, max_depth : int
        Only those with at least, or at most, so many constituents above them; the top has none. The chart
        tells symbols apart by depth, which makes it larger by ``max_depth + 2`` times at most.
    cap : int, optional
        Count no further than this.
    name : str, optional
        What it is called in tallies.

    Examples
    --------
    >>> import tallytree as tt
    >>> tree = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))")
    >>> [tt.parsing.count(label).tally(tree) for label in (None, "NP", ("VP", "S"))]
    [4, 2, 2]
    >>> tt.parsing.count(min_length=2).tally(tree), tt.parsing.count("NP", max_depth=1).tally(tree)
    (2, 1)
    """
    labels = None if label is None else (label,) if isinstance(label, str) else tuple(sorted(set(label)))
    for low, high, noun in ((min_length, max_length, "length"), (min_depth, max_depth, "depth")):
        if low < 0 or (high is not None and high < low):
            raise ModelError(f"constituents of a {noun} from {low} to {high} cannot be counted")
    if max(min_depth, max_depth or 0) > 100:
        raise ModelError("depths are told apart up to 100")
    called = name or ("constituents" if labels is None else "count_" + "_".join(labels))
    return _Count(labels, (min_length, max_length), (min_depth, max_depth), name=called, cap=_cap(cap))


def true_positives(truth: Tree, *, cap: int | None = None, name: str = "tp") -> TreeStatistic:
    """Count the constituents that the truth has too.

    Examples
    --------
    >>> import tallytree as tt
    >>> truth = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat)))")
    >>> tt.parsing.true_positives(truth).tally(tt.parsing.parse_tree("(S (NP (NN fish)) (VB eat))"))
    2
    """
    return _Positives(_gold(truth), True, name=name, cap=_cap(cap))


def false_positives(truth: Tree, *, cap: int | None = None, name: str = "fp") -> TreeStatistic:
    """Count the constituents that the truth does not have."""
    return _Positives(_gold(truth), False, name=name, cap=_cap(cap))


def crossing_brackets(truth: Tree, *, cap: int | None = None, name: str = "crossing") -> TreeStatistic:
    """Count the constituents that overlap with one of the truth, neither inside the other.

    Examples
    --------
    >>> import tallytree as tt
    >>> truth = tt.parsing.parse_tree("(S (X (a a) (b b)) (c c))")
    >>> tt.parsing.crossing_brackets(truth).tally(tt.parsing.parse_tree("(S (a a) (Y (b b) (c c)))"))
    1
    """
    spans = sorted({(start, end) for (_, start, end), _ in _gold(truth)})
    return _Crossing(tuple(spans), name=name, cap=_cap(cap))


def wrong_nodes(truth: Tree, *, cap: int | None = None, name: str = "wrong") -> TreeStatistic:
    """Count the spans of a tree that the truth does not label so, and the words whose tag is not the truth's.

    Labels over one span count in their order. A tree with none that has all constituents of the truth is the
    truth.
    """
    _gold(truth)
    return _Wrong(truth, name=name, cap=_cap(cap))


def _gold(truth: Tree) -> tuple[tuple[Constituent, int], ...]:
    if not isinstance(truth, Tree):
        raise ModelError(f"the truth of a statistic of trees is a Tree, got {truth!r}")
    return tuple(sorted(truth.constituents().items()))


def _cap(cap: int | None) -> int | None:
    if cap is not None and (not isinstance(cap, (int, np.integer)) or cap < 0):
        raise ModelError(f"a cap is an integer that is not negative, got {cap!r}")
    return None if cap is None else int(cap)
