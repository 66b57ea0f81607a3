"""Charts that do not fit: an error that says what they need, where they grew too large, and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tallytree.errors import BudgetError
from tallytree.kernels import native
from tallytree.parsing.derivation import spans
from tallytree.planning.budget import readable_bytes

__all__ = ["kept_budget", "too_large"]


def too_large(words: int, size: float, limit: float, place: str = "") -> BudgetError:
    """Return the error for a chart that needs so many bytes."""
    return BudgetError(
        f"the chart of {words} words needs {readable_bytes(size)}{place}; the limit is "
        f"{readable_bytes(limit)}. Bound or cap statistics (where=), leave some out, use a grammar with "
        'fewer symbols (horizontal=0, vertical=1, tail="single"), or raise memory_limit='
    )


@contextmanager
def kept_budget(words: int, limit: float, beside: float = 0.0) -> Iterator[None]:
    """Turn a native refusal into an error for people; so many bytes are taken besides what it knows of."""
    try:
        yield
    except native.BudgetExceededError as error:
        span, place = error.step, ""
        if span:
            starts, ends = spans(words)
            place = f" at words {starts[span]} to {ends[span]}, and is not finished then"
        raise too_large(words, error.bytes + beside, limit, place) from None
