"""The last table of a plan: shared by profiles and distributions, of models and of forests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from threading import Lock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.tallies import row_of, unattained, unique_names, wanted_tally
from tallytree.model.model import Model
from tallytree.planning.options import RunOptions
from tallytree.planning.query import Query
from tallytree.reductions.reduction import Reduction
from tallytree.running.engine import Root
from tallytree.values import counted, read_only

_DEFAULTS = RunOptions()


class RootTable(ABC):
    """The attainable tallies, in lexicographic order, with a value for each, and the messages behind them.

    Pickled without the messages, which are passed again when first needed. `plan` is a plan, or a function
    that makes it. `root`: cells, tallies and values, if already known.
    """

    tallies: NDArray[np.int64]  # (S, P)
    noun: ClassVar[str] = "labelling"

    def __init__(
        self, query: Query[Any], plan: Any, options: RunOptions = _DEFAULTS, root: Root | None = None
    ) -> None:
        self.query, self._plan, self._options = query, plan, options
        self.statistics: tuple[Any, ...] = query.carried
        self._names = unique_names(tuple([s.name for s in self.statistics]))
        self._messages: Any = None
        self._lock = Lock()
        self._cells, tallies, values = self._root() if root is None else root
        self.tallies = read_only(tallies)
        self._fill(read_only(values))

    def _run(self) -> Any:
        """Pass the messages upwards; not called for a table that is already known."""
        raise NotImplementedError

    @abstractmethod
    def _fill(self, values: NDArray[np.float64]) -> None:
        """Store the values of the tallies."""

    def _root(self) -> Root:
        root: Root = self._loaded().root()
        return root

    def _loaded(self) -> Any:
        if self._messages is None:
            self._messages = self._run()
        return self._messages

    @property
    def plan(self) -> Any:
        """The plan of the messages."""
        if callable(self._plan):
            self._plan = self._plan()
        return self._plan

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the statistics, made unique."""
        return self._names

    def _row(self, tally: Sequence[Any], named: Mapping[str, Any]) -> int:
        """Return the row of a tally passed in order, by name, or as one sequence or mapping."""
        wanted = wanted_tally(self._names, tally, named)
        row = row_of(self.tallies, wanted)
        if row is None:
            where = self.query.where
            noun = self.noun if where is None else f"{self.noun} that satisfies '{where}'"
            raise unattained(noun, self._names, self.tallies, wanted)
        return row

    def __len__(self) -> int:
        """Return the number of attainable tallies."""
        return len(self.tallies)

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_messages": None, "_certify": None, "_lock": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        arrays = {name: read_only(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        self.__dict__.update(state, _lock=Lock(), **arrays)

    def __repr__(self) -> str:
        where, names = self.query.where, ", ".join(self._names)
        given = [] if where is None else [f"given {where}"]
        found = [f"{counted(len(self.tallies), 'tally')} of ({names})"] if names or where is None else []
        return f"{type(self).__name__}({', '.join([*found, *given])})"


class GraphTable(RootTable):
    """The root table of a plan for a model."""

    @property
    def model(self) -> Model:
        """The model on which messages were passed."""
        model: Model = self.query.subject
        return model

    @property
    def reduction(self) -> Reduction:
        """How labellings of the reduced model map to the original one."""
        assert self.query.reduction is not None
        return self.query.reduction
