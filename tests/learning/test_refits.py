"""A fit succeeds as a whole or changes nothing: the state after a failed or interrupted fit."""

import os
import pickle
import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import sentences, strings
from sklearn.exceptions import ConvergenceWarning

import tallytree as tt
from tallytree.learning import (
    CuttingPlanes,
    FrankWolfe,
    Graph,
    GraphCRF,
    GraphSVM,
    SequenceCRF,
    SequenceSVM,
    TreeCRF,
    TreeSVM,
)
from tallytree.parsing import parse_tree

WORDS, LABELS = sentences(6)
OLD = [strings(one) for one in WORDS], LABELS
NEW = [[["other"], ["words"], ["here"]], [["words"], ["here"]]], [["Q", "R", "S"], ["R", "S"]]
GRAPHS = [Graph(np.eye(3)[[0, 1, 0]], [[0, 1], [1, 2]]), Graph(np.eye(3)[[2, 1]], [[0, 1]])]
TREES = [parse_tree(f"(S (NP (NN {word})) (VP (VB swim)))") for word in ("fish", "men")]
NEW_TREES = [parse_tree("(X (A (B one)) (C (D two)))"), parse_tree("(X (A (B two)) (C (D one)))")]
CASES = {
    "SequenceSVM": (SequenceSVM, OLD, NEW),
    "SequenceCRF": (SequenceCRF, OLD, NEW),
    "GraphSVM": (GraphSVM, (GRAPHS, [["a", "b", "a"], ["c", "b"]]), (GRAPHS[1:], [["d", "e"]])),
    "GraphCRF": (GraphCRF, (GRAPHS, [["a", "b", "a"], ["c", "b"]]), (GRAPHS[1:], [["d", "e"]])),
    "TreeSVM": (TreeSVM, (["fish swim", "men swim"], TREES), (["one two", "two one"], NEW_TREES)),
    "TreeCRF": (TreeCRF, (["fish swim", "men swim"], TREES), (["one two", "two one"], NEW_TREES)),
}
STEPS = ("_read", "_learn", "_truths", "_problem", "_run_options")  # of a fit, in this order


def interrupt(*_, **__):
    raise KeyboardInterrupt


def told(found):
    return [str(one) if found and not isinstance(one, np.ndarray) else one.tolist() for one in found]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_second_fit_that_is_interrupted_early_leaves_the_first_one(name, step, monkeypatch):
    kind, old, new = CASES[name]
    estimator = kind().fit(*old)
    before, found = dict(vars(estimator)), told(estimator.predict(old[0]))
    with monkeypatch.context() as patch:
        patch.setattr(kind, step, interrupt)
        with pytest.raises(KeyboardInterrupt):
            estimator.fit(*new)
    assert vars(estimator).keys() == before.keys()
    assert all(vars(estimator)[key] is value for key, value in before.items())
    assert told(estimator.predict(old[0])) == found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_an_interrupt_within_the_first_pass_leaves_the_estimator_as_it_was(name, monkeypatch):
    kind, old, new = CASES[name]
    first, fitted = kind(), kind().fit(*old)
    before, found = dict(vars(fitted)), told(fitted.predict(old[0]))
    with monkeypatch.context() as patch:
        patch.setattr("tallytree.learning.frank_wolfe.FrankWolfeRun.advance", interrupt)
        patch.setattr("tallytree.learning.descent._Descent._value", interrupt)
        with pytest.raises(KeyboardInterrupt, match=r"before the first pass ended.*not fitted"):
            first.fit(*old)
        with pytest.raises(KeyboardInterrupt, match=r"before the first pass ended.*weights of the last fit"):
            fitted.fit(*new)
    assert vars(first) == vars(kind())
    assert vars(fitted) == before
    assert told(fitted.predict(old[0])) == found


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_a_warm_start_that_is_interrupted_early_can_go_on(kind, monkeypatch):
    estimator = kind(warm_start=True, tolerance=0.2).fit(*OLD)
    weights = estimator.weights_.copy()
    with monkeypatch.context() as patch:
        patch.setattr("tallytree.learning.frank_wolfe.FrankWolfeRun._visit", interrupt)
        patch.setattr("tallytree.learning.descent._Descent._value", interrupt)
        with pytest.raises(KeyboardInterrupt):
            estimator.set_params(tolerance=1e-3).fit(*OLD)
    assert np.array_equal(estimator.weights_, weights)
    assert estimator.fit(*OLD).converged_


def interrupted_after(passes):
    seen = []

    def show(progress):
        seen.append(progress)
        if len(seen) == passes:
            raise KeyboardInterrupt

    return show


@pytest.mark.parametrize("name", CASES)
def test_a_second_fit_that_is_interrupted_later_is_whole(name, monkeypatch, tmp_path):
    kind, old, new = CASES[name]
    with warnings.catch_warnings(action="ignore"):
        estimator = kind(tolerance=1e-9).fit(*old)
    monkeypatch.setattr("tallytree.learning.progress.show_line", interrupted_after(1))
    with pytest.raises(KeyboardInterrupt, match=r"interrupted after 1 pass.* can predict"):
        estimator.set_params(verbose=True).fit(*new)
    assert estimator.interrupted_ and len(estimator.history_) == 1
    estimator._check_fit()
    assert estimator.classes_.tolist() == estimator.labels_.classes.tolist()
    assert len(estimator.predict(new[0])) == len(new[0])


BAD = [[["a"], ["b"]]], [["x"]]  # two positions, one label


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_a_second_fit_that_fails_leaves_the_first_one(kind):
    estimator = kind().fit(*OLD)
    before, found = dict(vars(estimator)), told(estimator.predict(OLD[0]))
    with pytest.raises(tt.ModelError, match="2 positions but 1 labels"):
        estimator.fit(*BAD)
    assert vars(estimator) == before
    assert told(estimator.predict(OLD[0])) == found
    if kind is SequenceCRF:
        with pytest.raises(tt.ModelError, match="counted example 0"):
            estimator.fit(*NEW, counted=([[["a"]]], [{"Z": 1}]))
        assert vars(estimator) == before


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_warnings_name_the_line_of_the_user_and_may_be_errors(kind):
    with pytest.warns(ConvergenceWarning) as caught:
        kind(max_passes=1, tolerance=0.0).fit(*OLD)
    assert [os.path.basename(one.filename) for one in caught] == [os.path.basename(__file__)]
    estimator = kind(max_passes=1, tolerance=0.0)
    with warnings.catch_warnings(action="error"), pytest.raises(ConvergenceWarning):
        estimator.fit(*OLD)
    assert len(estimator.predict(OLD[0])) == 6
    assert pickle.loads(pickle.dumps(estimator)).history_ == estimator.history_


@pytest.mark.parametrize(
    ("change", "text"),
    [
        (
            {"solver": CuttingPlanes()},
            "the last result is from FrankWolfe, not CuttingPlanes; .*=False",
        ),
        ({"solver": FrankWolfe(averaging=True)}, "the last result is from a FrankWolfe with other settings"),
        ({"scaling": "slack"}, "the last result is for 'margin' scaling, not 'slack'; .*warm_start=False"),
    ],
)
def test_a_warm_start_with_other_settings_says_which(change, text):
    svm = SequenceSVM(warm_start=True).fit(*OLD)
    with pytest.raises(tt.ModelError, match=text):
        svm.set_params(**change).fit(*OLD)
    assert svm.set_params(warm_start=False).fit(*OLD).converged_


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_a_checkpoint_that_cannot_be_written_is_told_before_training(kind, tmp_path, monkeypatch):
    monkeypatch.setattr("tallytree.learning.frank_wolfe.FrankWolfeRun.advance", interrupt)
    monkeypatch.setattr("tallytree.learning.descent._Descent._value", interrupt)
    with pytest.raises(FileNotFoundError, match=r"run\.npz"):
        kind(checkpoint=tmp_path / "nowhere" / "run.npz").fit(*OLD)
    with pytest.raises(IsADirectoryError):
        kind(checkpoint=tmp_path).fit(*OLD)
