"""Process examples one by one; errors name the example."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, TypeVar

from tallytree.errors import ModelError

T = TypeVar("T")


def listed(examples: Any, what: str) -> list[Any]:
    """Return examples as a list; iterators are consumed, including nested ones.

    Examples
    --------
    >>> listed(iter([[1], iter([2, 3])]), "X must be a sequence of examples")
    [[1], [2, 3]]
    >>> listed(None, "X must be a sequence of examples")
    Traceback (most recent call last):
    tallytree.errors.ModelError: X must be a sequence of examples, got None
    """
    single = isinstance(examples, (str, bytes, Mapping, Set)) or getattr(examples, "ndim", 1) == 0
    if single or not isinstance(examples, Iterable):
        raise ModelError(f"{what}, got {brief(examples)}")
    return [list(one) if isinstance(one, Iterator) else one for one in examples]


def brief(value: object) -> str:
    """Return a value for a message, on one line and not too long."""
    text = " ".join(repr(value).split())
    return text if len(text) <= 80 else f"{text[:77]}..."


def of_each(examples: Iterable[Any], get: Callable[[Any], T], kind: str = "example") -> Iterator[T]:
    """Iterate over ``get(example)`` for each example; an error gives its number."""
    for number, example in enumerate(examples):
        try:
            yield get(example)
        except ModelError as error:
            raise ModelError(f"{kind} {number}: {error}") from None


def check_each(examples: Iterable[Any], check: Callable[[Any], None], kind: str = "example") -> None:
    """Call ``check(example)`` for each example; an error gives its number."""
    deque(of_each(examples, check, kind), maxlen=0)


def check_lengths(lengths: Iterable[int], truths: Sequence[Any], noun: str = "position") -> None:
    """Raise an error unless every example has as many labels as positions, or nodes."""
    for number, (length, truth) in enumerate(zip(lengths, truths, strict=True)):
        if length != len(truth):
            raise ModelError(
                f"example {number} has {length} {noun}s but {len(truth)} labels; each {noun} needs one"
            )
