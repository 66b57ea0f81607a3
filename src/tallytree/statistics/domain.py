"""What statistics are bound to, and checks that they fit it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.blocks import Block
from tallytree.values import counted


class Domain(Protocol):
    """The part of a model that statistics need: its variables, their states and the names of both."""

    @property
    def cardinalities(self) -> NDArray[np.int32]:
        """The number of states of each variable."""

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of a labelling: (M,), or (rows, columns) on grids."""

    @property
    def blocks(self) -> tuple[Block, ...]:
        """The factors, of which statistics of neighbours read the scopes."""

    @property
    def alike(self) -> int | None:
        """The number of states if all variables have the same states, including names; None otherwise."""

    def state_codes(self, state: str | int) -> NDArray[np.int64]:
        """Return the number of a state for each variable, -1 if a variable does not have it."""

    def variable_indices(self, variables: Iterable[str | int]) -> NDArray[np.int64]:
        """Return the numbers of the given variables."""

    def encode(self, labelling: ArrayLike) -> NDArray[np.int64]:
        """Return a labelling as one state number per variable."""


def check_same_shape(
    name: str, made_for: NDArray[np.int32], shape: tuple[int, ...] | None, model: Domain
) -> None:
    """Raise an error if a statistic that was made for another model does not fit this one."""
    check_grid(f"the grid of statistic {name!r}", shape, "that of the model", model.shape)
    if np.array_equal(made_for, model.cardinalities):
        return
    advice = "make it for this model, or use a recipe, such as count(state=…) without a model"
    if (
        set(made_for.tolist()) == set(model.shape[1:]) and len(made_for) == model.shape[0]
    ):  # a number per pixel
        states = (*model.shape, int(model.cardinalities[0]))
        advice = f"an array for a grid needs a number for each state, as one of shape {states} has"
    raise ModelError(
        f"statistic {name!r} was made for a model with {_sizes(made_for)} and does not fit one with "
        f"{_sizes(model.cardinalities)}; {advice}"
    )


def check_grid(what: str, got: tuple[int, ...] | None, whole: str, expected: tuple[int, ...] | None) -> None:
    """Raise an error if both shapes are those of grids, but different; flat arrays fit grids, too."""
    if got is None or expected is None or len(got) != 2 or len(expected) != 2 or got == expected:
        return
    hint = "; swap its rows and columns, as in array.swapaxes(0, 1)" if got[::-1] == expected else ""
    raise ModelError(f"{what} has the shape {got}, but {whole} has the shape {expected}{hint}")


def _sizes(cardinalities: NDArray[np.int32]) -> str:
    head = ", ".join(map(str, cardinalities[:8].tolist()))
    more = ", …" if len(cardinalities) > 8 else ""
    return f"{counted(len(cardinalities), 'variable')} of ({head}{more}) states"
