"""The most violated trees of forests: what the oracle asks where examples are sentences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

from tallytree.learning.inference import Found, Scaling, Task
from tallytree.losses import Loss
from tallytree.losses.scaling import checked_scaling, scaled
from tallytree.parsing import Forest, counted_loss, diverse_k_best, loss_augmented
from tallytree.planning.threads import thread_count
from tallytree.solving import profile


@dataclass(frozen=True)
class TreeTask(Task):
    """Forests, each with a loss that is bound to its right tree."""

    forests: Sequence[Forest]
    losses: Sequence[Loss]

    def __len__(self) -> int:
        return len(self.forests)

    def _part(self, first: int, last: int) -> TreeTask:
        return TreeTask(self.forests[first:last], self.losses[first:last])

    def _top(self, count: int, scaling: Scaling, threads: int | None) -> list[Found]:
        if count == 1:
            return self._each(partial(_best, scaling=scaling), threads)
        return self._each(partial(_best_of_tallies, count=count, scaling=scaling), threads)

    def _diverse(self, count: int, distance: int, threads: int | None) -> list[Found]:
        return self._each(partial(_far_apart, count=count, distance=distance), threads)

    def _each(self, find: Callable[..., Found], threads: int | None) -> list[Found]:
        with ThreadPoolExecutor(thread_count(threads)) as pool:  # charts are built natively
            return list(pool.map(find, self.forests, self.losses))


def _best(forest: Forest, loss: Loss, scaling: Scaling) -> Found:
    found = loss_augmented(forest, loss, scaling)
    return [(found.tree, found.loss)]


def _best_of_tallies(forest: Forest, loss: Loss, count: int, scaling: Scaling) -> Found:
    """Return the best tree of each of the best tallies of one chart."""
    kind, counted, right = checked_scaling(scaling, loss), counted_loss(loss), forest.score(loss.truth)

    def objective(score: Any, *tallies: Any) -> Any:
        return scaled(kind, counted.value(*tallies), score - right)

    found = profile(forest, counted.statistics).top(count, objective)
    return [(one.tree, float(loss(one.tree))) for one in found]


def _far_apart(forest: Forest, loss: Loss, count: int, distance: int) -> Found:
    return [(one.tree, float(loss(one.tree))) for one in diverse_k_best(forest, count, distance)]
