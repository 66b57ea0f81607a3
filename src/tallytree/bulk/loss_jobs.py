"""The problems of a batch of losses, and those whose statistics and losses are looked after natively.

Losses of nodes (F, precision, recall, intersection over union) depend on the truth through its size alone, so
one table of losses serves all truths of one size, and it is read natively, without a callback. Their
statistics are made natively too, from the truths: Python only knows their shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import BEST, Claim, Proof
from tallytree.answers.certification import certify_all
from tallytree.answers.objective import Objective
from tallytree.answers.solution import Decoded
from tallytree.answers.tallies import tally_type
from tallytree.answers.tally_table import Where
from tallytree.bulk.jobs import Batch, BatchOptions, Labellings, solution_of
from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.losses.augmented import loss_augmented
from tallytree.losses.base import Loss
from tallytree.losses.nodes import NodeLoss, is_own
from tallytree.losses.query import GraphLossQuery
from tallytree.losses.scaling import Scaling, checked_scaling
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.blocks import Block, unary_scopes
from tallytree.model.inputs import code_in, numbers_of
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.plan import Plan, plan_graph
from tallytree.planning.query import Query
from tallytree.statistics.statistic import Statistic
from tallytree.values import read_only

__all__ = ["Asked", "Augmented", "Nodes", "in_bulk"]


_BEST_VALUE = Claim(BEST, noun="value")

_CHECKED = ("promised", "score", "magnitude", "terms")
"""What is known of a labelling that its certificate looks at."""


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

    def hand_over(self, batch: Batch) -> Query[Statistic]:
        """Add the problem to a batch."""
        self._query = self._ask()
        batch.add(self._query, self.objective)
        return self._query

    def _ask(self) -> Query[Statistic]:
        """Reduce the loss, and fold it into the score where that can be done."""
        self._loss = GraphLossQuery(
            checked_model(self.model), self.loss, None, self.where, (self.fixed, self.allowed)
        )
        checked_scaling(self.scaling, self._loss.loss)
        self._folds = self.scaling == "margin" and self._loss.line is not None
        if self._folds:
            return self._loss.folded(self.margin)
        self.objective = self._loss.objective(self.scaling, self.margin)
        return self._loss.query

    def answer(self, found: Decoded, options: BatchOptions) -> AugmentedSolution:
        """Bring a labelling back to the model that was asked about, with its loss."""
        noun = "score" if self.objective is None else "value"
        solution = solution_of(self._query, found, noun, options)
        if self._folds:
            return self._loss.unfolded(solution, self.margin)
        return self._loss.augmented(solution, self.scaling, self.margin)

    def alone(self, options: BatchOptions) -> AugmentedSolution:
        """Solve it on its own."""
        return loss_augmented(
            self.model,
            self.loss,
            self.scaling,
            margin=self.margin,
            where=self.where,
            fixed=self.fixed,
            allowed=self.allowed,
            order=options.plan.order,
            memory_limit=options.plan.memory_limit,
        )


class Asked(NamedTuple):
    """The arguments of many calls of :func:`loss_augmented`."""

    models: Sequence[Model]
    recipes: Sequence[Loss]
    truths: Sequence[Any]
    where: Sequence[Where]
    fixed: Sequence[Fixed | None]
    allowed: Sequence[Allowed | None]
    scaling: Scaling
    margin: float

    def problem(self, number: int) -> Augmented:
        """Return one of the problems by itself."""
        return Augmented(
            self.models[number],
            self.recipes[number],
            self.truths[number],
            self.where[number],
            self.fixed[number],
            self.allowed[number],
            self.scaling,
            self.margin,
        )


def in_bulk(asked: Asked) -> list[Nodes]:
    """Put those problems together whose statistics and losses are looked after natively."""
    groups: dict[Any, list[int]] = {}
    kinds: dict[int, Any] = {}  # of each recipe: often it is the same one
    each = zip(asked.models, asked.recipes, asked.where, asked.fixed, asked.allowed, strict=True)
    for number, (model, recipe, where, fixed, allowed) in enumerate(each):
        if id(recipe) not in kinds:
            kinds[id(recipe)] = _kind(recipe)
        kind = kinds[id(recipe)]
        if kind is None or where is not None or fixed or allowed or not isinstance(model, Model):
            continue
        if model.alike is not None:
            groups.setdefault((kind, model.states, model.alike), []).append(number)
    bulks = (Nodes(asked, numbers) for numbers in groups.values())
    return [bulk for bulk in bulks if bulk.ready]


def _kind(loss: Loss) -> Any:
    """Return what losses of nodes of labellings have in common but for the truth; None for other losses."""
    return (type(loss), tuple(loss.parameters().items())) if is_own(loss) else None


class Nodes:
    """Problems with one loss of nodes, on models whose variables all have the same states.

    Attributes
    ----------
    numbers : list of int
        Which problems of the batch they are.
    ready : bool
        Whether they can be answered in bulk; not where a truth, or something else, needs a closer look.
    """

    def __init__(self, asked: Asked, numbers: list[int]) -> None:
        self.asked, self.numbers = asked, numbers
        self.models = [asked.models[number] for number in numbers]
        self.recipes = [asked.recipes[number] for number in numbers]
        self.truths = [
            recipe.truth if asked.truths[number] is None else asked.truths[number]
            for recipe, number in zip(self.recipes, numbers, strict=True)
        ]
        self.loss = cast(NodeLoss, self.recipes[0])
        self.states = self.models[0].alike or 0
        self.names = self.models[0].states_of(0)
        self.lengths = [len(model) for model in self.models]
        self.ends = np.cumsum(self.lengths)  # of truths, one after the other
        self.background = self._background()
        self.codes = self._codes()
        self.ready = (
            self.codes is not None and self.background is not None and self._scales() and not self._folds()
        )

    def hand_over(self, batch: Batch) -> None:
        """Add all problems to a batch; statistics and choices are left to the threads."""
        assert self.codes is not None and self.background is not None
        counted: tuple[str, ...] = self.loss.counted
        sizes = np.diff(np.cumsum(self.codes != self.background)[self.ends - 1], prepend=0).tolist()
        prices = _Prices(_kind(self.loss), max(self.lengths), self.asked.scaling, self.asked.margin)
        losses = {size: prices.table(size) for size in set(sizes)}
        keys = [model.key for model in self.models]
        examples = dict(zip(keys, self.models, strict=True))  # one of each shape
        skeletons = {key: batch.skeleton(model, self._shape(model)) for key, model in examples.items()}
        batch.handle.add_nodes(
            [skeletons[key] for key in keys],
            [name == "tp" for name in counted],
            self.background,
            self.codes,
            [losses[size] for size in sizes],
            [block.tables for model in self.models for block in model.blocks],
        )

    def answers(self, found: Labellings, options: BatchOptions) -> Iterator[AugmentedSolution | None]:
        """Make the answers; the messages' promises are looked at all at once."""
        counted: tuple[str, ...] = self.loss.counted
        tallies, sums = (table.reshape(-1, len(counted)) for table in (found.tallies, found.sums))
        certify_all(tallies, sums, *(found.known[name] for name in _CHECKED))
        labels, begins = read_only(found.assignments), found.begins[:, 0].tolist()
        assert self.codes is not None  # what truths were: by now their owner may have changed them
        truths = map(
            self.codes.__getitem__, map(slice, (self.ends - self.lengths).tolist(), self.ends.tolist())
        )
        each = zip(self.models, self.recipes, truths, begins, begins[1:], strict=False)
        counts = map(tally_type(counted)._make, sums.tolist())
        known = found.columns("found", "promised", "score", "value", "loss", "truth_score")
        for (model, recipe, truth, at, end), tally, numbers in zip(each, counts, known, strict=True):
            decoded, promised, score, value, loss, truth_score = numbers
            if not decoded:
                yield None
                continue
            proof = Proof(partial(_plan, model, recipe, truth, options), promised, _BEST_VALUE)
            yield AugmentedSolution.complete(
                value=value,
                score=score,
                tally=tally,
                assignment=labels[at:end],
                model=model,
                proof=proof,
                loss=loss,
                truth_score=truth_score,
            )

    def problem(self, index: int) -> Augmented:
        """Return one of the problems by itself."""
        return self.asked.problem(self.numbers[index])

    def _scales(self) -> bool:
        """Whether the scaling is one that the loss allows; if not, each problem says so."""
        try:
            checked_scaling(self.asked.scaling, self.loss)
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
        try:
            if list(map(len, self.truths)) != self.lengths or not all(self.lengths):
                return None
        except TypeError:
            return None
        codes = _numbers(self.truths, numbers_of(self.names or ()))
        return codes if codes is not None and codes.min() >= 0 and codes.max() < self.states else None

    def _background(self) -> int | None:
        """Return the number of the state that is no node, -1 if there is none; None if it is unknown."""
        if self.loss.background is None:
            return -1
        code = code_in(self.loss.background, self.names, self.states)
        return None if code < 0 else code

    def _folds(self) -> bool:
        if self.asked.scaling != "margin":
            return False
        return self.loss.against(self.truths[0]).on(self.models[0]).linear() is not None


class _Prices(NamedTuple):
    """The losses of all tallies, for truths of any size, on models of some length at most."""

    kind: Any
    longest: int
    scaling: Scaling
    margin: float

    def table(self, size: int) -> native.LossTable:
        """Return the losses for truths of one size, remembered where the table is a small one."""
        small = size * self.longest <= 4096
        return _remembered(self, size) if small else self.made(size)

    def made(self, size: int) -> native.LossTable:
        """Compute the losses for truths of one size."""
        loss: NodeLoss = self.kind[0](**dict(self.kind[1]))
        most = {"tp": size, "fp": self.longest}
        box = np.indices([most[name] + 1 for name in loss.counted])
        tallies = dict(zip(loss.counted, box, strict=True))
        losses = loss.of_counts(*loss.positives(tallies, size), size)
        return native.LossTable(losses, [0] * len(box), self.scaling == "slack", self.margin)


@lru_cache(maxsize=256)
def _remembered(prices: _Prices, size: int) -> native.LossTable:
    return prices.made(size)


def _plan(model: Model, recipe: Loss, truth: Any, options: BatchOptions) -> Plan:
    """Return the plan of one problem, for its certificate."""
    statistics = recipe.against(truth).on(model).reduce(model).statistics
    return plan_graph(Query(model, statistics), options.plan)


def _numbers(truths: Sequence[Any], names: dict[str, int]) -> NDArray[np.int64] | None:
    """Return labellings as one array: all in numbers, or all in names (-1 for an unknown one), or None."""
    try:
        numbers = np.concatenate(truths)
    except ValueError:  # of different dimensions
        return None
    if numbers.dtype.kind in "iu" and numbers.ndim == 1:
        return numbers.astype(np.int64, copy=False)
    labels = list(chain.from_iterable(t.tolist() if isinstance(t, np.ndarray) else t for t in truths))
    if set(map(type, labels)) != {str}:
        return None
    return np.array([names.get(label, -1) for label in labels], dtype=np.int64)
