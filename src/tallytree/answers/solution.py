"""A labelling with its certificate.

Every decoded labelling is checked against the model: its tally, recomputed from the integer tables, equals
the requested one, and its score equals that of the profile up to rounding. The certificate shows
that the value is attained; that nothing better exists follows from the messages. In single precision the
score may be below that of the profile, by no more than rounding up can add.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree import html
from tallytree.answers.certificate import AnyCertificate, Claim, Evidence, Proof
from tallytree.answers.certification import certify_labelling
from tallytree.answers.tallies import named_tally, named_values, tally_type
from tallytree.colours import legend
from tallytree.kernels.evaluation import Evaluation
from tallytree.model.model import Model
from tallytree.planning.plan import Plan
from tallytree.planning.query import Query
from tallytree.reductions.reduction import Reduction
from tallytree.running.graphs import evaluator_of
from tallytree.statistics.statistic import Statistic
from tallytree.values import Frozen, read_only

_OBJECTS = 800  # bytes of a solution with its proof, numbers and array in CPython


class Solution(Frozen):
    """An optimal labelling.

    Attributes
    ----------
    value : float
        The value of the objective at the optimum; the score if there is no objective.
    score : float
        The model's score of the labelling.
    tally : named tuple of int
        The tally of each statistic, by name and in order: ``tally.ones``, ``tally["B-NP"]``, ``tally[0]``.
    assignment : int64 array
        One state number per variable; two-dimensional for grids.
    labels : array
        The labelling as state names if the model has them; two-dimensional for grids.
    proof : Proof
        The data behind the certificate.
    certificate : Certificate or None
        Why it is optimal; None for a labelling that was not found by inference.
    gap : float
        The most by which another labelling could be better: 0 in double precision, where the claim of the
        certificate holds exactly; a proven bound in single precision.

    Examples
    --------
    >>> import tallytree as tt
    >>> print(tt.solve(tt.Model([2, 2], [((0, 1), [[0, 1.5], [1, 0]])])).explain())
    optimal: no labelling has a higher score
      evaluated again on the model, it has the score 1.5;
      the messages' score is the same
      the messages cover every labelling of 2 variables:
        width τ = 1, tallies R = 1, ...
    """

    value: float
    score: float
    tally: Any
    assignment: NDArray[np.int64]
    model: Model
    proof: Proof | AnyCertificate | None

    def __init__(
        self,
        value: float,
        score: float,
        tally: Any,
        assignment: NDArray[np.int64],
        model: Model,
        proof: Proof | AnyCertificate | None = None,
    ) -> None:
        if len(model.shape) != 1:
            assignment = assignment.reshape(model.shape)
        # set all attributes at once, which takes half the time: batches create thousands of solutions
        vars(self).update(
            value=value, score=score, tally=tally, assignment=read_only(assignment), model=model, proof=proof
        )

    @property
    def labels(self) -> NDArray[Any]:
        """The labelling as the user sees it: names if the model has them, two-dimensional for grids."""
        return self.model.labels(self.assignment)

    @property
    def certificate(self) -> AnyCertificate | None:
        """Why it is optimal: the claim, and the pass that proves it."""
        if isinstance(self.proof, Proof):
            return self.proof.certificate(self.model, self.score, self.tally)
        return self.proof

    @property
    def gap(self) -> float:
        """The most by which the best value can be higher; inf for a labelling not found by inference."""
        return np.inf if self.proof is None else self.proof.gap

    def explain(self) -> str:
        """Explain in a few lines why it is optimal."""
        return str(self.certificate or "no certificate: this labelling was not found by inference")

    def claiming(self, text: str, **changes: Any) -> Solution:
        """Return the same labelling, found by the same pass, with another claim; takes fields of Claim."""
        proof = self.proof
        if isinstance(proof, Proof):
            proof = proof._replace(claim=proof.claim._replace(text=text, **changes))
        return Solution(self.value, self.score, self.tally, self.assignment, self.model, proof)

    def bounded(self, value: float, gap: float) -> Solution:
        """Return the same labelling with its own value, which may be below the optimum by a gap."""
        assert isinstance(self.proof, Proof)
        proof = self.proof._replace(gap=gap)
        return Solution(value, self.score, self.tally, self.assignment, self.model, proof)

    def asked_again(self, ask: Callable[[], Query[Any]]) -> Solution:
        """Return the same without its query: models and statistics made for it are as large as tables.

        `ask` makes the query again, for the certificate.
        """
        proof = self.proof
        if isinstance(proof, Proof) and isinstance(proof.plan, Evidence):
            proof = proof._replace(plan=proof.plan.without_query(ask))
        return Solution(self.value, self.score, self.tally, self.assignment, self.model, proof)

    def retold(
        self, model: Model, assignment: NDArray[np.int64], value: float, score: float, tally: Any
    ) -> Solution:
        """Return the same optimum in terms of another model; the promised score is shifted along with it."""
        proof = self.proof
        if isinstance(proof, Proof) and score != self.score:
            proof = proof._replace(promised=score + (proof.promised - self.score))
        return Solution(value, score, tally, assignment, model, proof)

    def __reduce__(self) -> tuple[Any, ...]:
        names = getattr(self.tally, "_fields", ())
        content = (self.value, self.score, names, tuple(self.tally), self.assignment, self.model)
        return _restored, (*content, self.certificate)  # plain numbers, without a plan to recompute

    def _repr_html_(self) -> str:
        """Show the solution in a notebook."""
        parts = self.shown()
        return html.described("Solution", parts.about) + parts.drawn + html.key(parts.legend)

    def shown(self) -> html.Parts:
        """Return what a notebook shows: value, score and tally, and the labels on a coloured background."""
        about: list[tuple[str, object]] = html.scored(self.value, self.score)
        about += [("gap", f"{self.gap:.2g}")] if 0 < self.gap < np.inf else []
        about += zip(self.tally._fields, self.tally, strict=True)
        columns = self.model.shape[1] if len(self.model.shape) == 2 else 0
        codes, labels = self.assignment.ravel().tolist(), self.labels.ravel().tolist()
        drawn = html.cells(codes, labels, self.model.variables, columns, self._letters())
        names = self.model.states_of(0) if self.model.alike is not None else None
        return html.Parts(about, drawn, legend(codes, names) if html.untold(len(codes), columns) else {})

    def _letters(self) -> int:
        """Return the length of the longest name, or number, of a state."""
        sizes = self.model.cardinalities[: 1 if self.model.alike is not None else None].tolist()
        names = (self.model.states_of(v) or (str(n - 1),) for v, n in enumerate(sizes))
        return max((len(name) for each in names for name in each), default=0)

    def __repr__(self) -> str:
        tally = named_values(self.tally._fields, self.tally)
        gap = f", gap={self.gap:.2g}" if 0 < self.gap < np.inf else ""
        return f"Solution(value={self.value:.6g}, score={self.score:.6g}, tally=({tally}){gap})"


def _restored(
    value: float,
    score: float,
    names: Sequence[str],
    tally: Sequence[int],
    assignment: Any,
    model: Model,
    certificate: AnyCertificate | None,
) -> Solution:
    return Solution(value, score, tally_type(tuple(names))(*tally), np.array(assignment), model, certificate)


def kept_bytes(assignment_bytes: int, statistics: int) -> int:
    """Return the approximate size in bytes of a solution that is kept."""
    return _OBJECTS + assignment_bytes + 32 * statistics


class Decoded(NamedTuple):
    """A decoded labelling, and the score and tally that the messages promise for it."""

    assignment: NDArray[np.int64]
    score: float
    tally: Sequence[int]  # of the statistics carried in the messages
    value: float | None = None  # the objective; by default the score according to the messages
    # the sums according to the model, if known: of the statistics carried, then of
    # those reported, if they are different
    evaluation: Evaluation | None = None
    certified: bool = False  # whether score and tally are known to agree with the model
    bounded: bool = False  # whether it was found by bounds, without a full table


class Certifier:
    """Certifies decoded labellings, on the solved model and on the original one.

    `plan`: the basis of a claim: a plan, a function that makes it, or other evidence. `single`: whether the
    messages are in single precision.
    """

    def __init__(self, query: Query[Statistic], plan: Any, single: bool = False) -> None:
        self._query, self._single = query, single
        self._plan = plan.price if isinstance(plan, Plan) else plan
        self._every = (*query.carried, *query.recounted)
        self._named = named_tally(query.reported)
        self._evaluate: Callable[[NDArray[np.int64]], Evaluation] | None = None

    def __call__(self, found: Decoded, claim: Claim) -> Solution:
        """Certify a labelling."""
        query, every = self._query, self._every
        model, (assignment, score, tally, value, evaluation, known, _) = query.subject, found
        if evaluation is None:
            self._evaluate = self._evaluate or evaluator_of(model, every)
            evaluation = self._evaluate(assignment)
        totals = _totals(every, evaluation[3]) if every else []
        if not known:
            certify_labelling(score, list(tally), evaluation, totals[: len(query.carried)], self._single)
        named = self._named(*totals[len(totals) - len(query.reported) :])
        proof = Proof(self._plan, score, claim)
        solution = Solution(score if value is None else value, evaluation[0], named, assignment, model, proof)
        return lifted(solution, query.reduction, query.reported)


def _totals(statistics: Sequence[Statistic], sums: Sequence[int]) -> list[int]:
    """Return the tally of each statistic from the sums of its blocks."""
    totals, at = [], 0
    for statistic in statistics:
        total = sum(sums[at : at + len(statistic.blocks)])
        totals.append(total if statistic.cap is None else min(total, statistic.cap))
        at += len(statistic.blocks)
    return totals


def lifted(solution: Solution, reduction: Reduction | None, statistics: Sequence[Statistic]) -> Solution:
    """Translate a solution to the original model, and certify it there as well."""
    if reduction is None or reduction.trivial:
        return solution
    assignment = reduction.lift(solution.assignment)
    known = [(reduction.origin(s), value) for s, value in zip(statistics, solution.tally, strict=True)]
    originals = [(origin, value) for origin, value in known if origin is not None]
    every = [origin for origin, _ in originals]
    evaluation = evaluator_of(reduction.original, every)(assignment)
    promised = [value for _, value in originals]
    certify_labelling(solution.score, promised, evaluation, _totals(every, evaluation[3]))
    return solution.retold(reduction.original, assignment, solution.value, evaluation[0], solution.tally)
