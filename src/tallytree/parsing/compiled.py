"""A grammar in the form for charts: binary rules, and chains of unary rules with the labels of a span.

Over each span a tree has one **chain**: the topmost symbol, the unary rules below it, and the
symbol made by a binary rule or the lexicon. Its labels are the constituents over that span, all of them
together (its **bag**), so that a statistic sees how often a label occurs over the same words.

For statistics of depth, symbols are distinguished by the number of constituents above them (their **level**),
up to a maximum: the depth of a node is determined by the tree, so each tree still has one derivation.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.parsing.binarise import labels_of
from tallytree.parsing.grammar import Grammar
from tallytree.planning.charts import ChartRules
from tallytree.running.charts import Scores

_MOST_CHAINS = 500_000


class Bag(NamedTuple):
    """The labels that a chain adds to a span."""

    labels: tuple[tuple[int, int], ...]  # constituents, from the top
    tag: int = -1  # the label of the tag below them, -1 if the span has several words


_NOTHING = Bag(())


class _Path(NamedTuple):
    """A chain: the symbols at its ends, its unary rules, and its labels from the top."""

    target: int
    source: int
    rules: tuple[int, ...]
    labels: tuple[int, ...]
    from_closed: bool = False


class Compiled:
    """A compiled grammar.

    Attributes
    ----------
    levels : int
        The number of levels by which symbols are distinguished.
    symbol_of, binary_of : int32 arrays
        For each symbol and binary rule of the chart, the corresponding one of the grammar.
    chains : list of _Path
        One for each chain of the chart, with the grammar's symbols.
    names : tuple of str
        The grammar's labels, then those that only tags have.
    bags : list of Bag
        The distinct bags of labels; ``bag_of`` and ``word_bag_of`` give the bag of each chain.
    rules : ChartRules
        Everything as arrays.
    """

    def __init__(self, grammar: Grammar, levels: int) -> None:
        self.grammar, self.levels = grammar, levels
        symbols = len(grammar.symbols)
        self.symbol_of = np.repeat(np.arange(symbols, dtype=np.int32), levels)
        self.binary_of = np.repeat(np.arange(len(grammar.binary), dtype=np.int32), levels)
        level = np.tile(np.arange(levels, dtype=np.int32), len(grammar.binary))
        rules = grammar.binary[self.binary_of] * levels + level[:, None]
        self.chains: list[_Path] = []
        numbers: dict[Bag, int] = {}
        rows = []
        parents = set(grammar.binary[:, 0].tolist())
        self.names = _names(grammar)
        self.tags = {i for i, name in enumerate(grammar.symbols) if name in grammar.lexicon.tags}
        for path in _paths(grammar, self.names, self.tags):
            for top in range(levels):
                inside = min(levels - 1, top + len(path.labels))
                bags = self._bags_of(path, top, parents)
                counted = (-1 if bag == _NOTHING else numbers.setdefault(bag, len(numbers)) for bag in bags)
                ends = (path.target * levels + top, path.source * levels + inside)
                rows.append((*ends, *counted, path.from_closed))
                self.chains.append(path)
        self.bags = list(numbers)
        table = np.array(rows, dtype=np.int32).reshape(len(rows), 5)
        self.bag_of, self.word_bag_of = table[:, 2].copy(), table[:, 3].copy()
        self.path_rules = np.array([r for path in self.chains for r in path.rules], dtype=np.int64)
        self.path_chains = np.repeat(np.arange(len(rows)), [len(path.rules) for path in self.chains])
        self.rules = ChartRules(
            symbols * levels, len(self.bags), grammar.root * levels, np.ascontiguousarray(rules), table
        )

    def _bags_of(self, path: _Path, top: int, parents: set[int]) -> tuple[Bag, Bag]:
        """Return the bag of a chain whose top is at a level, over several words and over one word."""
        labels = tuple((label, min(self.levels - 1, top + i)) for i, label in enumerate(path.labels))
        over_words = Bag(labels) if path.source in parents else _NOTHING
        if labels and path.source in self.tags:  # the lowest label above a word is its tag
            return over_words, Bag(labels[:-1], path.labels[-1])
        return over_words, _NOTHING

    def levelled(self, scores: Scores) -> Scores:
        """Give each rule of the chart the score of the corresponding rule of the grammar."""
        if self.levels == 1:
            return scores
        chains = scores.chains[np.arange(len(self.chains)) // self.levels]
        arrays = (scores.words[:, self.symbol_of], scores.rules[self.binary_of], chains)
        return Scores(*(np.ascontiguousarray(a) for a in arrays))

    def chain_sums(self, unary: NDArray[np.float64]) -> NDArray[np.float64]:
        """Add up scores of unary rules, ``[rule][1 or span]``, along each chain."""
        sums = np.zeros((len(self.chains), unary.shape[1]))
        np.add.at(sums, self.path_chains, unary[self.path_rules])
        return sums

    def spread(self, by_bag: NDArray[np.float64], words: int) -> NDArray[np.float64]:
        """Give each chain the numbers of its bag, ``[bag][span]``; zeros for chains without labels."""
        table = np.concatenate([by_bag, np.zeros((1, by_bag.shape[1]))])  # bag -1
        return np.concatenate([table[self.word_bag_of, :words], table[self.bag_of, words:]], axis=1)

    def gather(self, by_chain: NDArray[np.float64], words: int) -> NDArray[np.float64]:
        """Add up the numbers of all chains with the same bag, ``[chain][span]``."""
        table = np.empty((len(self.bags), by_chain.shape[1]))
        for bags, spans in ((self.word_bag_of, slice(None, words)), (self.bag_of, slice(words, None))):
            some = bags >= 0
            table[:, spans] = row_sums(by_chain[some, spans], bags[some], len(self.bags))
        return table

    @cached_property
    def counts(self) -> NDArray[np.int32]:
        """The number of occurrences of each label at each level in each bag."""
        result = np.zeros((len(self.bags), len(self.grammar.labels), self.levels), dtype=np.int32)
        for number, bag in enumerate(self.bags):
            for label, level in bag.labels:
                result[number, label, level] += 1
        return result

    @cached_property
    def stacks(self) -> tuple[dict[tuple[int, ...], int], NDArray[np.int64], NDArray[np.int64]]:
        """The labels over one span, numbered; for each chain, and for each without its lowest label."""
        numbers: dict[tuple[int, ...], int] = {(): 0}
        for path in self.chains:
            for labels in (path.labels, path.labels[:-1]):
                numbers.setdefault(labels, len(numbers))
        whole = np.array([numbers[path.labels] for path in self.chains])
        return numbers, whole, np.array([numbers[path.labels[:-1]] for path in self.chains])

    @cached_property
    def tag_labels(self) -> NDArray[np.str_]:
        """The label of each symbol of the grammar as a tag; empty for those that are not tags."""
        return np.array([(labels_of(name) or ("",))[-1] for name in self.grammar.symbols])


def row_sums(rows: NDArray[np.float64], groups: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Add up the rows of each of ``count`` groups.

    Examples
    --------
    >>> row_sums(np.array([[1.0, 2.0], [5.0, 5.0], [3.0, 4.0]]), np.array([2, 0, 2]), 3).tolist()
    [[5.0, 5.0], [0.0, 0.0], [4.0, 6.0]]
    """
    sums = np.zeros((count, rows.shape[1]))
    order = np.argsort(groups, kind="stable")
    found, starts = np.unique(groups[order], return_index=True)
    if len(found):
        sums[found] = np.add.reduceat(rows[order], starts, axis=0)
    return sums


def compiled(grammar: Grammar, levels: int = 1) -> Compiled:
    """Compile a grammar; the result is cached in the grammar."""
    made = grammar.made
    if levels not in made:
        made[levels] = Compiled(grammar, levels)
    compiled_grammar: Compiled = made[levels]
    return compiled_grammar


def _names(grammar: Grammar) -> tuple[str, ...]:
    every = {label for name in grammar.symbols for label in labels_of(name)}
    return (*grammar.labels, *sorted(every.difference(grammar.labels)))


def _paths(grammar: Grammar, names: tuple[str, ...], tags: set[int]) -> Iterator[_Path]:
    """Iterate over all chains that a tree can have over one span."""
    numbers = {label: i for i, label in enumerate(names)}
    labels = [tuple(numbers[label] for label in labels_of(name)) for name in grammar.symbols]
    bottoms = tags | set(grammar.binary[:, 0].tolist())
    below: dict[int, list[tuple[int, int]]] = {}
    for rule, (parent, child) in enumerate(grammar.unary.tolist()):
        below.setdefault(parent, []).append((rule, child))
    bare = {parent for parent in below if not labels[parent]}
    tops = {grammar.root, *grammar.binary[:, 1:].ravel().tolist()}
    tops |= {child for parent in bare for _, child in below[parent]}
    count = 0
    for top in sorted(tops):
        if not labels[top]:
            yield from (_Path(top, child, (rule,), (), True) for rule, child in below.get(top, []))
        waiting: list[_Path] = [_Path(top, top, (), labels[top])]
        while waiting:
            path = waiting.pop()
            if path.source in bottoms:
                yield path
                count += 1
            if count > _MOST_CHAINS:
                raise ModelError(
                    f"the unary rules form more than {_MOST_CHAINS:,} chains of up to {grammar.max_chain} "
                    "rules; lower max_chain, or collapse the unary chains of the treebank"
                )
            if labels[path.source] and len(path.rules) < grammar.max_chain:
                waiting += (
                    _Path(top, child, (*path.rules, rule), path.labels + labels[child])
                    for rule, child in below.get(path.source, [])
                )
