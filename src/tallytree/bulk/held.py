"""The memory of a batch besides the tables of its runs: problems, answers, and what is made for them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Protocol

from tallytree.answers.certificate import Proof
from tallytree.answers.solution import Solution
from tallytree.model.blocks import Block
from tallytree.model.model import Model
from tallytree.planning.budget import Budget
from tallytree.planning.price import Price
from tallytree.planning.query import Query
from tallytree.reductions.reduction import Reduction
from tallytree.statistics.statistic import Statistic

# bytes in CPython, and in the native batch
_BULK = 3_100  # of a problem that was passed with others like it, and its answer
_PROBLEM = 3_900  # of a problem that was passed by itself, and its answer
_COUNTED = 500  # of each of its statistics, in the problem and the answer
_VARIABLE = 26  # of each variable: a label found, joined with the others, and returned
_ALONE, _ALONE_VARIABLE = 5_000, 32  # of an answer that was found on its own, with its proof
_QUERY, _STATISTIC = 1_500, 600  # of a query that serves no other problem, and each of its statistics
_BLOCK = 600  # of a block and its two arrays, besides their content


class _WithModel(Protocol):
    """A problem of a batch."""

    @property
    def model(self) -> Any: ...

    @property
    def apart(self) -> bool: ...


class _WithModels(Protocol):
    """Similar problems of a batch."""

    @property
    def models(self) -> Sequence[Model]: ...


class Held:
    """Counts what a batch holds, against its limit.

    `limit`: in bytes. `problems`: those passed one by one. `bulks`: the others. The arrays of their models
    are the caller's, and not counted.
    """

    def __init__(self, limit: float, problems: Collection[_WithModel], bulks: Iterable[_WithModels]) -> None:
        self.budget = Budget(limit)
        self._known: set[int] = set()  # what is counted, and the caller's arrays
        lengths = [len(model) for bulk in bulks for model in bulk.models]
        count = len(problems) + len(lengths)
        self._what = f"a batch of {count:,} {'problem' if count == 1 else 'problems'} and answers"
        size = _BULK * len(lengths) + _VARIABLE * sum(lengths)
        for problem in problems:
            model = _solved(problem)
            self.own(model.blocks if model else ())
            size += _alone(model) if problem.apart else _PROBLEM + _VARIABLE * len(model or ())
        self.add(size)
        self.check()

    def add(self, size: float) -> None:
        """Count some more bytes."""
        self.budget.held += size

    def check(self) -> None:
        """Raise BudgetError if it is too much."""
        self.budget.need(0.0, self._what)

    def searched(self, answer: Any) -> None:
        """Count the proof of an answer that was found on its own, by a search; others keep a few numbers."""
        size = 0
        for one in answer if isinstance(answer, list) else [answer]:
            proof = one.proof if isinstance(one, Solution) else None
            if isinstance(proof, Proof) and not isinstance(proof.plan, Price):
                size += _alone(one.model)
        if size:
            self.budget.need(size, self._what)
            self.add(size)

    def own(self, blocks: Iterable[Block]) -> None:
        """Note arrays that are the caller's."""
        for block in blocks:
            self._known.update((id(block.tables), id(block.scopes)))

    def made(self, query: Query[Statistic]) -> None:
        """Count a query, with the arrays that were made for it."""
        carried, original = query.carried, query.reduction and query.reduction.original
        blocks = [block for s in (*carried, *query.recounted, *query.read) for block in s.blocks]
        blocks += (*query.subject.blocks, *(original.blocks if original else ()))
        size = len(carried) * _COUNTED + sum(map(self._counted, blocks))
        if carried and id(carried) not in self._known:
            self._known.add(id(carried))
            size += _QUERY + _STATISTIC * len(carried)
        self.add(size)

    def _counted(self, block: Block) -> int:
        """Return the size of a block, or 0 if it is known already."""
        if id(block.tables) in self._known:
            return 0
        scopes = 0 if id(block.scopes) in self._known else block.scopes.nbytes
        self.own([block])
        return _BLOCK + scopes + block.tables.nbytes


def _solved(problem: _WithModel) -> Model | None:
    """Return the model that is solved, unless it is something else, which is reported later."""
    model = problem.model.model if isinstance(problem.model, Reduction) else problem.model
    return model if isinstance(model, Model) else None


def _alone(model: Model | None) -> int:
    return _ALONE + _ALONE_VARIABLE * len(model or ())
