"""Examples and labels as users pass them: iterators, arrays, and objects that are not sequences."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import tallytree as tt
from tallytree.learning import (
    Graph,
    GraphCRF,
    GraphSVM,
    SequenceCRF,
    SequenceSVM,
    TreeCRF,
    TreeSVM,
    WindowFeatures,
    accuracy,
    corpus_f,
    corpus_score,
)
from tallytree.parsing import parse_tree

X = [[{"w": "a", "n": 1.0}, {"w": "b"}], [{"w": "b"}, {"w": "a"}, {"w": "c", "t": ["p", "q"]}]]
Y = [["x", "O"], ["O", "x", "O"]]
GRAPHS = [Graph(np.eye(3)[[0, 1]], [[0, 1]]), Graph(np.eye(3)[[1, 0, 2]], [[0, 1]])]
TREES = [parse_tree("(S (A a) (B b))"), parse_tree("(S (A b) (B a))")]
ROWS = [[("a", "A"), ("b", "B")], [("b", "B"), ("a", "A"), ("c", "C")]]
SEQUENCES = [SequenceSVM, SequenceCRF]
CASES = [
    *((kind(), X, Y) for kind in SEQUENCES),
    *((kind(features=WindowFeatures()), ROWS, Y) for kind in SEQUENCES),
    *((kind(), GRAPHS, Y) for kind in (GraphSVM, GraphCRF)),
    *((kind(), ["a b", "b a"], TREES) for kind in (TreeSVM, TreeCRF)),
]


def told(found):
    return [str(one) for one in found]


@pytest.mark.parametrize(("estimator", "examples", "y"), CASES)
def test_iterators_are_read(estimator, examples, y):
    expected = estimator.fit(examples, y)
    weights, found, score = expected.weights_, told(expected.predict(examples)), expected.score(examples, y)
    again = estimator.fit(iter(examples), (one for one in y))
    assert np.array_equal(again.weights_, weights)
    assert told(again.predict(one for one in examples)) == found
    assert again.score(iter(examples), iter(y)) == score
    assert again.predict(iter(())) == []
    if hasattr(again, "log_loss"):
        assert again.log_loss(iter(examples), iter(y)) == again.log_loss(examples, y)
    if hasattr(again, "predict_marginals"):
        assert len(again.predict_marginals(iter(examples))) == 2


@pytest.mark.parametrize("kind", SEQUENCES)
def test_sentences_and_labellings_may_be_iterators_too(kind):
    expected = kind().fit(X, Y)
    found = kind().fit([iter(one) for one in X], [iter(one) for one in Y])
    assert np.array_equal(found.weights_, expected.weights_)
    assert told(found.predict([iter(one) for one in X])) == told(expected.predict(X))
    if kind is SequenceCRF:
        counted = kind().fit(X, Y, counted=(iter([iter(X[0])]), iter([{"x": 1}])))
        assert np.array_equal(counted.weights_, kind().fit(X, Y, counted=([X[0]], [{"x": 1}])).weights_)
        assert np.array_equal(found.expected_loss(iter(X), iter(Y)), found.expected_loss(X, Y))


@pytest.mark.parametrize(("estimator", "examples", "y"), CASES)
@pytest.mark.parametrize("wrong", [None, 3, {0: X[0], 1: X[1]}, {1, 2}, "ab", b"ab"], ids=repr)
def test_what_is_not_a_sequence_is_told(estimator, examples, y, wrong):
    with pytest.raises(tt.ModelError, match=r"^X must be a sequence of examples, got "):
        estimator.fit(wrong, y)
    with pytest.raises(tt.ModelError, match=r"^y must be a sequence of (labellings|trees), got "):
        estimator.fit(examples, wrong)
    fitted = estimator.fit(examples, y)
    with pytest.raises(tt.ModelError, match=r"^X must be a sequence of examples, got "):
        fitted.predict(wrong)
    with pytest.raises(tt.ModelError, match=r"^y must be a sequence of (labellings|trees), got "):
        fitted.score(examples, wrong)
    with pytest.raises(tt.ModelError, match=r"^there are 2 examples but 1 (labelling|tree); each"):
        fitted.score(examples, y[:1])


@pytest.mark.parametrize("kind", SEQUENCES)
@pytest.mark.parametrize(
    ("examples", "text"),
    [
        (["the cat", "a dog is"], r"^example 0: an example must be a sequence of positions, got the string"),
        ([X[0], "a dog"], r"^example 1: an example must be a sequence of positions, got the string 'a dog'"),
        ([X[0], 3], r"^example 1: an example must be a sequence of positions, got 3"),
        ([3, X[1]], r"^example 0: an example must be a sequence of positions, got 3"),
        ([None, X[1]], r"^example 0: an example must be a sequence of positions, got None"),
        (np.ones(2), r"^example 0: an example must be a sequence of positions, got np\.float64\(1\.0\)"),
        (np.ones((2, 3)), r"^example 0: an example must have shape \(positions, features\), got \(3,\)"),
        ([[3, 4], [1, 2, 3]], r"^example 0: an example must have shape \(positions, features\), got \(2,\)"),
        ([["the", "cat"], X[1]], r"^example 0: a position must be .*, got 'the'"),
        ([np.array(["the", "cat"]), X[1]], r"^example 0: a position must be .*, got .*'the'"),
        (
            [[["a", None], ["b"]], X[1]],
            r"^example 0: attributes .* must be strings, got None in",
        ),
        ([[["a", 1], ["b"]], X[1]], r"^example 0: attributes .* must be strings, got 1 in \['a', 1\]"),
        ([[[1, "a"], ["b"]], X[1]], r"^example 0: attributes .* must be strings, got 1 in \[1, 'a'\]"),
        ([[[("w", "a")], ["b"]], X[1]], r"^example 0: attributes .* must be strings, got \('w', 'a'\) in"),
        ([[None, {"w": "b"}], X[1]], r"^example 0: a position must be .*, got None"),
        (
            [[[1, 2], [1]], X[1]],
            r"^example 0: rows of numbers must have the same length, got \[\[1, 2",
        ),
        ([[[1.0], [2.0]], X[1]], r"^example 1: expected rows of numbers, .* got .*'w': 'b'"),
        (
            [[{"w": [1, 2]}, {}], X[1]],
            r"^example 0: attribute 'w' has \[1, 2\]; the items of a list",
        ),
        ([[{"w": {1, "a"}}, {}], X[1]], r"^example 0: attribute 'w' has .*; the items of a list must be str"),
        ([[{"w": None}, {}], X[1]], r"^example 0: attribute 'w' has the value None; use strings"),
        ([[{"w": {"v": None}}, {}], X[1]], r"^example 0: attribute 'w:v' has the value None; use strings"),
        ([[{"w": {"v": np.nan}}, {}], X[1]], r"^example 0: attribute 'w:v' is nan"),
    ],
)
def test_examples_that_are_not_positions_with_features(kind, examples, text):
    with pytest.raises(tt.ModelError, match=text):
        kind().fit(examples, Y)


@pytest.mark.parametrize("kind", SEQUENCES)
@pytest.mark.parametrize(
    ("examples", "text"),
    [
        ([X[0], "a dog"], r"^example 1: an example must be a sequence of positions, got the string 'a dog'"),
        ([X[0], 3], r"^example 1: an example must be a sequence of positions, got 3"),
        ([X[0], [None]], r"^example 1: a position must be .*, got None"),
        ([X[0], ["the"]], r"^example 1: a position must be .*, got 'the'"),
        ([X[0], [["a", 1]]], r"^example 1: attributes .* must be strings, got 1 in \['a', 1\]"),
        ([X[0], np.eye(2)], r"^example 1: attributes .* must be strings, got np\.float64\(1\.0\) in"),
    ],
)
def test_the_same_when_predicting(kind, examples, text):
    fitted = kind().fit(X, Y)
    with pytest.raises(tt.ModelError, match=text):
        fitted.predict(examples)
    with pytest.raises(tt.ModelError, match=text):
        fitted.score(examples, Y)


@pytest.mark.parametrize("kind", SEQUENCES)
@pytest.mark.parametrize("dtype", [object, "U3"])
def test_arrays_of_strings_are_features(kind, dtype):
    lists = [[["a", "p"], ["b", "q"]], [["b", "q"], ["a", "q"], ["c", "p"]]]
    arrays = [np.array(one, dtype=dtype) for one in lists]
    expected, found = kind().fit(lists, Y), kind().fit(arrays, [np.array(one) for one in Y])
    assert np.array_equal(found.weights_, expected.weights_)
    assert found.classes_.tolist() == ["O", "x"]
    assert all(type(name) is str for name in (*found.labels_.names, *found.encoder_.names))
    assert told(found.predict(arrays)) == told(expected.predict(lists))
    hashed = kind(hashed=32).fit(arrays, Y)
    assert told(hashed.predict(arrays)) == told(kind(hashed=32).fit(lists, Y).predict(lists))


@pytest.mark.parametrize(
    ("estimator", "examples"), [(kind(), X) for kind in SEQUENCES] + [(GraphSVM(), GRAPHS)]
)
def test_numbers_that_are_not_labels_from_zero(estimator, examples):
    large = [[10**9, 0], [0, 0, 0]]
    text = "labels are integers up to 1000000000, but only 2 of them occur; .* number them from 0, or use str"
    with pytest.raises(tt.ModelError, match=text):
        estimator.fit(examples, large)
    assert estimator.fit(examples, [[5, 0], [0, 5, 0]]).labels_.count == 6


@pytest.mark.parametrize(
    ("y", "text"),
    [
        ([["x", "O"], ["O", "Z", "O"]], "example 1: label 'Z' was not in the training data, which has O, x"),
        ([[1, 0], [0, 1, 0]], "example 0: label 1 was not in the training data, which has O, x"),
        ([["x", None], ["O", "x", "O"]], "example 0: label None was not in the training data"),
    ],
)
def test_labels_that_were_not_seen_in_training(y, text):
    crf = SequenceCRF().fit(X, Y)
    for method in (crf.log_loss, crf.expected_loss):
        with pytest.raises(tt.ModelError, match=text):
            method(X, y)


@pytest.mark.parametrize("wrong", [2, -1, "x", 0.5, None, 10**30, [1, 2]])
def test_numbers_that_were_not_seen_in_training(wrong):
    crf = SequenceCRF().fit(X, [[1, 0], [0, 1, 0]])
    with pytest.raises(
        tt.ModelError, match=r"example 0: label .* was not in the training data, which has 0 to 1"
    ):
        crf.log_loss(X, [[0, wrong], [0, 1, 0]])
    assert crf.log_loss(X, [np.array([1, 0]), np.array([False, True, False])]) > 0.0


@pytest.mark.parametrize("score", [accuracy, corpus_f, lambda y, z: corpus_score(y, z, "zero-one")])
def test_scores_need_a_prediction_for_each_truth(score):
    with pytest.raises(tt.ModelError, match="there are 2 truths but 1 predictions; each truth needs one"):
        score([["O"], ["O"]], [["O"]])
    if score is not corpus_f:
        return
    with pytest.raises(tt.ModelError, match="example 0: the truth has 2 variables, the labelling has 1"):
        score([["O", "O"]], [["O"]])


def test_accuracy_needs_a_label_for_each_position():
    with pytest.raises(tt.ModelError, match="example 1: the truth has 2 labels, the prediction has 1"):
        accuracy([["O"], ["O", "O"]], [["O"], ["O"]])


def test_examples_with_counts_are_a_pair():
    with pytest.raises(tt.ModelError, match=r"counted must be a pair \(examples, counts\), got .*Z"):
        SequenceCRF().fit(X, Y, counted="Z")
    with pytest.raises(tt.ModelError, match=r"counted must be a pair \(examples, counts\), got "):
        SequenceCRF().fit(X, Y, counted=(X,))
