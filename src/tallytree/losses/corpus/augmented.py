"""Loss-augmented inference for a loss counted over a whole corpus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import AnyCertificate
from tallytree.answers.certification import certify_loss
from tallytree.errors import ModelError
from tallytree.losses.augmented import LossProfile
from tallytree.losses.corpus.pool import Choice, Pool
from tallytree.losses.corpus.search import Question as SearchQuestion
from tallytree.losses.corpus.search import Report, search
from tallytree.losses.corpus.union import Corpus, Found, defining, machine_bytes
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.query import GraphLossQuery
from tallytree.losses.scaling import Scaling, checked_margin, checked_scaling, scaled
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.model import Model
from tallytree.planning.budget import Budget
from tallytree.planning.options import Options, PlanOptions
from tallytree.values import counted, read_only

_PART_BYTES = 4_500  # of a loss on a model and its answer in CPython, besides arrays

Progress = Callable[[str], None]


@dataclass(frozen=True)
class CorpusSolution:
    """The labellings of a corpus that jointly maximise a combination of total loss and total score.

    Attributes
    ----------
    value : float
        ``loss + score - truth_score``, or ``loss·(1 + score - truth_score)`` under slack scaling.
    loss : float
        The loss, counted over all labellings.
    score, truth_score : float
        The sum of the scores of the labellings, and of the truths.
    tally : tuple of int
        The summed statistics.
    solutions : tuple of AugmentedSolution
        One for each model.
    report : Report
        How many tallies survived the bound, and the cost of the search.
    certificate : BoundsCertificate or None
        Why no other labellings of the models have a higher joint value; None if profiles were joined.
    """

    value: float
    loss: float
    score: float
    truth_score: float
    tally: tuple[int, ...]
    solutions: tuple[AugmentedSolution, ...]
    report: Report
    certificate: AnyCertificate | None = None

    def __repr__(self) -> str:
        return (
            f"CorpusSolution(value={self.value:.6g}, loss={self.loss:.6g}, score={self.score:.6g}, "
            f"tally={self.tally}, {counted(len(self.solutions), 'labelling')})"
        )


def loss_augmented_corpus(
    models: Iterable[Model],
    truths: Iterable[Any],
    loss: NodeLoss,
    scaling: Scaling = "margin",
    *,
    margin: float = 1.0,
    memory_limit: float | None = None,
    progress: Progress | None = None,
) -> CorpusSolution:
    """Find the labellings that most violate the margin, for a loss counted over all of them at once.

    Parameters
    ----------
    models : iterable of Model
        One for each labelling.
    truths : iterable of labellings
        The true labelling for each model.
    loss : recipe of a loss of nodes
        ``FBeta``, ``Precision``, ``Recall``, ``IntersectionOverUnion``, ``FalsePositives`` or ``ChunkFBeta``,
        without a truth.
    scaling : {"margin", "slack"}
        Maximise ``loss + F - F*``, or ``loss·(1 + F - F*)``, with the scores summed over the corpus.
    margin : float
        Replaces the factor 1 of the loss, or the 1 in the parentheses.
    memory_limit : float, optional
        In bytes, for everything: the tables of one model at a time, what is kept of all of them, and the
        joins. By default half of the memory.
    progress : callable, optional
        Called with a line of text from time to time.

    Raises
    ------
    BudgetError
        It exceeds the memory limit; or too many tallies are too close to the optimum: the
        message gives the bound that stopped it.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> rng = np.random.default_rng(0)
    >>> models = [tt.Model.chain(rng.normal(size=(4, 2)), np.zeros((2, 2))) for _ in range(3)]
    >>> truths = [[0, 1, 1, 0], [1, 0, 0, 0], [0, 0, 1, 1]]
    >>> found = tt.loss_augmented_corpus(models, truths, tt.losses.FBeta(background=0), "slack")
    >>> found.loss, found.tally
    (0.6666666666666667, (2, 5))
    """
    budget = Budget(PlanOptions(memory_limit=memory_limit).limit)
    checked_scaling(scaling, loss)
    at = checked_margin(margin)
    parts = _parts(models, truths, loss, budget)
    corpus = Corpus(parts, budget)
    if progress is not None:
        progress(f"{len(parts):,} models, bounding all of them together")
    searched = corpus.search(scaling, at, budget)
    whole = _Whole(corpus.whole, loss, [part.loss for part in parts])
    question = SearchQuestion(scaling, at, corpus.truth_score, whole.loss, whole.largest_loss)
    if searched is not None:
        return whole.answer(question, searched)
    return whole.answer(question, _joined(parts, whole, question, budget, progress))


def _joined(
    parts: Sequence[GraphLossQuery],
    whole: _Whole,
    question: SearchQuestion,
    budget: Budget,
    progress: Progress | None,
) -> Found:
    """Join the profiles of all models, except tallies ruled out by bounds."""
    profiles = _profiles(parts, budget, progress)
    pool = _pool(profiles, budget)
    choice, report = search(pool, question, whole.truths(pool), progress, budget)
    rows = (choice - pool.starts).tolist()
    solutions = tuple(part.released().row(row) for part, row in zip(profiles, rows, strict=True))
    losses: list[Any] = [part.loss for part in parts]
    hits = [loss.hits(solution.assignment) for loss, solution in zip(losses, solutions, strict=True)]
    return Found(solutions, hits, pool.tallies[choice].sum(axis=0), report, None)


def _pool(parts: Sequence[LossProfile], budget: Budget) -> Pool:
    rows = sum(map(len, parts))
    budget.hold(Pool.bytes_for(rows, _columns(parts[0])), f"the {rows:,} tallies of {len(parts):,} models")
    tables = [part.table() for part in parts]
    return Pool([tallies for tallies, _ in tables], [scores for _, scores in tables])


def _columns(part: LossProfile) -> int:
    loss: Any = part.loss
    return len(loss.counted)


def _parts(
    models: Any,
    truths: Iterable[Any],
    loss: NodeLoss,
    budget: Budget,
) -> list[GraphLossQuery]:
    """Make the query of each model separately."""
    if not isinstance(loss, NodeLoss):
        raise ModelError(
            "a corpus loss must be based on true and false positives, such as tallytree.losses.FBeta(); "
            f"got {loss!r}"
        )
    if isinstance(models, Model):
        raise ModelError("a corpus is a list of models, one for each truth; got a single model")
    graphs, right = list(models), list(truths)
    if len(graphs) != len(right):
        raise ModelError(f"every model needs a truth, got {len(graphs)} models and {len(right)} truths")
    pairs = list(zip(graphs, right, strict=True))
    if not pairs:
        raise ModelError("a corpus needs at least one model, got none")
    budget.hold(len(pairs) * _PART_BYTES, f"the losses of {len(pairs):,} models")
    return [GraphLossQuery(model, loss.against(truth), None, None, (None, None)) for model, truth in pairs]


def _profiles(
    parts: Sequence[GraphLossQuery], budget: Budget, progress: Progress | None
) -> list[LossProfile]:
    """Compute the profile of each model."""
    profiles = []
    for k, query in enumerate(parts):
        options = Options(PlanOptions(memory_limit=budget.limit, beside=budget.held))
        part = LossProfile.of(query, options).released()
        rows = len(part) * 8 * (2 + _columns(part))
        budget.hold(rows + machine_bytes(query.query), f"the profiles of {k + 1:,} of {len(parts):,} models")
        profiles.append(part)
        if progress is not None and (k + 1) % 100 == 0:
            progress(f"profiles of {k + 1} of {len(parts)} models")
    return profiles


class _Whole:
    """The loss of the whole corpus, as a function of summed tallies."""

    def __init__(self, whole: NodeLoss, recipe: NodeLoss, losses: Sequence[Any]) -> None:
        self._whole, self._recipe, self._losses = whole, recipe, losses
        self._names = whole.counted

    def loss(self, tallies: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute the loss of the whole, elementwise."""
        return self._whole.value(*tallies.T)

    def largest_loss(self, low: NDArray[np.int64], high: NDArray[np.int64]) -> float:
        """Bound the loss over a box: it is non-increasing in true positives, non-decreasing in false ones."""
        corner = np.where([name == "fp" for name in self._names], high, low)
        return float(self.loss(corner[None])[0])

    def truths(self, pool: Pool) -> Choice:
        """Return the rows of the truths: all nodes found, and no others."""
        right = [[loss.size if name == "tp" else 0 for name in self._names] for loss in self._losses]
        rows = np.flatnonzero((pool.tallies == np.array(right)[pool.part]).all(axis=1))
        return read_only(rows)

    def answer(self, question: SearchQuestion, found: Found) -> CorpusSolution:
        """Combine the labellings, and certify the loss by definition."""
        tally = found.tally
        score = float(sum(solution.score for solution in found.solutions))
        loss = float(self.loss(tally[None])[0])
        defined = self._recipe.compare(*self._nodes(found))
        certify_loss(loss, defined, source=f"the tally {tally.tolist()}", thing="all labellings together")
        value = float(scaled(question.scaling, loss, score - question.truth_score, question.margin))
        return CorpusSolution(
            value,
            loss,
            score,
            question.truth_score,
            tuple(tally.tolist()),
            found.solutions,
            found.report,
            found.certificate,
        )

    def _nodes(self, answer: Found) -> tuple[Counter[Any], Counter[Any]]:
        """Return the nodes of all labellings and of all truths, each with the index of its model.

        If the loss only depends on their numbers, true positives are alike, and so are false ones.
        """
        if defining(type(self._recipe), "compare").by_size:
            tp, fp = np.array(answer.hits).sum(axis=0).tolist()
            found, gold = Counter(right=tp, wrong=fp), Counter(right=tp, missed=self._whole.size - tp)
            return +found, +gold  # without zeros
        every, true = Counter[Any](), Counter[Any]()
        for k, (loss, solution) in enumerate(zip(self._losses, answer.solutions, strict=True)):
            every.update({(k, node): n for node, n in loss.nodes(solution.assignment).items()})
            true.update({(k, node): n for node, n in loss.gold.items()})
        return every, true
