"""Why an answer is optimal: what was attained, and what rules out anything better.

A certificate has two halves. That the value is *attained* was checked when the labelling was decoded: its
tally and its score were computed again from the model. That nothing *better* exists rests on the upward pass,
which looks at every labelling: the plan says how. A solution keeps a :class:`Proof`, a few references; the
numbers are put together when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tallytree.core.blocks import counted
from tallytree.core.budget import readable_bytes, readable_count
from tallytree.core.model import Model
from tallytree.core.plan import Plan
from tallytree.core.rounding import rounding

__all__ = ["BEST", "IN_ORDER", "OUTSIDE", "SAME_TALLY", "Certificate", "Proof"]

BEST = "no labelling{among} has a higher {noun}"
SAME_TALLY = "no labelling with this tally has a higher score"
IN_ORDER = "no labelling{among} but the {rank} before it has a higher {noun}"
OUTSIDE = "no labelling{among} outside the {rank} excluded ones has a higher {noun}"


class Proof(NamedTuple):
    """What a solution remembers of how it was found."""

    plan: Plan | Callable[[], Plan]  # made when it is asked for
    promised: float  # the score that the messages hold
    claim: str
    among: object = None  # the constraint, if there is one
    noun: str = "score"
    rank: int = 0
    optimal: bool = True

    def certificate(self, model: Model, score: float, tally: Any) -> Certificate:
        """Put the certificate of a labelling together."""
        among = "" if self.among is None else f" that satisfies '{self.among}'"
        plan = self.plan if isinstance(self.plan, Plan) else self.plan()
        return Certificate(
            optimal=self.optimal,
            claim=self.claim.format(among=among, noun=self.noun, rank=self.rank),
            score=score,
            promised=self.promised,
            allowance=rounding(model.blocks),
            tally=dict(zip(tally._fields, tally, strict=True)),
            variables=len(plan.order),
            width=plan.width,
            degree=plan.degree,
            tallies=plan.tallies,
            operations=plan.operations,
            peak_bytes=plan.peak_bytes,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Why a labelling is optimal; print it.

    Attributes
    ----------
    optimal : bool
        Whether the claim is that nothing better exists.
    claim : str
        What is proven.
    score : float
        The score of the labelling, computed from the model.
    promised : float
        The score that the messages hold for it: the same numbers, added in another order.
    allowance : float
        How far two such sums can be apart by rounding.
    tally : dict
        The tally of the labelling, computed from the integer tables.
    variables, width, degree, tallies, operations, peak_bytes
        The upward pass that looked at all labellings, as its :class:`Plan` has them.
    """

    optimal: bool
    claim: str
    score: float
    promised: float
    allowance: float
    tally: dict[str, int]
    variables: int
    width: int
    degree: int
    tallies: int
    operations: float
    peak_bytes: int

    @property
    def difference(self) -> float:
        """How far the score is from what the messages promised."""
        return abs(self.score - self.promised)

    def __str__(self) -> str:
        tally = ", ".join(f"{name}={value}" for name, value in self.tally.items())
        rounded = f"{self.difference:.1e} (rounding allows {self.allowance:.1e})"
        counts = f" and the tally ({tally})" if tally else ""
        return "\n".join(
            (
                f"{'optimal' if self.optimal else 'attained'}: {self.claim}",
                f"  evaluated again on the model, it has the score {self.score:.10g}{counts};",
                f"  the messages' score differs by {rounded}",
                f"  the messages cover every labelling of {counted(self.variables, 'variable')}: width "
                f"τ = {self.width}, tallies R = {self.tallies:,}, {readable_count(self.operations)} add-max "
                f"operations, {readable_bytes(self.peak_bytes)}",
            )
        )
