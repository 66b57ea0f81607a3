"""A grammar estimated from a treebank, as a value, with the conversion of trees to derivations.

A tree has one derivation, because binarisation is unique; so scores of rules are a function of the
tree. The value consists of strings and numbers only, so that it can be stored in files.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import log
from typing import NamedTuple

import numpy as np

from tallytree.errors import ModelError
from tallytree.learning.planes import Floats, Integers
from tallytree.parsing import CountedWords, Grammar, Tree, binarise, labels_of
from tallytree.parsing.binarise import Tail

ROOT = ""


@dataclass(frozen=True)
class Binarisation:
    """How trees are binarised; see :func:`tallytree.parsing.binarise`.

    Chains of unary constituents always become one symbol, so that every tree has one derivation.
    """

    horizontal: int | None = 1
    vertical: int = 1
    tail: Tail = "pair"

    def __call__(self, tree: Tree) -> Tree:
        """Binarise a tree below an unlabelled root."""
        return binarise(
            Tree(ROOT, [tree]), horizontal=self.horizontal, vertical=self.vertical, tail=self.tail
        )


class Derivation(NamedTuple):
    """The derivation of a tree."""

    # the rules, by their numbers in the grammar
    binary: Integers
    unary: Integers
    tags: Integers  # the symbol above each word
    nodes: Integers  # (K, 3): a kind, a start and an end for each kind of each symbol above


@dataclass(frozen=True)
class TreebankGrammar:
    """A grammar estimated from trees.

    Attributes
    ----------
    binarisation : Binarisation
    binary, unary : tuples of (symbols…, log-probability)
        The rules.
    words : tuple of (word, tag, count)
        The words with their tags and counts.
    smoothing, rare
        For the scores of words, see :class:`tallytree.parsing.CountedWords`.

    Examples
    --------
    >>> from tallytree.parsing import parse_tree
    >>> tree = parse_tree("(S (NP (NN fish)) (VP (VB swim)))")
    >>> counted = TreebankGrammar.of([tree])
    >>> counted.grammar
    Grammar(6 symbols, 1 binary and 3 unary rules)
    >>> counted.likely_tags(["fish", "swim"])
    ['NN', 'VB']
    """

    binarisation: Binarisation
    binary: tuple[tuple[str, str, str, float], ...]
    unary: tuple[tuple[str, str, float], ...]
    words: tuple[tuple[str, str, int], ...]
    smoothing: float = 1.0
    rare: int = 5

    def __post_init__(self) -> None:
        rows = (*self.binary, *self.unary, *self.words)
        if not isinstance(self.binarisation, Binarisation) or not all(
            isinstance(symbol, str) for row in rows for symbol in row[:-1]
        ):
            raise ModelError("rules and words of a grammar must be rows of strings followed by a number")
        if not all(type(count) is int and count > 0 for _, _, count in self.words):
            raise ModelError("the counts of words must be positive integers")

    @classmethod
    def of(
        cls,
        trees: Sequence[Tree],
        binarisation: Binarisation | None = None,
        *,
        smoothing: float = 1.0,
        rare: int = 5,
    ) -> TreebankGrammar:
        """Count rules and words on trees."""
        b = Binarisation() if binarisation is None else binarisation
        counted = Grammar.from_treebank(
            trees, horizontal=b.horizontal, vertical=b.vertical, tail=b.tail, smoothing=smoothing, rare=rare
        )
        name = counted.symbols.__getitem__
        binary = zip(counted.binary.tolist(), counted.binary_scores.tolist(), strict=True)
        unary = zip(counted.unary.tolist(), counted.unary_scores.tolist(), strict=True)
        words = Counter(pair for tree in trees for pair in tree.tagged)
        return cls(
            b,
            tuple((name(a), name(b), name(c), score) for (a, b, c), score in binary),
            tuple((name(a), name(b), score) for (a, b), score in unary),
            tuple((word, tag, count) for (word, tag), count in sorted(words.items())),
            smoothing,
            rare,
        )

    @cached_property
    def grammar(self) -> Grammar:
        """The grammar itself, whose scores are log-probabilities."""
        counts = {(word, tag): count for word, tag, count in self.words}
        lexicon = CountedWords(Counter(counts), smoothing=self.smoothing, rare=self.rare)
        return Grammar(
            {(a, b, c): score for a, b, c, score in self.binary},
            {(a, b): score for a, b, score in self.unary},
            lexicon,
            root=ROOT,
        )

    @cached_property
    def tags(self) -> tuple[str, ...]:
        """The tags, in order of their columns."""
        return tuple(sorted(self.grammar.lexicon.tags))

    @cached_property
    def tag_symbols(self) -> Integers:
        """The symbol of each tag."""
        return np.array([self.grammar.numbers[tag] for tag in self.tags], dtype=np.int64)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of nodes: labels, then symbols with more information.

        ``NP^S`` has the kinds ``NP`` and ``NP^S``, ``S+VP`` has ``S``, ``VP`` and ``S+VP``. The symbol for
        remaining children, ``@NP``, has only that kind: it starts between two of them.
        """
        grammar = self.grammar
        above = set(grammar.binary[:, 0].tolist()) | set(grammar.unary[:, 0].tolist())
        named = (grammar.symbols[symbol] for symbol in sorted(above))
        return (*grammar.labels, *(name for name in named if name not in (ROOT, *labels_of(name)[:1])))

    def kinds_of(self, symbol: int) -> tuple[int, ...]:
        """Return the kinds of a non-terminal symbol."""
        return self._kinds[symbol]

    @cached_property
    def _kinds(self) -> list[tuple[int, ...]]:
        numbers = {kind: number for number, kind in enumerate(self.kinds)}
        named = ((name, labels_of(name)) for name in self.grammar.symbols)
        every = (labels if name in labels else (*labels, name) for name, labels in named)
        return [tuple(numbers[kind] for kind in some if kind in numbers) for some in every]

    @cached_property
    def _rules(self) -> dict[tuple[int, ...], int]:
        """The number of each rule among those with the same number of symbols."""
        kinds = (self.grammar.binary, self.grammar.unary)
        return {tuple(rule): number for kind in kinds for number, rule in enumerate(kind.tolist())}

    @cached_property
    def _frequencies(self) -> dict[str, float]:
        totals: Counter[str] = Counter()
        for _, tag, count in self.words:
            totals[tag] += count
        return {tag: log(total) for tag, total in totals.items()}

    def word_scores(self, words: Sequence[str]) -> Floats:
        """Return the log-probability of each word given each symbol, ``-inf`` if impossible."""
        return self.grammar.word_scores(words)

    def likely_tags(self, words: Sequence[str]) -> list[str]:
        """Return the most probable tag of each word on its own."""
        return [self._likely(word, i == 0) for i, word in enumerate(words)]

    def _likely(self, word: str, first: bool) -> str:
        scores = self.grammar.lexicon.scores(word, first)
        return max(scores, key=lambda tag: (scores[tag] + self._frequencies[tag], tag))

    def derivation(self, tree: Tree) -> Derivation:
        """Return the rules that derive a tree.

        Raises
        ------
        ModelError
            The tree uses a rule that is not in the grammar.
        """
        rules: tuple[list[int], list[int]] = ([], [])
        nodes = []
        for below, start, end, _ in self.binarisation(tree).nodes():
            if below.children:
                rule = [self.grammar.numbers.get(one.label, -1) for one in (below, *below.children)]
                rules[len(rule) == 2].append(self._number(rule, below))
                nodes += [(kind, start, end) for kind in self._kinds[rule[0]]]
        tags = [self.grammar.numbers[tag] for tag in tree.tags]  # known from the rules above them
        binary, unary, above = (np.array(part, dtype=np.int64) for part in (*rules, tags))
        return Derivation(binary, unary, above, np.array(nodes, dtype=np.int64).reshape(-1, 3))

    def _number(self, rule: list[int], tree: Tree) -> int:
        number = self._rules.get(tuple(rule))
        if number is None:
            names = " ".join(repr(child.label) for child in tree.children)
            raise ModelError(
                f"a tree has the rule {tree.label!r} → {names}, which is not in the grammar's treebank, so "
                "the grammar does not derive it"
            )
        return number
