"""The input of the chart reference: the items of a sentence, and the ways to make each of them."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from tallytree.algebra.tallies import Integers
from tallytree.kernels.native import DerivationStep
from tallytree.kernels.reference import Array

OPEN, CLOSED = 0, 1
# plain integers: comparing arrays with members of an enumeration is slow
WORD, UNARY, SPLIT = int(DerivationStep.WORD), int(DerivationStep.UNARY), int(DerivationStep.SPLIT)


class Item(NamedTuple):
    """A symbol over a span, in the open layer (0) or the closed one (1)."""

    layer: int
    start: int
    width: int
    symbol: int


class Way(NamedTuple):
    """One way to make an item: a word's tag, a chain of unary rules, or a binary rule over one split."""

    kind: int  # 0 for a tag, 1 for a chain, 2 for a rule
    number: int  # of the symbol, the chain or the rule
    score: float  # what it adds to the score
    shift: Integers  # (P,): what it adds to the tally
    parts: tuple[Item, ...] = ()  # what it is made of


@dataclass(frozen=True, eq=False)
class ChartProblem:
    """A sentence: rules, their scores over its spans, and statistics."""

    root: int  # the symbol over the whole sentence
    rules: Array  # (n, 3): parent, left child and right child
    # (n, 5): target, source, bag, bag over a single word (-1: nothing is counted), and whether the source is
    # closed: such a chain is put on top of others
    chains: Array
    # ``[word][symbol]``, ``[rule][1 or span]`` and ``[chain][1 or span]``
    word_scores: Array
    rule_scores: Array
    chain_scores: Array
    shifts: Array  # [bag][span][statistic]
    caps: Integers  # (P,)
    live: Array  # [layer][span][symbol]: which items may be made

    @property
    def words(self) -> int:
        """The number of words."""
        return len(self.word_scores)

    @property
    def top(self) -> Item:
        """The root symbol over the whole sentence."""
        return Item(CLOSED, 0, self.words, self.root)

    def span(self, start: int, width: int) -> int:
        """Return the number of a span: by width, then by start."""
        return sum(self.words - shorter + 1 for shorter in range(1, width)) + start

    def items(self) -> Iterator[Item]:
        """Iterate over the live items, each after all items it can be made of."""
        bare = set(self.chains[self.chains[:, 4] != 0, 0].tolist())
        symbols = sorted(range(self.live.shape[2]), key=lambda symbol: symbol in bare)
        for width in range(1, self.words + 1):
            starts = range(self.words - width + 1)
            for layer, start, symbol in product((OPEN, CLOSED), starts, symbols):
                if self.live[layer, self.span(start, width), symbol]:
                    yield Item(layer, start, width, symbol)

    def ways(self, item: Item) -> Iterator[Way]:
        """Iterate over the ways to make an item, except those with a score of -inf."""
        every = self._chained(item) if item.layer == CLOSED else self._made(item)
        return (way for way in every if way.score > -np.inf)

    def _made(self, item: Item) -> Iterator[Way]:
        _, start, width, symbol = item
        nothing = np.zeros_like(self.caps)
        if width == 1:
            yield Way(WORD, symbol, self.word_scores[start, symbol], nothing)
        span = self.span(start, width)
        for split, rule in product(range(1, width), self._rules_of[symbol]):
            _, left, right = self.rules[rule].tolist()
            parts = Item(CLOSED, start, split, left), Item(CLOSED, start + split, width - split, right)
            yield Way(SPLIT, rule, _anchored(self.rule_scores, rule, span), nothing, parts)

    def _chained(self, item: Item) -> Iterator[Way]:
        _, start, width, symbol = item
        span = self.span(start, width)
        for chain in self._chains_of[symbol]:
            _, source, bag, word_bag, from_closed = self.chains[chain].tolist()
            counted = word_bag if width == 1 else bag
            shift = np.zeros_like(self.caps) if counted < 0 else self.shifts[counted, span].astype(np.int64)
            part = Item(CLOSED if from_closed else OPEN, start, width, source)
            yield Way(UNARY, chain, _anchored(self.chain_scores, chain, span), shift, (part,))

    @cached_property
    def _rules_of(self) -> list[list[int]]:
        return _by_symbol(self.rules[:, 0], self.live.shape[2])

    @cached_property
    def _chains_of(self) -> list[list[int]]:
        return _by_symbol(self.chains[:, 0], self.live.shape[2])


def _anchored(scores: Array, number: int, span: int) -> float:
    """Return the score of a rule or chain over a span; those with one column are the same everywhere."""
    return float(scores[number, span if scores.shape[1] > 1 else 0])


def _by_symbol(symbols: Array, count: int) -> list[list[int]]:
    """Group the numbers of rules by one of their symbols."""
    return [np.flatnonzero(symbols == symbol).tolist() for symbol in range(count)]
