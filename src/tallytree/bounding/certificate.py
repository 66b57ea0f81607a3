"""Why an answer is the best where no whole table was made.

At prices ``λ`` no labelling has ``F(y) + λ·G(y)`` above ``A``, the most that a plain pass finds. A labelling
that reaches the value ``v`` with a tally ``l`` has ``F >= need(l)``, so it is within ``D = A - min (need(l) +
λ·l)`` of the most: its *regret* is at most the budget ``D``. All labellings with such a regret were looked
at, tally by tally. Where the minimum is over a part of the tallies only, another part has prices of its own,
or a pass that shows that none of its tallies reaches ``v``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

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
    """A box of tallies, and what rules out anything better with one of them.

    Attributes
    ----------
    prices : tuple of float
        One for each statistic that was counted.
    most : float
        The most that any labelling has at these prices, ``A``.
    low, high : tuple of int
        The ends of the box.
    budget : float
        The largest regret of a labelling that reaches the value, ``D``.
    cells : int
        How many tallies of parts of labellings were within it.
    """

    prices: tuple[float, ...]
    most: float
    low: tuple[int, ...]
    high: tuple[int, ...]
    budget: float
    cells: int

    def box(self, names: tuple[str, ...]) -> str:
        """Return the box in words."""
        ends = zip(names, self.low, self.high, strict=True)
        return ", ".join(f"{name} = {a}" if a == b else f"{a} <= {name} <= {b}" for name, a, b in ends)


class BoundsEvidence(Evidence):
    """What a search by bounds has shown.

    Attributes
    ----------
    query : Query
        What was asked, about the model that was solved.
    statistics : tuple of Statistic
        What was counted: what has prices.
    names : tuple of str
        What they are called.
    parts : tuple of Part
    passes : tuple of (prices, most)
    question : Question
        What was maximised.
    box : Wanted
        The tallies that could be of use.
    value : float
        The best value, in the terms of the question.
    order : Order or None
        In which variables were eliminated, where that was given.
    """

    def __init__(
        self,
        query: Query[Statistic],
        statistics: tuple[Statistic, ...],
        names: tuple[str, ...],
        parts: tuple[Part, ...],
        passes: tuple[tuple[tuple[float, ...], float], ...],
        asked: tuple[Question, Wanted],
        value: float,
        order: Order | None = None,
    ) -> None:
        self.order = order
        self.query, self.statistics, self.names = query, statistics, names
        self.parts, self.passes = parts, passes
        (self.question, self.box), self.value = asked, value

    @property
    def model(self) -> Model:
        """The model that was solved."""
        model: Model = self.query.subject
        return model

    def certificate(self, proof: Proof, model: Model, score: float, tally: Any) -> BoundsCertificate:
        """Put the certificate of a labelling together."""
        query = self.query
        held = content(proof, model, score, dict(zip(tally._fields, tally, strict=True)))
        return BoundsCertificate(
            **held,
            counted=self.names,
            parts=self.parts,
            passes=self.passes,
            price=search_price(query.subject, query.carried, query.window, self.order),
        )


def content(proof: Proof, model: Model, score: float, tally: dict[str, int]) -> dict[str, Any]:
    """Return what every certificate holds."""
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
    """Why a labelling is optimal, by prices and a budget; print it.

    Attributes
    ----------
    optimal, claim, score, promised, allowance, tally
        As for every certificate.
    counted : tuple of str
        The statistics that have prices.
    parts : tuple of Part
        Boxes of tallies, and what was looked at in each.
    passes : tuple of (prices, most)
        All plain passes. Tallies outside the boxes are ruled out by one of them.
    price : SearchPrice or None
        What a pass and the whole table cost.
    """

    counted: tuple[str, ...]
    parts: tuple[Part, ...]
    passes: tuple[tuple[tuple[float, ...], float], ...]
    price: SearchPrice | None = None

    @property
    def cells(self) -> int:
        """How many tallies of parts of labellings were looked at."""
        return sum(part.cells for part in self.parts)

    def __str__(self) -> str:
        lines = [*self.attained("evaluated again on the model", "search's")]
        for part in self.parts[:3]:
            lines += self._argument(part)
        if len(self.parts) > 3:
            lines.append(f"  and {len(self.parts) - 3} more boxes in the same way")
        lines.append(
            f"  tallies outside cannot be as good: their scores are bounded by {len(self.passes)} plain pass"
            f"{'' if len(self.passes) == 1 else 'es'}"
        )
        if self.price is not None:
            lines.append(
                f"  of {readable_count(self.price.pass_operations)} operations each; a whole table takes "
                f"about {readable_count(self.price.table_operations)}"
            )
        return "\n".join(lines)

    def _argument(self, part: Part) -> list[str]:
        paid = " ".join(
            f"{'-' if price < 0 else '+'} {abs(price):.6g}·{name}"
            for price, name in zip(part.prices, self.counted, strict=True)
        )
        return [
            f"  no labelling has score {paid} above {part.most:.10g} (a plain pass);",
            f"  with {part.box(self.counted)}, one that is as good as this one is at most "
            f"{max(part.budget, 0.0):.6g}",
            f"  below that, and all such labellings were examined: {counted(part.cells, 'cell')} of the "
            "tables",
        ]
