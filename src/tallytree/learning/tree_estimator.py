"""Shared by tree estimators: the grammar, features of spans and words, parses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import Any, NoReturn

import numpy as np
from sklearn.utils.validation import check_is_fitted

from tallytree import parsing
from tallytree.answers.tally_table import Where
from tallytree.bulk.jobs import Errors
from tallytree.errors import InfeasibleError, ModelError
from tallytree.learning.decoding import Decoder, attempted
from tallytree.learning.examples import of_each
from tallytree.learning.labels import Labels
from tallytree.learning.structured_estimator import StructuredEstimator
from tallytree.learning.tree_features import TreeFeatures
from tallytree.learning.tree_grammar import Binarisation, TreebankGrammar
from tallytree.learning.tree_model import TreeModel
from tallytree.learning.trees import TreeProblem
from tallytree.losses import Loss, SymmetricDifference, as_loss
from tallytree.parsing import Forest, Grammar, Tree, TreeStatistic, score_brackets
from tallytree.parsing.binarise import Tail
from tallytree.planning.budget import thread_count


class TreeEstimator(StructuredEstimator):
    """Base class of the tree estimators; use one of its subclasses."""

    horizontal: int | None
    vertical: int
    tail: Tail
    prior: float
    smoothing: float
    rare: int
    hashed: int | None
    min_count: int

    model_: TreeModel

    _noun = "trees"

    @property
    def grammar_(self) -> Grammar:
        """The plain grammar."""
        return self.model_.counted.grammar

    def _recipe(self) -> Loss:
        return SymmetricDifference() if self.loss is None else as_loss(self.loss, background=None)

    def _learn(self, X: Sequence[Any], y: Sequence[Any]) -> None:
        trees = self._truths(X, y)
        binarisation = Binarisation(self.horizontal, self.vertical, self.tail)
        counted = TreebankGrammar.of(trees, binarisation, smoothing=self.smoothing, rare=self.rare)
        features = TreeFeatures.of(trees, counted, hashed=self.hashed, min_count=self.min_count)
        self.model_ = TreeModel(counted, features, self.prior)
        self.labels_ = Labels(counted.grammar.labels, len(counted.grammar.labels))

    def _truths(self, X: Sequence[Any], y: Sequence[Any]) -> list[Tree]:
        for number, (words, tree) in enumerate(zip(of_each(X, _words), y, strict=True)):
            if not isinstance(tree, Tree):
                raise ModelError(
                    f"example {number}: y must contain trees, as parsing.parse_tree returns; got {tree!r}"
                )
            if words != tree.words:
                raise ModelError(f"example {number} has the words {words}, but its tree is over {tree.words}")
        return list(y)

    def _problem(self, X: Sequence[Any], truths: list[Any], loss: Loss) -> TreeProblem:
        return TreeProblem(truths, self.model_, loss)

    def _check_fit(self) -> None:
        super()._check_fit()
        if not isinstance(self.model_, TreeModel) or len(self.weights_) != self.model_.dimension:
            raise ModelError(
                f"there are {len(self.weights_)} weights, which do not match its grammar and features"
            )

    def forest(self, words: str | Sequence[str]) -> Forest:
        """Return the forest of a sentence with learned scores, for profiles and constraints.

        Parameters
        ----------
        words : str or sequence of str
            The sentence; a string is split at whitespace.
        """
        check_is_fitted(self, "weights_")
        return next(self._models([words]))

    def _models(self, X: Sequence[Any]) -> Iterator[Forest]:
        for words in X:
            yield from self.model_.forests([self.model_.sentence(_words(words))], self.weights_)

    def predict(
        self,
        X: Sequence[Any],
        *,
        decode: Decoder | None = None,
        where: Where = None,
        errors: Errors = "raise",
    ) -> list[Any]:
        """Predict a tree for each sentence; None if the grammar has none.

        Parameters
        ----------
        X : sequence of sentences
            Each a sequence of words, or a string that is split at whitespace.
        decode : Decoder, optional
            :class:`BestDecoder` by default; :class:`KBestDecoder` returns lists, :class:`MaxBrackets` the
            tree with the largest expected number of correct constituents. Sentences are parsed on several
            threads, so your own decoder may be called from several of them at once.
        where : Constraint or str, optional
            A constraint on every tree, such as ``tt.parsing.count("NP") <= 3``, or ``"NP <= 3"``.
        errors : {"raise", "return"}
            What to do if no tree of a sentence satisfies the constraint, or if its tables exceed the memory
            limit: raise the first such error, or return each in place of the prediction.

        Raises
        ------
        InfeasibleError
            No tree of a sentence satisfies the constraint, unless ``errors="return"``.
        """
        return super().predict(X, decode=decode, where=where, errors=errors)

    def _predicted(self, X: Sequence[Any], decoder: Decoder, where: Where, errors: Errors) -> list[Any]:
        def predicted(number: int, words: Any) -> Any:
            return attempted(lambda: _decoded(decoder, next(self._models([words])), where), number, errors)

        with ThreadPoolExecutor(thread_count(None)) as pool:  # charts are built natively, without the GIL
            return list(pool.map(predicted, count(), of_each(X, _words)))

    def _count(self, label: str) -> TreeStatistic:
        return parsing.count(label, name=label)

    def score(self, X: Sequence[Any], y: Sequence[Any]) -> float:
        """Return F1 of labelled brackets; see :func:`tallytree.parsing.score_brackets`."""
        X, y = self._paired(X, y)
        return score_brackets(self._truths(X, y), self.predict(X)).f1

    def bound(self, *arguments: Any, **options: Any) -> NoReturn:
        """Raise an error: the bound counts mismatches by variable, and trees have none."""
        raise ModelError(
            "there is no generalisation bound for trees: tallytree.bounds compares labellings variable by "
            "variable, and the spans of a tree are not variables"
        )


def _words(sentence: Any) -> tuple[str, ...]:
    given = sentence.split() if isinstance(sentence, str) else sentence
    words = tuple(given) if isinstance(given, Iterable) else ()
    wrong = [word for word in words if not isinstance(word, str)]
    if wrong or not words:
        raise ModelError(
            "a sentence must be a sequence of words, or a string of words with spaces; got "
            + (f"{wrong[0]!r} for a word" if wrong else repr(sentence))
        )
    return words


def _decoded(decoder: Decoder, forest: Forest, where: Where) -> Any:
    try:
        return decoder(forest, where)
    except InfeasibleError:
        if where is None or forest.log_partition() == -np.inf:
            return None
        raise
