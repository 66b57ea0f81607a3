"""Scores of words below tags.

``TaggedWords`` is a table of your own. ``CountedWords`` is estimated from a treebank: with relative
frequencies alone, rare words would have too few tags and new ones none, so the tags of a word are
smoothed by those of rare words with the same look,

    p(tag | word) = (c(tag, word) + a · p(tag | look)) / (c(word) + a)
    p(word | tag) = p(tag | word) · p(word) / p(tag)

where the look of a word consists of its capitals, digits, hyphen and ending, and ``p(tag | look)`` is
estimated from words that were seen once. Frequent words keep the tags that they were seen with.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from math import inf, log
from types import MappingProxyType
from typing import Protocol

from tallytree.errors import ModelError
from tallytree.losses.base import is_number
from tallytree.model.pairs import LARGEST_SCORE

_ENDINGS = ("ing", "ed", "ion", "er", "est", "ly", "ity", "able", "al", "ous", "ive", "s", "y")


def check_score(score: object, what: str) -> None:
    """Raise an error for a score that is not a number, nan, +inf or too large."""
    if not is_number(score) or not (score == -inf or abs(score) <= LARGEST_SCORE):
        raise ModelError(
            f"the score of {what} is {score!r}; scores must be at most {LARGEST_SCORE:.0e} in magnitude, or "
            "-inf to forbid"
        )


class Lexicon(Protocol):
    """The words of a grammar."""

    @property
    def tags(self) -> frozenset[str]:
        """All tags that some word may have."""

    def scores(self, word: str, first: bool) -> Mapping[str, float]:
        """Return the score of a word below each tag that it may have; ``first``: in a sentence."""


class TaggedWords:
    """A table of words.

    Parameters
    ----------
    words : mapping of tag to mapping of word to score
        The words below each tag.
    unknown : mapping of tag to score, optional
        For words that are not in the table; without it, they raise an error.

    Examples
    --------
    >>> lexicon = TaggedWords({"NN": {"fish": -1.0}, "VB": {"fish": -2.0}}, unknown={"NN": -5.0})
    >>> dict(lexicon.scores("fish")), dict(lexicon.scores("eel"))
    ({'NN': -1.0, 'VB': -2.0}, {'NN': -5.0})
    """

    def __init__(
        self, words: Mapping[str, Mapping[str, float]], unknown: Mapping[str, float] | None = None
    ) -> None:
        self._scores: dict[str, dict[str, float]] = defaultdict(dict)
        for tag, row in words.items():
            if not isinstance(row, Mapping):
                raise ModelError(f"the words below {tag!r} must be a mapping of word to score, got {row!r}")
            for word, score in row.items():
                check_score(score, f"{word!r} below {tag!r}")
                self._scores[word][tag] = float(score)
        for tag, score in (unknown or {}).items():
            check_score(score, f"unknown words below {tag!r}")
        self._unknown = dict(unknown or {})
        self.tags = frozenset(words) | frozenset(self._unknown)

    def scores(self, word: str, first: bool = False) -> Mapping[str, float]:
        """Return the score of a word below each tag that it may have; do not modify it."""
        if word in self._scores:
            return MappingProxyType(self._scores[word])
        if not self._unknown:
            raise ModelError(
                f"the word {word!r} is not in the lexicon; give scores for unknown words (unknown=), or for "
                "the words of this sentence (word_scores=)"
            )
        return MappingProxyType(self._unknown)

    def tables(self) -> tuple[dict[str, dict[str, float]], dict[str, float]]:
        """Return the scores of the tags of each word, and those of unknown words."""
        return {word: dict(row) for word, row in self._scores.items()}, dict(self._unknown)


class CountedWords:
    """Log-probabilities of words from a treebank, smoothed for rare and unknown words.

    Parameters
    ----------
    tagged : iterable of (word, tag)
        The words of the treebank; ``None`` ends a sentence.
    smoothing : float
        The weight of what a word looks like (capitals, digits, hyphens, ending), in occurrences of the word.
    rare : int
        Words seen less often than this may also have tags that they were not seen with.
    """

    def __init__(self, tagged: Iterable[tuple[str, str]], *, smoothing: float = 1.0, rare: int = 5) -> None:
        if not smoothing > 0:
            raise ModelError(f"smoothing must be positive, got {smoothing}")
        self.smoothing, self.rare = smoothing, rare
        pairs = Counter(tagged)
        self._words: Counter[str] = Counter()
        self._tags: Counter[str] = Counter()
        self._seen: dict[str, dict[str, int]] = defaultdict(dict)
        for (word, tag), count in pairs.items():
            self._words[word] += count
            self._tags[tag] += count
            self._seen[word][tag] = count
        self._total = sum(self._tags.values())
        self._looks: dict[str, Counter[str]] = defaultdict(Counter)
        for word, row in self._seen.items():
            if self._words[word] == 1:
                for shape in (look(word), _ANY):
                    self._looks[shape].update(row)
        self._looks.setdefault(_ANY, self._tags)
        self.tags = frozenset(self._tags)

    def scores(self, word: str, first: bool = False) -> Mapping[str, float]:
        """Return the log-probability of a word given each tag that it may have."""
        known = self._known(word, first)
        seen, count = self._seen.get(known, {}), self._words.get(known, 0)
        alike = self._looks.get(look(word), self._looks[_ANY])
        tags = set(seen) | (set(alike) if count < self.rare else set())
        mass, every = sum(alike.values()), self._total
        result = {}
        for tag in sorted(tags):
            share = (seen.get(tag, 0) + self.smoothing * alike[tag] / mass) / (count + self.smoothing)
            if share > 0:
                result[tag] = log(share) + log(max(count, 1) / every) - log(self._tags[tag] / every)
        return result

    def counts(self) -> dict[str, dict[str, int]]:
        """Return the count of each word with each tag."""
        return {word: dict(row) for word, row in self._seen.items()}

    def _known(self, word: str, first: bool) -> str:
        """Return the word as in the treebank: the first one may be there without its capital."""
        small = word[:1].lower() + word[1:]
        return small if first and word not in self._words and small in self._words else word


_ANY = ""


def look(word: str) -> str:
    """Return the look of an unknown word.

    Examples
    --------
    >>> look("Elsevier"), look("re-elected"), look("1990s"), look("quickly")
    ('Xer', 'x-ed', '9s', 'xly')
    """
    kind = "9" if re.search(r"\d", word) else "X" if word[:1].isupper() else "x"
    if kind == "X" and word.isupper() and len(word) > 1:
        kind = "XX"
    hyphen = "-" if "-" in word[1:-1] else ""
    ending = next((e for e in _ENDINGS if len(word) > len(e) + 2 and word.lower().endswith(e)), "")
    return f"{kind}{hyphen}{ending}"
