"""Weights of examples, from sample weights and class weights; and known label counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from tallytree.errors import ModelError
from tallytree.learning.accepted import NON_NEGATIVE
from tallytree.learning.labels import Labels
from tallytree.learning.planes import Floats, Integers

ClassWeight = Mapping[Any, float] | Literal["balanced"] | None


def importance_of(
    truths: Sequence[Integers], labels: Labels, class_weight: ClassWeight, sample_weight: ArrayLike | None
) -> Floats:
    """Return the factor for the objective of each example.

    Parameters
    ----------
    truths : sequence of int64 arrays
        The true labels.
    labels : Labels
        The meaning of their numbers.
    class_weight : mapping of labels to numbers, "balanced", or None
        The weight of an example is the mean over its positions; labels that are not given have weight 1, and
        "balanced" gives all labels the same total weight.
    sample_weight : array, optional
        A non-negative number for each example.

    Examples
    --------
    >>> labels = Labels(("B", "O"), 2)
    >>> importance_of([np.array([0, 1]), np.array([1, 1])], labels, {"B": 3.0}, [1.0, 0.5])
    array([2. , 0.5])
    """
    importance = _given(sample_weight, len(truths))
    if class_weight is None:
        return importance
    each = _balanced(truths, labels) if class_weight == "balanced" else _named(class_weight, labels)
    means = np.array([each[truth].mean() if len(truth) else 1.0 for truth in truths], dtype=np.float64)
    return np.multiply(importance, means)


def _given(sample_weight: ArrayLike | None, count: int) -> Floats:
    if sample_weight is None:
        return np.ones(count)
    try:
        weights = np.asarray(sample_weight, dtype=np.float64)
    except (TypeError, ValueError):
        odd = next(one for one in np.ravel(np.asarray(sample_weight, dtype=object)) if not _is_number(one))
        raise ModelError(f"sample_weight must be numbers, got {odd!r}") from None
    if weights.shape != (count,):
        raise ModelError(f"sample_weight has shape {weights.shape}, but there are {count} examples")
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0.0)))
    if len(wrong):
        raise ModelError(
            f"the weight of example {wrong[0]} is {weights[wrong[0]]}, but weights must be finite and at "
            "least 0"
        )
    return weights


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def _named(class_weight: Any, labels: Labels) -> Floats:
    each = np.ones(labels.count)
    numbers = {name: number for number, name in enumerate(labels.classes.tolist())}
    for label, weight in class_weight.items():
        if label not in numbers:
            raise ModelError(f"class_weight has {label!r}, which is not a label{labels.nearest(label)}")
        if not NON_NEGATIVE.test(weight):
            raise ModelError(
                f"the weight of label {label!r} is {weight!r}, but weights must be finite and at least 0"
            )
        each[numbers[label]] = weight
    return each


def _balanced(truths: Sequence[Integers], labels: Labels) -> Floats:
    counts = np.bincount(np.concatenate(truths), minlength=labels.count)
    return np.where(counts > 0, counts.sum() / (np.count_nonzero(counts) * np.maximum(counts, 1)), 1.0)


def counts_of(
    counts: Sequence[Mapping[Any, Any]], rows: Sequence[Any], labels: Labels
) -> list[dict[int, tuple[int, int]]]:
    """Return the counts of labels in examples, by number and as ranges; raise an error if impossible.

    Examples
    --------
    >>> counts_of([{"B": 1}], [np.zeros((3, 2))], Labels(("B", "O"), 2))
    [{0: (1, 1)}]
    """
    if len(counts) != len(rows):
        raise ModelError(f"there are {len(rows)} counted examples but {len(counts)} counts of labels")
    numbers = {name: number for number, name in enumerate(labels.classes.tolist())}
    for example, known in enumerate(counts):
        _check_names(example, known, labels)
    return [_ranges(number, known, rows[number].shape[0], numbers) for number, known in enumerate(counts)]


def _check_names(example: int, known: Any, labels: Labels) -> None:
    if not isinstance(known, Mapping) or not known:
        raise ModelError(
            f"counted example {example}: counts map labels to numbers, as in {{'B-PER': 3}}; got {known!r}"
        )
    for label in known:
        if label not in labels.classes.tolist():
            raise ModelError(f"counted example {example}: {label!r} is not a label{labels.nearest(label)}")


def _ranges(example: int, known: Any, length: int, numbers: dict[Any, int]) -> dict[int, tuple[int, int]]:
    ranges = {}
    for label, count in known.items():
        low, high = _ends(count, length, f"counted example {example}: {count!r} of {label!r}")
        ranges[numbers[label]] = (low, min(high, length))
    most = length if len(ranges) < len(numbers) else sum(high for _, high in ranges.values())
    if sum(low for low, _ in ranges.values()) > length or most < length:
        raise ModelError(f"counted example {example}: {known!r} is impossible with {length} positions")
    return dict(sorted(ranges.items()))


def _ends(count: Any, length: int, what: str) -> tuple[int, int]:
    """Return a count, or a range of counts in which None is an open end, as a range."""
    ends = tuple(count) if isinstance(count, (tuple, list)) else (count, count)
    if len(ends) == 2 and ends != (None, None):
        ends = tuple(end if one is None else one for one, end in zip(ends, (0, length), strict=True))
    if len(ends) != 2 or not all(isinstance(one, Real) and one % 1 == 0 for one in ends):
        raise ModelError(
            f"{what} is not an integer, nor a range of integers such as (1, 3); multiply a proportion by the "
            f"{length} positions and round it, or pass a range around it"
        )
    low, high = map(int, ends)
    if low > high:
        raise ModelError(f"{what} is an empty range; write ({high}, {low})")
    if not 0 <= low <= length:
        raise ModelError(f"{what} is impossible with {length} positions")
    return low, high
