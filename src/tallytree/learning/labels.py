"""Labels as given by users, and as numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tallytree.errors import ModelError
from tallytree.learning.examples import check_each
from tallytree.learning.planes import Integers
from tallytree.losses import ChunkFBeta, Loss
from tallytree.losses.brackets import BracketLoss
from tallytree.losses.nodes import NodeLoss
from tallytree.values import nearest

_MANY = 1000
"""Integers from here on must be most of the labels: a model has weights for each pair, used or not."""


@dataclass(frozen=True)
class Labels:
    """The labels of a task.

    Examples
    --------
    >>> labels = Labels.of([["O", "B"], ["B"]])
    >>> labels.names, labels.encode(["O", "O", "B"])
    (('B', 'O'), array([1, 1, 0]))
    """

    names: tuple[str, ...] | None  # sorted; None if labels are numbers from 0
    count: int  # the number of labels

    def __post_init__(self) -> None:
        names = range(self.count) if self.names is None else self.names
        if len(names) != self.count or len(set(names)) != self.count:
            raise ModelError(f"{self.count} labels need as many distinct names, got {names!r}")

    @classmethod
    def of(cls, labellings: Iterable[Any]) -> Labels:
        """Return the labels that occur in some labellings."""
        distinct: dict[Any, None] = {}  # in the order of their first occurrence

        def note(labelling: Any) -> None:
            for label in _flat(labelling):
                if not isinstance(label, (str, int)) or label not in distinct:
                    _check(label, next(iter(distinct), label))
                    distinct[label] = None

        check_each(labellings, note)
        if not distinct:
            raise ModelError("all labellings are empty, so there is nothing to learn")
        if all(isinstance(label, str) for label in distinct):
            _warn_about_spaces(distinct)
            return cls(tuple(sorted(distinct)), len(distinct))
        largest = int(max(distinct))
        if largest >= max(_MANY, 10 * len(distinct)):
            raise ModelError(
                f"labels are integers up to {largest}, but only {len(distinct)} of them occur; integers "
                "stand for 0, 1, 2 and so on, so number them from 0, or use strings"
            )
        return cls(None, largest + 1)

    @property
    def classes(self) -> np.ndarray:
        """The labels as an array."""
        return np.arange(self.count) if self.names is None else np.array(self.names, dtype=object)

    def encode(self, labelling: Any) -> Integers:
        """Return a labelling as numbers, flat."""
        flat = _flat(labelling)
        names: Any = range(self.count) if self.names is None else self.names
        numbers = {name: number for number, name in enumerate(names)}
        try:
            return np.array([numbers[label] for label in flat], dtype=np.int64)
        except (KeyError, TypeError):
            wrong = next(label for label in flat if label not in names)
            raise ModelError(
                f"label {wrong!r} was not in the training data, which has {self._listing}"
            ) from None

    def check_loss(self, loss: Loss) -> None:
        """Raise an error for a loss of trees, and for a background that is not a label."""
        if isinstance(loss, BracketLoss):
            raise ModelError(f"{type(loss).__name__} is a loss of parse trees; use another for labellings")
        if not isinstance(loss, NodeLoss) or isinstance(loss, ChunkFBeta) or loss.background is None:
            return
        names: Any = range(self.count) if self.names is None else self.names
        if loss.background not in names and loss.background not in range(self.count):
            raise ModelError(
                f"the background {loss.background!r} of the loss is not one of the labels, which are "
                f"{self._listing}; {self._other_background(loss)}"
            )

    def _other_background(self, loss: NodeLoss) -> str:
        """Return advice for a loss whose background is not a label."""
        likely: str | int | None = 0
        if self.names is not None:
            likely = nearest(str(loss.background), self.names) or ("O" if "O" in self.names else None)
        if likely is None:
            return f"pass the negative label, as in {type(loss).__name__}(background=…)"
        given = loss.replace(background=likely).parameters().items()
        written = ", ".join(f"{name}={value!r}" for name, value in given)
        return f"choose another, as in {type(loss).__name__}({written})"

    @property
    def _listing(self) -> str:
        """The labels, for messages."""
        return f"0 to {self.count - 1}" if self.names is None else ", ".join(self.names)

    def nearest(self, label: Any) -> str:
        """Return a hint for a label that does not exist: the most similar one, or all of them.

        Examples
        --------
        >>> Labels(("B-NP", "O"), 2).nearest("B-PN"), Labels(("B-NP", "O"), 2).nearest("x")
        ("; did you mean 'B-NP'?", '; the labels are B-NP, O')
        """
        near = nearest(str(label), self.names or ())
        return f"; did you mean {near!r}?" if near else f"; the labels are {self._listing}"


def _check(label: Any, first: Any) -> None:
    """Raise an error for what is not a label, or not of the kind of the first one."""
    of_one_kind = isinstance(label, str) == isinstance(first, str)
    if of_one_kind and (isinstance(label, str) or (isinstance(label, int) and label >= 0)):
        return
    wrong = repr(label) if of_one_kind or not isinstance(label, (str, int)) else f"{label!r} after {first!r}"
    raise ModelError(f"labels must be all strings, or all non-negative integers; got {wrong}")


def _warn_about_spaces(labels: Iterable[str]) -> None:
    """Warn if two labels differ only by white space around them, which is probably a mistake."""
    seen: dict[str, str] = {}
    for label in labels:
        other = seen.setdefault(label.strip(), label)
        if other != label:
            warnings.warn(
                f"the labels {other!r} and {label!r} differ only by white space around them, and are learned "
                "as two labels; strip them if they are the same",
                stacklevel=2,
            )
            return


def _flat(labelling: Any) -> list[Any]:
    if isinstance(labelling, str):
        raise ModelError(f"a labelling must be a sequence of labels, got the string {labelling!r}")
    flat: list[Any] = np.asarray(labelling, dtype=object).reshape(-1).tolist()
    return [one.item() if isinstance(one, np.generic) else one for one in flat]
