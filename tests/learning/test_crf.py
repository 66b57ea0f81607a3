"""CRFs: objectives, gradients and optima by definition, probabilities, and the contract of estimators."""

import pickle
from itertools import product

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st
from learning_problems import check_probabilities, sentences, strings
from scipy import sparse
from scipy.optimize import approx_fprime
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import tallytree as tt
from tallytree.learning import BestDecoder, SequenceCRF, SequenceProblem, load, save
from tallytree.learning.likelihoods import SequenceObjective
from tallytree.learning.penalties import Penalty

LOSSES = [
    tt.losses.HammingDistance(),
    tt.losses.FBeta(background="O"),
    tt.losses.ChunkFBeta(),
    tt.losses.Recall(background="O"),
]
NAMES = ("O", "B-NP", "I-NP")
KINDS = ["likelihood", "softmax-margin", "risk"]


def problem_of(seed, loss):
    rng = np.random.default_rng(seed)
    lengths = rng.integers(0, 4, 4)
    rows = [sparse.csr_matrix(rng.normal(size=(n, 3)) * (rng.random((n, 3)) < 0.7)) for n in lengths]
    return SequenceProblem(rows, [rng.integers(0, 3, n) for n in lengths], 3, loss, NAMES), rng


def by_definition(problem, kind, importance, weights, margin=1.0):
    total = 0.0
    names = np.array(NAMES, dtype=object)
    for example in range(len(problem)):
        truth = problem.truth(example)
        if not len(truth):
            continue
        every = np.array(list(product(range(3), repeat=len(truth))))
        model, loss = problem.model(example, weights), problem.loss.against(names[truth].tolist())
        scores = np.array([model.score(y) for y in every])
        costs = np.array([loss(names[y].tolist()) for y in every])
        if kind == "risk":
            parts = np.exp(scores - scores.max())
            value = parts @ costs / parts.sum()
        else:
            value = np.log(np.exp(scores + (margin * costs if kind == "softmax-margin" else 0.0)).sum())
            value -= model.score(truth)
        total += importance[example] * value
    return total


@settings(deadline=None, max_examples=30)
@given(
    st.integers(0, 2**32),
    st.sampled_from(LOSSES),
    st.sampled_from(KINDS),
    st.booleans(),
    st.sampled_from([0.3, 1.0, 4.0]),
)
def test_objectives_and_gradients_are_those_of_all_labellings(seed, loss, kind, every, margin):
    problem, rng = problem_of(seed, loss)
    importance = rng.random(len(problem))
    objective = SequenceObjective(problem, kind, importance, all_states=every, margin=margin)
    weights = rng.normal(size=objective.dimension)
    value, gradient = objective(weights)

    def wanted(some):
        return by_definition(problem, kind, importance, objective.spread(some), margin)

    np.testing.assert_allclose(value, wanted(weights), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gradient, approx_fprime(weights, wanted, 1e-7), rtol=1e-4, atol=1e-5)


def test_a_margin_is_used_and_saved(tmp_path):
    X, y = corpus()
    plain, wide, like = (
        SequenceCRF("hamming", objective="softmax-margin", margin=m) for m in (1.0, 5.0, 1e-9)
    )
    weights = [crf.fit(X, y).weights_ for crf in (plain, wide, like, SequenceCRF())]
    assert np.linalg.norm(weights[1]) > 1.5 * np.linalg.norm(weights[0])
    np.testing.assert_allclose(weights[2], weights[3], atol=1e-6)
    save(wide, tmp_path / "crf.npz")
    assert load(tmp_path / "crf.npz").margin == 5.0


@pytest.mark.parametrize("margin", [0.0, -1.0, np.nan, np.inf, "2"])
def test_a_margin_is_a_positive_number(margin):
    with pytest.raises(tt.ModelError, match="margin must be a positive number"):
        SequenceCRF("hamming", objective="softmax-margin", margin=margin).fit(*corpus())


@pytest.mark.parametrize("kind", ["likelihood", "risk"])
def test_a_margin_is_for_softmax_margins(kind):
    with pytest.raises(
        tt.ModelError, match=r"margin=2\.0 is for objective='softmax-margin', got '.*'; remove"
    ):
        SequenceCRF(objective=kind, margin=2.0).fit(*corpus())


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.sampled_from([(0.0, 0.3), (0.2, 0.1), (0.3, 0.0), (0.0, 0.0)]))
def test_bounds_on_what_is_left_hold(seed, sizes):
    """Whatever the weights: the optimum that a long run finds is not below the bound."""
    problem, rng = problem_of(seed, LOSSES[0])
    penalty = Penalty(*sizes)
    objective = SequenceObjective(problem, "likelihood", np.ones(len(problem)))
    found = fitted(problem, penalty)
    for scale in (0.0, 0.1, 1.0):
        weights = found.weights + scale * rng.normal(size=objective.dimension)
        value, gradient = objective(weights)
        primal = value + penalty.value(weights)
        lowest = primal - penalty.excess(weights, gradient, primal)
        assert lowest <= found.primal + 1e-9 * max(1.0, found.primal)


def fitted(problem, penalty, **changes):
    from tallytree.learning.descent import fit_weights
    from tallytree.learning.progress import RunOptions

    objective = SequenceObjective(problem, "likelihood", np.ones(len(problem)))
    options = RunOptions(**{"tolerance": 1e-7, "max_passes": 300, **changes})
    return fit_weights(objective, penalty, np.zeros(objective.dimension), options)


def corpus(count=20):
    words, y = sentences(count)
    return [strings(sentence) for sentence in words], y


@pytest.mark.parametrize("sizes", [{"c2": 0.1}, {"c1": 0.2, "c2": 0.05}, {"c1": 0.3, "c2": 0.0}])
def test_fits_are_certified(sizes):
    X, y = corpus()
    crf = SequenceCRF(tolerance=1e-3, **sizes).fit(X, y)
    assert crf.converged_ and crf.gap_ <= 1e-3 * crf.primal_
    best = SequenceCRF(tolerance=1e-6, max_passes=2000, **sizes).fit(X, y)
    assert crf.dual_ <= best.primal_ <= crf.primal_ * (1 + 1e-9)
    zeros = np.mean(best.weights_ == 0.0)
    assert zeros > 0.5 if "c1" in sizes else best.gradient_norm_ < 0.1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("loss", [None, tt.losses.FBeta(background="D")])
def test_all_objectives_learn(kind, loss):
    X, y = corpus()
    crf = SequenceCRF(None if kind == "likelihood" else loss, objective=kind, c2=0.01, tolerance=0.05)
    assert crf.fit(X, y).score(X, y) > 0.95
    assert crf.history_[-1].primal == crf.primal_


def test_threads_change_nothing():
    X, y = corpus()
    one, other = (
        SequenceCRF(tt.losses.FBeta(background="D"), objective="softmax-margin", n_jobs=n) for n in (1, 3)
    )
    assert np.array_equal(one.fit(X, y).weights_, other.fit(X, y).weights_)


def test_probabilities_are_those_of_the_models():
    X, y = corpus(6)
    crf = SequenceCRF(c2=0.1).fit(X, y)
    check_probabilities(crf, X, y)


def test_predictions_may_be_constrained():
    X, y = corpus(6)
    crf = SequenceCRF(c2=0.1).fit(X, y)
    free = crf.predict(X, decode=BestDecoder())
    assert [one.tolist() for one in free] == [one.tolist() for one in crf.predict(X)]
    label = free[0][0]
    assert all(label not in one for one in crf.predict(X, where=tt.count(state=label) == 0))


def test_weights_of_samples_are_repetitions():
    X, y = corpus(6)
    crf = SequenceCRF(c2=0.1, tolerance=1e-6, all_possible_states=True)
    some = clone(crf).fit(X, y, sample_weight=[2.0, 0.0, 1.0, 1.0, 1.0, 1.0])
    repeated = [0, 0, 2, 3, 4, 5]
    same = crf.fit([X[i] for i in repeated], [y[i] for i in repeated])
    assert some.primal_ == pytest.approx(same.primal_, rel=1e-5)


def test_weights_of_classes():
    X, y = [[["a"]], [["a"]]], [["x"], ["y"]]
    heavy = SequenceCRF(c2=0.01, class_weight={"x": 9.0}).fit(X, y)
    np.testing.assert_allclose(heavy.predict_marginals([[["a"]]])[0], [[0.9, 0.1]], atol=0.02)
    even = SequenceCRF(c2=0.01, class_weight="balanced").fit([*X, [["a"]]], [*y, ["y"]])
    np.testing.assert_allclose(even.predict_marginals([[["a"]]])[0], [[0.5, 0.5]], atol=0.02)


@pytest.mark.parametrize(
    ("parameters", "weights", "y", "text"),
    [
        ({"objective": "hinge"}, None, None, "objective must be 'likelihood', 'softmax-margin' or 'risk'"),
        ({"loss": tt.losses.HammingDistance()}, None, None, "the likelihood has no loss"),
        ({"objective": "risk", "loss": tt.losses.FBeta(background="Q")}, None, None, "background 'Q'"),
        ({"c2": -1.0}, None, None, "c2 must be a non-negative number, got -1.0"),
        ({"c1": np.nan}, None, None, "c1 must be a non-negative number"),
        ({}, [1.0, -1.0], None, "the weight of example 1 is -1.0"),
        ({}, [np.nan, 1.0], None, "the weight of example 0 is nan"),
        ({}, [1.0], None, "there are 2 examples"),
        ({"class_weight": {"z": 1.0}}, None, None, "class_weight has 'z', .* the labels are D, N"),
        ({"class_weight": {"D": -1.0}}, None, None, "the weight of label 'D' is -1.0"),
        ({"class_weight": 3}, None, None, "class_weight must be a mapping of labels"),
        ({}, None, [["D"], ["D", "N"]], "example 0 has 2 positions but 1 labels"),
        ({}, None, [["D", "N"]], "there are 2 examples but 1 labelling"),
    ],
)
def test_bad_input_is_told(parameters, weights, y, text):
    X = [[["the"], ["cat"]], [["a"], ["dog"]]]
    with pytest.raises(tt.ModelError, match=text):
        SequenceCRF(**parameters).fit(X, [["D", "N"], ["D", "N"]] if y is None else y, weights)


def test_labels_that_were_not_seen_are_told_with_their_example():
    X, y = [[["the"], ["cat"]], [["a"], ["dog"]]], [["D", "N"], ["D", "N"]]
    crf = SequenceCRF().fit(X, y)
    with pytest.raises(tt.ModelError, match="example 1: label 'Z'"):
        crf.log_loss(X, [["D", "N"], ["D", "Z"]])


def test_edges():
    one_label = SequenceCRF().fit([[["a"], ["b"]]], [["O", "O"]])
    assert one_label.converged_ and one_label.predict([[["c"]]])[0].tolist() == ["O"]
    with_empty = SequenceCRF(c2=0.01).fit([[["a"], ["b"]], []], [["x", "y"], []])
    assert with_empty.predict([[["a"]], []])[0].tolist() == ["x"]
    assert with_empty.predict_marginals([[], [["b"]]])[0].shape == (0, 2)
    unweighed = SequenceCRF().fit([[["a"]]], [["x"]], sample_weight=[0.0])
    assert unweighed.converged_ and not unweighed.weights_.any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_checkpoints_are_gone_on_from(tmp_path):
    X, y = corpus()
    file = tmp_path / "state.npz"
    first = SequenceCRF(c2=0.01, max_passes=5, checkpoint=file).fit(X, y)
    then = SequenceCRF(c2=0.01, max_passes=6, tolerance=1e-4, checkpoint=file).fit(X, y)
    assert [one.number for one in then.history_] == [1, 2, 3, 4, 5, 6]
    assert then.history_[:5] == first.history_ and then.primal_ < first.primal_
    with pytest.raises(tt.ModelError, match=r"its c2 is 0\.01, not 1\.0"):
        SequenceCRF(checkpoint=file).fit(X, y)
    with pytest.raises(tt.ModelError, match="its examples have other weights"):
        SequenceCRF(c2=0.01, checkpoint=file).fit(X, y, sample_weight=np.arange(len(X)))


def test_a_fit_that_stops_too_soon_says_so():
    X, y = corpus()
    with pytest.warns(ConvergenceWarning, match="training stopped at a relative gap of"):
        SequenceCRF(max_passes=2).fit(X, y)


def test_interrupts_keep_the_best_weights(monkeypatch):
    X, y = corpus()
    calls = []

    def interrupted(self, weights, ask=SequenceObjective.__call__):
        calls.append(1)
        if len(calls) == 6:
            raise KeyboardInterrupt
        return ask(self, weights)

    monkeypatch.setattr(SequenceObjective, "__call__", interrupted)
    crf = SequenceCRF(c2=0.01, tolerance=1e-6)
    with pytest.raises(KeyboardInterrupt, match="training was interrupted after 4 passes"):
        crf.fit(X, y)
    assert crf.interrupted_ and not crf.converged_ and crf.primal_ == crf.history_[-1].primal < np.inf


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_warm_starts_go_on():
    X, y = corpus()
    crf = SequenceCRF(c2=0.01, max_passes=8, tolerance=1e-8, warm_start=True)
    before = crf.fit(X, y).primal_
    assert crf.fit(X, y).primal_ < before
    with pytest.raises(tt.ModelError, match="was not in the training data"):
        crf.fit(X, [["new"] * len(one) for one in y])


@pytest.mark.parametrize("class_weight", [None, "balanced", {"D": 2.0}])
def test_files_and_pickles(tmp_path, class_weight):
    X, y = corpus(6)
    loss = tt.losses.FBeta(background="D")
    crf = SequenceCRF(loss, objective="softmax-margin", class_weight=class_weight, c1=0.01).fit(X, y)
    save(crf, tmp_path / "crf.npz")
    for other in (load(tmp_path / "crf.npz"), pickle.loads(pickle.dumps(crf))):
        assert other.get_params() == crf.get_params()
        assert np.array_equal(other.weights_, crf.weights_)
        assert (other.gap_, other.gradient_norm_) == (crf.gap_, crf.gradient_norm_)
        assert other.log_loss(X, y) == crf.log_loss(X, y)


def test_grids():
    X, y = corpus(12)
    grid = {"c2": [0.01, 1.0], "loss__beta": [1.0, 2.0]}
    crf = SequenceCRF(tt.losses.FBeta(background="D"), objective="softmax-margin", tolerance=0.1)
    search = GridSearchCV(crf, grid, cv=2).fit(X, y)
    assert search.best_score_ > 0.5 and clone(search.best_estimator_).get_params()["c1"] == 0.0


def test_chunks_and_expected_losses_of_predictions():
    X = [[["a"], ["b"], ["c"]], [["b"], ["a"]]]
    y = [["B-NP", "I-NP", "O"], ["O", "B-NP"]]
    crf = SequenceCRF(c2=0.05).fit(X, y)
    found = crf.predict(X)
    expected = crf.expected_loss(X, found, "chunk-f1")
    for number, model in enumerate(crf._models(X)):
        every = tt.testing.brute_force(model)
        p = np.exp(every.scores - every.scores.max())
        names = [model.labels(one).tolist() for one in every.labellings]
        lost = [tt.losses.ChunkFBeta(truth)(found[number].tolist()) for truth in names]
        assert expected[number] == pytest.approx(p @ lost / p.sum())
    chunks = crf.predict_chunks(X, least=0.0)
    assert all(0.0 < chunk.probability <= 1.0 for some in chunks for chunk in some)
    assert max(chunks[0], key=lambda chunk: chunk.probability)[:3] == ("NP", 0, 1)
    assert crf.predict_chunks([]) == []
    np.testing.assert_allclose(
        crf.expected_loss(X, found), [(1 - one.max(axis=1)).sum() for one in crf.predict_marginals(X)]
    )


def test_an_interrupt_on_the_way_to_the_risk_keeps_the_weights_of_the_likelihood(monkeypatch):
    def interrupted(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr("tallytree.learning.progress.show_line", interrupted)
    X, y = [[["a"], ["b"]], [["b"], ["a"]]] * 4, [["x", "O"], ["O", "x"]] * 4
    crf = SequenceCRF(objective="risk", verbose=True)
    with pytest.raises(KeyboardInterrupt, match="can predict"):
        crf.fit(X, y)
    assert crf.interrupted_
    assert len(crf.predict(X)) == 8


def test_losses_that_need_tables_start_from_the_likelihood():
    X, y = corpus(8)
    for loss, starts in (("hamming", False), (tt.losses.FBeta(background="D"), True)):
        history = SequenceCRF(loss, objective="softmax-margin", c2=0.01, tolerance=1e-3).fit(X, y).history_
        assert (history[0].primal < 1.5 * history[-1].primal) == starts
