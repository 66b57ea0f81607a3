"""All parses of one sentence, with their scores: the counterpart of a model.

A :class:`Forest` has a grammar, words and scores. It has methods for the best tree, the sum
over all trees, expected counts, and the tree with the largest expected number of correct constituents.
Statistics are handled by a profile, as for models.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.algebra import Algebra, LogSumExp, MaxPlus
from tallytree.answers.certificate import BEST, Claim
from tallytree.answers.certification import certify
from tallytree.errors import InfeasibleError, ModelError
from tallytree.losses.base import is_number
from tallytree.model.pairs import LARGEST_SCORE, are_scores
from tallytree.parsing.compiled import compiled
from tallytree.parsing.derivation import scores_of_only, steps_score, steps_tree
from tallytree.parsing.expected import Expectations, bracket_gains, expectations_of
from tallytree.parsing.grammar import Grammar
from tallytree.parsing.parse import ChartPrice, Parse, no_tally, tree_certificate
from tallytree.planning.budget import default_memory_limit
from tallytree.planning.charts import ChartLayout, spans
from tallytree.running.charts import ChartMessages, Scores, StepCounts, run_chart
from tallytree.trees import Tree
from tallytree.values import counted, is_masked, read_only


class Forest:
    """All trees of a sentence under a grammar.

    Parameters
    ----------
    grammar : Grammar
        The grammar.
    words : str or sequence of str
        The sentence; a string is split at whitespace.
    span_scores : array, [start][end][label], optional
        Added for each constituent ``(label, start, end)``, with labels in the grammar's order and ``end``
        exclusive: shape ``(n + 1, n + 1, len(grammar.labels))``.
    binary_scores, unary_scores : arrays, [start][end][rule], optional
        Added for each rule over each span.
    word_scores : array, [word][symbol], optional
        Replaces the lexicon's scores; ``-inf`` for symbols that are not tags.
    """

    def __init__(
        self,
        grammar: Grammar,
        words: str | Sequence[str],
        *,
        span_scores: ArrayLike | None = None,
        binary_scores: ArrayLike | None = None,
        unary_scores: ArrayLike | None = None,
        word_scores: ArrayLike | None = None,
    ) -> None:
        if not isinstance(grammar, Grammar):
            raise ModelError(f"a forest needs a tallytree.parsing.Grammar, got {grammar!r}")
        self.grammar = grammar
        self.words = _sentence(words)
        self.compiled = compiled(grammar)
        n, c = len(self.words), self.compiled
        self.starts, self.ends = spans(n)
        rules = grammar.binary_scores[:, None]
        if binary_scores is not None:
            rules = rules + self._anchored(binary_scores, "binary_scores", len(grammar.binary))
        unary = grammar.unary_scores[:, None]
        if unary_scores is not None:
            unary = unary + self._anchored(unary_scores, "unary_scores", len(grammar.unary))
        chains = c.chain_sums(unary)
        if span_scores is not None:
            chains = chains + self._bag_scores(
                self._anchored(span_scores, "span_scores", len(grammar.labels))
            )
        given = grammar.word_scores(self.words) if word_scores is None else self._words(word_scores)
        self.scores = Scores(*(read_only(np.ascontiguousarray(a)) for a in (given, rules, chains)))

    # --- scores -------------------------------------------------------------------------------------------

    def _anchored(self, scores: ArrayLike, name: str, last: int) -> NDArray[np.float64]:
        n = len(self.words)
        array = _numbers(scores, name)
        if array.shape != (n + 1, n + 1, last):
            raise ModelError(
                f"{name} has shape {array.shape}; for {n} words it must be {(n + 1, n + 1, last)}"
            )
        chosen = array[self.starts, self.ends].T
        _check_scores(chosen, name)
        return chosen

    def _words(self, scores: ArrayLike) -> NDArray[np.float64]:
        array = _numbers(scores, "word_scores").copy()
        shape = (len(self.words), len(self.grammar.symbols))
        if array.shape != shape:
            raise ModelError(f"word_scores must have shape {shape}, got {array.shape}")
        _check_scores(array, "word_scores")
        tags = [name in self.grammar.lexicon.tags for name in self.grammar.symbols]
        if (array[:, ~np.array(tags)] > -np.inf).any():
            raise ModelError("word_scores must be -inf except for tags of the lexicon")
        return array

    def _bag_scores(self, span_scores: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sum of the scores of each chain's labels over each span."""
        labels = ([label for label, _ in bag.labels] for bag in self.compiled.bags)
        sums = np.array([span_scores[chosen].sum(axis=0) for chosen in labels])  # not a product: 0 · -inf
        return self.compiled.spread(sums.reshape(-1, len(self.starts)), len(self.words))

    def rescored(self, scores: Scores) -> Forest:
        """Return the same trees with different scores.

        Raises
        ------
        ModelError
            A score is invalid, perhaps because a large multiple of a loss was added to it.
        """
        for array in (scores.words, scores.rules, scores.chains):
            _check_scores(array, "the forest")
        other = object.__new__(Forest)
        other.__dict__.update(self.__dict__, scores=scores)  # the layout is the same
        return other

    def with_span_scores(self, span_scores: ArrayLike) -> Forest:
        """Return the same trees with `span_scores` added, as in the constructor.

        Forests of one length share everything but these.
        """
        added = self._bag_scores(self._anchored(span_scores, "span_scores", len(self.grammar.labels)))
        chains = read_only(np.ascontiguousarray(self.scores.chains + added))
        return self.rescored(Scores(self.scores.words, self.scores.rules, chains))

    # --- methods without statistics -----------------------------------------------------------------------

    @cached_property
    def _layout(self) -> ChartLayout:
        return ChartLayout.plain(self.compiled.rules, len(self.words), default_memory_limit())

    def _run(self, algebra: Algebra, scores: Scores | None = None) -> ChartMessages:
        return run_chart(self._layout, self.scores if scores is None else scores, algebra=algebra)

    def _no_parse(self) -> InfeasibleError:
        text = " ".join(self.words[:8]) + (" …" if len(self.words) > 8 else "")
        return InfeasibleError(
            f"the grammar has no tree for '{text}': rules are missing, or scores of -inf forbid every tree"
        )

    @property
    def price(self) -> ChartPrice:
        """The cost of a plain chart of the sentence; nothing is built."""
        return ChartPrice.of(self._layout, len(self.grammar.symbols))

    def best(self) -> Parse:
        """Return the tree with the best score.

        Raises
        ------
        InfeasibleError
            The grammar has no tree for the sentence.
        """
        return self._best(self.scores, "score")

    def _best(self, scores: Scores, noun: str) -> Parse:
        run = self._run(MaxPlus(), scores)
        cells, _, values = run.root()
        if not len(cells):
            raise self._no_parse()
        steps = run.decode(int(cells[0]))
        exact, allowance = steps_score(scores, steps)
        certify(
            (float(values[0]), ()),
            (exact, ()),
            allowance,
            source="the chart promises",
            thing="the tree",
            report="This is a bug in tallytree; please report it with the grammar",
        )
        promised, tally = float(values[0]), no_tally()
        proof = tree_certificate(Claim(BEST, noun=noun), exact, promised, allowance, tally, self.price)
        return Parse(exact, exact, tally, steps_tree(self.compiled, steps, self.words), proof)

    def log_partition(self) -> float:
        """Return the logarithm of the sum of ``exp(score)`` over all trees (the inside score).

        For a probabilistic grammar this is the log-probability of the sentence; ``-inf`` if it has no tree.
        """
        values = self._run(LogSumExp()).root()[2]
        return float(values[0]) if len(values) else -np.inf

    def expectations(self) -> Expectations:
        """Return expected counts of constituents, rules and tags (the inside-outside algorithm)."""
        return expectations_of(self.compiled, self._expected())

    def sums(self) -> tuple[float, StepCounts]:
        """Return the log-partition, and the expected count of each step of a derivation."""
        run = self._run(LogSumExp())
        values = run.root()[2]
        if not len(values):
            raise self._no_parse()
        return float(values[0]), run.expectations()

    def _expected(self) -> StepCounts:
        return self.sums()[1]

    def max_bracket(self, penalty: float = 0.0) -> Parse:
        """Return the tree with the largest expected number of correct constituents.

        Parameters
        ----------
        penalty : float
            The penalty per constituent. At 0 the expected number of true positives is maximised, so that even
            unlikely constituents are included; larger values leave them out.

        Returns
        -------
        Parse
            Its value is the expected number of true positives, minus the penalty of each constituent, and
            its certificate refers to this value.
        """
        if not is_number(penalty) or not np.isfinite(penalty):
            raise ModelError(f"penalty must be a finite number, got {penalty!r}")
        plain = self.scores.allowing()
        gains = bracket_gains(self.compiled, self._expected(), penalty)
        chains = np.ascontiguousarray(plain.chains + gains)
        parse = self._best(Scores(plain.words, plain.rules, chains), "sum of expected constituents")
        return replace(parse, score=self.score(parse.tree))

    def score(self, tree: Tree) -> float:
        """Return the score of a tree: that of its best derivation, ``-inf`` if it has none."""
        return self.derived(tree)[0]

    def derived(self, tree: Tree) -> tuple[float, NDArray[np.int32] | None]:
        """Return the score of a tree, and the steps of its best derivation; None if it has none."""
        if not isinstance(tree, Tree):
            raise ModelError(f"expected a tallytree.parsing.Tree, got {tree!r}")
        if tree.words != self.words:
            raise ModelError(f"the tree has the words {tree.words}, but the forest has {self.words}")
        only = scores_of_only(tree, self.compiled, self.scores)
        run = self._run(MaxPlus(), only)
        cells, _, values = run.root()
        return (float(values[0]), run.decode(int(cells[0]))) if len(values) else (-np.inf, None)

    def __len__(self) -> int:
        """Return the number of words."""
        return len(self.words)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in self.__dict__.items() if k not in ("compiled", "_layout")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, compiled=compiled(state["grammar"]))

    def __repr__(self) -> str:
        return f"Forest({counted(len(self.words), 'word')}, {self.grammar!r})"


def _sentence(words: str | Sequence[str]) -> tuple[str, ...]:
    if not isinstance(words, (str, Iterable)):
        raise ModelError(f"a sentence must be a string or a sequence of words, got {words!r}")
    split = tuple(words.split() if isinstance(words, str) else words)
    wrong = next((word for word in split if not isinstance(word, str)), None)
    if not split or wrong is not None:
        raise ModelError(f"a sentence must have at least one word, and words must be strings; got {words!r}")
    return split


def _check_scores(scores: NDArray[np.float64], name: str) -> None:
    if not are_scores(scores):
        raise ModelError(
            f"{name} contains nan, +inf or a score above {LARGEST_SCORE:.0e} in magnitude; scores must be "
            "finite, or -inf to forbid"
        )


def _numbers(scores: ArrayLike, name: str) -> NDArray[np.float64]:
    if is_masked(scores):
        raise ModelError(f"{name} is a masked array with masked entries; fill them with array.filled(…)")
    try:
        return np.asarray(scores, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ModelError(f"{name} must be an array of numbers: {error}") from None
