"""Verification of the certificate of a search for sentences: every pass and every tally of every box.

Written from the definitions: passes go over the words that n-grams need, with dictionaries; the score
required by a tally is computed for all tallies, without the shortcuts that make the search fast.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.solution import Solution
from tallytree.bounding.sentences import SentenceEvidence, SentencePart
from tallytree.model.rounding import rounding
from tallytree.running.sentences import Measured, chain_tables, word_numbers
from tallytree.transducers.encodings import alphabets_of

Charges = dict[tuple[int, tuple[int, ...]], float]


def check_sentences(solution: Solution, evidence: SentenceEvidence) -> None:
    """Verify the proof of a sentence found by bounds.

    The shares must be such that charges never exceed the price; at the prices of each pass no
    sentence has more than the certificate says; the budget of each box suffices for all of its tallies; and
    every other tally, of every length, is ruled out by a pass.

    Raises
    ------
    AssertionError
        With the numbers that do not agree.
    """
    chain = _Chain(evidence)
    tolerance = 1e-9 * (1 + evidence.margin) + 8 * rounding(evidence.model.blocks, evidence.truth_score)
    assert Counter(evidence.units) == Counter(chain.units()), "something else was counted"
    for one in evidence.passes:
        if any(0 < price < np.inf for price in one.part.prices):
            _check_shares(evidence, one)
        most = chain.most(one.length, chain.charges(one))
        paid = one.length * sum(price for price in one.part.prices if price < np.inf)
        assert most == one.part.most or abs(most - one.part.most) <= tolerance + 1e-12 * paid, (
            f"at the prices {one.part.prices} a sentence has {most!r}, the certificate says {one.part.most!r}"
        )
    for length in chain.lengths():
        _check_length(solution, evidence, chain, length, tolerance)


def _check_shares(evidence: SentenceEvidence, one: SentencePart) -> None:
    """Check the shares against how often an n-gram may count, or against alignments.

    For ROUGE-L, shares that no sentence can have together in one alignment add up to at most 1, so they are
    a mixture of alignments (Dilworth). Such positions and places form a path on which positions increase and
    places decrease.
    """
    shares = evidence.shares[one.split]
    assert shares.shape == (one.length, len(evidence.units))
    assert (shares >= 0).all() and (shares <= 1).all()
    if evidence.measured.kind != "rouge-l":
        caps = np.array([np.inf if cap < 0 else cap for _, _, cap in evidence.units])
        assert (shares.sum(axis=0) <= caps + 1e-9).all(), "an n-gram is charged more often than it counts"
        return
    tally = np.array([reference for _, reference, _ in evidence.units], dtype=int)
    for reference in set(tally.tolist()):
        heaviest = np.zeros(np.count_nonzero(tally == reference) + 1)  # of paths to places below each
        for row in shares[::-1, tally == reference]:
            for place, share in enumerate(row):
                heaviest[place + 1] = max(heaviest[place], heaviest[place + 1]) + share
        assert heaviest.max() <= 1 + 1e-9, "no mixture of alignments"


def _check_length(
    solution: Solution, evidence: SentenceEvidence, chain: _Chain, length: int, tolerance: float
) -> None:
    """Check every tally of a length against the boxes and the passes."""
    shift = evidence.truth_score if evidence.scaling == "margin" else 0.0
    value, passes = solution.value + shift, [one for one in evidence.passes if one.length == length]
    if not passes:
        most = chain.most(length, {})
        if most > -np.inf:
            reached = chain.value(most, chain.loss(length, np.zeros((1, chain.tallies), dtype=int)))
            assert length == 0 and reached[0] <= value + tolerance, f"no pass for {length} words"
        return
    tallies = chain.tallies_of(length)
    need, left = chain.need(value, chain.loss(length, tallies)), np.ones(len(tallies), dtype=bool)
    for part in (part for part in evidence.parts if part.length == length):
        inside = ((tallies >= part.part.low) & (tallies <= part.part.high)).all(axis=1)
        left &= ~inside
        worst = (_reach(part, tallies[inside]) - need[inside]).max(initial=-np.inf)
        assert worst <= max(part.part.budget, 0.0) + tolerance, (
            f"a tally allows the regret {worst!r}, beyond the budget {part.part.budget!r}"
        )
    for one in passes:  # tallies that could beat the value by more than rounding
        left &= _reach(one, tallies) > need + tolerance
    assert not left.any(), f"nothing rules out the tallies {tallies[left].tolist()}"


def _reach(part: SentencePart, tallies: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return an upper bound on the score of a sentence with each tally; infinite for forbidden ones."""
    finite = np.array([0.0 if price == np.inf else price for price in part.part.prices])
    forbidden = (tallies[:, np.isinf(part.part.prices)] > 0).any(axis=1)
    return np.where(forbidden, np.inf, part.part.most + tallies @ finite)


class _Chain:
    """The sentences of a chain, by definition."""

    def __init__(self, evidence: SentenceEvidence) -> None:
        tables, alphabets = chain_tables(evidence.model), alphabets_of(evidence.model)
        assert tables is not None
        self.evidence, self.measured, (self.unary, self.pair) = evidence, evidence.measured, tables
        self.numbers = word_numbers(alphabets)
        self.words = [[self.numbers[label] for label in labels] for labels in alphabets]
        end = self.numbers.get(self.measured.end, -1) if self.measured.end is not None else -1
        self.end = end
        self.references = [[self.numbers.get(w, -1) for w in one] for one in self.measured.references]
        self.tallies = _tallies(self.measured)

    def lengths(self) -> Iterator[int]:
        """Iterate over the lengths that can be padded with end labels."""
        size = len(self.words)
        for length in range(size, -1, -1):
            if length < size and self.end not in self.words[length]:
                return
            yield length

    def units(self) -> Iterator[tuple[tuple[int, ...], int, int]]:
        """Iterate over the units that count, with repetitions."""
        kind, clip = self.measured.kind, self.measured.clip
        for i, one in enumerate(self.references if kind == "rouge-l" else ()):
            yield from (((word,), i, -1) for word in one)
        orders = range(1, self.measured.order + 1) if kind == "bleu" else (self.measured.order,)
        for n in orders if kind != "rouge-l" else ():
            counts = [
                Counter(tuple(one[i : i + n]) for i in range(len(one) - n + 1)) for one in self.references
            ]
            together: Counter[tuple[int, ...]] = Counter()
            for count in counts:
                together |= count
            for count in [together] if kind == "bleu" else counts:
                known = ((gram, cap) for gram, cap in count.items() if -1 not in gram)
                yield from (
                    (gram, n - 1 if kind == "bleu" else 0, cap if clip else -1) for gram, cap in known
                )

    def charges(self, one: SentencePart) -> Charges:
        """Return the charge of each n-gram where it ends, at the prices of a pass."""
        charges: Charges = {}
        for u, (words, tally, _) in enumerate(self.evidence.units):
            for t in range(one.length):
                share, price = self.evidence.shares[one.split][t, u], one.part.prices[tally]
                if share > 0 and price > 0:
                    charges[t, words] = charges.get((t, words), 0.0) + price * share
        return charges

    def most(self, length: int, charges: Charges) -> float:
        """Return the maximum of score minus charges over the sentences of a length."""
        kept = max([len(words) for _, words in charges], default=1)
        best: dict[tuple[int, ...], tuple[float, int]] = {(): (0.0, 0)}
        for t in range(len(self.words)):
            after: dict[tuple[int, ...], tuple[float, int]] = {}
            for (read, (score, label)), (b, word) in product(best.items(), enumerate(self.words[t])):
                if (word == self.end) != (t >= length):
                    continue
                now = (*read, word)
                ends = (now[-n:] for n in range(1, len(now) + 1))
                total = score + self.unary[t][b] + (self.pair[t - 1][label, b] if t else 0.0)
                total -= sum(charges.get((t, gram), 0.0) for gram in ends)
                history = now[-max(kept - 1, 1) :]
                if total > -np.inf and (history not in after or total > after[history][0]):
                    after[history] = total, b
            best = after
        return max((score for score, _ in best.values()), default=-np.inf)

    def tallies_of(self, length: int) -> NDArray[np.int64]:
        """Return all tallies that sentences of a length can have, and possibly some that they cannot."""
        refs, measured = self.references, self.measured
        if measured.kind == "bleu":
            ranges = [range(max(length - n, 0) + 1) for n in range(measured.order)]
        elif measured.kind == "rouge-l":
            ranges = [range(min(length, len(one)) + 1) for one in refs]
        else:
            ranges = [range(max(length - measured.order + 1, 0) * len(refs) + 1)]
        grid = np.stack(np.meshgrid(*ranges, indexing="ij"), axis=-1).reshape(-1, len(ranges))
        if measured.kind != "rouge-l":  # limited by the number of n-grams
            for tally in range(self.tallies):
                caps = [np.inf if cap < 0 else cap for _, at, cap in self.units() if at == tally]
                grid = grid[grid[:, tally] <= sum(caps)]
        clipped = measured.kind == "bleu" and measured.clip  # then longer n-grams cannot be more frequent
        return grid[(np.diff(grid, axis=1) <= 0).all(axis=1)] if clipped else grid

    def loss(self, length: int, tallies: NDArray[np.int64]) -> NDArray[np.float64]:
        """Compute the loss of tallies by definition."""
        refs, order, square = self.measured.references, self.measured.order, self.measured.beta**2
        if self.measured.kind == "bleu":
            closest = min((abs(len(one) - length), len(one)) for one in refs)[1]
            if not length:
                return np.full(len(tallies), float(closest > 0))
            below = np.array([max(length - n, 1) for n in range(order)])
            with np.errstate(divide="ignore"):
                mean = np.log(tallies / below).mean(axis=1)
            return np.asarray(1 - np.exp(mean + min(0.0, 1 - closest / length)))
        if self.measured.kind == "rouge-n":
            whole = sum(max(len(one) - order + 1, 0) for one in refs)
            return np.maximum(0.0, 1 - tallies[:, 0] / whole) if whole else np.zeros(len(tallies))
        both = np.array([length + square * len(one) for one in refs])
        parts = np.where(both > 0, (1 + square) * tallies / np.where(both > 0, both, 1), 1.0)
        return np.asarray(np.maximum(0.0, 1 - parts.mean(axis=1)))

    def need(self, value: float, losses: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the smallest score that gives more than a value."""
        evidence = self.evidence
        if evidence.scaling == "margin":
            return np.asarray(value - evidence.margin * losses)
        some = losses > 1e-12
        least = max(value, 0.0) / np.where(some, losses, 1.0) - evidence.margin + evidence.truth_score
        return np.where(some, least, np.inf)

    def value(self, score: float, losses: NDArray[np.float64]) -> Any:
        """Compute the maximised value."""
        evidence = self.evidence
        if evidence.scaling == "margin":
            return score + evidence.margin * losses
        return losses * (evidence.margin + score - evidence.truth_score)


def _tallies(measured: Measured) -> int:
    return {"bleu": measured.order, "rouge-n": 1, "rouge-l": len(measured.references)}[measured.kind]
