"""The space of labellings: variables, their states, and the names of both.

Every labelling from the user passes through :meth:`Space.encode`, and every labelling returned through
:meth:`Space.labels`; internally, states are numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.inputs import (
    Names,
    code_in,
    labelling_array,
    listed_states,
    name_array,
    numbers_of,
    state_names,
    suggestion,
    variable_key,
    variable_names,
)
from tallytree.model.restriction import Allowed, Fixed, listed
from tallytree.values import Frozen, set_once


class Space(Frozen):
    """All labellings of some variables, without scores.

    Attributes
    ----------
    cardinalities : int32 array of shape (M,)
        The number of states of each variable.
    shape : tuple of int
        The shape of a labelling: (M,), or (rows, columns) on grids.
    states : tuple of str, tuple of tuples of str, or None
        The names of the states, shared or for each variable.
    variables : tuple of str or None
        The names of the variables.
    alike : int or None
        The number of states if all variables have the same states, including names.
    """

    __slots__ = ("_common", "_each", "alike", "cardinalities", "shape", "variables")

    cardinalities: NDArray[np.int32]
    shape: tuple[int, ...]
    variables: Names | None
    alike: int | None
    _common: Names | None  # the names of the states if all variables share them
    _each: tuple[Names, ...] | None  # the names for each variable otherwise

    def _span(
        self,
        sizes: NDArray[np.int32],
        shape: tuple[int, ...],
        states: Sequence[Any] | None,
        variables: Sequence[str] | None,
        n: int | None,
    ) -> None:
        common, each = (None, None) if states is None else state_names(states, sizes, n)
        set_once(self, "cardinalities", sizes)
        set_once(self, "shape", shape)
        set_once(self, "variables", None if variables is None else variable_names(variables, len(sizes)))
        set_once(self, "alike", n if each is None else None)
        set_once(self, "_common", common)
        set_once(self, "_each", each)

    @property
    def states(self) -> Names | tuple[Names, ...] | None:
        """The names of the states, shared by all variables or for each of them; None if there are none."""
        return self._common if self._each is None else self._each

    def states_of(self, variable: int) -> Names | None:
        """Return the names of the states of one variable; None if the model has no names."""
        return self._common if self._each is None else self._each[variable]

    def encode(self, labelling: ArrayLike) -> NDArray[np.int64]:
        """Return a labelling as one state number per variable.

        Parameters
        ----------
        labelling : array-like
            Names or numbers of states, one per variable; for grids two-dimensional or flat.

        Raises
        ------
        ModelError
            The shape is wrong, or an entry is neither a name nor a number of a state of its variable.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)), states=["O", "B"])
        >>> model.encode(["B", "O", 1])
        array([1, 0, 1])
        >>> model.encode(["B", "O", "X"])
        Traceback (most recent call last):
        tallytree.errors.ModelError: labelling[2] is 'X', which is not a state of variable 2; its states are
        'O', 'B' ...
        """
        array = labelling_array(labelling)
        if array.shape != self.shape and array.shape != (len(self),):
            raise ModelError(f"a labelling of this model has shape {self.shape}, got shape {array.shape}")
        flat = array.reshape(-1)
        codes = flat.astype(np.int64) if flat.dtype.kind in "biu" else self._codes(flat.tolist())
        outside = codes.view(np.uint64) >= self.cardinalities  # negative numbers become large ones
        if np.count_nonzero(outside):
            variable = int(outside.argmax())
            raise self._no_state(variable, flat[variable].item())
        return codes

    def _codes(self, items: list[Any]) -> NDArray[np.int64]:
        lookup = numbers_of(self._common or ())
        try:
            return np.array([lookup[item] for item in items], dtype=np.int64)
        except (KeyError, TypeError):  # names that differ by variable, numbers among names, or an error
            return np.array([self._code(i, item) for i, item in enumerate(items)], dtype=np.int64)

    def _code(self, variable: int, item: object, what: str | None = None) -> int:
        code = code_in(item, self.states_of(variable), int(self.cardinalities[variable]))
        if code < 0:
            raise self._no_state(variable, item, what)
        return code

    def _no_state(self, variable: int, item: object, what: str | None = None) -> ModelError:
        place = ", ".join(map(str, np.unravel_index(variable, self.shape)))
        named = "" if self.variables is None else f" ({self.variables[variable]!r})"
        names, n = self.states_of(variable), int(self.cardinalities[variable])
        return ModelError(
            f"{what or f'labelling[{place}]'} is {item!r}, which is not a state of variable "
            f"{variable}{named}; "
            f"its states are {listed_states(names, n)}{suggestion(item, names)}"
        )

    def labels(self, assignment: ArrayLike) -> NDArray[Any]:
        """Return labellings as the user sees them: names if the model has them, two-dimensional for grids.

        Parameters
        ----------
        assignment : array-like
            A labelling, or several of them along a first axis, such as samples: shape (K, M), or
            (K, rows, columns) for grids.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> free = np.zeros((2, 2))
        >>> model = tt.Model.grid(np.zeros((1, 2, 2)), free, free, states=["off", "on"])
        >>> model.labels([1, 0])
        array([['on', 'off']], dtype=object)
        >>> model.labels([[[1, 0]], [[1, 1]]]).tolist()
        [[['on', 'off']], [['on', 'on']]]
        """
        given = labelling_array(assignment)
        several = given.ndim > 1 and given.shape[1:] == self.shape
        rows = [self.encode(one) for one in given] if several else [self.encode(given)]
        codes = np.array(rows, dtype=np.int64).reshape(len(rows), len(self))
        if self._each is not None:
            labels = np.empty(codes.shape, dtype=object)
            for variable, names in enumerate(self._each):
                labels[:, variable] = name_array(names)[codes[:, variable]]
        else:
            labels = codes if self._common is None else name_array(self._common)[codes]
        return labels.reshape(given.shape if several else self.shape)

    def arranged(self, tables: list[NDArray[Any]]) -> list[NDArray[Any]] | NDArray[Any]:
        """Return one table per variable, as one array if all variables have the same number of states."""
        sizes = set(self.cardinalities.tolist()) if self.alike is None else {self.alike}
        return np.array(tables).reshape(*self.shape, *sizes) if len(sizes) == 1 else tables

    def by_variable(self, tables: Sequence[NDArray[Any]] | NDArray[Any]) -> Sequence[NDArray[Any]]:
        """Return one table per variable; the inverse of :meth:`arranged`."""
        return tables.reshape(len(self), -1) if isinstance(tables, np.ndarray) else tables  # type: ignore[return-value]

    def state_codes(self, state: str | int) -> NDArray[np.int64]:
        """Return the number of a state for each variable, -1 if a variable does not have it.

        Raises
        ------
        ModelError
            No variable has such a state.
        """
        if self.alike is not None:
            code = code_in(state, self._common, self.alike)
            codes = np.full(len(self), code, dtype=np.int64)
        else:
            each = ((self.states_of(i), n) for i, n in enumerate(self.cardinalities.tolist()))
            codes = np.array([code_in(state, names, n) for names, n in each], dtype=np.int64)
            code = max(codes.tolist(), default=0)
        if code < 0:
            raise self._unknown(state)
        return codes

    def _unknown(self, state: object) -> ModelError:
        names = self._common
        if self._each is not None:
            names = tuple(dict.fromkeys(name for one in self._each for name in one))
        most = self.alike or int(self.cardinalities.max())
        return ModelError(
            f"no variable of this model has the state {state!r}; the states are {listed_states(names, most)}"
            f"{suggestion(state, names)}"
        )

    def variable_indices(self, variables: Iterable[str | int]) -> NDArray[np.int64]:
        """Return the numbers of the given variables, names or numbers.

        Raises
        ------
        ModelError
            There is no such variable, or one is given twice.
        """
        indices = [self._variable_index(variable) for variable in variables]
        if len(set(indices)) < len(indices):
            twice = next(i for k, i in enumerate(indices) if i in indices[:k])
            raise ModelError(f"variable {twice} is given twice; give each variable once")
        return np.array(indices, dtype=np.int64)

    def _variable_index(self, variable: object) -> int:
        index = code_in(variable_key(self._flat(variable)), self.variables, len(self))
        if index < 0:
            known = f"the variables are {listed_states(self.variables, len(self))}"
            if isinstance(variable, tuple) and len(self.shape) == 2:  # the cell of a grid
                rows, columns = (listed_states(None, n) for n in self.shape)
                known = f"its rows are {rows} and its columns {columns}"
            raise ModelError(
                f"this model has no variable {variable!r}; {known}{suggestion(variable, self.variables)}"
            )
        return index

    def _flat(self, variable: object) -> object:
        """Return the number of a grid cell ``(row, column)``; anything else is returned unchanged."""
        if isinstance(variable, tuple) and len(variable) == len(self.shape) == 2:
            row, column = (code_in(i, None, n) for i, n in zip(variable, self.shape, strict=True))
            return row * self.shape[1] + column if row >= 0 and column >= 0 else variable
        return variable

    def choices(self, fixed: Fixed, allowed: Allowed) -> dict[int, list[int]]:
        """Return the numbers of the states that each given variable may take."""
        choices = {}
        for variable, (given, states) in zip(
            self.variable_indices(allowed).tolist(), allowed.items(), strict=True
        ):
            what = f"allowed[{given!r}]"
            choices[variable] = [self._code(variable, state, what) for state in listed(states, what)]
        for variable, (given, state) in zip(
            self.variable_indices(fixed).tolist(), fixed.items(), strict=True
        ):
            code = self._code(variable, state, f"fixed[{given!r}]")
            if code not in choices.get(variable, [code]):
                raise ModelError(
                    f"fixed[{given!r}] is {state!r}, which allowed= does not list for variable {variable}; "
                    "remove one of the two"
                )
            choices[variable] = [code]
        return choices

    def __len__(self) -> int:
        """Return the number of variables."""
        return len(self.cardinalities)
