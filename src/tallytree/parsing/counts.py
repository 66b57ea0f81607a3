"""Statistics of trees: constituents by label, length and depth, and compared with the true tree."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.parsing.derivation import crossing, labels_by_span
from tallytree.parsing.statistics import Chart, TreeStatistic, checked_cap
from tallytree.trees import Constituent, Tree


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
        Only constituents with this label, or one of these; by default all, which gives the size of the tree.
    min_length, max_length : int
        Only constituents with at least, or at most, this many words.
    min_depth, max_depth : int
        Only constituents with at least, or at most, this many constituents above them; the top has none. The
        chart then distinguishes symbols by depth, and grows by a factor of up to ``max_depth + 2``.
    cap : int, optional
        The maximum of the count: larger counts are reported as ``cap``.
    name : str, optional
        The name of the tally.

    Examples
    --------
    >>> import tallytree as tt
    >>> tree = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))")
    >>> [tt.parsing.count(label).tally(tree) for label in (None, "NP", ("VP", "S"))]
    [4, 2, 2]
    >>> tt.parsing.count(min_length=2).tally(tree), tt.parsing.count("NP", max_depth=1).tally(tree)
    (2, 1)
    """
    labels = _labels(label)
    for low, high, noun in ((min_length, max_length, "length"), (min_depth, max_depth, "depth")):
        whole = all(end is None or isinstance(end, (int, np.integer)) for end in (low, high))
        if not whole or low < 0 or (high is not None and high < low):
            raise ModelError(f"there are no constituents of a {noun} from {low} to {high} to count")
    if max(min_depth, max_depth or 0) > 100:
        raise ModelError("depths are only distinguished up to 100")
    called = name or ("constituents" if labels is None else "count_" + "_".join(labels))
    return _Count(labels, (min_length, max_length), (min_depth, max_depth), name=called, cap=checked_cap(cap))


def _labels(label: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if label is None or isinstance(label, str):
        return None if label is None else (label,)
    every = list(label) if isinstance(label, Iterable) else [label]
    if not all(isinstance(one, str) for one in every):
        raise ModelError(f"label must be a string or several strings, got {label!r}")
    return tuple(sorted(set(every)))


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
        level = np.arange(chart.compiled.levels)  # the last one stands for all deeper ones
        deep = (level >= self.depths[0]) & (True if self.depths[1] is None else level <= self.depths[1])
        length = chart.ends - chart.starts
        long = (length >= self.lengths[0]) & (True if self.lengths[1] is None else length <= self.lengths[1])
        per_bag = (counts * deep).sum(axis=2, dtype=np.int64) @ chosen
        return np.outer(per_bag, long)

    def content(self) -> tuple[Any, ...]:
        return (self.labels, self.lengths, self.depths)


# --- statistics that compare a tree with the true one -------------------------------------------------------
# All labels over one span are compared together, so that repeated labels over the same words are
# handled: of two constituents ``(NP, 0, 2)`` only one is correct if the truth has one.


def true_positives(truth: Tree, *, cap: int | None = None, name: str = "tp") -> TreeStatistic:
    """Count the constituents that are also in the truth.

    Examples
    --------
    >>> import tallytree as tt
    >>> truth = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat)))")
    >>> tt.parsing.true_positives(truth).tally(tt.parsing.parse_tree("(S (NP (NN fish)) (VB eat))"))
    2
    """
    return _Positives(len(truth), _gold(truth), True, name=name, cap=checked_cap(cap))


def false_positives(truth: Tree, *, cap: int | None = None, name: str = "fp") -> TreeStatistic:
    """Count the constituents that are not in the truth."""
    return _Positives(len(truth), _gold(truth), False, name=name, cap=checked_cap(cap))


def crossing_brackets(truth: Tree, *, cap: int | None = None, name: str = "crossing") -> TreeStatistic:
    """Count the constituents that overlap with one of the truth, neither containing the other.

    Examples
    --------
    >>> import tallytree as tt
    >>> truth = tt.parsing.parse_tree("(S (X (a a) (b b)) (c c))")
    >>> tt.parsing.crossing_brackets(truth).tally(tt.parsing.parse_tree("(S (a a) (Y (b b) (c c)))"))
    1
    """
    spans = sorted({(start, end) for (_, start, end), _ in _gold(truth)})
    return _Crossing(len(truth), tuple(spans), name=name, cap=checked_cap(cap))


def wrong_nodes(truth: Tree, *, cap: int | None = None, name: str = "wrong") -> TreeStatistic:
    """Count the spans that are labelled differently in the truth, and the words with another tag.

    The order of labels over one span matters. A tree without wrong nodes that has all constituents of the
    truth is the truth.
    """
    _gold(truth)
    return _Wrong(len(truth), truth, name=name, cap=checked_cap(cap))


def _gold(truth: Tree) -> tuple[tuple[Constituent, int], ...]:
    if not isinstance(truth, Tree):
        raise ModelError(f"the truth of a tree statistic must be a Tree, got {truth!r}")
    return tuple(sorted(truth.constituents().items()))


@dataclass(frozen=True, eq=False, repr=False)
class _Comparison(TreeStatistic):
    """A statistic of a tree that is compared with the truth, over this many words."""

    words: int

    @property
    def length(self) -> int:
        return self.words


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Positives(_Comparison):
    """Constituents that are in the truth, or those that are not."""

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
        return (self.words, self.true, self.gold)


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Crossing(_Comparison):
    """Constituents that cross one of the truth."""

    gold: tuple[tuple[int, int], ...]

    def _crosses(self, start: int, end: int) -> bool:
        return any(s < start < e < end or start < s < end < e for s, e in self.gold)

    def total(self, tree: Tree) -> int:
        return sum(n for (_, start, end), n in tree.constituents().items() if self._crosses(start, end))

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        return np.outer(chart.sizes, crossing(self.gold, chart.starts, chart.ends))

    def content(self) -> tuple[Any, ...]:
        return (self.words, self.gold)


@final
@dataclass(frozen=True, eq=False, repr=False)
class _Wrong(_Comparison):
    """Spans and words that are labelled differently in the truth, including order and tags."""

    truth: Tree

    def total(self, tree: Tree) -> int:
        right = labels_by_span(self.truth)
        wrong = sum(labels != right.get(span, []) for span, labels in labels_by_span(tree).items())
        return wrong + sum(a != b for a, b in zip(tree.tags, self.truth.tags, strict=True))

    def weights(self, chart: Chart) -> NDArray[np.int64]:
        compiled, words = chart.compiled, len(self.truth)
        names, right, tags = compiled.names, labels_by_span(self.truth), self.truth.tags
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
