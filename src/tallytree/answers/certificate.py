"""Why an answer is optimal: what was attained, and what rules out anything better.

A certificate has two parts. That the value is *attained* was checked when the labelling was decoded: its
tally and its score were recomputed from the model. That nothing *better* exists follows from the upward pass,
which covers every labelling, as the plan describes. In single precision the pass gives an upper bound, and
the claim holds up to a *gap*. A solution stores a :class:`Proof`, which is a few references; the
certificate is assembled on request. Parse trees have certificates of the same kind, based on
a chart.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from tallytree.model.model import Model
from tallytree.model.rounding import rounding
from tallytree.planning.budget import readable_bytes, readable_count
from tallytree.planning.plan import Plan
from tallytree.planning.price import Price
from tallytree.planning.query import Query
from tallytree.values import counted

BEST = "no {thing}{among} has a higher {noun}"
SAME_TALLY = "no {thing} with this tally has a higher score"
IN_ORDER = "no {thing}{among}, except the {rank} before it, has a higher {noun}"
OUTSIDE = "no {thing}{among} outside the {rank} excluded ones has a higher {noun}"


class Claim(NamedTuple):
    """The set within which a solution is optimal, and by which measure.

    Attributes
    ----------
    text : str
        ``BEST``, ``SAME_TALLY``, ``IN_ORDER``, ``OUTSIDE``, or another text.
    among : object
        The constraint, if any.
    noun : str
        What is maximised.
    rank : int
        The number of better or excluded solutions.
    optimal : bool
        Whether the claim is that nothing better exists.
    """

    text: str
    among: object = None
    noun: str = "score"
    rank: int = 0
    optimal: bool = True

    def words(self, thing: str) -> str:
        """Return the claim as text.

        Examples
        --------
        >>> Claim(IN_ORDER, among="size <= 3", rank=2).words("tree")
        "no tree that satisfies 'size <= 3', except the 2 before it, has a higher score"
        """
        constraint = "" if self.among is None else f" that satisfies '{self.among}'"
        return self.text.format(thing=thing, among=constraint, noun=self.noun, rank=self.rank)


class Evidence(ABC):
    """What a claim can be based on if no complete table was computed."""

    @abstractmethod
    def certificate(self, proof: Proof, model: Model, score: float, tally: Any) -> AnyCertificate:
        """Assemble the certificate of a labelling."""

    def without_query(self, ask: Callable[[], Query[Any]]) -> Evidence | Callable[[], Evidence]:
        """Return the same, or a function that makes it, without the query, which `ask` makes again."""
        return self


class Proof(NamedTuple):
    """What a solution stores about how it was found."""

    # storing the plan itself would keep its lists in memory, and a query the model made for it
    plan: Price | Evidence | Callable[[], Price | Plan | Evidence]
    promised: float  # the score according to the messages
    claim: Claim
    gap: float = 0.0

    def rests_on(self) -> Price | Plan | Evidence:
        """Return the plan or evidence behind the claim; it is recomputed if it was not kept."""
        return self.plan() if callable(self.plan) else self.plan

    def certificate(self, model: Model, score: float, tally: Any) -> AnyCertificate:
        """Assemble the certificate of a labelling."""
        basis = self.rests_on()
        if isinstance(basis, Evidence):
            return basis.certificate(self, model, score, tally)
        price = basis if isinstance(basis, Price) else basis.price
        return Certificate(
            optimal=self.claim.optimal and self.gap == 0.0,
            gap=self.gap,
            claim=self.claim.words("labelling"),
            score=score,
            promised=self.promised,
            allowance=rounding(model.blocks),
            tally=dict(zip(tally._fields, tally, strict=True)),
            **price._asdict(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class AnyCertificate:
    """Why an answer is optimal; print it to read it.

    Attributes
    ----------
    optimal : bool
        Whether the claim is that nothing better exists.
    claim : str
        What is proven, up to the gap.
    gap : float
        The most by which another answer could be better; 0 in double precision.
    score : float
        The score, computed from the model.
    promised : float
        The score according to the pass: the same numbers, added in a different order. In single precision,
        an upper bound on it.
    allowance : float
        The largest difference that rounding can cause between two such sums.
    tally : dict
        The tally, computed from the definition.
    """

    optimal: bool
    claim: str
    score: float
    promised: float
    allowance: float
    tally: dict[str, int]
    gap: float = 0.0

    @property
    def difference(self) -> float:
        """The difference between the score and the score according to the pass."""
        return abs(self.score - self.promised)

    def attained(self, checked: str, found: str) -> tuple[str, ...]:
        """Return the lines with the claim and the check behind it."""
        tally = ", ".join(f"{name}={value}" for name, value in self.tally.items())
        counts = f" and the tally ({tally})" if tally else ""
        return (
            self._claimed(),
            f"  {checked}, it has the score {self.score:.10g}{counts};",
            f"  the {found} score {self._promise()}",
        )

    def _claimed(self) -> str:
        if self.gap:
            return f"optimal up to a gap of {self.gap:.2g}: {self.claim} by more than that"
        return f"{'optimal' if self.optimal else 'attained'}: {self.claim}"

    def _promise(self) -> str:
        if self.difference == 0.0:
            return "is the same"
        return f"differs by {self.difference:.1e}, and rounding can cause up to {self.allowance:.1e}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate(AnyCertificate):
    """Why a labelling is optimal; print it to read it.

    Attributes
    ----------
    optimal : bool
        Whether the claim is that nothing better exists.
    claim : str
        What is proven, up to the gap.
    gap : float
        The most by which another labelling could be better; 0 in double precision.
    score : float
        The score, computed from the model.
    promised : float
        The score according to the upward pass: the same numbers, added in a different order.
    allowance : float
        The largest difference that rounding can cause between the two.
    tally : dict
        The tally, counted on the labelling.
    variables, width, degree, tallies, operations, peak_bytes, precision
        Properties of the upward pass that covers all labellings, as in its :class:`Plan`.
    """

    variables: int
    width: int
    degree: int
    tallies: int
    operations: float
    peak_bytes: int
    precision: str = "double"

    def _promise(self) -> str:
        if self.precision == "single":
            return f"for this tally is {self.promised:.10g}, an upper bound: single precision, rounded up"
        return AnyCertificate._promise(self)

    def __str__(self) -> str:
        return "\n".join(
            (
                *self.attained("evaluated again on the model", "messages'"),
                f"  the messages cover every labelling of {counted(self.variables, 'variable')}:",
                f"    width τ = {self.width}, tallies R = {self.tallies:,}, "
                f"{readable_count(self.operations)} add-max operations, {readable_bytes(self.peak_bytes)}",
            )
        )
