"""A small cache of recent results: models of the same shape share plans."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """The most recent values, by key; the oldest are dropped if there are too many, or if they are too large.

    Examples
    --------
    >>> recent = Recent[str](most=2, most_bytes=100)
    >>> for name in ("a", "b", "c"):
    ...     recent.keep(name, name.upper(), 10)
    >>> recent.get("a"), recent.get("c"), recent.bytes
    (None, 'C', 20)
    """

    def __init__(self, most: int, most_bytes: float) -> None:
        self.most, self.most_bytes, self.bytes = most, most_bytes, 0
        self._values: OrderedDict[Hashable, tuple[Value, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable) -> Value | None:
        """Return a cached value, or None."""
        found = self._values.get(key)
        return None if found is None else found[0]

    def keep(self, key: Hashable, value: Value, size: int) -> None:
        """Cache a value of this many bytes, at least until the next one."""
        values = self._values
        with self._lock:
            if key in values:
                self.forget(key)
            values[key] = value, size
            self.bytes += size
            while (len(values) > self.most or self.bytes > self.most_bytes) and len(values) > 1:
                self.forget(next(iter(values)))

    def forget(self, key: Hashable) -> None:
        """Drop a value, if it is cached."""
        _, size = self._values.pop(key, (None, 0))
        self.bytes -= size

    def __len__(self) -> int:
        return len(self._values)
