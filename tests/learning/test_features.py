"""Features of positions: templates, attributes, and the sample corpus."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")
pytest.importorskip("scipy")

from scipy import sparse

import tallytree as tt
from tallytree.bulk.expectations import SparseRows
from tallytree.learning import (
    CHUNKING,
    TAGGING,
    BestDecoder,
    SequenceCRF,
    SequenceSVM,
    WindowFeatures,
    sample_sentences,
    templated,
    word_parts,
)
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
    assert templated([("a",), ("b",)], [(), ((0, 1),)]) == [["=", "0[1]=b"], ["=", "0[1]=</s>"]]
    assert templated([("a",)], [()]) == [["="]], "a constant feature"
    assert templated(np.array([["a"], ["b"]]), [((0, 0),)]) == [["0[0]=a"], ["0[0]=b"]]


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


@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("templates", [CHUNKING, TAGGING, [((0, 0), (1, 3), (0, -2)), ()], [((0, 0),)] * 2])
def test_many_sentences_have_the_features_of_each(templates, parts):
    rng = np.random.default_rng(len(templates))
    words = ["a", "b|a", "a|b", "<s>", "C-3", "", "dog"]
    sentences = [
        [(str(rng.choice(words)), str(rng.choice(words)), "x") for _ in range(rng.integers(0, 9))]
        for _ in range(12)
    ]
    features = WindowFeatures(templates, parts)
    each = [features(sentence) for sentence in sentences]
    vocabulary = Vocabulary.of(each[:6])
    found = features.numbered(sentences)
    expected, lengths = vocabulary.stacked(each)
    assert lengths == [len(sentence) for sentence in sentences]
    made = [[found.names[n] for n in some] for some in np.split(found.numbers, np.cumsum(found.sizes)[:-1])]
    assert made == [names for positions in each for names in positions]
    separate = sparse.vstack([vocabulary.rows(positions) for positions in each], format="csr")
    for name, one, other, third in zip(
        expected._fields, expected, vocabulary.numbered_rows(found), SparseRows.of(separate), strict=True
    ):
        np.testing.assert_array_equal(one, other, name)
        np.testing.assert_array_equal(one, third, name)


@pytest.mark.parametrize(
    "sentence", [["word"], [("a",)], [("a", 3)], [{"a": 1}], [], 5 * [np.array(["a", "b"])]]
)
def test_rows_that_are_not_plain_are_read_one_by_one(sentence):
    assert WindowFeatures().numbered([sentence]) is None


def test_predictions_do_not_depend_on_how_sentences_are_read():
    X = [[("the", "D"), ("cat", "N")], [("a", "D"), ("dog", "N"), ("sat", "V")]]
    y = [["D", "N"], ["D", "N", "V"]]
    svm = SequenceSVM(C=10.0, features=WindowFeatures()).fit(X, y)
    arrays = [np.array(sentence) for sentence in X]
    expected = [BestDecoder()(model).tolist() for model in svm._models(X)]
    assert [one.tolist() for one in svm.predict(X)] == expected
    assert [one.tolist() for one in svm.predict(arrays)] == expected
    assert svm.predict([]) == []
    with pytest.raises(tt.ModelError, match="each position must be a row of 2 columns, got 'the'"):
        svm.predict([*X, ["the"]])


TEXTS = st.text(st.sampled_from("ab:é語🙂"), max_size=12)
VALUES = st.one_of(TEXTS, st.booleans(), st.integers(-2, 2), st.floats(allow_nan=False, allow_infinity=False))
POSITIONS = st.one_of(st.lists(TEXTS, max_size=5), st.dictionaries(TEXTS, VALUES, max_size=5))


def dense(rows, width):
    return sparse.csr_matrix(
        (rows.values, rows.columns, rows.starts), (len(rows.starts) - 1, width)
    ).toarray()


@settings(deadline=None)
@given(st.lists(st.lists(POSITIONS, max_size=3), min_size=1, max_size=4), st.sets(TEXTS, max_size=12))
def test_many_examples_are_read_as_one_by_one(examples, names):
    words = Vocabulary(tuple(sorted(names)))
    rows, lengths = words.stacked(examples)
    assert lengths == [len(example) for example in examples]
    one_by_one = [words.rows(example).toarray() for example in examples]
    assert np.array_equal(dense(rows, words.size), np.concatenate(one_by_one))


def test_every_name_of_a_large_vocabulary_is_found_again():
    names = [f"{'x' * (i % 40)}{i}" for i in range(20_000)]
    words = pickle.loads(pickle.dumps(Vocabulary(tuple(names))))
    rows, _ = words.stacked([[[name] for name in names], [["y"], [names[7], names[7]]]])
    assert np.array_equal(rows.columns, [*range(20_000), 7, 7])
    assert rows.starts[-3:].tolist() == [20_000, 20_000, 20_002] and (rows.values == 1.0).all()
    assert pickle.loads(pickle.dumps(words)) == words


@pytest.mark.parametrize("size", [*range(1, 72), 1000])
@pytest.mark.parametrize("letter", ["a", "é", "語", "🙂"])
def test_names_that_differ_in_one_letter_or_in_length_are_told_apart(size, letter):
    changed = [letter * i + "b" + letter * (size - i - 1) for i in range(size)]
    names = [letter * size, letter * (size - 1), "\0" + letter * size, *changed]
    words = Vocabulary(tuple(names))
    rows, _ = words.stacked([[[name] for name in [*names, letter * (size + 1), "c" * size]]])
    assert rows.columns[: len(names)].tolist() == list(range(len(names)))
    assert rows.starts[-3:].tolist() == [len(names)] * 3


def test_names_may_be_of_a_class_of_their_own():
    words = Vocabulary((np.str_("a"), np.str_("ébc"), "d" * 40, np.str_("e" * 40)))
    for kind in (str, np.str_):
        rows, _ = words.stacked([[[kind(name)] for name in [*words.names, "unknown"]]])
        assert rows.columns.tolist() == [0, 1, 2, 3] and rows.starts.tolist() == [0, 1, 2, 3, 4, 4]


EXAMPLES = {
    "lists": [[[f"a{i}", f"b{i % 7}", "unknown"], []] for i in range(3000)],
    "dictionaries": [[{"a": str(i % 5), "b": i % 3 == 0, "c": 0.5 * i}] for i in range(6000)],
    "integers": [[{"a": i, "b": "1"}] for i in range(6000)],
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_threads_read_the_same_rows(kind):
    names = ("a", "b", "c", "b:1", *(f"a:{i}" for i in range(4)), *(f"a{i}" for i in range(0, 3000, 2)), "b3")
    words = Vocabulary(names)
    for found, expected in zip(
        words.stacked(EXAMPLES[kind], 5), words.stacked(EXAMPLES[kind], 1), strict=True
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_array_equal(one, other)


def test_threads_leave_to_python_what_is_not_usual():
    examples = [[["a"]] * 6000, [["a", b"b"]]]
    with pytest.raises(tt.ModelError, match="must be strings"):
        Vocabulary(("a",)).stacked(examples, 3)


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_a_fit_computes_features_once(kind, monkeypatch):
    sentences = [[["the"], ["cat"]], [["a"], ["dog"], ["ran"]]]
    plain, seen = WindowFeatures.__call__, []
    monkeypatch.setattr(WindowFeatures, "__call__", lambda self, x: seen.append(x) or plain(self, x))
    fitted = kind(features=WindowFeatures(TAGGING)).fit(sentences, [["D", "N"], ["D", "N", "V"]])
    assert seen == sentences
    given = [templated(sentence, TAGGING) for sentence in sentences]
    other = kind().fit(given, [["D", "N"], ["D", "N", "V"]])
    assert fitted.weights_.tobytes() == other.weights_.tobytes()
