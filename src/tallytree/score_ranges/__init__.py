"""The best labelling whose score is in a range, ``max { F(y) : low <= F(y) <= high }``.

An upper limit on the score is not monotone in the score, so no objective can express it. There are four ways,
in order of cost:

1. the best labelling of all, if its score is in the range;
2. labellings in order, best first, until one is in the range;
3. the score on a lattice. With a resolution ``r``, every entry of a factor is ``m_t + r·k + e``: the smallest
   entry of its table, an integer multiple of ``r``, and a remainder. The integers are the tables of
   a statistic ``K``, and

       F(y) = Σ_t m_t + r·K(y) + E(y),    E_low <= E(y) <= E_high,

   where the bounds are the sums of the smallest and of the largest ``e`` of each table. A range of scores is
   a range of tallies, widened by ``E_low`` and ``E_high``. If the entries are decimals, ``E`` is just
   rounding, and the answer is exact;
4. how often each distinct entry is used (``values.py``): exact for any numbers, if there are few distinct
   ones. Whichever of the last two has the cheaper plan is run.

If there are only some million labellings and no two have the same tally, all of them are enumerated
instead (``enumeration.py``).
"""

from __future__ import annotations

import operator
from math import isfinite

from tallytree.errors import ModelError
from tallytree.model.model import Model, checked_model
from tallytree.model.restriction import Allowed, Fixed
from tallytree.model.rounding import rounding
from tallytree.score_ranges.lattice import Lattice
from tallytree.score_ranges.search import Search
from tallytree.score_ranges.sufficient import SufficientStatistics, sufficient_statistics
from tallytree.score_ranges.window import BoundedSolution, Window

__all__ = ["BoundedSolution", "SufficientStatistics", "score_between", "sufficient_statistics"]


def __dir__() -> list[str]:
    return sorted(__all__)


def score_between(
    model: Model,
    low: float,
    high: float,
    *,
    fixed: Fixed | None = None,
    allowed: Allowed | None = None,
    resolution: float | None = None,
    labellings: int = 1000,
    memory_limit: float | None = None,
) -> BoundedSolution:
    """Find the best labelling whose score is in a closed range.

    Parameters
    ----------
    model : Model
        The factor graph.
    low, high : float
        The ends of the range. A score that differs from an end only by rounding counts as inside.
    fixed, allowed : mapping, optional
        As for :func:`solve`: the state that a variable must take, or the states it may take.
    resolution : float, optional
        Round the entries of the factors to multiples of this, relative to the smallest entry of each table.
        By default the coarsest decimal resolution at which nothing is rounded, if there is one.
    labellings : int
        The number of labellings to examine in order before a lattice is used, and once more among the
        tallies of a lattice at the upper end of the range. Each takes about 5 µs and about a hundred bytes
        of the memory limit, so that ten million take a minute; if a model has at most 2**24 labellings in
        total, a large number enumerates all of them instead, in a second. Ctrl-C stops it.
    memory_limit : float, optional
        As for :func:`plan`.

    Returns
    -------
    BoundedSolution
        It is in the range, whatever the resolution. Its ``gap`` is 0.0 if it is optimal; otherwise its
        ``upper_bound`` is ``high``, and the optimum is this one or within ``E_high - E_low`` of ``high``.

    Raises
    ------
    InfeasibleError
        It is proven that no labelling has a score in the range.
    BudgetError
        Neither found nor ruled out: there are too many labellings above the range and too many tallies, or
        the resolution is too coarse. The message suggests a resolution.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1.5], [0, 2.25], [0, 4]]), np.zeros((2, 2)))
    >>> tt.score_between(model, 2, 5)
    BoundedSolution(score=4, upper_bound=4)
    >>> tt.score_between(model, 4.5, 5)
    Traceback (most recent call last):
    tallytree.errors.InfeasibleError: no labelling has a score from 4.5 to 5: ...
    """
    model = checked_model(model).restricted(fixed, allowed)
    window = Window(low, high, rounding(model.blocks))
    search = Search(model, window, _counted(labellings), memory_limit)
    if resolution is not None:
        return search.plain() or search.on_lattice(Lattice(model, _checked(resolution)))
    return search.plain() or search.in_order() or search.by_tallies()


def _counted(labellings: object) -> int:
    try:
        number = operator.index(labellings)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(f"labellings must be an integer, got {labellings!r}") from None
    if number < 0:
        raise ModelError(f"labellings must be at least 0, got {number}")
    return number


def _checked(resolution: float) -> float:
    if not (isfinite(resolution) and resolution > 0):
        raise ModelError(f"resolution must be a positive number, got {resolution!r}")
    return float(resolution)
