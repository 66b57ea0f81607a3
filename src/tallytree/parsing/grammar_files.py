"""Grammars in files: JSON that is safe to read from untrusted sources.

A file has the rules with their scores and the lexicon: counts of words below tags, from a treebank,
or your own table of scores.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.io.documents import At, document
from tallytree.io.files import PathLike, Readable, source, write_atomically
from tallytree.parsing.grammar import Grammar
from tallytree.parsing.lexicon import CountedWords, Lexicon, TaggedWords

VERSION = 1
_MOST = 2**53
_DEEPEST_CHAIN = 64


def write_grammar(path: PathLike, grammar: Grammar) -> None:
    """Write a grammar to a file, atomically.

    Raises
    ------
    ModelError
        It has a custom lexicon, which the format does not support.

    Examples
    --------
    >>> import tempfile
    >>> import tallytree as tt
    >>> tree = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB swim)))")
    >>> grammar = tt.parsing.Grammar.from_treebank([tree])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     tt.parsing.write_grammar(f"{folder}/fish.json", grammar)
    ...     again = tt.parsing.read_grammar(f"{folder}/fish.json")
    >>> tt.parsing.Forest(again, "eels swim").best().tree
    Tree('(S (NP (NN eels)) (VP (VB swim)))')
    """
    write_atomically(path, [json.dumps(_document(grammar), ensure_ascii=False, allow_nan=False)])


def read_grammar(place: Readable) -> Grammar:
    """Read a grammar written by :func:`write_grammar`.

    Raises
    ------
    ModelError
        The file is damaged or of another kind; the message says where.
    """
    whole = document(source(place))
    parts = whole.object(("tallytree_grammar", "root", "max_chain", "binary", "unary", "words"))
    parts["tallytree_grammar"].whole("the version of the format", VERSION, VERSION)
    binary, unary = (dict(_rules(parts[name], size)) for name, size in (("binary", 3), ("unary", 2)))
    lexicon = _LEXICONS[parts["words"].choice(tuple(_LEXICONS))](parts["words"])
    with whole.blamed():
        return Grammar(
            binary,
            unary,
            lexicon,
            root=parts["root"].text(),
            max_chain=parts["max_chain"].whole(
                "how many unary rules may follow each other", 0, _DEEPEST_CHAIN
            ),
        )


# --- writing ------------------------------------------------------------------------------------------------


def _document(grammar: Grammar) -> dict[str, Any]:
    def listed(rules: NDArray[np.int32], scores: NDArray[np.float64]) -> list[list[Any]]:
        rows = zip(rules.tolist(), scores.tolist(), strict=True)
        return [[*(grammar.symbols[number] for number in rule), _plain(score)] for rule, score in rows]

    return {
        "tallytree_grammar": VERSION,
        "root": grammar.symbols[grammar.root],
        "max_chain": grammar.max_chain,
        "binary": listed(grammar.binary, grammar.binary_scores),
        "unary": listed(grammar.unary, grammar.unary_scores),
        "words": _words(grammar.lexicon),
    }


def _plain(score: float) -> float | str:
    return "-inf" if score == -np.inf else score


def _words(lexicon: Lexicon) -> dict[str, Any]:
    if isinstance(lexicon, CountedWords):
        return {"counts": lexicon.counts(), "smoothing": lexicon.smoothing, "rare": lexicon.rare}
    if isinstance(lexicon, TaggedWords):
        words, unknown = lexicon.tables()
        return {
            "scores": {word: {tag: _plain(s) for tag, s in row.items()} for word, row in words.items()},
            "unknown": {tag: _plain(score) for tag, score in unknown.items()},
        }
    raise ModelError(
        f"a lexicon of type {type(lexicon).__name__} cannot be written; use CountedWords or TaggedWords"
    )


# --- reading ------------------------------------------------------------------------------------------------


def _rules(listed: At, size: int) -> Iterator[tuple[Any, float]]:
    for row in listed.items():
        *symbols, score = row.items(size + 1)
        yield tuple(symbol.text("a symbol") for symbol in symbols), _score(score)


def _score(number: At) -> float:
    return -np.inf if number.value == "-inf" else number.number()


def _counted(words: At) -> Lexicon:
    parts = words.object(("counts", "smoothing", "rare"))
    pairs: Counter[tuple[str, str]] = Counter()
    for word, row in parts["counts"].members().items():
        for tag, number in row.members().items():
            pairs[word, tag] = number.whole("how often a word has a tag", 1, _MOST)
    if not pairs:
        raise words.error("there are no words")
    with words.blamed():
        return CountedWords(
            pairs,
            smoothing=parts["smoothing"].number(),
            rare=parts["rare"].whole("how often rare words occur", 0, _MOST),
        )


def _tabled(words: At) -> Lexicon:
    parts = words.object(("scores", "unknown"))
    rows: dict[str, dict[str, float]] = {}
    for word, row in parts["scores"].members().items():
        for tag, score in row.members().items():
            rows.setdefault(tag, {})[word] = _score(score)
    return TaggedWords(rows, {tag: _score(score) for tag, score in parts["unknown"].members().items()})


_LEXICONS: Mapping[str, Callable[[At], Lexicon]] = {"counts": _counted, "scores": _tabled}
