"""The problems of a batch of losses: one by one, or together if their counts are in tables.

Losses of nodes and of positions depend on the truth only through its size, so one table of losses serves all
truths of one size, and it is read natively, without a callback. Their statistics are also computed natively
from the truths: Python only knows their shape.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import BEST, SAME_TALLY, Claim, Evidence, Proof
from tallytree.answers.certification import certify_loss, certify_value
from tallytree.answers.objective import Objective
from tallytree.answers.solution import Decoded, Solution
from tallytree.answers.tallies import tally_type
from tallytree.answers.tally_table import Where
from tallytree.bounding import bounded
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.jobs import Batch, BatchOptions, solution_of
from tallytree.bulk.labellings import Labellings
from tallytree.bulk.truth_codes import truth_codes
from tallytree.bulk.truth_tables import PositionTables, Search, TruthTables
from tallytree.errors import ModelError
from tallytree.kernels import native
from tallytree.losses.augmented import LossProfile, loss_augmented
from tallytree.losses.base import Loss
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.query import GraphLossQuery
from tallytree.losses.scaling import Scaling, checked_scaling
from tallytree.losses.sequences import SequenceLoss
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.blocks import unary_scopes
from tallytree.model.inputs import numbers_of
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.model.rounding import rounding
from tallytree.planning.options import Options
from tallytree.planning.plan import Plan
from tallytree.planning.planner import plan_graph
from tallytree.planning.price import Price
from tallytree.planning.query import Query
from tallytree.statistics.statistic import Statistic
from tallytree.values import read_only

_TRUTH_BYTES = 16  # of each variable: a loss has its truth as an array and as a tuple


class LossArguments(NamedTuple):
    """The arguments of many calls of :func:`loss_augmented`, and how many labellings each returns."""

    models: Sequence[Model]
    recipes: Sequence[Loss]
    truths: Sequence[Any]
    where: Sequence[Where]
    fixed: Sequence[Fixed | None]
    allowed: Sequence[Allowed | None]
    scaling: Scaling
    margin: float
    tallies: int = 1
    prices: NDArray[np.float64] | None = (
        None  # where searches start; of each problem, replaced by where they end
    )

    def loss(self, number: int) -> Loss:
        """Return the loss of one of the problems, with its truth."""
        recipe, truth = self.recipes[number], self.truths[number]
        return recipe if truth is None else recipe.against(truth)

    def problem(self, number: int, apart: bool = False) -> LossProblem:
        """Return one of the problems; `apart`: whether it is solved on its own."""
        return LossProblem(self, number, apart)


class LossProblem:
    """A loss on a model, as :func:`loss_augmented` takes them."""

    objective: Objective | None = None

    def __init__(self, asked: LossArguments, number: int, apart: bool = False) -> None:
        self._asked, self._number, self._apart = asked, number, apart
        self.model, self.where = asked.models[number], asked.where[number]
        self.fixed, self.allowed = asked.fixed[number], asked.allowed[number]
        self.scaling, self.margin, self.count = asked.scaling, asked.margin, asked.tallies

    @property
    def loss(self) -> Loss:
        """The loss with its truth."""
        return self._asked.loss(self._number)

    @property
    def apart(self) -> bool:
        """Whether it is solved on its own, by a search; so are problems about sentences."""
        recipe = self._asked.recipes[self._number]
        return self._apart or (self.count == 1 and self.where is None and isinstance(recipe, SequenceLoss))

    def hand_over(self, batch: Batch) -> Query[Statistic]:
        """Add the problem to a batch."""
        self._query = self.query()
        batch.held.add(_TRUTH_BYTES * len(self.model))
        if self._folds:
            batch.held.made(self._loss.query)
        batch.add(self._query, self.objective)
        return self._query

    def query(self) -> Query[Statistic]:
        """Reduce the loss, and fold it into the score if possible."""
        restriction = self.fixed, self.allowed
        self._loss = GraphLossQuery(checked_model(self.model), self.loss, None, self.where, restriction)
        checked_scaling(self.scaling, self._loss.loss)
        self._folds = self.scaling == "margin" and self.count == 1 and self._loss.line is not None
        if self._folds:
            return self._loss.folded(self.margin)
        self.objective = self._loss.objective(self.scaling, self.margin)
        return self._loss.query

    def answer(self, found: Sequence[Decoded], options: BatchOptions) -> list[AugmentedSolution]:
        """Translate labellings to the original model, with their losses."""
        noun, answers = "score" if self.objective is None else "value", []
        for rank, one in enumerate(found):
            text = SAME_TALLY if rank else BEST
            answers.append(self._complete(solution_of(self._query, one, noun, options, text)))
        return answers

    def _complete(self, solution: Solution) -> AugmentedSolution:
        if self._folds:
            return self._loss.unfolded(solution, self.margin)
        return self._loss.augmented(solution, self.scaling, self.margin)

    def alone(self, options: BatchOptions) -> list[AugmentedSolution]:
        """Solve it on its own."""
        given: Any = {
            "where": self.where,
            "fixed": self.fixed,
            "allowed": self.allowed,
            "order": options.plan.order,
            "memory_limit": options.plan.memory_limit,
        }
        if self.count > 1:
            return LossProfile(self.model, self.loss, **given).top(self.count, self.scaling, self.margin)
        given["strategy"] = options.strategy
        return [loss_augmented(self.model, self.loss, self.scaling, margin=self.margin, **given)]


def in_bulk(asked: LossArguments, without: Collection[int], limit: float) -> list[LossProblems]:
    """Group the problems whose statistics and losses are handled natively, except those in `without`.

    Models whose table of losses would take much of `limit`, in bytes, are left out as well.
    """
    groups: dict[Any, list[int]] = {}
    tables: dict[Any, TruthTables | None] = {}  # by recipe, which is often the same
    shapes: dict[Any, list[int] | None] = {}  # also by recipe and shape of the model
    each = zip(asked.models, asked.recipes, asked.where, asked.fixed, asked.allowed, strict=True)
    for number, (model, recipe, where, fixed, allowed) in enumerate(each):
        if where is not None or fixed or allowed or not isinstance(model, Model) or model.alike is None:
            continue
        if number in without:
            continue
        states = model.states
        key = id(recipe), states, model.key
        if key not in shapes:
            same = id(recipe), states, model.alike
            if same not in tables:
                tables[same] = _tables_of(recipe, model)
            found = tables[same]
            fits = found is not None and found.suits(model) and found.bytes_at_most(len(model)) <= limit / 2
            shapes[key] = groups.setdefault((id(found), states), []) if fits else None
        group = shapes[key]
        if group is not None:
            group.append(number)
    kept = {id(some): some for some in tables.values() if some is not None}
    bulks = (LossProblems(asked, numbers, kept[which]) for (which, _), numbers in groups.items())
    return [bulk for bulk in bulks if bulk.ready]


def _tables_of(recipe: Loss, model: Model) -> TruthTables | None:
    """Return the tables of a loss that serve all truths; None for other losses."""
    if not model.alike or not (PositionTables.suit(recipe) or type(recipe) is ChunkFBeta):
        return None
    return truth_tables(recipe.replace(truth=None), model.alike, model.states_of(0))


class LossProblems:
    """Problems with one loss, on models whose variables all have the same states, counted by tables.

    Attributes
    ----------
    numbers : list of int
        The indices of these problems in the batch.
    ready : bool
        Whether they can be solved in bulk; false if, for example, a truth needs a closer look.
    """

    def __init__(self, asked: LossArguments, numbers: list[int], tables: TruthTables) -> None:
        self.asked, self.numbers, self.tables = asked, numbers, tables
        self.models = [asked.models[number] for number in numbers]
        self.recipes = [asked.recipes[number] for number in numbers]
        self.lengths = [len(model) for model in self.models]
        self._ends = list(accumulate(self.lengths))
        self.labels = self._labels()
        self.folds = self.labels is not None and self._folds()
        self.ready = self.labels is not None and self._scales() and not (self.folds and not self._foldable())

    def hand_over(self, batch: Batch) -> None:
        """Add all problems to a batch; statistics and choices are left to the threads."""
        assert self.labels is not None
        kept, meanwhile = self.tables.bytes_for(self.labels, self.lengths, self.asked.scaling)
        batch.held.add(kept + meanwhile)
        batch.held.check()
        keys = [model.key for model in self.models]
        examples = dict(zip(keys, self.models, strict=True))  # one of each shape
        shapes = {key: self._program(model, batch) for key, model in examples.items()}
        scaling, margin, count = self.asked.scaling, self.asked.margin, self.asked.tallies
        given = self.asked.prices
        self._prices = None if given is None else given[self.numbers]
        search = Search(batch.options.strategy, self._prices)
        truths, _ = self.tables.truths(self.labels, self.lengths, scaling, margin, count, self.folds, search)
        batch.held.add(-meanwhile)
        tables = [block.tables for model in self.models for block in model.blocks]
        batch.handle.add_models([shapes[key] for key in keys], tables, truths)

    def _program(self, model: Model, batch: Batch) -> native.Skeleton:
        if self.tables.linked:
            return self.tables.chain(len(model), counting=True)
        return batch.skeleton(model, () if self.folds else self.tables.shapes(model))

    def answers(self, found: Labellings, options: BatchOptions) -> dict[int, list[AugmentedSolution]]:
        """Make the answers; whether they match the messages was checked natively."""
        found.certify()
        if self.asked.prices is not None:
            self.asked.prices[self.numbers] = self._prices
        counted, assignments = tally_type(self.tables.statistics), read_only(found.labels)
        linked, models = self.tables.linked, self.models
        answers: dict[int, list[AugmentedSolution]] = {}
        for told, tally in zip(found.columns(*_TOLD), found.rows(len(counted._fields)), strict=True):
            index, at, end, promised, score, value, loss, truth_score, searched = told
            model, labels, some = models[index], assignments[at:end], answers.setdefault(index, [])
            if linked:
                certify_loss(loss, self._bound(index)(model.labels(labels)), source="the table of chunks")
            plan = partial(self._shown if searched else self._plan, index, options, value)
            solution = AugmentedSolution.complete(
                value=value,
                score=score,
                tally=counted._make(tally),
                assignment=labels if len(model.shape) == 1 else labels.reshape(model.shape),
                model=model,
                proof=Proof(plan, promised, _SAME_TALLY if some else _BEST_VALUE),
                loss=loss,
                truth_score=truth_score,
            )
            some.append(solution)
        return answers

    def problem(self, index: int) -> LossProblem:
        """Return one of the problems by itself."""
        return self.asked.problem(self.numbers[index])

    def _scales(self) -> bool:
        """Whether the loss supports the scaling; if not, each problem raises its own error."""
        try:
            checked_scaling(self.asked.scaling, self.tables.recipe)
        except ModelError:
            return False
        return True

    def _folds(self) -> bool:
        """Whether the losses fold into the scores, so that no tallies are needed."""
        if self.asked.scaling != "margin" or self.asked.tallies > 1 or self.labels is None:
            return False
        return self.tables.bound(self.labels[: self.lengths[0]]).linear() is not None

    def _foldable(self) -> bool:
        """Whether every model has scores of single variables that the losses can be added to."""
        return all(
            any(block.key == unary_scopes(length)[1] for block in model.blocks)
            for model, length in zip(self.models, self.lengths, strict=True)
        )

    def _plan(self, index: int, options: BatchOptions, value: float) -> Price | Plan | Evidence:
        """Return the plan of one problem, for its certificate: the table shows the value."""
        reduction = self._bound(index).on(self.models[index]).reduce(self.models[index])
        return plan_graph(Query(reduction.model, () if self.folds else reduction.statistics), options.plan)

    def _shown(self, index: int, options: BatchOptions, value: float) -> Price | Plan | Evidence:
        """Return what proves that no labelling has a higher value.

        A search by bounds is run for it: that of the batch rules out single tallies, and has no boxes that a
        certificate could show. If it does not finish, the full table is computed.
        """
        model = self.models[index]
        asked = GraphLossQuery(model, self._bound(index).on(model), None, None, (None, None))
        question = asked.question(self.asked.scaling, self.asked.margin)
        table = bounded(asked.query, question, Options(options.plan))
        if table is not None and table.finished:
            return table.evidence
        best = LossProfile.of(asked, Options(options.plan)).best(self.asked.scaling, margin=self.asked.margin)
        further = rounding(model.blocks, best.score, asked.truth_score) * (2 + best.loss)
        certify_value(best.value <= value + further, best.value, repr(value))
        assert isinstance(best.proof, Proof)
        return best.proof.rests_on()

    def _bound(self, index: int) -> Loss:
        """Return the loss of one problem with a copy of its truth, which the caller may have changed."""
        assert self.labels is not None
        end = self._ends[index]
        return self.tables.bound(self.labels[end - self.lengths[index] : end])

    def _labels(self) -> NDArray[np.int64] | None:
        """Return the states of all truths, concatenated; None if one is invalid."""
        truths = [
            recipe.truth if self.asked.truths[number] is None else self.asked.truths[number]
            for recipe, number in zip(self.recipes, self.numbers, strict=True)
        ]
        if not all(self.lengths):
            return None
        states = self.models[0].alike or 0
        codes = truth_codes(truths, self.models, numbers_of(self.models[0].states_of(0) or ()))
        return codes if codes is not None and codes.min() >= 0 and codes.max() < states else None


_TOLD = ("item", "labels_begin", "labels_end", "promised", "score", "value", "loss", "truth_score", "bounded")
_BEST_VALUE, _SAME_TALLY = Claim(BEST, noun="value"), Claim(SAME_TALLY)
