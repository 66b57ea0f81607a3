"""The labellings that a native batch has found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certification import certify_labelling
from tallytree.answers.solution import Decoded


class Labellings(NamedTuple):
    """The results of a batch: the labellings of its items, grouped by item, best first."""

    # of all labellings: labels, tallies according to the messages, and sums of integer tables
    labels: NDArray[np.int64]
    tallies: NDArray[np.int64]
    sums: NDArray[np.int64]
    # of each labelling: the ``item``; where its stretches of the three arrays begin and end
    # (``labels_begin``, ``labels_end``, ``tally_begin``, …); its score by the messages (``promised``) and by
    # the definition (``score``), the size of its local scores (``magnitude``) and their number (``terms``);
    # with a truth, the ``value``, the ``loss`` and the ``truth_score``; and whether score and tally are what
    # the messages promise (``certified``), and whether it was found by bounds (``bounded``)
    known: NDArray[np.void]

    def part(self, first: int, last: int) -> Labellings:
        """Return those of some of the items, renumbered from 0."""
        begin, end = np.searchsorted(self.known["item"], (first, last))
        known = self.known[begin:end].copy()
        known["item"] -= first
        return self._replace(known=known)

    def columns(self, *names: str) -> Iterator[tuple[Any, ...]]:
        """Iterate over the named fields of each labelling."""
        return zip(*(self.known[name].tolist() for name in names), strict=True)

    def rows(self, width: int) -> list[list[int]]:
        """Return the sums of each labelling, which must all have the same length."""
        first, last = self.known["sums_begin"][:1], self.known["sums_end"][-1:]
        return self.sums[first.sum() : last.sum()].reshape(-1, width).tolist()

    def each(self, values: Mapping[int, Sequence[float]]) -> dict[int, list[Decoded]]:
        """Return the labellings of each item that has any, given the values of the chosen ones."""
        found: dict[int, list[Decoded]] = {}
        tallies, sums = self.tallies.tolist(), self.sums.tolist()
        for item, at, end, t, t_end, s, s_end, *known in self.columns(*_STRETCHES, *_EVALUATED):
            promised, score, magnitude, terms, certified, bounded = known
            some = found.setdefault(item, [])
            value = values[item][len(some)] if item in values else None
            evaluation, labels = (score, magnitude, terms, sums[s:s_end]), self.labels[at:end].copy()
            some.append(Decoded(labels, promised, tallies[t:t_end], value, evaluation, certified, bounded))
        return found

    def certify(self) -> None:
        """Raise the error of the first labelling that does not match its messages."""
        for one in self.known[~self.known["certified"]][:1]:
            tally = self.tallies[one["tally_begin"] : one["tally_end"]].tolist()
            sums = self.sums[one["sums_begin"] : one["sums_end"]].tolist()
            evaluation = one["score"].item(), one["magnitude"].item(), one["terms"].item(), sums
            certify_labelling(one["promised"].item(), tally, evaluation, sums)


_STRETCHES = ("item", "labels_begin", "labels_end", "tally_begin", "tally_end", "sums_begin", "sums_end")
_EVALUATED = ("promised", "score", "magnitude", "terms", "certified", "bounded")
