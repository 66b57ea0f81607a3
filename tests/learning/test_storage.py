"""Fitted estimators are restored from files and pickles; anything else raises an error when it is saved."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import sentences, strings

import tallytree as tt
from tallytree.learning import (
    CuttingPlanes,
    Graph,
    GraphSVM,
    SequenceSVM,
    Subgradient,
    TopTallies,
    load,
    save,
)
from tallytree.learning.files import write_arrays


@pytest.mark.parametrize(
    "svm",
    [
        SequenceSVM(tt.losses.FBeta(beta=2.0, background="P"), scaling="slack", extra=TopTallies(2)),
        SequenceSVM(solver=CuttingPlanes("one"), hashed=64),
        SequenceSVM(solver=Subgradient(), tolerance=0.4),
        SequenceSVM("hamming", tolerance=0.4),
    ],
    ids=repr,
)
def test_estimators_survive_pickles_and_files(svm, tmp_path):
    words, y = sentences(12)
    X = [strings(sentence) for sentence in words]
    svm.fit(X, y)
    save(svm, tmp_path / "svm.npz")
    for other in (load(tmp_path / "svm.npz"), pickle.loads(pickle.dumps(svm))):
        assert other.get_params() == svm.get_params()
        assert other.weights_.tobytes() == svm.weights_.tobytes()
        assert [one.tolist() for one in other.predict(X)] == [one.tolist() for one in svm.predict(X)]
        assert other.classes_.tolist() == svm.classes_.tolist()
        assert (other.gap_, other.history_) == (svm.gap_, svm.history_)


@pytest.mark.parametrize("name", ["svm.gz", "svm.npz.xz", "svm.bz2"])
def test_the_name_of_a_file_may_be_any(tmp_path, name):
    words, y = sentences(4)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM(tolerance=0.5, checkpoint=tmp_path / f"at-{name}").fit(X, y)
    save(svm.set_params(checkpoint=None), tmp_path / name)
    assert load(tmp_path / name).weights_.tobytes() == svm.weights_.tobytes()
    again = SequenceSVM(tolerance=0.5, checkpoint=tmp_path / f"at-{name}").fit(X, y)
    assert again.weights_.tobytes() == svm.weights_.tobytes()


def test_graphs_survive_files_too(tmp_path):
    graph = Graph(np.array([[1.0, 1.0], [-1.0, 1.0]]), [[0, 1]])
    svm = GraphSVM(C=10.0).fit([graph], [["on", "off"]])
    save(svm, tmp_path / "svm.npz")
    assert load(tmp_path / "svm.npz").predict([graph])[0].tolist() == ["on", "off"]


class Mine(tt.losses.HammingDistance):
    pass


def test_what_cannot_be_read_back_is_not_written(tmp_path):
    words, y = sentences(4)
    svm = SequenceSVM(Mine(), tolerance=0.5)
    with pytest.raises(tt.ModelError, match="this SequenceSVM is not fitted"):
        save(svm, tmp_path / "svm.npz")
    with pytest.raises(tt.ModelError, match=r"loss is Mine.* which cannot be saved"):
        save(svm.fit([strings(s) for s in words], y), tmp_path / "svm.npz")
    assert not list(tmp_path.iterdir())


def test_parameters_that_cannot_be_read_back_are_not_written(tmp_path):
    words, y = sentences(4)
    svm = SequenceSVM(tolerance=0.5, max_passes=1000).fit([strings(s) for s in words], y)
    save(svm, tmp_path / "svm.npz")
    before = (tmp_path / "svm.npz").read_bytes()
    for wrong in ({"max_passes": 1e3}, {"tolerance": -1.0}, {"C": -1.0}, {"loss": "nothing"}):
        changed = pickle.loads(pickle.dumps(svm)).set_params(**wrong)
        with pytest.raises(tt.ModelError, match=r"(max_passes|tolerance|C) must be|unknown loss"):
            save(changed, tmp_path / "svm.npz")
    assert (tmp_path / "svm.npz").read_bytes() == before


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ({"class": "os.system"}, "an unknown estimator"),
        (
            {"class": "SequenceSVM", "parameters": {"loss": {"class": "eval"}}},
            "the file has 'eval', which is not a loss",
        ),
        (
            {"class": "SequenceSVM", "parameters": {}, "attributes": {"predict": 1}, "history": []},
            "sets 'predict', which is not a parameter of saved estimators",
        ),
        (
            {"class": "SequenceSVM", "parameters": {"loss": "g2"}, "attributes": {}, "history": []},
            "unknown loss 'g2'",
        ),
    ],
)
def test_files_with_something_else_in_them_are_refused(header, text, tmp_path):
    write_arrays(tmp_path / "svm.npz", {"kind": "estimator", **header}, {"weights": np.zeros(1)})
    with pytest.raises(tt.ModelError, match=text):
        load(tmp_path / "svm.npz")
