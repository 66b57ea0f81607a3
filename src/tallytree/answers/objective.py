"""The contract of objectives: ``H(score, *tallies)`` is elementwise and does not decrease in the score.

Both are spot-checked, because an objective that breaks them would give an answer that looks right: a few
rows are evaluated again on their own, and a few at scores below the best.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ObjectiveError

__all__ = ["Objective", "called", "elementwise", "evaluate_objective"]

Objective = Callable[..., Any]

_BLOCK = 1 << 18  # rows handed to an objective at once
_PROBES = 7
_STEPS = np.array([[0.0], [0.5], [64.0]])  # how far below the best score the probes look


def elementwise(function: Callable[..., float]) -> Objective:
    """Turn a function of plain numbers into an objective over arrays.

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

    def over_arrays(score: NDArray[np.float64], *tallies: NDArray[np.int64]) -> NDArray[np.float64]:
        rows = zip(score.tolist(), *(tally.tolist() for tally in tallies), strict=True)
        return np.array([function(*row) for row in rows], dtype=np.float64)

    return update_wrapper(over_arrays, function)


def evaluate_objective(
    objective: Objective, scores: NDArray[np.float64], tallies: NDArray[np.int64], names: tuple[str, ...]
) -> NDArray[np.float64]:
    """Evaluate an objective on all rows, checked."""
    with np.errstate(divide="ignore", invalid="ignore"):  # nan is looked for, and -inf refuses a tally
        parts = [
            _values(objective, scores[at : at + _BLOCK], tallies[at : at + _BLOCK], names)
            for at in range(0, len(scores), _BLOCK)
        ]
        values = parts[0] if len(parts) == 1 else np.concatenate(parts)
        _probe(objective, scores, tallies, values, names)
    return values


def _values(
    objective: Objective, scores: NDArray[np.float64], tallies: NDArray[np.int64], names: tuple[str, ...]
) -> NDArray[np.float64]:
    result = called(objective, names, scores, *tallies.T)
    if result is None:
        raise ObjectiveError("the objective returned None; does it end without a return?")
    try:
        values = np.asarray(result, dtype=np.float64)
        if values.shape != scores.shape:
            values = np.broadcast_to(values, scores.shape)
    except (TypeError, ValueError):
        raise ObjectiveError(
            f"an objective returns one number per row: it got arrays of shape {scores.shape} and gave "
            f"{np.shape(result)} of type {type(result).__name__}; a function of plain numbers is wrapped by "
            "tallytree.elementwise"
        ) from None
    if np.isnan(values.sum()) and (wrong := np.isnan(values)).any():  # inf - inf is nan too, but no fault
        row = int(wrong.argmax())
        raise ObjectiveError(
            f"the objective gave nan at {_tally(tallies[row], names)} with score {scores[row]:.6g}; define "
            "it there, for example with numpy.where"
        )
    return values


def called(objective: Objective, names: tuple[str, ...], *arguments: Any) -> Any:
    """Call an objective of the score and these statistics; one that takes other arguments is refused."""
    try:
        return objective(*arguments)
    except TypeError as error:
        raise _wrong_arguments(objective, names) or error from None


def _wrong_arguments(objective: Objective, names: tuple[str, ...]) -> ObjectiveError | None:
    """Explain a call that the signature does not allow; None where the fault lies deeper."""
    try:
        signature(objective).bind(None, *names)
    except TypeError:
        wanted = ", ".join(("score", *names))
        return ObjectiveError(
            f"an objective takes the score and one argument for each statistic, ({wanted}); this one takes "
            f"{signature(objective)}"
        )
    except ValueError:  # a builtin that does not tell its signature
        return None
    return None


def _probe(
    objective: Objective,
    scores: NDArray[np.float64],
    tallies: NDArray[np.int64],
    values: NDArray[np.float64],
    names: tuple[str, ...],
) -> None:
    # evenly spread rows, without the first, the last and the best score's: a reduction over rows would show
    rows = np.arange(len(scores) > 2, len(scores) - (len(scores) > 2), 1 + len(scores) // _PROBES)
    if len(scores) > 1 and len(rows) > 1:
        rows = rows[rows != scores.argmax()]
    below = scores[rows] - _STEPS
    probed = _values(objective, below.reshape(-1), np.concatenate([tallies[rows]] * len(_STEPS)), names)
    alone, lower, expected = probed[: len(rows)], probed.reshape(below.shape), values[rows]
    if len(scores) > 1 and not _close(alone, expected):
        row = rows[int(np.argmax(alone != expected))]
        raise ObjectiveError(
            f"the objective is not elementwise: at {_tally(tallies[row], names)} its value depends on the "
            "other rows (a reduction such as score.max() does that); use only the row's own score and tally"
        )
    worse = lower - expected > 1e-9 * np.maximum(1.0, np.abs(np.maximum(expected, -1e300)))
    if worse.any():
        step, at = np.unravel_index(int(worse.argmax()), worse.shape)
        row = int(rows[at])
        raise ObjectiveError(
            f"the objective decreases in the score at {_tally(tallies[row], names)}: it is "
            f"{lower[step, at]:.6g} at score {below[step, at]:.6g} and {values[row]:.6g} at "
            f"{scores[row]:.6g}; only objectives that do not decrease in the score can be maximised exactly"
        )


def _close(a: NDArray[np.float64], b: NDArray[np.float64]) -> bool:
    same = a == b
    return bool(same.all()) or bool((same | (np.abs(a - b) <= 1e-9 * np.maximum(1.0, np.abs(a)))).all())


def _tally(tally: NDArray[np.int64], names: tuple[str, ...]) -> str:
    return "tally (" + ", ".join(f"{n}={v}" for n, v in zip(names, tally.tolist(), strict=True)) + ")"
