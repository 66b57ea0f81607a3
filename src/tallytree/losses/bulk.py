"""The problems of a batch of losses, and those whose statistics and losses are looked after natively.

Losses of nodes (F, precision, recall, intersection over union) depend on the truth through its size alone, so
one table of losses serves all truths of one size, and it is read natively, without a callback. Their
statistics are made natively too, from the truths: Python only knows their shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import chain
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tallytree.core.blocks import Block, unary_scopes
from tallytree.core.certificate import BEST
from tallytree.core.door import code_in, numbers_of
from tallytree.core.handover import Batch, Labelling, Options, Problem, solution_of
from tallytree.core.model import Model
from tallytree.core.objective import Objective
from tallytree.core.plan import Plan, plan_of
from tallytree.core.profile import Where
from tallytree.core.question import Question
from tallytree.core.reduction import meet
from tallytree.core.restriction import Allowed, Fixed
from tallytree.core.solution import tally_type, verify
from tallytree.core.solve import Inquiry, inquire
from tallytree.core.statistics import Statistic
from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.losses.augmented import (
    AugmentedSolution,
    LossQuestion,
    folded_model,
    loss_augmented,
    unfolded,
)
from tallytree.losses.base import Loss
from tallytree.losses.nodes import NodeLoss
from tallytree.losses.scaling import Scaling, checked_scaling, objective

__all__ = ["Augmented", "in_bulk"]


class Augmented:
    """A loss on a model, as :func:`loss_augmented` takes them."""

    objective: Objective | None = None

    def __init__(
        self,
        model: Model,
        loss: Loss,
        truth: Any,
        where: Where,
        fixed: Fixed | None,
        allowed: Allowed | None,
        scaling: Scaling,
        margin: float,
    ) -> None:
        self.model, self.recipe, self.truth = model, loss, truth
        self.where, self.fixed, self.allowed = where, fixed, allowed
        self.scaling, self.margin = scaling, margin

    @property
    def loss(self) -> Loss:
        """The loss with its truth."""
        return self.recipe if self.truth is None else self.recipe.against(self.truth)

    def hand_over(self, batch: Batch) -> Inquiry:
        """Add the problem to a batch."""
        self._inquiry = self._inquire()
        batch.add(self._inquiry, self.objective)
        return self._inquiry

    def _inquire(self) -> Inquiry:
        """Reduce the loss, and fold it into the score where that can be done."""
        self._question = LossQuestion(self.model, self.loss, None, self.fixed, self.allowed)
        checked_scaling(self.scaling, self._question.loss)
        self._line = self._question.loss.linear() if self.scaling == "margin" else None
        reduction = self._question.reduction
        if self._line is not None:
            self._reduction, self._constraint = meet(reduction, self.where)
            return inquire(folded_model(self._reduction, self._line, self.margin), (), self._constraint)
        self.objective = objective(self._question.loss, self.scaling, self._question.truth_score, self.margin)
        return inquire(reduction, reduction.statistics, self.where)

    def answer(self, found: Labelling, options: Options) -> AugmentedSolution:
        """Bring a labelling back to the model that was asked about, with its loss."""
        noun = "score" if self.objective is None else "value"
        solution = solution_of(self._inquiry, found, noun, options)
        if self._line is None:
            return self._question.answer(solution, self.scaling, self.margin)
        return unfolded(self._question, self._reduction, solution, self.margin, self.where, self._constraint)

    def alone(self, options: Options) -> AugmentedSolution:
        """Solve it on its own."""
        return loss_augmented(
            self.model,
            self.loss,
            self.scaling,
            margin=self.margin,
            where=self.where,
            fixed=self.fixed,
            allowed=self.allowed,
            order=options.order,
            memory_limit=options.memory_limit,
        )


class _Nodes:
    """A loss of nodes: its statistics are made natively, from the truth, and its losses are looked up."""

    __slots__ = ("bulk", "losses", "shape", "single", "truth")

    objective: Objective | None = None

    def __init__(
        self,
        bulk: _Bulk,
        single: Augmented,
        shape: tuple[Statistic, ...],
        truth: NDArray[np.int64],
        losses: native.LossTable,
    ) -> None:
        self.bulk = bulk
        self.single = single
        self.shape = shape  # statistics with the scopes of those that are meant
        self.truth = truth
        self.losses = losses

    def hand_over(self, batch: Batch) -> None:
        bulk, model = self.bulk, self.single.model
        batch.handle.add_nodes(
            batch.skeleton(model, self.shape),
            bulk.right,
            bulk.background,
            self.truth,
            self.losses,
            [block.tables for block in model.blocks],
        )

    def answer(self, found: Labelling, options: Options) -> AugmentedSolution:
        assignment, score, tally, evaluation, value, loss, truth_score = found
        sums = evaluation[3]  # statistics of one block each
        verify(score, tally, evaluation, sums)
        proof = partial(self._plan, options), score, BEST, None, "value"
        complete = self.bulk.tally(*sums)
        return AugmentedSolution.complete(
            value, evaluation[0], complete, assignment, self.single.model, proof, loss, truth_score
        )

    def _plan(self, options: Options) -> Plan:
        model = self.single.model
        statistics = self.single.loss.on(model).reduce(model).statistics
        return plan_of(model, Question(statistics, None), **options.of_plan)

    def alone(self, options: Options) -> AugmentedSolution:
        return self.single.alone(options)


def in_bulk(problems: Sequence[Augmented]) -> list[Problem]:
    """Replace the problems whose statistics are made natively; all others stay as they are."""
    groups: dict[Any, list[int]] = {}
    kinds: dict[int, Any] = {}  # of each recipe: often it is the same one
    for number, problem in enumerate(problems):
        recipe = problem.recipe
        if id(recipe) not in kinds:
            kinds[id(recipe)] = _kind(recipe)
        if kinds[id(recipe)] is not None and _is_plain(problem):
            key = (kinds[id(recipe)], problem.model.states, problem.model.alike)
            groups.setdefault(key, []).append(number)
    result: list[Problem] = list(problems)
    for numbers in groups.values():
        made = _Bulk([problems[number] for number in numbers]).made()
        for number, one in zip(numbers, made, strict=True):
            result[number] = one
    return result


def _kind(loss: Loss) -> Any:
    """Return what losses of nodes of labellings have in common but for the truth; None for other losses."""
    kind = type(loss)
    if issubclass(kind, NodeLoss) and kind.reduce is NodeLoss.reduce and kind.nodes is NodeLoss.nodes:
        return kind, tuple(loss.parameters().items())
    return None


def _is_plain(problem: Augmented) -> bool:
    """Whether a problem has variables that are alike, and no constraint."""
    return (
        isinstance(problem.model, Model)
        and problem.model.alike is not None
        and len(problem.model) > 0
        and problem.where is None
        and not problem.fixed
        and not problem.allowed
    )


class _Bulk:
    """Problems with one loss of nodes, on models whose variables all have the same states."""

    def __init__(self, problems: Sequence[Augmented]) -> None:
        self.problems = problems
        self.first = problems[0]
        self.loss = cast(NodeLoss, self.first.recipe)
        self.states = self.first.model.alike or 0
        self.names = self.first.model.states_of(0)
        self.lengths = [len(problem.model) for problem in problems]
        self.ends = np.cumsum(self.lengths)
        counted: tuple[str, ...] = self.loss.counted
        self.right = [name == "tp" for name in counted]
        self.tally = tally_type(counted)
        self.background = -1

    def made(self) -> Sequence[Problem]:
        """Return the problems as native ones; as they are where a truth needs a closer look."""
        codes, background = self._codes(), self._background()
        if codes is None or background is None or not self._scales() or self._folds():
            return self.problems
        self.background = background
        sizes = np.diff(np.cumsum(codes != background)[self.ends - 1], prepend=0).tolist()
        losses = {size: self._losses(size) for size in set(sizes)}
        models = dict(zip(self.lengths, (p.model for p in self.problems), strict=True))
        shapes = {length: self._shape(model) for length, model in models.items()}
        starts = (self.ends - self.lengths).tolist()
        return [
            _Nodes(self, problem, shapes[end - at], codes[at:end], losses[size])
            for problem, at, end, size in zip(self.problems, starts, self.ends.tolist(), sizes, strict=True)
        ]

    def _scales(self) -> bool:
        """Whether the scaling is one that the loss allows; if not, each problem says so."""
        try:
            checked_scaling(self.first.scaling, self.loss)
        except ModelError:
            return False
        return True

    def _shape(self, model: Model) -> tuple[Statistic, ...]:
        """Return statistics of every variable by itself, for all models of one length."""
        scopes, key = unary_scopes(len(model))
        block = Block(scopes, np.zeros((1, self.states), dtype=np.int64), key)
        return tuple(
            Statistic.from_blocks((block,), name, None, model.cardinalities, 1) for name in self.loss.counted
        )

    def _codes(self) -> NDArray[np.int64] | None:
        """Return the states of all truths, one after the other; None if one is not as it should be."""
        truths = [p.recipe.truth if p.truth is None else p.truth for p in self.problems]
        try:
            if list(map(len, truths)) != self.lengths:
                return None
        except TypeError:
            return None
        codes = _numbers(truths, numbers_of(self.names or ()))
        return codes if codes is not None and codes.min() >= 0 and codes.max() < self.states else None

    def _background(self) -> int | None:
        """Return the number of the state that is no node, -1 if there is none; None if it is unknown."""
        if self.loss.background is None:
            return -1
        code = code_in(self.loss.background, self.names, self.states)
        return None if code < 0 else code

    def _folds(self) -> bool:
        return self.first.scaling == "margin" and self.first.loss.on(self.first.model).linear() is not None

    def _losses(self, size: int) -> native.LossTable:
        """Return the losses of all tallies that a truth of this size allows."""
        most = {"tp": size, "fp": max(self.lengths)}
        box = np.indices([most[name] + 1 for name in self.loss.counted])
        tallies = dict(zip(self.loss.counted, box, strict=True))
        losses = self.loss.of_counts(*self.loss.positives(tallies, size), size)
        low = [0] * len(box)
        return native.LossTable(losses, low, self.first.scaling == "slack", self.first.margin)


def _numbers(truths: Sequence[Any], names: dict[str, int]) -> NDArray[np.int64] | None:
    """Return labellings as one array: all in numbers, or all in names (-1 for an unknown one), or None."""
    if all(
        isinstance(truth, np.ndarray) and truth.dtype.kind in "iu" and truth.ndim == 1 for truth in truths
    ):
        return np.concatenate(truths, dtype=np.int64)
    labels = list(chain.from_iterable(t.tolist() if isinstance(t, np.ndarray) else t for t in truths))
    kinds = set(map(type, labels))
    if kinds == {str}:
        labels = [names.get(label, -1) for label in labels]
    return np.array(labels, dtype=np.int64) if kinds in ({str}, {int}) else None
