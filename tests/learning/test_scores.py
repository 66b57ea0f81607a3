"""``score``, scorers, and losses by name."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import tallytree as tt
from tallytree.errors import ModelError
from tallytree.learning import (
    GraphSVM,
    Scorer,
    SequenceSVM,
    TreeSVM,
    accuracy_scorer,
    chunk_f1_scorer,
    corpus_f,
    corpus_score,
    sample_sentences,
    token_f1_scorer,
)
from tallytree.losses import (
    LOSS_NAMES,
    ChunkFBeta,
    FBeta,
    HammingDistance,
    HammingLoss,
    IntersectionOverUnion,
    SymmetricDifference,
    ZeroOne,
    as_loss,
)

TAGS = ("O", "B-NP", "I-NP", "B-VP")
labellings = st.lists(
    st.lists(st.tuples(st.sampled_from(TAGS), st.sampled_from(TAGS)), min_size=1, max_size=6), max_size=5
)


@given(labellings)
def test_scores_by_their_definitions(pairs):
    truths = [[a for a, _ in one] for one in pairs]
    found = [[b for _, b in one] for one in pairs]
    flat = [pair for one in pairs for pair in one]
    right = sum(a == b for a, b in flat)
    assert corpus_score(truths, found, HammingLoss()) == right / max(len(flat), 1)
    tp = sum(a == b != "O" for a, b in flat)
    wanted, given_ = sum(a != "O" for a, _ in flat), sum(b != "O" for _, b in flat)
    expected = 2 * tp / (wanted + given_) if wanted + given_ else 1.0
    assert corpus_score(truths, found, FBeta(background="O")) == pytest.approx(expected)
    either = wanted + given_ - tp
    assert corpus_score(truths, found, IntersectionOverUnion(background="O")) == pytest.approx(
        tp / either if either else 1.0
    )
    whole = sum(a == b for a, b in zip(truths, found, strict=True))
    assert corpus_score(truths, found, ZeroOne()) == whole / max(len(pairs), 1)


def test_chunks_are_scored_whole_and_other_losses_by_their_mean():
    truths, found = [["B-NP", "I-NP", "O", "B-VP"]], [["B-NP", "O", "O", "B-VP"]]
    assert corpus_score(truths, found, ChunkFBeta()) == 0.5
    assert corpus_score(truths, found, SymmetricDifference(background="O")) == 0.0  # one node is missing


def test_an_estimator_is_scored_by_its_own_loss():
    sentences = sample_sentences()
    X = [[[row[0]] for row in sentence] for sentence in sentences]
    y = [[row[-1] for row in sentence] for sentence in sentences]
    for loss, scorer in (
        ("chunk-f1", chunk_f1_scorer),
        ("f1", token_f1_scorer),
        ("hamming", accuracy_scorer),
    ):
        svm = SequenceSVM(loss, C=1.0, max_passes=2, tolerance=10.0).fit(X[:20], y[:20])
        assert svm.score(X[20:30], y[20:30]) == scorer(svm, X[20:30], y[20:30])
    predicted = svm.predict(X[20:30])
    assert chunk_f1_scorer(svm, X[20:30], y[20:30]) == corpus_score(y[20:30], predicted, ChunkFBeta())
    assert chunk_f1_scorer(svm, X[20:30], y[20:30]) < accuracy_scorer(svm, X[20:30], y[20:30])


def test_a_grid_search_goes_by_the_loss():
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 4, [["B-x", "O"], ["O", "B-x"]] * 4
    search = GridSearchCV(SequenceSVM("chunk-f1", tolerance=0.5), {"C": [1.0, 10.0]}, cv=2)
    assert search.fit(X, y).best_score_ == 1.0
    search = GridSearchCV(SequenceSVM(tolerance=0.5), {"loss": ["f1", "hamming"]}, cv=2, scoring=Scorer("f1"))
    assert search.fit(X, y).best_score_ == 1.0


def test_losses_by_name():
    assert isinstance(as_loss("hamming"), HammingDistance)
    assert as_loss("f1") == FBeta(background="O")
    assert as_loss("f1", None, beta=2.0) == FBeta(beta=2.0)
    given_ = FBeta(beta=3.0, background="x")
    assert as_loss(given_) is given_
    assert {type(as_loss(name)).__name__ for name in LOSS_NAMES} >= {"ChunkFBeta", "ZeroOne"}
    assert as_loss("f0.5") == FBeta(beta=0.5, background="O")
    assert as_loss("chunk-f2") == ChunkFBeta(beta=2.0)
    assert as_loss("accuracy") == as_loss("hamming")
    for wrong in ("F1", "chunk", "f", "f-1", "f1e3", "f٢", "iou2", 3, None):
        with pytest.raises(ModelError, match=r"unknown loss .* names are accuracy, hamming, f1, .* as in f2"):
            as_loss(wrong)
    with pytest.raises(ModelError, match="beta must be"):
        as_loss("f0")


def test_a_score_of_a_corpus_by_its_name():
    truths = [["B-NP", "I-NP", "O"], ["B-VP", "O", "B-NP"]]
    found = [["B-NP", "O", "O"], ["B-VP", "O", "B-NP"]]
    named = {"chunk-f1": ChunkFBeta(), "f1": FBeta(background="O"), "f2": FBeta(beta=2.0, background="O")}
    for name, loss in named.items():
        assert corpus_f(truths, found, name) == corpus_f(truths, found, loss)
        assert corpus_score(truths, found, name) == corpus_score(truths, found, loss)
    assert corpus_score(truths, found, "zero-one") == 0.5
    for other in ("hamming", HammingDistance()):
        with pytest.raises(
            ModelError, match=r"corpus_f needs an F-measure, .* got .*; for other losses, use"
        ):
            corpus_f(truths, found, other)


@pytest.mark.parametrize("kind", [SequenceSVM, GraphSVM, TreeSVM])
def test_estimators_keep_the_name(kind):
    svm = kind("f1")
    assert clone(svm).get_params()["loss"] == "f1"
    assert isinstance(svm._recipe(), FBeta)
    assert kind("f2")._recipe().beta == 2.0
    with pytest.raises(ModelError, match="unknown loss 'g2'"):
        kind("g2")._recipe()


def test_grids_are_scored_flat():
    truth, found = np.array([[0, 1], [1, 1]]), np.array([[0, 1], [0, 1]])
    assert corpus_score([truth], [found], HammingDistance()) == 0.75
    assert corpus_score([truth], [found], FBeta(background=0)) == pytest.approx(0.8)


def test_an_interrupt_ends_a_grid_search(monkeypatch, tmp_path):
    fits = []

    def interrupted(progress):
        fits.append(progress)
        raise KeyboardInterrupt

    monkeypatch.setattr("tallytree.learning.progress.show_line", interrupted)
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 4, [["B-x", "O"], ["O", "B-x"]] * 4
    with pytest.raises(KeyboardInterrupt, match="discards its copies and cannot resume") as stop:
        GridSearchCV(SequenceSVM(verbose=True), {"C": [1.0, 10.0]}, cv=2).fit(X, y)
    assert len(fits) == 1
    assert "warm_start" not in str(stop.value)  # the copy is lost
    svm = SequenceSVM(verbose=True, checkpoint=tmp_path / "run.npz")
    with pytest.raises(KeyboardInterrupt, match=r"fit again to resume from .*run\.npz"):
        svm.fit(X, y)
    assert svm.interrupted_
    assert len(svm.predict(X)) == 8


def test_a_corpus_has_one_prediction_for_each_truth():
    with pytest.raises(ModelError, match="there are 2 truths but 1 predictions; each truth needs one"):
        corpus_f([["O"], ["O"]], iter([["O"]]))


@pytest.mark.parametrize("loss", [tt.losses.WeightedHamming(weight=1 - np.eye(2)), tt.losses.LabelCount()])
def test_losses_on_the_numbers_of_labels_score_names(loss):
    X, y = [[["a"], ["b"]], [["b"], ["a"], ["a"]]], [["x", "y"], ["y", "x", "x"]]
    named = SequenceSVM(loss, C=10.0).fit(X, y)
    numbered = SequenceSVM(loss, C=10.0).fit(X, [[0, 1], [1, 0, 0]])
    assert named.score(X, y) == 1.0
    wrong = [["y", "y"], ["y", "x", "x"]]
    assert named.score(X, wrong) == numbered.score(X, [[1, 1], [1, 0, 0]]) < 1.0
