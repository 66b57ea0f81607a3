"""The sufficient statistics of a chain of symbols: ``F(y) = Σ w[o, s]·G[o, s](y) + Σ w[s, s']·G[s, s'](y)``.

``G[o, s]`` counts the positions with the symbol ``o`` and the state ``s``, ``G[s, s']`` the transitions
from state ``s`` to ``s'``. The score is a linear function of them, so any function of the score, and any
function of the counts, is an objective on these statistics. Only symbols that occur are counted.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.model.pairs import numeric
from tallytree.statistics.statistic import State, Statistic
from tallytree.values import read_only

Key = tuple[str, Any, int]


@dataclass(frozen=True, slots=True, eq=False)
class SufficientStatistics:
    """A chain, and the statistics that determine its score.

    Attributes
    ----------
    model : Model
        The chain.
    symbols : tuple
        The symbols that occur, in order of first appearance.
    statistics : tuple of Statistic
        The counts of each (symbol, state) and each (state, next state); those of weight ``-inf`` are omitted.
    weights : float64 array
        The score of one occurrence, for each statistic.
    """

    model: Model
    symbols: tuple[Hashable, ...]
    statistics: tuple[Statistic, ...]
    weights: NDArray[np.float64]
    _numbers: Mapping[Key, int]

    def emission(self, symbol: Hashable, state: State) -> Statistic:
        """Return the statistic that counts a symbol with a state."""
        return self._statistic("emission", symbol, state)

    def transition(self, state: State, following: State) -> Statistic:
        """Return the statistic that counts the transitions from a state to another."""
        return self._statistic("transition", self._code(state), following)

    def score(self, *tallies: ArrayLike) -> NDArray[np.float64]:
        """Compute the score from the tallies of all statistics, elementwise: ``Σ w·G``."""
        if len(tallies) != len(self.weights):
            raise ModelError(
                f"score takes the tallies of all {len(self.weights)} statistics, got {len(tallies)}"
            )
        terms = (w * np.asarray(t) for w, t in zip(self.weights.tolist(), tallies, strict=True))
        return np.asarray(sum(terms, start=np.zeros(())), dtype=np.float64)

    def _statistic(self, kind: str, first: Any, state: State) -> Statistic:
        number = self._numbers.get((kind, first, self._code(state)))
        if number is None:
            raise ModelError(
                f"there is no {kind} of {first!r} with {state!r}: the symbol does not occur (the symbols are "
                f"{', '.join(map(repr, self.symbols[:8]))}), or the weight is -inf"
            )
        return self.statistics[number]

    def _code(self, state: State) -> int:
        return int(self.model.state_codes(state)[0])

    def __repr__(self) -> str:
        return (
            f"SufficientStatistics({len(self.model)} places, {len(self.symbols)} symbols, "
            f"{len(self.statistics)} statistics)"
        )


def sufficient_statistics(
    symbols: Iterable[Hashable],
    emissions: Mapping[Any, Sequence[float]] | ArrayLike,
    transitions: ArrayLike,
    *,
    states: Sequence[str] | None = None,
) -> SufficientStatistics:
    """Make a chain from a sequence of symbols, and the counts that determine its score.

    Parameters
    ----------
    symbols : iterable
        The symbol at each position.
    emissions : mapping of symbol to N scores, or array-like of shape (D, N)
        The scores of the states for each symbol; an array is for symbols that are integers from 0 to
        D - 1. Symbols that do not occur are ignored.
    transitions : array-like of shape (N, N)
        ``transitions[a, b]`` is the score of a transition from state ``a`` to ``b``.
    states : sequence of str, optional
        The names of the N states.

    Examples
    --------
    >>> import tallytree as tt
    >>> emissions = {"walk": [1.0, 0.3], "shop": [0.6, 0.7], "clean": [0.1, 1.1]}
    >>> chain = tt.sufficient_statistics(
    ...     ["walk", "walk", "clean", "walk"], emissions, [[0.8, 0.2], [0.4, 0.6]], states=["sun", "rain"]
    ... )
    >>> chain
    SufficientStatistics(4 places, 2 symbols, 8 statistics)
    >>> wet_walks = chain.emission("walk", "rain")
    >>> found = tt.solve(chain.model, where=wet_walks >= 2)
    >>> print(found.tally, *found.labels)
    Tally(walk_rain=2) rain rain rain sun

    A non-linear constraint is an objective that is ``-inf`` where it is violated:

    >>> import numpy as np
    >>> turns = chain.transition("sun", "rain")
    >>> def product_is_two(score, walks, turns):
    ...     return np.where(walks * turns == 2, score, -np.inf)
    >>> print(*tt.solve(chain.model, [wet_walks, turns], product_is_two).labels)
    sun rain rain rain
    """
    read = list(symbols)
    occurring = tuple(dict.fromkeys(read))
    scores = {symbol: _scores_of(symbol, emissions) for symbol in occurring}
    links = np.asarray(numeric(transitions, "transitions"), dtype=np.float64)
    _check_sizes(scores, links)
    unary = np.array([scores[symbol] for symbol in read]).reshape(len(read), len(links))
    model = Model.chain(unary, links, states=states)
    counts = _Counts(model, links, states)
    for symbol in occurring:
        places = [place for place, other in enumerate(read) if other == symbol]
        counts.add_emissions(symbol, places, scores[symbol])
    counts.add_transitions()
    weights = read_only(np.array(counts.weights, dtype=np.float64))
    return SufficientStatistics(model, occurring, tuple(counts.statistics), weights, counts.numbers)


class _Counts:
    """The statistics so far, their weights, and their positions."""

    def __init__(self, model: Model, links: NDArray[np.float64], states: Sequence[str] | None) -> None:
        self.model, self.links = model, links
        self.names = [str(n) for n in range(len(links))] if states is None else list(states)
        self.statistics: list[Statistic] = []
        self.weights: list[float] = []
        self.numbers: dict[Key, int] = {}

    def add_emissions(self, symbol: Hashable, places: list[int], scores: NDArray[np.float64]) -> None:
        """Count the states at the positions of a symbol."""
        tables = np.eye(len(self.names), dtype=np.int64)
        for state, weight in enumerate(scores.tolist()):
            pairs = [((place,), tables[state]) for place in places]
            self._add(("emission", symbol, state), pairs, f"{symbol}_{self.names[state]}", weight)

    def add_transitions(self) -> None:
        """Count the transitions between states."""
        steps = [(place, place + 1) for place in range(len(self.model) - 1)]
        for (first, second), weight in np.ndenumerate(self.links):
            table = np.zeros(self.links.shape, dtype=np.int64)
            table[first, second] = 1
            name = f"{self.names[first]}_to_{self.names[second]}"
            self._add(("transition", first, second), [(step, table) for step in steps], name, float(weight))

    def _add(self, key: Key, pairs: list[Any], name: str, weight: float) -> None:
        if pairs and weight > -np.inf:
            self.numbers[key] = len(self.statistics)
            self.statistics.append(Statistic(pairs, name=name).on(self.model))
            self.weights.append(weight)


def _scores_of(symbol: Any, emissions: Any) -> NDArray[np.float64]:
    try:
        if not isinstance(emissions, Mapping) and not 0 <= symbol < len(emissions):
            raise IndexError
        return np.asarray(numeric(emissions[symbol], f"emissions[{symbol!r}]"), dtype=np.float64)
    except (KeyError, IndexError, TypeError):
        raise ModelError(
            f"there are no emission scores for the symbol {symbol!r}; pass a mapping from symbols to one "
            "score per state, or an array with one row per symbol, numbered from 0"
        ) from None


def _check_sizes(scores: Mapping[Any, NDArray[np.float64]], links: NDArray[np.float64]) -> None:
    if not scores:
        raise ModelError("a chain needs at least one symbol")
    if links.ndim != 2 or links.shape[0] != links.shape[1]:
        raise ModelError(f"transitions must have shape (N, N), got {links.shape}")
    for symbol, row in scores.items():
        if row.shape != (len(links),):
            raise ModelError(
                f"the symbol {symbol!r} needs {len(links)} emission scores, one for each state of the "
                f"transitions; got an array of shape {row.shape}"
            )
