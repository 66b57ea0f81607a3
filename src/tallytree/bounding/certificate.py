"""Why an answer is optimal if no full table was computed.

At prices ``λ`` no labelling has ``F(y) + λ·G(y)`` above ``A``, the maximum found by a plain pass. A labelling
that reaches the value ``v`` with a tally ``l`` has ``F >= need(l)``, so it is within ``D = A - min (need(l) +
λ·l)`` of the maximum: its *regret* is at most the budget ``D``. All labellings with such a regret were
examined, tally by tally. If the minimum is over part of the tallies only, the other parts have prices of
their own, or a pass showing that none of their tallies reaches ``v``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

from tallytree.answers.certificate import AnyCertificate, Evidence, Proof
from tallytree.bounding.question import Question
from tallytree.model.model import Model
from tallytree.model.rounding import rounding
from tallytree.planning.budget import readable_count
from tallytree.planning.orders import Order
from tallytree.planning.query import Query
from tallytree.planning.search_price import SearchPrice, search_price
from tallytree.running.bounds import Wanted
from tallytree.statistics.statistic import Statistic
from tallytree.values import counted


class Part(NamedTuple):
    """A box of tallies, and the proof that nothing better exists within it.

    Attributes
    ----------
    prices : tuple of float
        One for each counted statistic.
    most : float
        The maximum over all labellings at these prices, ``A``.
    low, high : tuple of int
        The bounds of the box.
    budget : float
        The largest regret of a labelling that reaches the value, ``D``.
    cells : int
        The number of tallies of partial labellings within the budget.
    """

    prices: tuple[float, ...]
    most: float
    low: tuple[int, ...]
    high: tuple[int, ...]
    budget: float
    cells: int

    def box(self, names: tuple[str, ...]) -> str:
        """Return the box as text."""
        ends = zip(names, self.low, self.high, strict=True)
        return ", ".join(f"{name} = {a}" if a == b else f"{a} <= {name} <= {b}" for name, a, b in ends)


class BoundsEvidence(Evidence):
    """What a search by bounds has proven.

    Attributes
    ----------
    query : Query
        The query, about the model that was solved.
    statistics : tuple of Statistic
        The counted statistics, which have prices.
    names : tuple of str
        What the certificate calls them.
    parts : tuple of Part
    passes : tuple of (prices, most)
    question : Question
        What was maximised.
    box : Wanted
        The tallies that could be optimal.
    value : float
        The best value, as the question defines it.
    order : Order or None
        The elimination order, if it was given.
    """

    def __init__(
        self,
        query: Query[Statistic],
        names: tuple[str, ...],
        parts: tuple[Part, ...],
        passes: tuple[tuple[tuple[float, ...], float], ...],
        asked: tuple[Question, Wanted],
        value: float,
        order: Order | None = None,
    ) -> None:
        self.order = order
        self.query, self.statistics, self.names = query, query.counted, names
        self.parts, self.passes = parts, passes
        question, box = asked
        self.question, self.box, self.value = question, box._replace(losses=None), value

    @property
    def model(self) -> Model:
        """The model that was solved."""
        model: Model = self.query.subject
        return model

    def without_query(self, ask: Callable[[], Query[Any]]) -> Callable[[], Evidence]:
        """Return a function that makes the same evidence from the query made again."""
        asked = self.question, self.box
        return partial(_again, ask, self.names, self.parts, self.passes, asked, self.value, self.order)

    def certificate(self, proof: Proof, model: Model, score: float, tally: Any) -> BoundsCertificate:
        """Assemble the certificate of a labelling."""
        query = self.query
        held = content(proof, model, score, dict(zip(tally._fields, tally, strict=True)))
        return BoundsCertificate(
            **held,
            counted=self.names,
            parts=self.parts,
            passes=self.passes,
            price=search_price(query.subject, query.carried, query.window, self.order),
        )


def _again(ask: Callable[[], Query[Statistic]], *proven: Any) -> BoundsEvidence:
    return BoundsEvidence(ask(), *proven)


def content(proof: Proof, model: Model, score: float, tally: dict[str, int]) -> dict[str, Any]:
    """Return the fields common to all certificates."""
    return {
        "optimal": proof.claim.optimal and proof.gap == 0.0,
        "gap": proof.gap,
        "claim": proof.claim.words("labelling"),
        "score": score,
        "promised": proof.promised,
        "allowance": rounding(model.blocks),
        "tally": tally,
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundsCertificate(AnyCertificate):
    """Why a labelling is optimal, by prices and a budget; print it to read it.

    Attributes
    ----------
    optimal, claim, score, promised, allowance, tally
        As for :class:`Certificate`.
    counted : tuple of str
        The statistics that have prices.
    parts : tuple of Part
        Boxes of tallies, and what was examined in each.
    passes : tuple of (prices, most)
        All plain passes. Each tally outside the boxes is ruled out by one of them.
    price : SearchPrice or None
        The cost of a pass and of the full table.
    """

    noun: ClassVar[str] = "labelling"
    evaluated: ClassVar[str] = "evaluated again on the model"

    counted: tuple[str, ...]
    parts: tuple[Part, ...]
    passes: tuple[tuple[tuple[float, ...], float], ...]
    price: SearchPrice | None = None

    @property
    def cells(self) -> int:
        """The number of tallies of partial labellings that were examined."""
        return sum(part.cells for part in self.parts)

    def __str__(self) -> str:
        lines = [*self.attained(self.evaluated, "search's")]
        for part in self.parts[:3]:
            lines += self._argument(part)
        if len(self.parts) > 3:
            lines.append(f"  and {len(self.parts) - 3} more boxes in the same way")
        lines.append(
            f"  tallies outside cannot be as good: their scores are bounded by {len(self.passes)} plain pass"
            f"{'' if len(self.passes) == 1 else 'es'}"
        )
        return "\n".join([*lines, *filter(None, [self._costs()])])

    def _costs(self) -> str:
        if self.price is None:
            return ""
        return (
            f"  of {readable_count(self.price.pass_operations)} operations each; a full table takes "
            f"about {readable_count(self.price.table_operations)}"
        )

    def _argument(self, part: Part) -> list[str]:
        paid = " ".join(
            f"{'-' if price < 0 else '+'} {abs(price):.6g}·{name}"
            for price, name in zip(part.prices, self.counted, strict=True)
        )
        return [
            f"  no {self.noun} has score {paid} above {part.most:.10g} (a plain pass);",
            f"  with {part.box(self.counted)}, a {self.noun} as good as this one is at most "
            f"{max(part.budget, 0.0):.6g}",
            f"  below that bound; all such {self.noun}s were examined: {counted(part.cells, 'cell')} of the "
            "tables",
        ]
