"""Errors, by cause. Every error raised by the library is a :class:`TallytreeError`.

Each message says what was wrong, what was passed and what to do next. Errors survive pickling, so they can be
raised in worker processes.
"""

from collections.abc import Sequence
from typing import Any, Self


class TallytreeError(Exception):
    """Base class of all errors raised by the library."""

    def __new__(cls, *arguments: object) -> Self:
        """Create the error as a plain exception, whatever else it derives from.

        Tools that pass errors between processes call ``__new__`` directly, which ``MemoryError`` rejects.
        """
        return Exception.__new__(cls, *arguments)


class ModelError(TallytreeError, ValueError):
    """A model, statistic, constraint or labelling is malformed, or two of them do not match."""


class InfeasibleError(TallytreeError):
    """The problem is well defined, but has no solution.

    Either the factors forbid every labelling, or no labelling has the requested tally or satisfies the
    constraint.
    """


class BudgetError(TallytreeError, MemoryError):
    """A computation needs more memory or operations than a limit allows; raised before memory is allocated.

    Attributes
    ----------
    bound : float or None
        If a search by bounds was stopped: an upper bound on the value of every labelling.
    best : Solution or None
        The best labelling found so far, with its gap.
    too_wide : bool
        Whether the graph is too wide even without statistics.
    cause : str or None
        The message without its advice on other ways to an answer, if it has any.
    found : list of Solution
        If a list of labellings was stopped (:func:`diverse_k_best`): those found before.
    """

    bound: float | None = None
    best: Any = None
    too_wide: bool = False
    cause: str | None = None
    found: Sequence[Any] = ()


class ObjectiveError(TallytreeError, ValueError):
    """The objective is invalid: it decreases in the score, returns nan or inf, or is not elementwise."""


class CertificateError(TallytreeError):
    """A result failed its certificate: the labelling does not have the computed score, tally or loss.

    This indicates a bug in the library or in a custom loss. No result is returned.
    """


class PerformanceWarning(UserWarning):
    """The result is correct, but a slower method was used; the message says why."""
