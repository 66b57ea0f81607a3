"""Parameters of parameters: ``loss__beta``, ``solver__room``."""

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import sentences, strings
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import tallytree as tt
from tallytree.learning import SequenceSVM, TreeSVM


def test_the_parameters_of_a_loss_given_by_its_name_can_be_searched():
    words, y = sentences(8)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM("f1", tolerance=0.3)
    assert svm.get_params()["loss__beta"] == 1.0 and svm.get_params()["loss__background"] == "O"
    assert svm.get_params(deep=False)["loss"] == "f1" == clone(svm).loss
    grid = GridSearchCV(svm, {"loss__beta": [0.5, 2.0], "loss__background": ["P"]}, cv=2).fit(X, y)
    assert grid.best_estimator_.loss == tt.losses.FBeta(beta=grid.best_params_["loss__beta"], background="P")
    assert clone(svm).set_params(loss="chunk-f2", loss__scheme="IO").loss == tt.losses.ChunkFBeta(
        beta=2.0, scheme="IO"
    )
    assert TreeSVM("f1").set_params(loss__beta=2.0).loss == tt.losses.FBeta(beta=2.0)
    assert "loss__beta" not in SequenceSVM("nonsense").get_params()


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"loss__beta": 2.0}, r"unknown parameter 'loss__beta': loss is None; set it first, as in loss='f1'"),
        ({"solver__room": 2}, r"'solver__room': solver is None; set it first, as in solver=FrankWolfe\(\)"),
        ({"loss": "f1", "loss__bate": 2.0}, r"'loss__bate': loss is 'f1', which has background, beta"),
        ({"loss": "f1", "loss__beta": "2"}, r"beta must be a number from 1e-06 to 1e\+06, got '2'"),
        ({"loss": "hamming", "loss__beta": 2.0}, r"'loss__beta': loss is 'hamming', which has no parameters"),
        ({"C__x": 2.0}, r"unknown parameter 'C__x': C is 1\.0, which has no parameters"),
        ({"D__x": 2.0}, r"Invalid parameter 'D' for estimator SequenceSVM"),
        ({"D": 2.0}, r"Invalid parameter 'D' for estimator SequenceSVM"),
    ],
)
def test_unknown_parameters_are_told(parameters, text):
    with pytest.raises(ValueError, match=text):
        SequenceSVM().set_params(**parameters)
