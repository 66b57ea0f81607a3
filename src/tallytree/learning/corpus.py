"""A small corpus for examples: 60 simple sentences with tags and chunks, written for this library."""

from __future__ import annotations

import io
from importlib.resources import files

from tallytree.io.conll import Row, read_conll


def sample_sentences() -> list[list[Row]]:
    """Return 60 sentences, each a list of (word, tag, chunk), with chunks in BIO notation.

    Examples
    --------
    >>> sentences = sample_sentences()
    >>> len(sentences), sentences[0][:3]
    (60, [('The', 'DT', 'B-NP'), ('baker', 'NN', 'I-NP'), ('opens', 'VBZ', 'B-VP')])
    """
    text = (files("tallytree.learning") / "data" / "sentences.txt").read_text(encoding="utf-8")
    return read_conll(io.StringIO(text))
