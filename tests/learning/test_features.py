"""Features of positions: templates, attributes, and the corpus that comes with the library."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from tallytree.learning import CHUNKING, TAGGING, sample_sentences, templated, word_parts
from tallytree.learning.attributes import Hashed, Vocabulary, attributes


def test_templates_read_the_window():
    sentence = [("the", "DT"), ("cat", "NN"), ("sat", "VBD")]
    rows = templated(sentence)
    assert [len(row) for row in rows] == [len(CHUNKING)] * 3 == [19] * 3
    assert len(set(rows[1])) == 19
    assert "0[-2]=<s>" in rows[1] and "0[2]=</s>" in rows[1]
    assert "0[-1]|0[0]=the|cat" in rows[1]
    assert "1[-1]|1[0]|1[1]=DT|NN|VBD" in rows[1]
    assert templated([("a",)], TAGGING)[0][2] == "0[0]=a"
    assert templated([]) == []


def test_word_parts_are_no_longer_than_the_word():
    assert word_parts("a") == ["lower=a", "shape=x", "starts=a", "ends=a"]


def test_attributes_are_those_of_crfsuite():
    position = {
        "w": "a",
        "n": 2.5,
        "b": True,
        "off": False,
        "list": ["x"],
        "map": {"k": 3.0},
        "set": {"z", "y"},
    }
    assert dict(attributes(position)) == {
        "w:a": 1.0,
        "n": 2.5,
        "b": 1.0,
        "off": 0.0,
        "list:x": 1.0,
        "map:k": 3.0,
        "set:y": 1.0,
        "set:z": 1.0,
    }


def test_vocabularies_and_hashes_count_the_same():
    examples = [[["a", "b", "a"], ["c"]], [[], ["b"]]]
    vocabulary = Vocabulary.of(examples)
    assert vocabulary.names == ("a", "b", "c")
    rows = vocabulary.rows(examples[0]).toarray()
    np.testing.assert_array_equal(rows, [[2, 1, 0], [0, 0, 1]])
    hashed = Hashed(2**16).rows(examples[0]).toarray()
    np.testing.assert_array_equal(np.sort(hashed.sum(axis=0))[-3:], [1, 1, 2])
    np.testing.assert_array_equal(hashed.sum(axis=1), [3, 1])


def test_the_sample_is_well_formed():
    sentences = sample_sentences()
    for sentence in sentences:
        before = "O"
        for _, tag, chunk in sentence:
            assert tag
            assert chunk == "O" or chunk[:2] in ("B-", "I-")
            if chunk.startswith("I-"):
                assert before[2:] == chunk[2:]
            before = chunk
    assert {row[2] for sentence in sentences for row in sentence} >= {"B-NP", "I-NP", "B-VP", "O"}
