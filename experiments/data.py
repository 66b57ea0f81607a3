"""The corpora of the experiments, read from where the user keeps them."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from tallytree.io import read_conll
from tallytree.learning import TAGGING, templated, word_parts

TOKEN = re.compile(r"[()]|[^\s()]+")


class Task(NamedTuple):
    """Features and labels to learn from, and others to be judged by."""

    train_features: list[Any]
    train_labels: list[list[str]]
    test_features: list[Any]
    test_labels: list[list[str]]


def chunking(path: Path, sentences: int | None, held_out: int = 1000) -> Task:
    """CoNLL-2000: words and tags in a window of five; the last sentences are held out."""
    corpus = read_conll(path)
    return _task(_columns, corpus[:-held_out][:sentences], corpus[-held_out:])


def tagging(folder: Path, sentences: int | None) -> Task:
    """The treebank sample: words in a window of five, and what each word looks like."""
    train, test = ([_leaves(tree) for tree in trees(folder / name)] for name in ("train.mrg", "dev.mrg"))
    return _task(_words, train[:sentences], test)


def base_noun_phrases(folder: Path, sentences: int | None) -> Task:
    """The same trees: noun phrases that hold no other, found from words and tags."""
    train, test = (
        [_noun_phrases(tree) for tree in trees(folder / name)] for name in ("train.mrg", "dev.mrg")
    )
    return _task(_columns, train[:sentences], test)


def _task(features: Any, train: list[Any], test: list[Any]) -> Task:
    return Task(
        [features(sentence) for sentence in train],
        [[row[-1] for row in sentence] for sentence in train],
        [features(sentence) for sentence in test],
        [[row[-1] for row in sentence] for sentence in test],
    )


def _columns(sentence: list[tuple[str, ...]]) -> list[list[str]]:
    return templated([row[:2] for row in sentence])


def _words(sentence: list[tuple[str, ...]]) -> list[list[str]]:
    rows = templated([row[:1] for row in sentence], TAGGING)
    return [[*row, *word_parts(word)] for row, (word, *_) in zip(rows, sentence, strict=True)]


# ---------------------------------------------------------------- trees


def trees(path: Path) -> Iterator[list[Any]]:
    """Go through the bracketed trees of a file: lists ``[label, child, …]``, leaves ``[tag, word]``."""
    stack: list[list[Any]] = []
    for token in TOKEN.findall(path.read_text(encoding="utf-8")):
        if token == "(":
            stack.append([])
        elif token == ")":
            node = stack.pop()
            if not stack:
                yield ["TOP", *node] if isinstance(node[0], list) else node
            else:
                stack[-1].append(node)
        else:
            stack[-1].append(token)


def _is_leaf(node: list[Any]) -> bool:
    return len(node) == 2 and isinstance(node[1], str)


def _leaves(node: list[Any]) -> list[tuple[str, str]]:
    """Return (word, tag), without empty elements."""
    if _is_leaf(node):
        return [] if node[0] == "-NONE-" else [(node[1], node[0])]
    return [leaf for child in node[1:] for leaf in _leaves(child)]


def _noun_phrases(node: list[Any]) -> list[tuple[str, str, str]]:
    """Return (word, tag, chunk) with the noun phrases that hold no other."""
    leaves = [(*leaf, "O") for leaf in _leaves(node)]
    if _is_leaf(node):
        return leaves
    if _is_noun_phrase(node) and not any(_holds_one(child) for child in node[1:]):
        return [(w, t, "B-NP" if i == 0 else "I-NP") for i, (w, t, _) in enumerate(leaves)]
    return [row for child in node[1:] for row in _noun_phrases(child)]


def _is_noun_phrase(node: list[Any]) -> bool:
    return not _is_leaf(node) and re.split("[-=]", node[0])[0] == "NP"


def _holds_one(node: list[Any]) -> bool:
    return not _is_leaf(node) and (
        (_is_noun_phrase(node) and bool(_leaves(node))) or any(_holds_one(child) for child in node[1:])
    )
