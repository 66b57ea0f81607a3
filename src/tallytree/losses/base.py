"""The interface of losses: a number for each labelling, and the statistics that determine it.

A loss is a frozen dataclass. Without a truth it is a recipe, used as a parameter of an estimator; with a
truth it is bound, and has three methods that must agree: the loss of a labelling (``loss(y)``, by
definition), the statistics to count on a model (``loss.reduce(model)``), and the loss of a tally
(``loss.value(*tally)``). :func:`tallytree.testing.check_loss` tests this for your own loss.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Self, TypeGuard

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.values import read_only

Bounds = tuple[float, float]
"""The smallest and the largest value that a loss can take."""

Line = tuple[float, tuple[float, ...]]
"""A value that is linear in the tallies: the constant and the coefficients."""

Values = NDArray[np.float64]


@dataclass(frozen=True)
class Loss(ABC):
    """A loss: a recipe, or, with a truth, a loss of labellings.

    Parameters
    ----------
    truth : labelling, optional
        The true labelling.
    """

    truth: Any = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "truth", plain(self.truth))

    def against(self, truth: Any) -> Self:
        """Bind the recipe to a truth."""
        return replace(self, truth=truth)

    def replace(self, **parameters: Any) -> Self:
        """Return the same loss with different parameters."""
        return replace(self, **parameters)

    @property
    def bound(self) -> bool:
        """Whether it has a truth."""
        return self.truth is not None

    def parameters(self) -> dict[str, Any]:
        """Return the parameters of the recipe by name, without the truth."""
        return {f.name: getattr(self, f.name) for f in fields(self) if f.init and f.name != "truth"}

    def on(self, model: Model) -> Self:
        """Return the same loss with states as numbers of a model; raise an error if it does not fit."""
        return self

    def anchor(self, model: Model) -> Any:
        """Return the labelling of a model whose score the others are compared with: the truth."""
        return self._required()

    def _required(self) -> Any:
        if not self.bound:
            raise ModelError(
                f"{type(self).__name__} has no truth yet; bind it first, as in loss.against(truth)"
            )
        return self.truth

    @abstractmethod
    def __call__(self, y: Any) -> float:
        """Compute the loss of a labelling by definition."""

    @abstractmethod
    def reduce(self, model: Model) -> Reduction:
        """Return the model to solve and the statistics that :meth:`value` takes."""

    @abstractmethod
    def value(self, *tallies: ArrayLike) -> Values:
        """Compute the loss from the tallies of the statistics, elementwise; never nan."""

    def linear(self) -> Line | None:
        """Return the value as a linear function of uncapped statistics; None if it is not linear."""
        return None

    @property
    @abstractmethod
    def bounds(self) -> Bounds:
        """The smallest and the largest value, as far as known without a model."""

    @property
    def remedy(self) -> str:
        """Advice for the end of the error if its tallies do not fit in memory; empty by default."""
        return ""


_PLAIN = frozenset((int, float, bool, str))


def _all_plain(labelling: Sequence[Any]) -> bool:
    return _PLAIN.issuperset(map(type, labelling))


def plain(labelling: Any) -> Any:
    """Return lists and arrays as tuples of plain values, so that equal losses compare equal."""
    if isinstance(labelling, np.ndarray):
        labelling = labelling.tolist()
    if isinstance(labelling, (list, tuple)):
        return tuple(labelling if _all_plain(labelling) else map(plain, labelling))
    return labelling.item() if isinstance(labelling, np.generic) else labelling


@dataclass(frozen=True)
class LabellingLoss(Loss):
    """A loss of labellings of a model, variable by variable; states may be names or numbers.

    Without a model, a labelling is compared with the truth as it is, so both must use names, or both
    numbers; ``loss.on(model)`` handles both.
    """

    _model: Model | None = field(default=None, init=False, repr=False, compare=False)
    _codes: Any = field(default=None, init=False, repr=False, compare=False)  # the truth on that model

    def on(self, model: Model) -> Self:
        """Return the same loss with states as numbers of a model; raise an error if it does not fit."""
        if self._model is model:
            return self
        codes = read_only(model.encode(self._required()))
        bound = replace(self, truth=self._truth_on(model, codes))
        vars(bound).update(_model=model, _codes=codes)
        return bound

    def _truth_on(self, model: Model, codes: NDArray[np.int64]) -> Any:
        """Return the truth as state numbers of a model."""
        return codes

    def anchor(self, model: Model) -> NDArray[np.int64]:
        """Return the truth as one state number per variable."""
        codes: NDArray[np.int64] = self._codes if model is self._model else model.encode(self._required())
        return codes

    @property
    def right(self) -> list[Any]:
        """The truth, one state per variable."""
        return flat(self._required())

    def given(self, y: Any) -> list[Any]:
        """Return a labelling, one state per variable, as names or numbers like the truth."""
        states = flat(y) if self._model is None else self._model.encode(y).tolist()
        truth = self.right
        if len(states) != len(truth):
            raise ModelError(f"the truth has {len(truth)} variables, the labelling has {len(states)}")
        alike = len({*map(type, states), *map(type, truth)}) == 1
        if not alike and any(
            isinstance(a, str) != isinstance(b, str) for a, b in zip(states, truth, strict=True)
        ):
            raise ModelError(
                "the truth and the labelling cannot be compared: one has names where the other has "
                "numbers; use loss.on(model), which handles both"
            )
        return states


def flat(labelling: Any) -> list[Any]:
    """Return a labelling as a flat list of names or numbers, row by row for grids."""
    if isinstance(labelling, np.ndarray):
        labelling = labelling.reshape(-1).tolist()
    if isinstance(labelling, (list, tuple)) and _all_plain(labelling):
        return list(labelling)
    states: list[Any] = np.array(labelling, dtype=object).reshape(-1).tolist()
    return [state.item() if isinstance(state, np.generic) else state for state in states]


def columns(names: Sequence[str], tallies: Sequence[ArrayLike]) -> dict[str, NDArray[np.int64]]:
    """Return the tallies passed to a value by name; raise an error if their number is wrong."""
    if len(tallies) != len(names):
        raise ModelError(
            f"value takes one tally for each of ({', '.join(names)}), in order; got {len(tallies)}"
        )
    return {name: np.asarray(tally, dtype=np.int64) for name, tally in zip(names, tallies, strict=True)}


def is_number(value: object) -> TypeGuard[float]:
    """Whether something is a number, and not a string that looks like one."""
    return isinstance(value, (int, float, np.number))


def check_positive(number: object, name: str) -> None:
    """Raise an error unless a number is positive and finite."""
    if not is_number(number) or not 0 < number < np.inf:
        raise ModelError(f"{name} must be a positive number, got {number!r}")


LEAST_BETA, MOST_BETA = 1e-6, 1e6
"""The range of beta. Beyond it, F is precision or recall up to rounding, and its square may not be finite."""


def checked_beta(beta: object, *, of_nodes: bool = False) -> float:
    """Return the weight of recall in an F-measure; raise an error if it is out of range."""
    if is_number(beta) and not isinstance(beta, bool) and LEAST_BETA <= beta <= MOST_BETA:
        return plain(beta)  # type: ignore[no-any-return]
    alone = "; for precision alone, use losses.Precision, for recall alone, losses.Recall"
    raise ModelError(
        f"beta must be a number from {LEAST_BETA:g} to {MOST_BETA:g}, got {_brief(beta)}"
        f"{alone if of_nodes else ''}"
    )


def _brief(value: object) -> str:
    return f"{value:.0e}" if isinstance(value, int) and 10**9 < abs(value) < 10**300 else f"{value!r:.40}"
