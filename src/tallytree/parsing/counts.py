"""Counting constituents: by label, by length, by depth."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.parsing.statistics import Chart, TreeStatistic, checked_cap
from tallytree.trees import Tree


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
    labels = _labels(label)
    for low, high, noun in ((min_length, max_length, "length"), (min_depth, max_depth, "depth")):
        whole = all(end is None or isinstance(end, (int, np.integer)) for end in (low, high))
        if not whole or low < 0 or (high is not None and high < low):
            raise ModelError(f"constituents of a {noun} from {low} to {high} cannot be counted")
    if max(min_depth, max_depth or 0) > 100:
        raise ModelError("depths are told apart up to 100")
    called = name or ("constituents" if labels is None else "count_" + "_".join(labels))
    return _Count(labels, (min_length, max_length), (min_depth, max_depth), name=called, cap=checked_cap(cap))


def _labels(label: str | Iterable[str] | None) -> tuple[str, ...] | None:
    if label is None or isinstance(label, str):
        return None if label is None else (label,)
    every = list(label) if isinstance(label, Iterable) else [label]
    if not all(isinstance(one, str) for one in every):
        raise ModelError(f"constituents are counted by a label or several, which are strings; got {label!r}")
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
        level = np.arange(chart.compiled.levels)  # the last one stands for all that are deeper
        deep = (level >= self.depths[0]) & (True if self.depths[1] is None else level <= self.depths[1])
        length = chart.ends - chart.starts
        long = (length >= self.lengths[0]) & (True if self.lengths[1] is None else length <= self.lengths[1])
        per_bag = (counts * deep).sum(axis=2, dtype=np.int64) @ chosen
        return np.outer(per_bag, long)

    def content(self) -> tuple[Any, ...]:
        return (self.labels, self.lengths, self.depths)
