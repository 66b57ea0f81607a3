"""The contract of objectives: ``H(score, *tallies)`` is elementwise and non-decreasing in the score.

Both properties are spot-checked, because an objective that violates them would give a wrong but plausible
answer: a few rows are evaluated again without the others, and at lower scores, most of them scores that
occur. At every tally that a labelling has, the value must be a number, or ``-inf`` to exclude the tally; nan
and ``+inf``, for example from a division by zero, raise an error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import update_wrapper
from inspect import signature
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.tallies import unique_names
from tallytree.errors import ModelError, ObjectiveError
from tallytree.statistics.formulas import Formula, checked_formula
from tallytree.statistics.linear import Term

Objective = Callable[..., Any]

_BLOCK = 1 << 18  # rows passed to an objective at once
_FEW = 16  # up to this many rows, all are evaluated again
_INSIDE = 3
_STEPS = np.array([0.0, 0.001, 0.13, 1.0, 0.06, 2.1, 5.3])
"""How far below a row's score the probes are, relative to the spread of all scores: at the row itself, at
scores that occur, and further below."""
_ABOVE = np.array([0, 1, 2, 0, 4, 5])  # for each step but the first, the next one above it
_EPSILONS = 8 * float(np.finfo(np.float64).eps)


def elementwise(function: Callable[..., float]) -> Objective:
    """Turn a function of scalars into an objective over arrays.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2]]), np.zeros((2, 2)))
    >>> def prefer_one(score, k):
    ...     return score if k == 1 else score - 10
    >>> tt.profile(model, [tt.count(state=1)]).best(tt.elementwise(prefer_one)).assignment
    array([0, 1])
    """

    def over_arrays(score: NDArray[np.float64], *tallies: NDArray[np.int64]) -> NDArray[Any]:
        rows = zip(score.tolist(), *(tally.tolist() for tally in tallies), strict=True)
        return np.array([function(*row) for row in rows])

    return update_wrapper(over_arrays, function)


def as_objective(objective: Objective | str | None, statistics: Iterable[Term]) -> Objective | None:
    """Return an objective as a function; a string is a formula in the score and the names of statistics.

    Examples
    --------
    >>> import tallytree as tt
    >>> function = as_objective("score - 2*ones", [tt.count(state=1, name="ones")])
    >>> function(np.array([5.0, 6.0]), np.array([0, 1]))
    array([5., 4.])
    >>> as_objective("score", []) is None
    True
    """
    if objective is None or callable(objective):
        return objective
    if not isinstance(objective, str):
        raise ModelError(
            "objective must be a function H(score, *tallies), or a formula such as 'score - 2*ones'; got "
            f"{objective!r}"
        )
    names = unique_names(tuple([s.name for s in statistics]))
    if taken := {"score", "inf"}.intersection(names):
        raise ModelError(
            f"objective={objective!r}: a statistic is called {min(taken)!r}, which means something else in a "
            "formula; rename it"
        )
    return formula_objective(checked_formula(objective, "objective", names), names, {})


def formula_objective(
    formula: Formula, names: Sequence[str], values: Mapping[str, float]
) -> Objective | None:
    """Return a formula as a function of the score and of tallies with these names; None for the score."""
    if is_plain_score(formula):
        return None

    def objective(score: NDArray[np.float64], *tallies: NDArray[np.int64]) -> NDArray[Any]:
        return formula({**values, "score": score, **dict(zip(names, tallies, strict=True))})

    return objective


def is_plain_score(formula: Formula) -> bool:
    """Whether a formula is just the score, which is the same as no objective."""
    return formula.code == (("name", "score"),)


def evaluate_objective(
    objective: Objective, scores: NDArray[np.float64], tallies: NDArray[np.int64], names: tuple[str, ...]
) -> NDArray[np.float64]:
    """Evaluate an objective on all rows, with checks."""
    with np.errstate(divide="ignore", invalid="ignore"):  # nan and inf are checked for; -inf excludes a tally
        parts = [
            _values(objective, scores[at : at + _BLOCK], tallies[at : at + _BLOCK], names)
            for at in range(0, len(scores), _BLOCK)
        ]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        _probe(objective, scores, tallies, values, names)
    return values


def values_to_show(
    objective: Objective,
    scores: NDArray[np.float64],
    tallies: NDArray[np.int64],
    names: tuple[str, ...],
    allowed: NDArray[np.bool_],
) -> NDArray[np.float64]:
    """Evaluate an objective on all rows, with checks on the allowed ones; the others may be nan or inf."""
    values = np.full(len(scores), np.nan)
    if allowed.any():
        values[allowed] = evaluate_objective(objective, scores[allowed], tallies[allowed], names)
    if not allowed.all():
        with np.errstate(all="ignore"):
            values[~allowed] = _returned(objective, scores[~allowed], tallies[~allowed], names)
    return values


def _values(
    objective: Objective, scores: NDArray[np.float64], tallies: NDArray[np.int64], names: tuple[str, ...]
) -> NDArray[np.float64]:
    values = _returned(objective, scores, tallies, names)
    row = values.argmax()  # of the first nan or inf, if any
    if not values[row] < inf:
        place = f"{_at_tally(tallies[row], names)} with score" if names else " at score"
        raise ObjectiveError(
            f"the objective is {values[row]}{place} {scores[row]:.6g}; "
            "return a number there, or -inf to exclude the tally, for example with numpy.where, or with "
            "where(condition, a, b) in a formula"
        )
    return values


def _returned(
    objective: Objective, scores: NDArray[np.float64], tallies: NDArray[np.int64], names: tuple[str, ...]
) -> NDArray[np.float64]:
    """Call an objective and return one real number per row, possibly nan or infinite."""
    result = called(objective, names, scores, *tallies.T)
    if type(result) is np.ndarray and result.dtype == np.float64 and result.shape == scores.shape:
        return result  # the usual case
    if result is None:
        raise ObjectiveError("the objective returned None; is a return statement missing?")
    try:
        array = np.asarray(result)
        if array.dtype.kind not in "biufO" or isinstance(result, np.ma.MaskedArray):
            raise ValueError
        values = array.astype(np.float64, copy=False)
        if values.shape != scores.shape:
            values = np.broadcast_to(values, scores.shape)
    except (TypeError, ValueError):
        raise ObjectiveError(
            f"an objective must return one number per row: given arrays of shape {scores.shape}, it returned "
            f"{np.shape(result)} of type {_kind(result)}; wrap a function of scalars in "
            "tallytree.elementwise"
        ) from None
    return values


def _kind(result: Any) -> str:
    """Describe the type that an objective returned."""
    name = type(result).__name__
    return f"{name} of {result.dtype}" if isinstance(result, np.ndarray) else name


def called(objective: Objective, names: tuple[str, ...], *arguments: Any) -> Any:
    """Call an objective with the score and these statistics, and explain a wrong signature."""
    try:
        return objective(*arguments)
    except TypeError as error:
        raise _wrong_arguments(objective, names) or error from None
    except ValueError as error:
        if "truth value of an array" not in str(error):
            raise
        raise ObjectiveError(
            "an objective is called with arrays, with one row per tally, but this one uses them in `if`, "
            "`and` or `or`, which need a single value; wrap it in tallytree.elementwise, or use numpy.where"
        ) from None


def _wrong_arguments(objective: Objective, names: tuple[str, ...]) -> ObjectiveError | None:
    """Explain a call that the signature does not allow; None if the error lies elsewhere."""
    try:
        signature(objective).bind(None, *names)
    except TypeError:
        wanted = ", ".join(("score", *names))
        return ObjectiveError(
            f"an objective takes the score and one argument per statistic, ({wanted}); this one takes "
            f"{signature(objective)}"
        )
    except ValueError:  # a builtin without a signature
        return None
    return None


# --- probes -------------------------------------------------------------------------------------------------


def _probe(
    objective: Objective,
    scores: NDArray[np.float64],
    tallies: NDArray[np.int64],
    values: NDArray[np.float64],
    names: tuple[str, ...],
) -> None:
    """Evaluate some rows again, one half without the other, at their own scores and at lower ones."""
    rows = _some_rows(scores, values)
    own, counted = scores[rows], tallies[rows]
    lowest = float(scores[scores.argmin()])
    spread = float(scores[scores.argmax()]) - lowest
    points = _points(own, lowest, spread)
    probed = np.empty(points.shape)
    probed.fill(np.nan)
    middle = (len(rows) + 1) // 2
    for half in (slice(middle), slice(middle, None))[: len(rows)]:
        values_there = _probed(objective, points[half], counted[half], names, _INSIDE if spread else 0)
        probed[half, : values_there.shape[1]] = values_there
    if len(scores) > 1:
        _check_elementwise(probed[:, 0], values[rows], own, counted, names)
    _check_monotone(points, probed, counted, names)


def _some_rows(scores: NDArray[np.float64], values: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return evenly spread rows, the first, the last, the one with the best score, and the chosen one.

    Every second one of these rows is in the first half of the result.
    """
    last = len(scores) - 1
    rows: Sequence[int] = range(last + 1)
    if last >= _FEW:
        spread = range(0, last, -(-last // (_FEW - 3)))
        rows = sorted({*spread, last, int(scores.argmax()), int(values.argmax())})
    return np.array([*rows[::2], *rows[1::2]])


def _points(own: NDArray[np.float64], lowest: float, spread: float) -> NDArray[np.float64]:
    """Return the scores of some rows, lower scores among those that occur, and some below them all."""
    scale: Any = spread or np.where(own == 0, 1.0, np.abs(own))[:, np.newaxis]
    points: NDArray[np.float64] = own[:, np.newaxis] - _STEPS * scale
    if spread:
        inner = points[:, 1 : 1 + _INSIDE]
        np.maximum(inner, lowest, out=inner)
    return points


def _probed(
    objective: Objective,
    points: NDArray[np.float64],
    tallies: NDArray[np.int64],
    names: tuple[str, ...],
    inside: int,
) -> NDArray[np.float64]:
    """Evaluate an objective at all points, or only at the first of them if it is undefined at the others.

    It need not be defined at scores that do not occur, so nan and errors are ignored there.
    """
    for some in (points, points[:, : 1 + inside]):
        try:
            return _at(objective, some, tallies, names)
        except Exception:  # anything that a function may raise outside its domain
            continue
    return _at(objective, points[:, :1], tallies, names)


def _at(
    objective: Objective, points: NDArray[np.float64], tallies: NDArray[np.int64], names: tuple[str, ...]
) -> NDArray[np.float64]:
    every = tallies.repeat(points.shape[1], axis=0)
    return _returned(objective, points.reshape(-1), every, names).reshape(points.shape)


def _check_elementwise(
    alone: NDArray[np.float64],
    expected: NDArray[np.float64],
    scores: NDArray[np.float64],
    tallies: NDArray[np.int64],
    names: tuple[str, ...],
) -> None:
    different = alone != expected
    if not np.count_nonzero(different):  # the usual case
        return
    different &= ~(np.abs(alone - expected) <= _rounding(alone, expected, scores))  # nan is not close
    if different.any():
        row = int(different.argmax())
        raise ObjectiveError(
            f"the objective is not elementwise: at {_tally(tallies[row], names)} its value depends on the "
            "other rows (for example through score.max()); use only the row's own score and tally"
        )


def _check_monotone(
    points: NDArray[np.float64],
    probed: NDArray[np.float64],
    tallies: NDArray[np.int64],
    names: tuple[str, ...],
) -> None:
    lower, upper = probed[:, 1:], probed.take(_ABOVE, axis=1)
    worse = lower > upper
    if not np.count_nonzero(worse):
        return
    worse &= lower - upper > _rounding(lower, upper, points[:, _ABOVE])
    if worse.any():
        row, at = np.unravel_index(int(worse.argmax()), worse.shape)
        raise ObjectiveError(
            f"the objective decreases in the score{_at_tally(tallies[row], names)}: it is "
            f"{lower[row, at]:.6g} at score {points[row, at + 1]:.6g} and {upper[row, at]:.6g} at "
            f"{points[row, _ABOVE[at]]:.6g}; only objectives that are non-decreasing in the score can be "
            "maximised exactly; for a range of scores, use tallytree.score_between"
        )


def _rounding(
    a: NDArray[np.float64], b: NDArray[np.float64], scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Return the most by which two values may differ by rounding, relative to the values and the scores."""
    finite = np.where(np.isfinite(b), np.abs(b), 0.0)
    sizes: NDArray[np.float64] = np.maximum(np.where(np.isfinite(a), np.abs(a), 0.0), finite)
    return 1e-9 * sizes + _EPSILONS * np.abs(scores)


def _at_tally(tally: NDArray[np.int64], names: tuple[str, ...]) -> str:
    return f" at {_tally(tally, names)}" if names else ""


def _tally(tally: NDArray[np.int64], names: tuple[str, ...]) -> str:
    return "tally (" + ", ".join(f"{n}={v}" for n, v in zip(names, tally.tolist(), strict=True)) + ")"
