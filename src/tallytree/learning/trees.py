"""Parsing as a training problem: sentences with their trees, and the trees that most violate the margin."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from tallytree.learning.examples import of_each
from tallytree.learning.inference import Found, Scaling, Task
from tallytree.learning.planes import Features, Floats
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.tree_grammar import Derivation
from tallytree.learning.tree_model import TreeModel
from tallytree.losses import Loss
from tallytree.losses.scaling import checked_scaling, scaled
from tallytree.parsing import Forest, Tree, counted_loss, diverse_k_best, loss_augmented
from tallytree.planning.budget import thread_count
from tallytree.solving import distribution, profile


@dataclass(frozen=True)
class TreeTask(Task):
    """Forests, each with a loss that is bound to its true tree."""

    forests: Sequence[Forest]
    losses: Sequence[Loss]

    def __len__(self) -> int:
        return len(self.forests)

    def _part(self, first: int, last: int) -> TreeTask:
        return TreeTask(self.forests[first:last], self.losses[first:last])

    def _top(self, count: int, scaling: Scaling, threads: int | None) -> list[Found]:
        if count == 1:
            return self._each(partial(_best, scaling=scaling), threads)
        return self._each(partial(_best_of_tallies, count=count, scaling=scaling), threads)

    def _diverse(self, count: int, distance: int, threads: int | None) -> list[Found]:
        return self._each(partial(_far_apart, count=count, distance=distance), threads)

    def _each(self, find: Callable[..., Found], threads: int | None) -> list[Found]:
        with ThreadPoolExecutor(thread_count(threads)) as pool:  # charts are built natively
            return list(pool.map(find, self.forests, self.losses))


def _best(forest: Forest, loss: Loss, scaling: Scaling) -> Found:
    best = loss_augmented(forest, loss, scaling)
    return [(best.tree, best.loss)]


def _best_of_tallies(forest: Forest, loss: Loss, count: int, scaling: Scaling) -> Found:
    """Return the best tree of each of the best tallies of one chart."""
    kind, counted, right = checked_scaling(scaling, loss), counted_loss(loss), forest.score(loss.truth)

    def objective(score: Any, *tallies: Any) -> Any:
        return scaled(kind, counted.value(*tallies), score - right)

    parses = profile(forest, counted.statistics).top(count, objective)
    return [(one.tree, float(loss(one.tree))) for one in parses]


def _far_apart(forest: Forest, loss: Loss, count: int, distance: int) -> Found:
    return [(one.tree, float(loss(one.tree))) for one in diverse_k_best(forest, count, distance)]


class TreeProblem(TrainingProblem):
    """Sentences with their trees.

    Parameters
    ----------
    trees : sequence of Tree
        The true tree of each sentence; it must be derivable by the grammar.
    scorer : TreeModel
        Grammar, attributes and prior.
    loss : Loss
        A recipe of a loss of trees, such as ``tallytree.losses.FBeta()``.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.learning import TreebankGrammar, TreeFeatures, TreeModel, TreeProblem, train
    >>> trees = [
    ...     tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))"),
    ...     tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB swim)))"),
    ... ]
    >>> counted = TreebankGrammar.of(trees)
    >>> scorer = TreeModel(counted, TreeFeatures.of(trees, counted))
    >>> problem = TreeProblem(trees, scorer, tt.losses.FBeta())
    >>> found = train(problem, C=1.0)
    >>> problem.model(1, found.weights).best().tree
    Tree('(S (NP (NN fish)) (VP (VB swim)))')
    """

    def __init__(self, trees: Sequence[Tree], scorer: TreeModel, loss: Loss) -> None:
        self.loss, self.scorer, self._trees = loss, scorer, list(trees)
        self.dimension = scorer.dimension
        self._right = list(of_each(self._trees, scorer.counted.derivation))
        self._losses = [loss.against(tree) for tree in self._trees]
        self._sentences = [scorer.sentence(tree.words) for tree in self._trees]

    def _steps(self, example: int, tree: Tree) -> Derivation:
        known = tree is self._trees[example]
        return self._right[example] if known else self.scorer.counted.derivation(tree)

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self._trees)

    def truth(self, example: int) -> Tree:
        """Return the true tree of a sentence."""
        return self._trees[example]

    def model(self, example: int, weights: Floats) -> Forest:
        """Return the forest of a sentence."""
        return self.models([example], weights)[0]

    def models(self, examples: Sequence[int], weights: Floats) -> list[Forest]:
        """Return the forests of several sentences."""
        return list(self.scorer.forests([self._sentences[example] for example in examples], weights))

    def log_partition(self, example: int, weights: Floats) -> tuple[float, Features]:
        """Return the log of the sum of ``exp F`` over all trees of a sentence, and the expected features."""
        sentence = self._sentences[example]
        (forest,) = self.scorer.forests([sentence], weights)
        log_sum, counts = forest.sums()
        return log_sum, self.scorer.expected(sentence, forest, counts)

    def tallied(
        self, example: int, weights: Floats, objective: Callable[[Floats, Floats], tuple[float, Floats]]
    ) -> tuple[float, Features]:
        """Return an objective of the losses of all trees of a sentence, and its gradient.

        `objective`: takes the log-partitions of all tallies and their losses; returns its value and its
        derivatives with respect to the log-partitions.
        """
        sentence = self._sentences[example]
        (forest,) = self.scorer.forests([sentence], weights)
        counted = counted_loss(self.loss_of(example))
        spread = distribution(forest, counted.statistics)
        value, gains = objective(spread.log_partitions, np.asarray(counted.value(*spread.tallies.T), float))
        return value, self.scorer.expected(sentence, forest, spread.step_counts(gains))

    def task(self, examples: Sequence[int], weights: Floats) -> TreeTask:
        """Return the inference task of several sentences."""
        return TreeTask(self.models(examples, weights), [self.loss_of(example) for example in examples])

    def features(self, example: int, labelling: Tree) -> Features:
        """Return the features of a tree."""
        return self.scorer.features_of(self._sentences[example], self._steps(example, labelling))

    def offset(self, example: int, labelling: Tree) -> float:
        """Return the grammar's own score of a tree."""
        return self.scorer.fixed(self._sentences[example], self._steps(example, labelling))

    def loss_of(self, example: int) -> Loss:
        """Return the loss of a sentence, bound to its true tree."""
        return self._losses[example]

    def cost(self, example: int, labelling: Tree) -> float:
        """Return the loss of a tree."""
        return float(self.loss_of(example)(labelling))

    def fingerprint(self) -> str:
        """Return a digest of the trees, the features, the grammar and the loss."""
        return self._digest(without=("_right", "_losses"))  # derived from the others
