"""Why a sentence is optimal if no machine was compiled.

At prices ``μ`` a sentence is charged a share of the price of an n-gram wherever the n-gram ends, and never
more than ``μ·tally`` in total: the shares of an n-gram add up to no more than it may count. So no sentence of
a length has ``F(y) - μ·G(y)`` above ``A``, the maximum found by a plain pass. One that beats the value ``v``
with a tally ``l`` has ``F >= need(l)``, so it is within ``D = A - min (need(l) - μ·l)`` of the maximum, and
all prefixes of such sentences were examined. For ROUGE-L the shares are a mixture of alignments, increasing
maps of positions to positions of the reference: agreements along each are at most the longest common
subsequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import Evidence, Proof
from tallytree.bounding.certificate import BoundsCertificate, Part, content
from tallytree.model.model import Model
from tallytree.running.sentences import Found, Measured
from tallytree.values import counted


class SentencePart(NamedTuple):
    """The sentences of one length with tallies in a box, and the proof that none of them is better.

    Attributes
    ----------
    length : int
    split : int
        Index of the evidence's shares that the charges are based on.
    part : Part
        Prices, box, budget and cells; a cell is a prefix of sentences. There is a price for each order of
        n-grams, or each reference of ROUGE-L; prices are costs, and an infinite one forbids.
    """

    length: int
    split: int
    part: Part


class SentenceEvidence(Evidence):
    """What a search for sentences has proven.

    Attributes
    ----------
    model : Model
    measured : Measured
        The measure of the sentences.
    scaling, margin, truth_score
        What was maximised.
    parts : tuple of SentencePart
    passes : tuple of SentencePart
        All plain passes; their boxes are not used.
    shares : tuple of float arrays
        By position and unit: the share of its price that a unit is charged there.
    reached : dict
        The tallies of the labelling found.
    units : tuple of (words, tally, cap)
        What counts: the words (by number), the tally it adds to, and how often (-1: always).
    """

    def __init__(self, model: Model, measured: Measured, searched: Any, found: Found) -> None:
        self.model, self.measured = model, measured
        self.scaling, self.margin, self.truth_score = searched.scaling, searched.margin, searched.truth
        self.parts = tuple(map(_part, found.parts))
        self.passes = tuple(map(_part, found.passes))
        self.shares: tuple[NDArray[np.float64], ...] = tuple(found.splits)
        self.reached = dict(zip(_names(measured), found.reached, strict=True))
        self.units = tuple((tuple(words), tally, cap) for words, tally, cap in found.units)

    def certificate(self, proof: Proof, model: Model, score: float, tally: Any) -> SentenceCertificate:
        """Assemble the certificate of a labelling."""
        return SentenceCertificate(
            **content(proof, model, score, self.reached),
            counted=_names(self.measured),
            parts=tuple(one.part for one in self.parts),
            passes=tuple((one.part.prices, one.part.most) for one in self.passes),
            lengths=tuple(one.length for one in self.parts),
        )


def _part(numbers: Any) -> SentencePart:
    length, split, prices, most, low, high, budget, cells = numbers
    return SentencePart(length, split, Part(tuple(prices), most, tuple(low), tuple(high), budget, cells))


def _names(measured: Measured) -> tuple[str, ...]:
    if measured.kind == "bleu":
        return tuple(f"right{n}" for n in range(1, measured.order + 1))
    return (
        ("right",)
        if measured.kind == "rouge-n"
        else tuple(f"lcs{i}" for i in range(len(measured.references)))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceCertificate(BoundsCertificate):
    """Why a sentence is optimal, by prices and budgets; print it to read it.

    Attributes
    ----------
    optimal, claim, score, promised, allowance, counted, parts, passes
        As for :class:`BoundsCertificate`.
    tally : dict
        The tallies that have prices.
    lengths : tuple of int
        The sentence length that each part is about.
    """

    lengths: tuple[int, ...]

    def __str__(self) -> str:
        lines = [*self.attained("evaluated again on the model", "search's")]
        for length, part in list(zip(self.lengths, self.parts, strict=True))[:4]:
            lines += self._shown(length, part)
        if len(self.parts) > 4:
            lines.append(f"  and {len(self.parts) - 4} more boxes in the same way")
        many = f"{len(self.passes)} plain pass{'' if len(self.passes) == 1 else 'es'}"
        lines.append(f"  all other tallies and lengths are ruled out by {many} with such charges")
        return "\n".join(lines)

    def _shown(self, length: int, part: Part) -> list[str]:
        if np.inf in part.prices:
            return [
                f"  with {length} words and {self.counted[-1]} = 0, the loss is 1 and no sentence scores "
                f"above {part.most:.10g} (a plain pass);"
            ]
        paid = " ".join(
            f"- {price:.4g}·{name}" for price, name in zip(part.prices, self.counted, strict=True) if price
        )
        return [
            f"  no sentence of {length} words has score {paid} above {part.most:.10g} (a plain pass);",
            f"  with {part.box(self.counted)}, a sentence better than this one is at most "
            f"{max(part.budget, 0.0):.6g}",
            f"  below that bound; all such sentences were examined: {counted(part.cells, 'cell')}"
            if part.cells
            else "  below that bound, which is rounding",
        ]
