"""What statistics are bound to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray


class Domain(Protocol):
    """The part of a model that statistics need: its variables, their states and the names of both."""

    @property
    def cardinalities(self) -> NDArray[np.int32]:
        """The number of states of each variable."""

    @property
    def alike(self) -> int | None:
        """The number of states if all variables have the same states, including names; None otherwise."""

    def state_codes(self, state: str | int) -> NDArray[np.int64]:
        """Return the number of a state for each variable, -1 if a variable does not have it."""

    def variable_indices(self, variables: Iterable[str | int]) -> NDArray[np.int64]:
        """Return the numbers of the given variables."""

    def encode(self, labelling: ArrayLike) -> NDArray[np.int64]:
        """Return a labelling as one state number per variable."""
