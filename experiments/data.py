"""The corpora of the experiments, read from a folder of the user."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tallytree.io import read_conll
from tallytree.learning import TAGGING, templated, word_parts
from tallytree.learning.templates import shape
from tallytree.parsing import Tree, read_treebank


class Corpus(NamedTuple):
    """Features and labels for training and for evaluation."""

    train_features: list[Any]
    train_labels: list[list[str]]
    test_features: list[Any]
    test_labels: list[list[str]]


def conll_2000(path: Path, sentences: int | None, held_out: int = 1000) -> Corpus:
    """CoNLL-2000: words and tags in a window of five; the last sentences are held out."""
    corpus = read_conll(path)
    return _corpus(_columns, corpus[:-held_out][:sentences], corpus[-held_out:])


def conll_2002(folder: Path, language: str, sentences: int | None = None) -> Corpus:
    """CoNLL-2002, ``esp`` or ``ned``: words and shapes in a window of five, ends of the word itself."""
    train, test = (read_conll(folder / f"{language}.{part}") for part in ("train", "testa"))
    return _corpus(_entities, train[:sentences], test)


def tagging(folder: Path, sentences: int | None) -> Corpus:
    """The treebank sample: words in a window of five, and what each word looks like."""
    train, test = ([tree.tagged for tree in trees] for trees in _treebank(folder))
    return _corpus(_words, train[:sentences], test)


def base_noun_phrases(folder: Path, sentences: int | None) -> Corpus:
    """The same trees: noun phrases that hold no other, found from words and tags."""
    train, test = ([_with_noun_phrases(tree) for tree in trees] for trees in _treebank(folder))
    return _corpus(_columns, train[:sentences], test)


def base_noun_phrase_words(folder: Path, sentences: int | None) -> Corpus:
    """The same word by word: inside or outside of a base noun phrase, predicted from the surrounding tags."""
    train, test = (
        [[(tag, chunk.removeprefix("B-").removeprefix("I-")) for _, tag, chunk in rows] for rows in some]
        for some in (map(_with_noun_phrases, trees) for trees in _treebank(folder))
    )
    return _corpus(_tags, train[:sentences], test)


def _treebank(folder: Path) -> Iterator[list[Tree]]:
    return (read_treebank(folder / name) for name in ("train.mrg", "dev.mrg"))


def _corpus(features: Any, train: list[Any], test: list[Any]) -> Corpus:
    return Corpus(
        [features(sentence) for sentence in train],
        [[row[-1] for row in sentence] for sentence in train],
        [features(sentence) for sentence in test],
        [[row[-1] for row in sentence] for sentence in test],
    )


def _columns(sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
    return templated([row[:2] for row in sentence])


def _tags(sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
    return templated([row[:1] for row in sentence], [((0, -1),), ((0, 0),), ((0, 1),), ((0, -1), (0, 0))])


def _words(sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
    rows = templated([row[:1] for row in sentence], TAGGING)
    return [[*row, *word_parts(word)] for row, (word, *_) in zip(rows, sentence, strict=True)]


def _entities(sentence: Sequence[tuple[str, ...]]) -> list[list[str]]:
    windows = [((column, offset),) for column in (0, 1) for offset in range(-2, 3)]
    rows = templated([(word, shape(word)) for word, *_ in sentence], windows)
    return [[*row, *word_parts(word)] for row, (word, *_) in zip(rows, sentence, strict=True)]


def _with_noun_phrases(tree: Tree) -> list[tuple[str, str, str]]:
    """Return (word, tag, chunk) with the noun phrases that hold no other."""
    chunks = ["O"] * len(tree)
    for node in tree.nodes():
        if sum(_is_noun_phrase(below.tree) for below in node.tree.nodes()) == 1 and _is_noun_phrase(
            node.tree
        ):
            chunks[node.start : node.end] = ["B-NP", *["I-NP"] * (node.end - node.start - 1)]
    return [(word, tag, chunk) for (word, tag), chunk in zip(tree.tagged, chunks, strict=True)]


def _is_noun_phrase(tree: Tree) -> bool:
    return tree.label == "NP" and not tree.is_tag
