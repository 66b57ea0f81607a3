"""Charts that do not fit: from the native refusal to an error that says what to do."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from tallytree.core.budget import readable_bytes
from tallytree.errors import BudgetError
from tallytree.kernels import native
from tallytree.parsing.derivation import spans

__all__ = ["kept_budget"]


@contextmanager
def kept_budget(words: int, limit: float) -> Iterator[None]:
    """Say of a chart that does not fit where it grew too large, and what would make it smaller."""
    try:
        yield
    except native.BudgetExceededError as error:
        found = re.match(r"step (\d+) bytes ([\d.e+]+)", str(error))
        place = ""
        if found and int(found[1]):
            starts, ends = spans(words)
            place = f" at words {starts[int(found[1])]} to {ends[int(found[1])]}, and is not finished then"
        size = readable_bytes(float(found[2])) if found else "more"
        raise BudgetError(
            f"the chart of {words} words needs {size}{place}; the limit is {readable_bytes(limit)}. Bound or "
            "cap statistics (where=), leave some out, use a grammar with fewer symbols (horizontal=0, "
            'vertical=1, tail="single"), or raise memory_limit='
        ) from None
