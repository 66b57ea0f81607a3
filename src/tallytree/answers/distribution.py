"""The tally under the Gibbs distribution ``p(y) ∝ exp(F(y))``: the same plan over other algebras.

Over log-sum-exp the last table is ``log Σ { exp F(y) : G(y) = l }`` for every tally ``l``; the downward pass
gives marginals, and a downward walk that samples instead of maximising gives exact samples. Over the integers
it is the exact number of labellings with each tally: the pass is run modulo sufficiently many primes, and the
residues are combined by the Chinese remainder theorem.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.answers.exact_counts import from_residues, primes_for
from tallytree.answers.root_table import GraphTable
from tallytree.answers.tallies import Tally
from tallytree.answers.tally_probabilities import TallyProbabilities, draws, generator_of, normalised
from tallytree.errors import ModelError
from tallytree.model.model import Model
from tallytree.model.rounding import levelled
from tallytree.running.graphs import (
    LOG_SUM_EXP,
    GraphMessages,
    differentiated,
    pass_downward,
    pass_upward,
    residues,
    sampled,
)


class Distribution(GraphTable, TallyProbabilities):
    """The exact distribution of the tally, as returned by :func:`distribution`.

    With a constraint, everything is conditional on it: ``tallies`` has only those that satisfy it, and
    probabilities, samples and marginals are those of labellings that do.

    Attributes
    ----------
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    log_partitions : (S,) float64 array
        ``log Σ exp F(y)`` over the labellings with each tally.
    """

    _none_left = "every labelling is forbidden by a -inf factor of the model or by fixed= or allowed="

    def _run(self) -> GraphMessages:
        model, self._offset = self._level
        return pass_upward(self.plan, model, self._options, LOG_SUM_EXP)

    @cached_property
    def _level(self) -> tuple[Model, float]:
        """The model without the score common to all its labellings, and that score."""
        return levelled(self.model)

    @cached_property
    def counts(self) -> tuple[int, ...]:
        """The exact number of allowed labellings with each tally.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((100, 3)), np.zeros((3, 3)))
        >>> sum(tt.distribution(model, [tt.count(state=1)]).counts) == 3**100
        True
        """
        bits = sum(math.log2(n) for n in self.reduction.original.cardinalities.tolist())
        primes = primes_for(bits)
        remainders = residues(self.plan, self.model, self._native_cells(), primes, self._options.threads)
        numbers = from_residues(primes, [r.tolist() for r in remainders])
        return tuple(sum(numbers[self._cells_of(row)]) for row in range(len(self)))

    def _native_cells(self) -> NDArray[np.int64]:
        # the reference backend numbers its root cells differently
        if self._options.backend == "native":
            return self._cells
        cells, tallies, _ = pass_upward(self.plan, self.model).root()
        return cells[self._satisfying(tallies)]

    def marginals(
        self, *values: Tally | None, tally: Tally | None = None, **named: int
    ) -> list[NDArray[np.float64]] | NDArray[np.float64]:
        """Return the probability of each state of each variable, optionally given a tally.

        The tally is given in order, by name, or whole as ``tally=``: a sequence, a mapping, or an integer if
        there is one statistic. Returns an array of shape (M, N), or (rows, columns, N) for grids; if
        variables differ in their number of states, a list with one array per variable.

        If only one tally is needed, ``distribution(…, where=…)`` is faster: it computes nothing else.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
        >>> d = tt.distribution(model, [tt.count(state=1, name="ones")])
        >>> d.marginals(ones=1)[0], d.marginals(1)[0]
        (array([0.75, 0.25]), array([0.75, 0.25]))
        """
        row = self._given(values, named, tally)
        weights = np.full(len(self._loaded().values), -np.inf)
        weights[self._cells if row is None else self._cells[self._cells_of(row)]] = 0.0
        total = self._relative_partition if row is None else float(self._relative_logs[row])
        with self._lock:
            logs = pass_downward(self._loaded(), weights, self._level[0], self.plan)
        ends = np.cumsum(self.model.cardinalities)
        tables = [normalised(part, total) for part in np.split(logs, ends[:-1])] if len(ends) else []
        return self.reduction.original.arranged(self.reduction.fold(tables, np.add, 0.0))

    def gradient(self, weights: ArrayLike) -> list[NDArray[np.float64]]:
        """Return the derivatives of a function of ``log_partitions`` with respect to every table entry.

        If the weights are the probabilities of the tallies, these are the expected entries: the probability
        of each entry of each factor. Any function takes one upward and one downward pass.

        Parameters
        ----------
        weights : array of shape (S,)
            The derivative of the function with respect to the log-partition of each tally; of any sign.

        Returns
        -------
        list of arrays
            One for each block of ``model.blocks``, with the shape of its tables. For a table shared by
            several factors, the sum over these factors.

        Examples
        --------
        How the expected number of ones changes with each score:

        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
        >>> d = tt.distribution(model, [tt.count(state=1)])
        >>> ones = d.tallies[:, 0]
        >>> d.gradient(d.probabilities * (ones - d.probabilities @ ones))[0]
        array([[-0.25,  0.25],
               [-0.25,  0.25],
               [-0.25,  0.25]])
        """
        given = np.asarray(weights, dtype=np.float64)
        if given.shape != (len(self.tallies),) or not np.isfinite(given).all():
            raise ModelError(
                f"weights must be one finite number for each of the {len(self.tallies)} tallies, got an "
                f"array of shape {given.shape}"
            )
        cells = np.zeros(len(self._messages.values))
        cells[self._cells] = self._spread(given)
        with self._lock:
            return differentiated(self._messages, cells, self.plan)

    def sample(
        self, size: int | None = None, *, tally: Tally | None = None, rng: Any = None, **named: int
    ) -> NDArray[np.int64]:
        """Draw exact samples, optionally given a tally.

        Parameters
        ----------
        size : int, optional
            The number of samples; the result has shape (size, M). By default one sample of shape (M,). For
            grids, M is replaced by (rows, columns). ``model.labels(samples)`` has the names of the states.
        tally : sequence of int, mapping of str to int, or int, optional
            Sample among the labellings with this tally, given in order or by name; an integer if there is
            one statistic.
        rng : numpy Generator, int or None
            The random generator, or its seed.
        **named : int
            The tally by name: ``ones=2`` for ``tally={"ones": 2}``.

        Examples
        --------
        >>> import numpy as np
        >>> import tallytree as tt
        >>> model = tt.Model.chain(np.zeros((6, 2)), np.zeros((2, 2)))
        >>> d = tt.distribution(model, [tt.count(state=1, name="ones")])
        >>> d.sample(3, ones=2, rng=0).sum(axis=1)
        array([2, 2, 2])
        """
        generator, count = generator_of(rng), draws(size)
        cells = self._drawn_cells(count, self._sampled_row(named, tally), generator)
        uniforms = generator.random((count, len(self.plan.tables)))
        with self._lock:
            drawn = sampled(self._loaded(), cells, uniforms)
        labellings = self.reduction.lift_all(drawn).reshape(count, *self.reduction.original.shape)
        return labellings[0] if size is None else labellings

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_level"}
