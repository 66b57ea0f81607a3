"""Loss-augmented inference for a whole data set: many models, each with a truth, on several threads."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.tally_table import Where
from tallytree.bulk.batch import one_each
from tallytree.bulk.jobs import Batch, BatchOptions, Errors
from tallytree.bulk.large_graphs import MOST_LISTED, searched_alone
from tallytree.bulk.loss_jobs import LossArguments, in_bulk
from tallytree.errors import TallytreeError
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling, checked_margin
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.model import Model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.planning.options import Keywords, PlanOptions
from tallytree.statistics.constraints import Constraint


def loss_augmented_batch(
    models: Iterable[Model],
    loss: Loss | Sequence[Loss],
    scaling: Scaling = "margin",
    *,
    truths: Sequence[Any] | None = None,
    margin: float = 1.0,
    where: Where | Sequence[Where] = None,
    fixed: Fixed | Sequence[Fixed | None] | None = None,
    allowed: Allowed | Sequence[Allowed | None] | None = None,
    errors: Errors = "raise",
    **options: Unpack[Keywords],
) -> list[Any]:
    """Find the labellings of many models that most violate the margin, on several threads.

    Parameters
    ----------
    models : iterable of Model
        The factor graphs, of any shape.
    loss : Loss, or a sequence with one per model
        A recipe, which is bound to each of the ``truths``; or losses that are already bound.
    scaling, margin
        As for :func:`loss_augmented`.
    truths : sequence of labellings, optional
        The true labellings, one per model.
    where, fixed, allowed : optional
        As for :func:`loss_augmented`, for all models or in a list with one per model.
    errors
        As for :func:`profile_batch`.
    **options
        As for :func:`solve_batch`, including ``strategy``.

    Returns
    -------
    list of AugmentedSolution
        Each as :func:`loss_augmented` would return it with ``strategy="full"``, bit for bit. A different one
        of the same value may be found with "bounds", and on models that are not chains, if they have large
        tables and more than 192 variables or a constraint.
        With ``errors="return"``, a :class:`TallytreeError` in place of each answer that failed.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> scores = np.array([[0., 1], [0, 2], [0, 4]])
    >>> models = [tt.Model.chain(scores[:length], np.zeros((2, 2)), states=["O", "B"]) for length in (2, 3)]
    >>> truths = [["O", "B"], ["O", "O", "B"]]
    >>> loss = tt.losses.FBeta(background="O")
    >>> for found in tt.loss_augmented_batch(models, loss, "slack", truths=truths):
    ...     print(found.labels.tolist(), round(found.loss, 3), round(found.value, 3))
    ['B', 'B'] 0.333 0.667
    ['B', 'B', 'B'] 0.5 2.0
    """
    chosen = BatchOptions.read(options, errors, loss_augmented_batch, one=True)
    every = list(models)
    size = len(every)
    arguments = LossArguments(
        every,
        list(one_each(loss, size, "loss", Loss)),
        [None] * size if truths is None else list(one_each(list(truths), size, "truths", Loss)),
        list(one_each(where, size, "where", (Constraint, str))),
        list(one_each(fixed, size, "fixed", Mapping)),
        list(one_each(allowed, size, "allowed", Mapping)),
        scaling,
        checked_margin(margin),
    )
    return [found if isinstance(found, TallytreeError) else found[0] for found in _solved(arguments, chosen)]


def most_violated(
    models: Sequence[Model],
    loss: Loss | Sequence[Loss],
    truths: Sequence[Any] | None,
    scaling: Scaling,
    count: int = 1,
    threads: int | None = None,
    prices: NDArray[np.float64] | None = None,
) -> list[list[AugmentedSolution]]:
    """Find the labellings of many models that most violate the margin: the best of each of the best tallies.

    `models`, `loss`, `truths`, `scaling` and `threads`: as for :func:`loss_augmented_batch`. `count`: the
    number of labellings per model; fewer if there are fewer tallies. Those of one model are what
    :meth:`LossProfile.top` gives, or for one labelling :func:`loss_augmented`. `prices`: for each model and
    statistic of the loss, where the search starts, if it is a number; replaced by where it ended.
    """
    size = len(models)
    losses = [loss] * size if isinstance(loss, Loss) else list(loss)
    nothing = [None] * size
    rights = nothing if truths is None else list(truths)
    arguments = LossArguments(models, losses, rights, nothing, nothing, nothing, scaling, 1.0, count, prices)
    return _solved(arguments, BatchOptions(PlanOptions(), threads, "raise"))


def _solved(arguments: LossArguments, options: BatchOptions) -> list[Any]:
    sizes = [len(model) if isinstance(model, Model) else 0 for model in arguments.models]
    large = [number for number, size in enumerate(sizes) if size > MOST_LISTED]
    alone = searched_alone(arguments, large, options)
    bulks = in_bulk(arguments, alone, options.plan.limit)
    rest = set(range(len(arguments.models))).difference(*(bulk.numbers for bulk in bulks))
    alone |= searched_alone(arguments, rest.difference(large), options)
    problems = {number: arguments.problem(number, number in alone) for number in sorted(rest)}
    return Batch(problems, options, bulks).solve()
