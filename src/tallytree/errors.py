"""What can go wrong, by cause. Every error of the library is a :class:`TallytreeError`.

Each error carries one text that says what was wrong, what was got and what to do next, and survives pickling,
so that it can come back from a worker process.
"""

from typing import Any, Self


class TallytreeError(Exception):
    """The base class of the errors raised by the library."""

    def __new__(cls, *arguments: object) -> Self:
        """Make an error as exceptions are made, whatever else it derives from.

        Tools that carry errors between processes call this by hand, and the one of ``MemoryError`` refuses.
        """
        return Exception.__new__(cls, *arguments)


class ModelError(TallytreeError, ValueError):
    """A model, a statistic, a constraint or a labelling is malformed, or two of them do not fit together."""


class InfeasibleError(TallytreeError):
    """The question is well posed, but no labelling meets it.

    Every labelling is forbidden by the factors, or none has the tally or meets the constraint that was asked
    for.
    """


class BudgetError(TallytreeError, MemoryError):
    """An answer needs more memory or operations than a limit allows; plans say so before they allocate.

    Attributes
    ----------
    bound : float or None
        Where a search by bounds was ended: no labelling has a higher value.
    best : Solution or None
        The best labelling that it had met, with its gap.
    """

    bound: float | None = None
    best: Any = None


class ObjectiveError(TallytreeError, ValueError):
    """The objective is invalid: it decreased in the score, returned nan, or was not elementwise."""


class CertificateError(TallytreeError):
    """An answer failed its certificate: a labelling does not have the score, tally or loss promised of it.

    This is a bug in the library or in a custom loss; no answer is returned.
    """


class PerformanceWarning(UserWarning):
    """The answer is right, but a slower method than usual was used; the message says why."""
