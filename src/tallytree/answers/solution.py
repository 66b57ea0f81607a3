"""A labelling with its certificate.

Every decoded labelling is checked against the model it came from: its tally, recomputed from the integer
tables, equals the one that was asked for, and its score equals the profile's to rounding. The certificate
shows that the value is attained; that nothing better exists rests on the messages. In single precision the
score is below the profile's, by no more than rounding up can add to it.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree import html
from tallytree.answers.certificate import Certificate, Proof
from tallytree.errors import CertificateError
from tallytree.kernels import native
from tallytree.model.model import Model
from tallytree.planning.precision import single_rounding
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic
from tallytree.values import Frozen, read_only

__all__ = ["Evaluation", "Solution", "certified", "lifted", "tally_type", "unique_names", "verify_all"]

Evaluation = tuple[float, float, int, list[int]]
"""A labelling's score, the size of its local scores, their number, and the sum of each block of integers."""

_EPSILON = float(np.finfo(np.float64).eps)


class Solution(Frozen):
    """An optimal labelling.

    Attributes
    ----------
    value : float
        The objective at the optimum; the score where there was no objective.
    score : float
        The model's score of the labelling.
    tally : named tuple of int
        Its statistics, by name and in order.
    assignment : int64 array
        One state number per variable.
    labels : array
        State names where the model has them, in two dimensions on grids.
    proof : Proof
        What the certificate is made from; a plain tuple of its fields, which is quicker to make.
    certificate : Certificate or None
        Why it is optimal; None for a labelling that no inference has found.
    gap : float
        How much better than what was found something else could be: 0 in double precision, where the claim of
        the certificate holds as it stands; a proven bound in single precision.

    Examples
    --------
    >>> import tallytree as tt
    >>> print(tt.solve(tt.Model([2, 2], [((0, 1), [[0, 1.5], [1, 0]])])).explain())
    optimal: no labelling has a higher score
      evaluated again on the model, it has the score 1.5;
      the messages' score differs by 0.0e+00 (rounding allows 3.3e-15)
      the messages cover every labelling of 2 variables: width τ = 1, tallies R = 1, ...
    """

    value: float
    score: float
    tally: Any
    assignment: NDArray[np.int64]
    model: Model
    proof: tuple[Any, ...] | Certificate | None

    def __init__(
        self,
        value: float,
        score: float,
        tally: Any,
        assignment: NDArray[np.int64],
        model: Model,
        proof: tuple[Any, ...] | Certificate | None = None,
    ) -> None:
        # at once, which takes half as long as one by one: batches make thousands of them
        vars(self).update(
            value=value, score=score, tally=tally, assignment=read_only(assignment), model=model, proof=proof
        )

    @property
    def labels(self) -> NDArray[Any]:
        """The labelling as the user sees it."""
        return self.model.labels(self.assignment)

    @property
    def certificate(self) -> Certificate | None:
        """Why it is optimal: what is claimed, and the pass that the claim rests on."""
        if isinstance(self.proof, tuple):
            return Proof(*self.proof).certificate(self.model, self.score, self.tally)
        return self.proof

    @property
    def gap(self) -> float:
        """How much higher the best value can be at most; inf for a labelling that no inference has found."""
        if isinstance(self.proof, tuple):
            return Proof(*self.proof).gap
        return np.inf if self.proof is None else self.proof.gap

    def explain(self) -> str:
        """Say in a few lines why it is optimal."""
        return str(self.certificate or "no certificate: this labelling was not found by inference")

    def claiming(self, claim: str, **changes: Any) -> Solution:
        """Return the same labelling, found by the same pass, with another claim; changes as in Proof."""
        proof = self.proof
        if isinstance(proof, tuple):
            proof = Proof(*proof)._replace(claim=claim, **changes)
        return Solution(self.value, self.score, self.tally, self.assignment, self.model, proof)

    def bounded(self, value: float, gap: float) -> Solution:
        """Return the same labelling with the value that it has, which may be below the best by a gap."""
        assert isinstance(self.proof, tuple)
        proof = Proof(*self.proof)._replace(gap=gap)
        return Solution(value, self.score, self.tally, self.assignment, self.model, proof)

    def retold(
        self, model: Model, assignment: NDArray[np.int64], value: float, score: float, tally: Any
    ) -> Solution:
        """Return the same optimum in terms of another model; the messages are as far off as they were."""
        proof = self.proof
        if isinstance(proof, tuple) and score != self.score:
            found = Proof(*proof)
            proof = found._replace(promised=score + (found.promised - self.score))
        return Solution(value, score, tally, assignment, model, proof)

    def __reduce__(self) -> tuple[Any, ...]:
        names = getattr(self.tally, "_fields", ())
        content = (self.value, self.score, names, tuple(self.tally), self.assignment, self.model)
        return _restored, (*content, self.certificate)  # the numbers, and no plan to make again

    def _repr_html_(self) -> str:
        """Show the solution in a notebook: value, score, tally, and the labels on coloured ground."""
        about: list[tuple[str, object]] = [("value", f"{self.value:.6g}"), ("score", f"{self.score:.6g}")]
        about += [("gap", f"{self.gap:.2g}")] if 0 < self.gap < np.inf else []
        about += zip(self.tally._fields, self.tally, strict=True)
        columns = self.model.shape[1] if len(self.model.shape) == 2 else 0
        labels = self.labels.ravel().tolist()
        drawn = html.cells(self.assignment.tolist(), labels, self.model.variables, columns)
        return html.described("Solution", about) + drawn

    def __repr__(self) -> str:
        tally = ", ".join(
            f"{name}={value}" for name, value in zip(self.tally._fields, self.tally, strict=True)
        )
        gap = f", gap={self.gap:.2g}" if 0 < self.gap < np.inf else ""
        return f"Solution(value={self.value:.6g}, score={self.score:.6g}, tally=({tally}){gap})"


def _restored(
    value: float,
    score: float,
    names: Sequence[str],
    tally: Sequence[int],
    assignment: Any,
    model: Model,
    certificate: Certificate | None,
) -> Solution:
    return Solution(value, score, tally_type(tuple(names))(*tally), np.array(assignment), model, certificate)


@lru_cache(maxsize=512)
def tally_type(names: tuple[str, ...]) -> Any:
    """Return the named tuple for statistics of these names (a name that is no identifier gets a number)."""
    return namedtuple("Tally", names, rename=True)


@lru_cache(maxsize=512)
def unique_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names with a number on those that come more than once."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique_names(tuple(result)) if len(set(result)) < len(result) else tuple(result)


def certified(
    model: Model,
    statistics: Sequence[Statistic],
    assignment: NDArray[np.int64],
    score: float,
    tally: Sequence[int],
    shown: Sequence[Statistic] | None = None,
    *,
    value: float | None = None,
    evaluation: Evaluation | None = None,
    proof: tuple[Any, ...] | None = None,
    bounds: bool = False,
) -> Solution:
    """Check a decoded labelling against the model, and return it with its own score.

    Parameters
    ----------
    model, statistics
        What the messages were passed for.
    assignment, score, tally
        The labelling, and what the messages promise of it.
    shown : sequence of Statistic, optional
        What the tally of the solution has, where it is not what the messages carry.
    value : float, optional
        The objective; by default the score as the messages have it.
    evaluation : Evaluation, optional
        What the model says of it, where that is known: the sums of ``statistics``, then of ``shown``.
    proof : tuple, optional
        What the certificate is made from.
    bounds : bool
        Whether the messages were rounded up, in single precision.
    """
    every = (*statistics, *(shown or ()))
    got, magnitude, terms, sums = evaluate(model, every, assignment) if evaluation is None else evaluation
    totals, at = [], 0
    for statistic in every:
        total = sum(sums[at : at + len(statistic.blocks)])
        totals.append(total if statistic.cap is None else min(total, statistic.cap))
        at += len(statistic.blocks)
    verify(score, list(tally), (got, magnitude, terms, sums), totals[: len(statistics)], bounds)
    reported = statistics if shown is None else shown
    names = unique_names(tuple([s.name for s in reported]))
    named = tally_type(names)(*totals[-len(reported) :] if reported else ())
    return Solution(score if value is None else value, got, named, assignment, model, proof)


def verify(
    score: float, tally: list[int], evaluation: Evaluation, totals: list[int], bounds: bool = False
) -> None:
    """Compare what the messages promise of a labelling with what the model says of it."""
    got, magnitude, terms, _ = evaluation
    # the messages' score is the sum of the same local scores in another order: rounding apart, they are equal
    below = _allowed(terms, magnitude)
    above = single_rounding(terms, magnitude) if bounds else below
    if totals != tally or not -below <= score - got <= above:
        raise CertificateError(
            f"the certificate failed: messages promise score {score!r} and tally {tally}, the decoded "
            f"labelling has {got!r} and {totals}. This is a bug in tallytree; please report it with the model"
        )


def _allowed(terms: Any, magnitude: Any) -> Any:
    """Return how far sums of the same local scores can be apart by rounding, for one labelling or many."""
    return _EPSILON * (4 + terms) * magnitude


def verify_all(
    tallies: NDArray[np.int64],
    totals: NDArray[np.int64],
    scores: NDArray[np.float64],
    got: NDArray[np.float64],
    magnitudes: NDArray[np.float64],
    terms: NDArray[np.int64],
) -> None:
    """Do as :func:`verify` does for many labellings, a row for each."""
    fine = np.abs(got - scores) <= _allowed(terms, magnitudes)
    wrong = ~fine | (tallies != totals).any(axis=1)
    for i in np.flatnonzero(wrong)[:1].tolist():
        evaluation: Evaluation = got[i].item(), magnitudes[i].item(), int(terms[i]), []
        verify(scores[i].item(), tallies[i].tolist(), evaluation, totals[i].tolist())


def evaluate(model: Model, statistics: Sequence[Statistic], assignment: NDArray[np.int64]) -> Evaluation:
    """Look a labelling up in the tables of a model and of statistics."""
    blocks = [block for statistic in statistics for block in statistic.blocks]
    return native.evaluate(
        model.cardinalities,
        [block.scopes for block in model.blocks],
        [block.tables for block in model.blocks],
        [block.scopes for block in blocks],
        [block.tables for block in blocks],
        assignment,
    )


def lifted(solution: Solution, reduction: Reduction, statistics: Sequence[Statistic]) -> Solution:
    """Bring a solution back to the original model, and check it there as well."""
    if reduction.trivial:
        return solution
    assignment = reduction.lift(solution.assignment)
    known = [(reduction.origin(s), value) for s, value in zip(statistics, solution.tally, strict=True)]
    originals = [(origin, value) for origin, value in known if origin is not None]
    found = certified(
        reduction.original,
        [origin for origin, _ in originals],
        assignment,
        solution.score,
        [value for _, value in originals],
    )
    return solution.retold(reduction.original, assignment, solution.value, found.score, solution.tally)
