"""The tally of a random tree, ``p(tree) ∝ exp(score)``: the same chart over log-sum-exp.

Its last cells hold ``log Σ exp(score)`` over the trees with each tally. A downward walk that samples instead
of maximising gives exact samples, optionally given a tally; propagating probabilities gives expected counts.
The probability of a tree with several derivations is the sum over them.
"""

from __future__ import annotations

from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.algebra import LogSumExp
from tallytree.answers.tallies import Tally
from tallytree.answers.tally_probabilities import TallyProbabilities, draws, generator_of
from tallytree.errors import BudgetError, ModelError
from tallytree.parsing.derivation import steps_tree
from tallytree.parsing.expected import Expectations, expectations_of
from tallytree.parsing.forest import Forest
from tallytree.planning.budget import readable_bytes
from tallytree.running.charts import ChartMessages, StepCounts
from tallytree.running.engine import Root
from tallytree.trees import Tree


class TreeDistribution(TallyProbabilities):
    """The exact distribution of statistics of a random tree, as returned by :func:`distribution`.

    Attributes
    ----------
    forest : Forest
        The trees of the sentence.
    statistics : tuple of TreeStatistic
        The statistics that were counted, in order.
    plan : TreePlan
        The plan of the chart.
    tallies : (S, P) int64 array
        The attainable tallies in lexicographic order.
    log_partitions : (S,) float64 array
        ``log Σ exp(score)`` over the trees with each tally.
    probabilities : (S,) float64 array
        The probability of each.
    log_partition : float
        ``log Σ exp(score)`` over all trees: the inside score of the sentence.
    """

    noun = "tree"
    _none_left = "the grammar has no tree for the sentence"

    @property
    def forest(self) -> Forest:
        """The forest."""
        forest: Forest = self.query.subject
        return forest

    def mean(self) -> NDArray[np.float64]:
        """Return the expected value of each statistic."""
        expected: NDArray[np.float64] = self.probabilities @ self.tallies
        return expected

    def marginal(self, statistic: int | str) -> dict[int, float]:
        """Return the probability of each value of one statistic, by its position or its name.

        Examples
        --------
        >>> import tallytree as tt
        >>> rules = {("N", "N", "N"): 0.0, ("N", "M", "N"): 0.0, ("M", "N", "N"): 0.0}
        >>> grammar = tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N")
        >>> ms = tt.parsing.count("M", name="ms")
        >>> tt.parsing.distribution(tt.parsing.Forest(grammar, "a a a"), [ms]).marginal("ms")
        {0: 0.666..., 1: 0.333...}
        """
        if statistic not in self._names and statistic not in range(len(self._names)):
            raise ModelError(f"unknown statistic {statistic!r}; expected one of ({', '.join(self._names)})")
        column = self._names.index(statistic) if isinstance(statistic, str) else statistic
        values, places = np.unique(self.tallies[:, column], return_inverse=True)
        sums = np.bincount(places, weights=self.probabilities)
        return dict(zip(values.tolist(), sums.tolist(), strict=True))

    @overload
    def sample(
        self, size: None = None, *, tally: Tally | None = None, rng: Any = None, **named: int
    ) -> Tree: ...
    @overload
    def sample(
        self, size: int, *, tally: Tally | None = None, rng: Any = None, **named: int
    ) -> list[Tree]: ...
    def sample(
        self, size: int | None = None, *, tally: Tally | None = None, rng: Any = None, **named: int
    ) -> Tree | list[Tree]:
        """Draw exact samples, optionally given a tally.

        Parameters
        ----------
        size : int, optional
            The number of samples, returned as a list; by default a single tree.
        tally : sequence of int, mapping of str to int, or int, optional
            Sample among the trees with this tally, given in order or by name; an integer if there is one
            statistic.
        rng : numpy Generator, int or None
            The random generator, or its seed.
        **named : int
            The tally by name: ``ms=1`` for ``tally={"ms": 1}``.

        Examples
        --------
        >>> import tallytree as tt
        >>> rules = {("N", "N", "N"): 0.0, ("N", "M", "N"): 0.0, ("M", "N", "N"): 0.0}
        >>> grammar = tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N")
        >>> found = tt.parsing.distribution(tt.parsing.Forest(grammar, "a a a"), [tt.parsing.count("M")])
        >>> found.sample(tally=1, rng=0)
        Tree('(N (M (N a) (N a)) (N a))')
        """
        count, generator, run = draws(size), generator_of(rng), self._loaded()
        cells = self._drawn_cells(count, self._sampled_row(named, tally), generator)
        derived = run.sample(cells, generator.random((count, run.choices)))
        trees = [steps_tree(self.plan.compiled, steps, self.forest.words) for steps in derived]
        return trees[0] if size is None else trees

    def expectations(self, *values: Tally | None, tally: Tally | None = None, **named: int) -> Expectations:
        """Return expected counts of constituents, rules and tags, optionally given a tally.

        The tally is given in order, by name, or whole as ``tally=``: a sequence, a mapping, or an integer if
        there is one statistic.

        Raises
        ------
        BudgetError
            A second table of the chart's size exceeds the memory limit.

        Examples
        --------
        >>> import tallytree as tt
        >>> rules = {("N", "N", "N"): 0.0, ("N", "M", "N"): 0.0, ("M", "N", "N"): 0.0}
        >>> grammar = tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N")
        >>> found = tt.parsing.distribution(tt.parsing.Forest(grammar, "a a a"), [tt.parsing.count("M")])
        >>> found.expectations(tally=[0]).constituents[0, 2]  # M, N
        array([0. , 0.5])
        """
        row = self._given(values, named, tally)
        if row is None:
            return self.gradient(self.probabilities)
        chosen = np.zeros(len(self.tallies))
        chosen[row] = 1.0
        return self.gradient(chosen)

    def gradient(self, weights: ArrayLike) -> Expectations:
        """Return the derivatives of a function of ``log_partitions`` with respect to all scores.

        Parameters
        ----------
        weights : array of shape (S,)
            The derivative of the function with respect to the log-partition of each tally; of any sign. With
            probabilities, the results are expected counts.

        Raises
        ------
        BudgetError
            A second table of the chart's size exceeds the memory limit.
        """
        return expectations_of(self.forest.compiled, self.step_counts(weights))

    def step_counts(self, weights: ArrayLike) -> StepCounts:
        """Return :meth:`gradient` for tags, rules and chains of unary rules over spans."""
        arena = self.plan.layout.arena_bytes
        if self.plan.peak_bytes + arena > self.plan.limit:
            raise BudgetError(
                f"expectations need another {readable_bytes(arena)} besides the chart; the limit is "
                f"{readable_bytes(self.plan.limit)}. Bound or cap statistics, or raise memory_limit="
            )
        run = self._loaded()
        cells = np.zeros(len(run.values))
        cells[self._cells] = self._spread(np.asarray(weights, dtype=np.float64))
        return _without_levels(run.expectations(cells), self.plan.compiled.levels)

    # --- inside -------------------------------------------------------------------------------------------

    def _run(self) -> ChartMessages:
        scores = self.plan.compiled.levelled(self.forest.scores)
        messages: ChartMessages = self.plan.run(scores, LogSumExp(), self._options.backend)
        return messages

    def _root(self) -> Root:
        root: Root = self.plan.root(self._loaded())
        return root


def _without_levels(counts: StepCounts, levels: int) -> StepCounts:
    """Add up entries that only differ by depth: levels are adjacent."""
    words, rules, chains = counts
    return (
        words.reshape(len(words), -1, levels).sum(axis=2),
        rules.reshape(-1, levels).sum(axis=1),
        chains.reshape(-1, levels, chains.shape[1]).sum(axis=1),
    )
