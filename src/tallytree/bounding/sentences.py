"""Why a sentence is the best where no machine was compiled.

At prices ``μ`` a sentence is charged a share of the price of an n-gram wherever the n-gram ends, and never
more than ``μ·tally`` in all: the shares of an n-gram add up to no more than it may count. So no sentence of a
length has ``F(y) - μ·G(y)`` above ``A``, the most that a plain pass finds. One that beats the value ``v``
with a tally ``l`` has ``F >= need(l)``, so it is within ``D = A - min (need(l) - μ·l)`` of the most, and all
beginnings of such sentences were looked at. For ROUGE-L the shares go along an increasing map of positions to
places of the reference: agreements along it are no more than the longest common subsequence.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import AnyCertificate, Evidence, Proof
from tallytree.model.model import Model
from tallytree.model.rounding import rounding
from tallytree.running.sentences import Found, Measured
from tallytree.values import counted


class SentencePart(NamedTuple):
    """The sentences of one length with tallies in a box, and what rules out anything better among them.

    Attributes
    ----------
    length : int
    split : int
        Which of the evidence's shares the charges are made of.
    prices : tuple of float
        One for each tally: for each order of n-grams, or each reference of ROUGE-L.
        An infinite price forbids.
    most : float
        The most that any sentence of this length has at these prices, ``A``.
    low, high : tuple of int
        The ends of the box.
    budget : float
        The largest regret of a sentence that beats the value, ``D``.
    cells : int
        How many beginnings of sentences were within it.
    """

    length: int
    split: int
    prices: tuple[float, ...]
    most: float
    low: tuple[int, ...]
    high: tuple[int, ...]
    budget: float
    cells: int


class SentenceEvidence(Evidence):
    """What a search for sentences has shown.

    Attributes
    ----------
    model : Model
    measured : Measured
        What sentences were measured by.
    scaling, margin, truth_score
        What was maximised.
    parts : tuple of SentencePart
    passes : tuple of SentencePart
        All plain passes; their boxes say nothing.
    shares : tuple of float arrays
        By position and unit: how much of its price a unit is charged there.
    reached : dict
        The tallies of the labelling that was found.
    units : tuple of (words, tally, cap)
        What counts: numbers of words, the tally it adds to, how often (-1: always).
    """

    def __init__(self, model: Model, measured: Measured, asked: Any, found: Found) -> None:
        self.model, self.measured = model, measured
        self.scaling, self.margin, self.truth_score = asked.scaling, asked.margin, asked.truth
        self.parts = tuple(map(_part, found.parts))
        self.passes = tuple(map(_part, found.passes))
        self.shares: tuple[NDArray[np.float64], ...] = tuple(found.splits)
        self.reached = dict(zip(_names(measured), found.reached, strict=True))
        self.units = tuple((tuple(words), tally, cap) for words, tally, cap in found.units)

    def certificate(self, proof: Proof, model: Model, score: float, tally: Any) -> SentenceCertificate:
        """Put the certificate of a labelling together."""
        return SentenceCertificate(
            optimal=proof.claim.optimal and proof.gap == 0.0,
            gap=proof.gap,
            claim=proof.claim.words("labelling"),
            score=score,
            promised=proof.promised,
            allowance=rounding(model.blocks),
            tally=self.reached,
            counted=_names(self.measured),
            parts=self.parts,
            passes=self.passes,
        )


def _part(numbers: Any) -> SentencePart:
    return SentencePart._make(tuple(one) if isinstance(one, list) else one for one in numbers)


def _names(measured: Measured) -> tuple[str, ...]:
    if measured.kind == "bleu":
        return tuple(f"right{n}" for n in range(1, measured.order + 1))
    return (
        ("right",)
        if measured.kind == "rouge-n"
        else tuple(f"lcs{i}" for i in range(len(measured.references)))
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceCertificate(AnyCertificate):
    """Why a sentence is optimal, by prices and budgets; print it.

    Attributes
    ----------
    optimal, claim, score, promised, allowance
        As for every certificate.
    tally : dict
        The tallies that have prices.
    counted : tuple of str
        Their names.
    parts : tuple of SentencePart
        Lengths and boxes of tallies, and what was looked at in each.
    passes : tuple of SentencePart
        All plain passes. What is in no box is ruled out by one of them.
    """

    counted: tuple[str, ...]
    parts: tuple[SentencePart, ...]
    passes: tuple[SentencePart, ...]

    @property
    def cells(self) -> int:
        """How many beginnings of sentences were looked at."""
        return sum(part.cells for part in self.parts)

    def __str__(self) -> str:
        lines = [*self.attained("evaluated again on the model", "search's")]
        for part in self.parts[:4]:
            lines += self._argument(part)
        if len(self.parts) > 4:
            lines.append(f"  and {len(self.parts) - 4} more boxes in the same way")
        many = f"{len(self.passes)} plain pass{'' if len(self.passes) == 1 else 'es'}"
        lines.append(f"  all other tallies and lengths are ruled out by {many} with such charges")
        return "\n".join(lines)

    def _argument(self, part: SentencePart) -> list[str]:
        if np.inf in part.prices:
            return [
                f"  with {part.length} words and {self.counted[-1]} = 0 the loss is 1, and none scores more "
                f"than {part.most:.10g} (a plain pass);"
            ]
        paid = " ".join(
            f"- {price:.4g}·{name}" for price, name in zip(part.prices, self.counted, strict=True) if price
        )
        box = ", ".join(
            f"{name} = {a}" if a == b else f"{a} <= {name} <= {b}"
            for name, a, b in zip(self.counted, part.low, part.high, strict=True)
        )
        return [
            f"  with {part.length} words none has score {paid} above {part.most:.10g} (a plain pass);",
            f"  with {box}, one that is better than this one is at most {max(part.budget, 0.0):.6g}",
            f"  below that, and all that are were looked at: {counted(part.cells, 'cell')}",
        ]
