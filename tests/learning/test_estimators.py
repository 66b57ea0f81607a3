"""The estimators follow scikit-learn's contract: parameters, clones, pipelines, grids and warm starts."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import WORDS, sentences, strings
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import FunctionTransformer

import tallytree as tt
from tallytree.learning import (
    BestDecoder,
    ExpectedFBeta,
    FrankWolfe,
    Graph,
    GraphSVM,
    KBestDecoder,
    SequenceCRF,
    SequenceSVM,
    accuracy_scorer,
    corpus_f,
    corpus_score,
    grid_graph,
    label_graphs,
)
from tallytree.learning.files import read_arrays


def dictionaries(words):
    return [{"word": word, "length": len(word), "first": i == 0} for i, word in enumerate(words)]


def one_hot(words):
    known = sorted({word for group in WORDS.values() for word in group})
    return np.array([[float(word == other) for other in known] for word in words])


ENCODINGS = {
    "strings": strings,
    "dictionaries": dictionaries,
    "dense": one_hot,
    "sparse": lambda words: sparse.csr_matrix(one_hot(words)),
    "lists of numbers": lambda words: one_hot(words).tolist(),
}


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_sequences_are_learned_from_every_kind_of_features(encoding):
    words, y = sentences(20)
    X = [ENCODINGS[encoding](sentence) for sentence in words]
    svm = SequenceSVM(C=1.0).fit(X, y)
    assert svm.score(X, y) == 1.0
    assert svm.converged_ and not svm.interrupted_
    assert svm.gap_ <= svm.tolerance * svm.primal_
    assert svm.classes_.tolist() == ["D", "N", "P", "V"]
    assert svm.transitions_.shape == (4, 4)
    assert svm.emissions_.shape == (svm.encoder_.size, 4)


def test_hashed_strings_need_no_vocabulary():
    words, y = sentences(20)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM(hashed=2**10).fit(X, y)
    assert svm.emissions_.shape == (2**10, 4)
    assert svm.score(X, y) == 1.0


def test_rare_attributes_can_be_left_out():
    words, y = sentences(20)
    X = [strings(sentence) for sentence in words]
    X[0][0].append("only here")
    assert "only here" in SequenceSVM().fit(X, y).encoder_.names
    assert "only here" not in SequenceSVM(min_count=2).fit(X, y).encoder_.names


def test_unseen_attributes_are_ignored():
    words, y = sentences(20)
    svm = SequenceSVM().fit([strings(sentence) for sentence in words], y)
    assert len(svm.predict([[["never seen"], []]])[0]) == 2


def test_labels_may_be_numbers():
    words, y = sentences(20)
    numbers = [["DNVP".index(label) for label in labels] for labels in y]
    svm = SequenceSVM(tt.losses.FBeta(background=0)).fit([strings(s) for s in words], numbers)
    assert svm.predict([strings(words[0])])[0].tolist() == numbers[0]


def test_parameters_are_those_of_the_constructor():
    svm = SequenceSVM(tt.losses.FBeta(beta=2.0, background="O"), C=3.0, solver=FrankWolfe(room=4))
    parameters = svm.get_params()
    assert parameters["loss__beta"] == 2.0
    assert parameters["solver__room"] == 4
    assert "loss__truth" not in parameters
    svm.set_params(loss__beta=0.5, C=1.0, solver__room=5)
    assert (svm.loss.beta, svm.loss.background, svm.C, svm.solver.room) == (0.5, "O", 1.0, 5)
    copy = clone(svm)
    assert copy is not svm and copy.get_params() == svm.get_params()
    assert "FBeta" in repr(svm)
    svm.set_params(loss=tt.losses.HammingDistance())
    with pytest.raises(tt.ModelError, match="unknown parameter 'loss__beta'"):
        svm.set_params(loss__beta=1.0)
    with pytest.raises(ValueError, match="Invalid parameter 'nonsense'"):
        svm.set_params(nonsense=1)


def test_a_whole_recipe_and_its_field_can_be_set_at_once():
    svm = SequenceSVM().set_params(loss__beta=2.0, loss=tt.losses.FBeta(background="O"))
    assert svm.loss == tt.losses.FBeta(beta=2.0, background="O")


def test_grids_go_over_the_loss():
    words, y = sentences(12)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM(tt.losses.FBeta(background="P"), scaling="slack", tolerance=0.1)
    grid = GridSearchCV(svm, {"loss__beta": [0.5, 2.0], "C": [0.01, 1.0]}, cv=2).fit(X, y)
    assert grid.best_params_["C"] == 1.0
    assert grid.best_estimator_.loss.beta == grid.best_params_["loss__beta"]
    scorer = make_scorer(lambda truths, found: corpus_f(truths, found, tt.losses.FBeta(background="P")).f)
    assert cross_val_score(svm, X, y, cv=2, scoring=scorer).shape == (2,)


def test_pipelines_transform_the_examples():
    words, y = sentences(12)
    steps = [("features", FunctionTransformer(lambda X: [strings(one) for one in X])), ("svm", SequenceSVM())]
    pipeline = Pipeline(steps).fit(words, y)
    assert pipeline.score(words, y) == 1.0
    pipeline.set_params(svm__C=2.0)
    assert pipeline.named_steps["svm"].C == 2.0


@pytest.mark.parametrize("limit", ["max_passes", "max_seconds"])
@pytest.mark.parametrize("estimator, other", [(SequenceSVM, "lower C"), (SequenceCRF, "raise c2")])
def test_a_stopped_fit_names_the_limit_that_ended_it(estimator, other, limit):
    words, y = sentences(12)
    given = {"max_passes": 2} if limit == "max_passes" else {"max_seconds": 1e-9}
    advice = f"To go further, raise {limit}, {other}, or raise the tolerance"
    with pytest.warns(ConvergenceWarning, match=advice):
        estimator(tolerance=1e-9, **given).fit([strings(sentence) for sentence in words], y)


def test_a_stopped_fit_warns_and_can_go_on():
    words, y = sentences(12)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM(max_passes=1, warm_start=True, tolerance=1e-3)
    with pytest.warns(ConvergenceWarning, match="training stopped at a relative gap of"):
        svm.fit(X, y)
    first = svm.primal_
    svm.set_params(max_passes=100).fit(X, y)
    assert svm.converged_ and svm.primal_ < first
    tighter = svm.set_params(C=2.0, tolerance=1e-4).fit(X, y)
    fresh = clone(svm).fit(X, y)
    assert tighter.primal_ == pytest.approx(fresh.primal_, rel=2e-4)


def test_a_warm_start_is_on_the_same_examples():
    words, y = sentences(12)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM(warm_start=True).fit(X, y)
    with pytest.raises(tt.ModelError, match="warm_start continues from the planes of the last fit"):
        svm.fit(X[1:], y[1:])


def test_a_fit_resumes_from_its_checkpoint(tmp_path):
    words, y = sentences(12)
    X = [strings(sentence) for sentence in words]
    file = tmp_path / "fit.npz"
    with pytest.warns(ConvergenceWarning):
        SequenceSVM(max_passes=2, tolerance=0.0, checkpoint=file).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        svm = SequenceSVM(max_passes=5, tolerance=0.0, checkpoint=Path(file)).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        whole = SequenceSVM(max_passes=5, tolerance=0.0).fit(X, y)
    assert len(svm.history_) == 5
    assert len(read_arrays(file, "checkpoint")[0]["history"]) == 5
    assert svm._trained.run.weights.tobytes() != b""
    assert svm._trained.dual == pytest.approx(whole._trained.dual, rel=1e-2)


def test_progress_is_shown(capsys):
    words, y = sentences(12)
    SequenceSVM(verbose=True).fit([strings(s) for s in words], y)
    shown = capsys.readouterr().err.splitlines()
    assert shown[0].startswith("pass 1: loss ")
    assert "objective" in shown[-1] and "gap" in shown[-1] and "oracle calls" in shown[-1]


def test_predictions_can_be_constrained_and_ranked():
    words, y = sentences(20)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM().fit(X, y)
    verbs = svm.predict(X[:3], where=tt.count(state="V") == 2)
    assert [(one == "V").sum() for one in verbs] == [2, 2, 2]
    ranked = svm.predict(X[:2], decode=KBestDecoder(3))
    assert [len(one) for one in ranked] == [3, 3]
    assert ranked[0][0].tolist() == svm.predict(X[:1])[0].tolist()
    sharp = svm.predict(X, decode=ExpectedFBeta(background="P", scale=50.0))
    assert [one.tolist() for one in sharp] == [one.tolist() for one in svm.predict(X)]


def test_the_bound_is_that_of_the_weights():
    words, y = sentences(20)
    X = [strings(sentence) for sentence in words]
    svm = SequenceSVM(tt.losses.FBeta(background="P"), scaling="slack", C=0.1).fit(X, y)
    bound = svm.bound(X, y, 0.1)
    assert bound.squared_norm == pytest.approx(2 * (svm.primal_ - 0.1 * 20 * svm.history_[-1].loss))
    assert (bound.dimension, bound.delta, len(bound.maxima)) == (len(svm.weights_), 0.1, 20)
    assert "the expected loss is at most" in str(bound)
    wrong = [
        tt.losses.FBeta(one, background="P")(found) for one, found in zip(y, svm.predict(X), strict=True)
    ]
    assert bound.empirical >= np.mean(wrong)
    assert svm.bound(X, y, loss=tt.losses.HammingLoss()).value != bound.value


def test_nothing_is_predicted_before_a_fit():
    with pytest.raises(NotFittedError):
        SequenceSVM().predict([])


def test_no_examples_give_no_predictions():
    words, y = sentences(3)
    assert SequenceSVM(tolerance=0.5).fit([strings(s) for s in words], y).predict([]) == []


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        ([], [], "no examples to learn from"),
        ([[["a"]]], [["x"], ["y"]], "there is 1 example but 2 labellings"),
        ([[["a"], ["b"]]], [["x"]], "example 0 has 2 positions but 1 labels"),
        ([[["a"]]], [[0.5]], "labels must be all strings, or all non-negative integers; got 0.5"),
        ([[["a"]]], [[-1]], "got -1"),
        ([[["a"], ["b"]]], [["x", 1]], "labels must be all strings, or all non-negative integers"),
        ([[["a"]]], ["x"], "a labelling must be a sequence of labels, got the string 'x'"),
        ([[{"a": object()}]], [["x"]], "example 0: attribute 'a' has the value"),
        ([[["a"]], [{"a": np.nan}]], [["x"]] * 2, "example 1: attribute 'a' is nan, but values must be"),
        ([[["a"]], [{"a": {"b": np.inf}}]], [["x"]] * 2, "example 1: attribute 'a:b' is inf"),
        ([[{"a": 10**400}]], [["x"]], "example 0: attribute 'a' is too large"),
        ([[["a"], "bc"]], [["x", "y"]], "a position must be a list of strings, a dictionary"),
        ([np.array([[np.nan]])], [["x"]], "features must be finite"),
    ],
)
def test_malformed_data_is_refused(X, y, text):
    with pytest.raises(tt.ModelError, match=text):
        SequenceSVM().fit(X, y)


def test_other_widths_are_refused_when_predicting():
    svm = SequenceSVM().fit([np.eye(2)], [["x", "y"]])
    with pytest.raises(tt.ModelError, match="positions had 2 features in training, got 3"):
        svm.predict([np.eye(3)])
    graphs = GraphSVM(C=10.0).fit([Graph(np.eye(2), [[0, 1]])], [["x", "y"]])
    with pytest.raises(tt.ModelError, match=r"example 0 has \(3, 1\) features of nodes and edges"):
        graphs.predict([Graph(np.eye(3), [[0, 1]])])
    with pytest.raises(tt.ModelError, match="the examples must be Graphs, got list"):
        graphs.predict([[1]])


@pytest.mark.parametrize("hashed", [None, 16])
def test_attributes_in_single_precision(hashed):
    svm = SequenceSVM(hashed=hashed).fit([[{"a": np.float32(1.5)}, {"a": np.float16(0)}]], [["x", "y"]])
    assert [row.tolist() for row in svm.predict([[{"a": np.float32(3)}]])] == [["x"]]
    with pytest.raises(tt.ModelError, match="example 0: attribute 'a' is inf, but values must be finite"):
        svm.predict([[{"a": np.float32("inf")}]])


@pytest.mark.parametrize("hashed", [None, 16])
def test_infinite_attributes_are_refused_when_predicting(hashed):
    svm = SequenceSVM(hashed=hashed).fit([[{"a": 1.0}]], [["x"]])
    with pytest.raises(tt.ModelError, match="example 1: attribute 'a' is -inf, but values must be finite"):
        svm.predict([[{"a": 2.0}], [{"a": 1.0}, {"a": -np.inf}]])


def test_images_are_segmented():
    rng = np.random.default_rng(3)
    truths = [np.pad(np.ones((2, 3), dtype=int), ((0, 1), (k, 3 - k))) for k in range(4)]
    clean = np.array(truths)
    noisy = clean + 0.7 * rng.normal(size=clean.shape)
    X = [grid_graph(np.stack((image, np.ones_like(image)), axis=-1)) for image in noisy]
    svm = GraphSVM(tt.losses.IntersectionOverUnion(background=0), scaling="slack", C=10.0).fit(X, truths)
    assert svm.predict(X)[0].shape == (3, 6)
    assert accuracy_scorer(svm, X, truths) > 0.9
    assert svm.score(X, truths) == corpus_score(truths, svm.predict(X), svm.loss) > 0.7


def test_label_sets_are_learned_with_their_dependence():
    rng = np.random.default_rng(0)
    features = rng.normal(size=(40, 3))
    first = features[:, 0] > 0
    Y = np.column_stack((first, ~first, first)).astype(int)
    X = label_graphs(features, 3, [[0, 1], [1, 2]])
    svm = GraphSVM(tt.losses.FBeta(background=0), scaling="slack", C=1.0).fit(X, Y)
    assert svm.score(X, Y) > 0.95


@pytest.mark.parametrize("names", [None, ["a", "b", "c"]])
@pytest.mark.parametrize("constrained", [False, True])
def test_examples_are_predicted_together_as_one_by_one(names, constrained):
    rng = np.random.default_rng(3)
    labels = np.arange(3) if names is None else np.array(names, dtype=object)
    where = tt.count(state=1 if names is None else "b") <= 1 if constrained else None
    X = [rng.normal(size=(n, 4)) for n in (5, 1, 3, 5)]
    y = [labels[rng.integers(0, 3, len(x))].tolist() for x in X]
    y[0][:3] = labels.tolist()
    graphs = [Graph(x, edges=[[i, i + 1] for i in range(len(x) - 1)]) for x in X]
    for svm, examples in ((SequenceSVM(tolerance=0.5), X), (GraphSVM(tolerance=0.5), graphs)):
        svm.fit(examples, y)
        found = svm.predict(examples, where=where)
        expected = [BestDecoder()(model, where) for model in svm._models(examples)]
        assert [one.tolist() for one in found] == [one.tolist() for one in expected]
        assert [(one.dtype, one.shape) for one in found] == [(one.dtype, one.shape) for one in expected]


def test_empty_sequences_and_infinite_weights_are_predicted_as_models():
    svm = SequenceSVM(tolerance=0.5).fit([np.eye(2)], [["a", "b"]])
    assert [one.tolist() for one in svm.predict([np.eye(2), np.zeros((0, 2))])] == [["a", "b"], []]
    svm.weights_ = svm.weights_.copy()
    svm.weights_[-4] = -np.inf  # no a after an a
    assert svm.predict([np.eye(2)[[0, 0]]])[0].tolist() in (["a", "b"], ["b", "a"], ["b", "b"])
