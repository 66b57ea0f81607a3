"""Parameters of the wrong type or out of range raise an error when they are used."""

from inspect import signature
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from sklearn.base import clone

import tallytree as tt
from tallytree.learning import (
    CuttingPlanes,
    Diverse,
    ExpectedFBeta,
    FrankWolfe,
    Graph,
    GraphCRF,
    GraphSVM,
    KBestDecoder,
    MaxBrackets,
    MaxExpected,
    RunOptions,
    SequenceCRF,
    SequenceSVM,
    Subgradient,
    TopTallies,
    TreeCRF,
    TreeSVM,
    WindowFeatures,
    train,
)
from tallytree.learning.parameters import ACCEPTED
from tallytree.parsing import parse_tree

NAN, INF, NOTHING = float("nan"), float("inf"), object()
SEQUENCES = [[["a"], ["b"]], [["b"], ["a"]]], [["x", "y"], ["y", "x"]]
GRAPHS = [Graph(np.eye(2), [[0, 1]])] * 2, SEQUENCES[1]
TREES = ["a b"] * 2, [parse_tree("(S (A a) (B b))")] * 2
ESTIMATORS = {
    SequenceSVM: SEQUENCES,
    SequenceCRF: SEQUENCES,
    GraphSVM: GRAPHS,
    GraphCRF: GRAPHS,
    TreeSVM: TREES,
    TreeCRF: TREES,
}
WRONG = {
    "C": ["1", True, None, 0, -1.0, NAN, INF, [1.0], NOTHING, 1j],
    "scaling": ["Margin", None, 1, ["margin"]],
    "solver": ["lbfgs", FrankWolfe, 3, TopTallies()],
    "extra": ["top", TopTallies, 4, FrankWolfe()],
    "objective": ["hinge", None, 1, ["risk"]],
    "c1": ["0", False, None, -0.1, NAN, INF],
    "c2": ["0", True, None, -0.1, NAN, INF],
    "margin": ["1", True, None, 0, -1, NAN, INF],
    "class_weight": ["even", 3, [1.0, 2.0], True, np.ones(2)],
    "tolerance": ["0.1", True, None, -1, -0.5, NAN],
    "max_passes": ["3", True, None, -1, 0, 2.5, NAN, 3.0],
    "max_seconds": ["60", True, None, -1, NAN],
    "n_jobs": ["2", True, 0, 1.5, NAN, INF],
    "warm_start": ["yes", None, 2, 0.5, NAN],
    "checkpoint": [True, 3, b"run.npz", ["run.npz"]],
    "verbose": ["yes", None, -1, 0.5],
    "all_possible_states": ["yes", None, 2, 0.5],
    "hashed": ["16", True, 0, -1, 16.0, 2**31],
    "min_count": ["2", True, None, -1, 1.5, NAN],
    "features": ["word", WindowFeatures, 3],
    "horizontal": ["2", True, -1, 0.5, NAN],
    "vertical": ["2", True, None, 0, 1.5, NAN],
    "tail": ["both", None, 1],
    "prior": ["0.3", True, None, -1, NAN, INF],
    "smoothing": ["1", True, None, 0, -1, NAN, INF],
    "rare": ["5", True, None, -1, 0.5, NAN],
}
RIGHT = {
    "C": [1, np.float32(0.5), np.int64(2)],
    "max_passes": [np.int64(2), 3, INF],
    "max_seconds": [np.float64(60.0), 60],
    "tolerance": [0.5, np.float64(0.5), 1],
    "n_jobs": [np.int64(1), None],
    "verbose": [0, False, np.False_],
    "warm_start": [0, 1, np.True_],
    "hashed": [np.int64(16), 16, None],
    "min_count": [np.int64(1), 0],
    "c1": [0, np.float64(0.5)],
    "c2": [1, np.float32(1.0)],
    "all_possible_states": [1, np.False_],
    "vertical": [np.int64(2)],
    "horizontal": [None, np.int64(1)],
    "rare": [0],
}


def with_parameter(values):
    return [
        pytest.param(kind, name, value, id=f"{kind.__name__}-{name}-{value!r:.20}")
        for kind in ESTIMATORS
        for name in signature(kind).parameters
        for value in values.get(name, ())
    ]


def test_every_parameter_is_tried():
    names = {name for kind in ESTIMATORS for name in signature(kind).parameters}
    assert names == {*WRONG, "loss"} == {*ACCEPTED, "loss"}


@pytest.mark.parametrize(("kind", "name", "value"), with_parameter(WRONG))
def test_wrong_parameters_are_told_at_the_fit(kind, name, value):
    estimator = kind(**{name: value})
    assert getattr(clone(estimator, safe=False), name) is not None or value is None
    assert vars(kind().set_params(**{name: value})).keys() == vars(estimator).keys()
    with pytest.raises(tt.ModelError) as caught:
        estimator.fit(*ESTIMATORS[kind])
    assert str(caught.value) == f"{name} must be {ACCEPTED[name].words}, got {value!r}"
    assert vars(estimator).keys() == vars(kind()).keys(), "nothing is set"


@pytest.mark.parametrize(("kind", "name", "value"), with_parameter(RIGHT))
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_numbers_may_be_numpys(kind, name, value):
    X, y = ESTIMATORS[kind]
    assert len(kind(**{name: value}).fit(X, y).predict(X)) == 2


@pytest.mark.parametrize("kind", [kind for kind in ESTIMATORS if "hashed" in signature(kind).parameters])
def test_hashed_features_are_not_counted(kind):
    X, y = ESTIMATORS[kind]
    estimator = kind(hashed=16, min_count=2)
    text = r"^min_count=2 has no effect with hashed=16, because hashed features are not counted; remove one"
    with pytest.raises(tt.ModelError, match=text):
        estimator.fit(X, y)
    assert vars(estimator).keys() == vars(kind()).keys(), "nothing is set"
    for least in (0, 1):  # which ignore nothing
        assert len(kind(hashed=16, min_count=least).fit(X, y).predict(X)) == 2


def test_messages_are_sentences():
    with pytest.raises(tt.ModelError, match=r"^C must be a positive number, got '1'$"):
        SequenceSVM(C="1").fit(*SEQUENCES)
    text = r"^solver must be FrankWolfe\(\), CuttingPlanes\(\), Subgradient\(\) or None, got 'lbfgs'$"
    with pytest.raises(tt.ModelError, match=text):
        SequenceSVM(solver="lbfgs").fit(*SEQUENCES)
    with pytest.raises(tt.ModelError, match=r"unknown loss <class '.*\.FBeta'>; it is a class, so call it"):
        SequenceSVM(tt.losses.FBeta).fit(*SEQUENCES)


def test_a_file_for_checkpoints_is_a_path(tmp_path):
    assert SequenceSVM(checkpoint=tmp_path / "run.npz").fit(*SEQUENCES).converged_
    assert Path(tmp_path / "run.npz").exists()


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: RunOptions(max_passes="3"), "max_passes must be"),
        (lambda: RunOptions(max_passes=0), "max_passes must be"),
        (lambda: RunOptions(tolerance=NAN), "tolerance must be"),
        (lambda: RunOptions(max_seconds=-1), "max_seconds must be"),
        (lambda: RunOptions(checkpoint=3), "checkpoint must be"),
        (lambda: RunOptions(callback="print"), "callback must be"),
        (lambda: FrankWolfe(room=0), "room must be"),
        (lambda: FrankWolfe(batch="16"), "batch must be"),
        (lambda: FrankWolfe(cached_passes=-1), "cached_passes must be"),
        (lambda: FrankWolfe(averaging="no"), "averaging must be"),
        (lambda: FrankWolfe(seed=-1), "seed must be"),
        (lambda: Subgradient(batch=0), "batch must be"),
        (lambda: Subgradient(seed=1.5), "seed must be"),
        (lambda: CuttingPlanes("both"), "slacks must be"),
        (lambda: CuttingPlanes(room=1.5), "room must be"),
        (lambda: TopTallies(0), "count must be"),
        (lambda: Diverse(2, distance="1"), "distance must be"),
        (lambda: MaxExpected("f1", samples=-3), "samples must be"),
        (lambda: MaxExpected("f1", samples="3"), "samples must be"),
        (lambda: MaxExpected("f1", samples=0), "samples must be"),
        (lambda: MaxExpected("f1", scale=0.0), "scale must be"),
        (lambda: MaxExpected("f1", scale="1"), "scale must be"),
        (lambda: MaxExpected("f1", seed=-1), "seed must be"),
        (lambda: MaxExpected("f1", corpus="yes"), "corpus must be"),
        (lambda: ExpectedFBeta(scale=NAN), "scale must be"),
        (lambda: ExpectedFBeta(beta=0.0), "beta must be"),
        (lambda: KBestDecoder(0), "k must be"),
        (lambda: KBestDecoder("5"), "k must be"),
        (lambda: MaxBrackets(scale=-1.0), "scale must be"),
        (lambda: MaxBrackets(penalty="x"), "penalty must be"),
    ],
)
def test_solvers_and_decoders_check_their_values_themselves(make, text):
    with pytest.raises(tt.ModelError, match=f"^{text} .*, got "):
        make()


@pytest.mark.parametrize("change", [{"C": "1"}, {"C": NAN}, {"scaling": "x"}, {"n_jobs": 0}, {"solver": "x"}])
def test_train_checks_the_same(change):
    from learning_problems import LOSSES, sequences

    (name,) = change
    with pytest.raises(tt.ModelError, match=f"^{name} must be .*, got"):
        train(sequences(1, LOSSES["hamming"]), **change)
