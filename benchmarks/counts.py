"""What ``strategy="auto"`` counts, compared with what it takes: searches, and prices of full tables."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from tallytree.bounding import strategy
from tallytree.kernels import native


class Counts:
    """What compiled searches took and counted, in nanoseconds, and the price of a table."""

    def __init__(self) -> None:
        self.took, self.work, self.price, self.least = 0.0, 0.0, np.nan, np.inf

    def begin(self) -> None:
        self.took = self.work = 0.0

    def end(self) -> None:
        """Keep the least ratio of both: that of the run which was disturbed least."""
        if self.work:
            self.least = min(self.least, self.took / self.work)

    def search(self, run: Callable[..., Any], *asked: Any) -> Any:
        began = time.process_time()
        found = run(*asked)
        if found is not None:
            self.took += (time.process_time() - began) * 1e9
            self.work += found.work
        return found

    def priced(self, run: Callable[..., Any], *asked: Any) -> Any:
        found = run(*asked)
        self.price = np.nan if found is None else found.table_work
        return found


@contextmanager
def watched() -> Iterator[Counts]:
    """Note what the searches of single questions about models count."""
    counts = Counts()
    originals = native.search_by_bounds, strategy.search_price
    setattr(native, "search_by_bounds", partial(counts.search, originals[0]))  # noqa: B010
    setattr(strategy, "search_price", partial(counts.priced, originals[1]))  # noqa: B010
    try:
        yield counts
    finally:
        setattr(native, "search_by_bounds", originals[0])  # noqa: B010
        setattr(strategy, "search_price", originals[1])  # noqa: B010
