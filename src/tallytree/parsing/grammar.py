"""Weighted context-free grammars: rules with one or two children, and a lexicon.

The score of a tree is the sum of the scores of its rules and words; log-probabilities make it a probabilistic
grammar. Symbols are named as in :func:`binarise`, so that trees are returned in their original form:
``@…`` adds no label to a tree, ``NP^S`` the label NP, ``S+VP`` two labels.

Unary rules can be applied repeatedly, so trees with more than ``max_chain`` of them in a row over the same
words are excluded: otherwise the number of constituents, and with positive scores the score,
would be unbounded. Rules of symbols without a label do not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import log
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.parsing.binarise import Tail, Unaries, binarise, labels_of
from tallytree.parsing.lexicon import CountedWords, Lexicon, TaggedWords, check_score
from tallytree.trees import Tree
from tallytree.values import read_only

ROOT = ""  # the unlabelled symbol above the trees of a treebank


class Grammar:
    """A weighted grammar.

    Parameters
    ----------
    binary : mapping of (parent, left, right) to score
        Rules with two children.
    unary : mapping of (parent, child) to score
        Rules with one child.
    words : mapping of tag to mapping of word to score, or Lexicon
        The words below each tag.
    root : str
        The symbol at the top of every tree.
    unknown : mapping of tag to score, optional
        For words that are not in ``words``.
    max_chain : int
        The maximum number of unary rules in a row.

    Attributes
    ----------
    symbols : tuple of str
        In the order of their numbers; ``numbers`` maps names to numbers.
    labels : tuple of str
        The labels of constituents, in the order of their numbers.
    binary, unary : int32 arrays, [rule][symbol]
        The rules in the order of their numbers: parent, then children.
    binary_scores, unary_scores : float64 arrays
        Their scores.

    Examples
    --------
    >>> import tallytree as tt
    >>> grammar = tt.parsing.Grammar(
    ...     {("S", "NP", "VP"): 0.0, ("VP", "VB", "NP"): -0.5},
    ...     {("NP", "NN"): -0.1, ("VP", "VB"): -0.9},
    ...     {"NN": {"fish": -1.0, "eels": -2.0}, "VB": {"fish": -3.0, "eat": -1.0}},
    ...     root="S",
    ... )
    >>> tt.parsing.Forest(grammar, "eels eat fish").best().tree
    Tree('(S (NP (NN eels)) (VP (VB eat) (NP (NN fish))))')
    """

    symbols: tuple[str, ...]
    labels: tuple[str, ...]
    numbers: dict[str, int]
    root: int
    max_chain: int
    lexicon: Lexicon
    binary: NDArray[np.int32]
    unary: NDArray[np.int32]
    binary_scores: NDArray[np.float64]
    unary_scores: NDArray[np.float64]

    def __init__(
        self,
        binary: Mapping[tuple[str, str, str], float],
        unary: Mapping[tuple[str, str], float],
        words: Mapping[str, Mapping[str, float]] | Lexicon,
        *,
        root: str,
        unknown: Mapping[str, float] | None = None,
        max_chain: int = 2,
    ) -> None:
        if max_chain < 0:
            raise ModelError(f"max_chain must be a non-negative number of unary rules, got {max_chain}")
        _check_rules(binary, 3)
        _check_rules(unary, 2)
        self.lexicon = TaggedWords(words, unknown) if isinstance(words, Mapping) else words
        self.max_chain = max_chain
        names = {root, *self.lexicon.tags, *(s for rule in (*binary, *unary) for s in rule)}
        self.symbols = tuple(sorted(names))
        self.numbers = numbers = {name: i for i, name in enumerate(self.symbols)}
        self.root = numbers[root]
        self.binary, self.binary_scores = _rules(binary, numbers, 3)
        self.unary, self.unary_scores = _rules(unary, numbers, 2)
        parents = {rule[0] for rule in (*binary, *unary)}
        self.labels = tuple(
            sorted({label for name in names for label in labels_of(name)[: None if name in parents else -1]})
        )
        self._check_labels()
        self.made: dict[int, Any] = {}  # compiled forms, by levels of depth

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "made": {}}

    def _check_labels(self) -> None:
        for tag in sorted(self.lexicon.tags):
            if not labels_of(tag):
                raise ModelError(
                    f"the tag {tag!r} has no label, so its words would not appear in a tree: a name that "
                    "begins with '@' is for a part of a constituent. Give the tag another name"
                )
        for parent, child in self.unary.tolist():
            if not labels_of(self.symbols[child]):
                raise ModelError(
                    f"the rule {self.symbols[parent]!r} → {self.symbols[child]!r} has an unlabelled symbol "
                    "as its only child; give the parent the rules of that symbol instead"
                )

    @classmethod
    def from_treebank(
        cls,
        trees: Iterable[Tree],
        *,
        horizontal: int | None = 2,
        vertical: int = 2,
        unaries: Unaries = "collapse",
        tail: Tail = "pair",
        max_chain: int = 2,
        smoothing: float = 1.0,
        rare: int = 5,
    ) -> Grammar:
        """Estimate a grammar from a treebank: scores are logarithms of relative frequencies.

        Parameters
        ----------
        trees : iterable of Tree
            As returned by :func:`read_treebank`.
        horizontal, vertical, unaries, tail
            How trees are binarised, see :func:`binarise`.
        max_chain : int
            The maximum number of unary rules in a row, if they are kept.
        smoothing, rare
            For words, see :class:`CountedWords`.

        Examples
        --------
        >>> import tallytree as tt
        >>> tree = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB swim)))")
        >>> grammar = tt.parsing.Grammar.from_treebank([tree])
        >>> tt.parsing.Forest(grammar, "eels swim").best().tree
        Tree('(S (NP (NN eels)) (VP (VB swim)))')
        """
        binary: Counter[tuple[str, ...]] = Counter()
        unary: Counter[tuple[str, ...]] = Counter()
        tagged: list[tuple[str, str]] = []
        for tree in trees:
            whole = Tree(ROOT, [tree])
            options: dict[str, Any] = {"horizontal": horizontal, "vertical": vertical}
            for node in binarise(whole, unaries=unaries, tail=tail, **options).nodes():
                children = node.tree.children
                if children:
                    counts = binary if len(children) == 2 else unary
                    counts[(node.tree.label, *(child.label for child in children))] += 1
            tagged += tree.tagged
        if not tagged:
            raise ModelError("a grammar needs at least one tree to count rules on")
        parents = Counter[str]()
        for counts in (binary, unary):
            for rule, count in counts.items():
                parents[rule[0]] += count

        def scores(counts: Counter[tuple[str, ...]]) -> dict[Any, float]:
            return {rule: log(count / parents[rule[0]]) for rule, count in counts.items()}

        lexicon = CountedWords(tagged, smoothing=smoothing, rare=rare)
        return cls(scores(binary), scores(unary), lexicon, root=ROOT, max_chain=max_chain)

    def word_scores(self, words: Sequence[str]) -> NDArray[np.float64]:
        """Return the score of each word below each symbol, ``-inf`` if impossible."""
        result = np.full((len(words), len(self.symbols)), -np.inf)
        for i, word in enumerate(words):
            for tag, score in self.lexicon.scores(word, i == 0).items():
                result[i, self.numbers[tag]] = score
        return result

    def __repr__(self) -> str:
        rules = f"{len(self.binary)} binary and {len(self.unary)} unary rules"
        return f"Grammar({len(self.symbols)} symbols, {rules})"


def _check_rules(rules: Mapping[Any, float], size: int) -> None:
    for rule, score in rules.items():
        if not isinstance(rule, tuple) or len(rule) != size or not all(isinstance(s, str) for s in rule):
            raise ModelError(f"a rule must be a tuple of {size} symbols, got {rule!r}")
        check_score(score, f"rule {rule}")


def _rules(
    rules: Mapping[Any, float], numbers: Mapping[str, int], size: int
) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
    rows = sorted(([numbers[name] for name in rule], float(score)) for rule, score in rules.items())
    array = np.array([row for row, _ in rows], dtype=np.int32).reshape(len(rows), size)
    return read_only(array), read_only(np.array([score for _, score in rows], dtype=np.float64))
