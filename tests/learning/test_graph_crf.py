"""CRFs on graphs: objectives and gradients compared with enumeration, probabilities, files."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st
from learning_problems import check_probabilities
from scipy.optimize import approx_fprime

import tallytree as tt
from tallytree.learning import Graph, GraphCRF, GraphProblem, MaxExpected, load, save
from tallytree.learning.graph_crf import GraphObjective
from tallytree.testing import brute_force

EDGES = {
    "cycle": [[0, 1], [1, 2], [2, 3], [3, 0]],
    "tree": [[1, 0], [0, 2], [0, 3]],
    "apart": [[0, 1]],
    "none": [],
}
LOSSES = [
    tt.losses.HammingDistance(),
    tt.losses.FBeta(background="off"),
    tt.losses.IntersectionOverUnion(background="off"),
    tt.losses.Recall(background="off"),
]
NAMES = ("off", "on")


def problem_of(seed, loss):
    rng = np.random.default_rng(seed)
    graphs = [
        Graph(rng.normal(size=(4, 2)), edges, rng.normal(size=(len(edges), 2))) for edges in EDGES.values()
    ]
    truths = [rng.integers(0, 2, 4) for _ in graphs]
    return GraphProblem(graphs, truths, 2, loss, NAMES), rng


def by_definition(problem, kind, importance, weights, margin):
    total = 0.0
    for example in range(len(problem)):
        model, truth = problem.model(example, weights), problem.truth(example)
        every = brute_force(model)
        loss = problem.loss_of(example).on(model)
        costs = np.array([loss(labelling) for labelling in every.labellings])
        if kind == "risk":
            parts = np.exp(every.scores - every.scores.max())
            value = parts @ costs / parts.sum()
        else:
            added = every.scores + (margin * costs if kind == "softmax-margin" else 0.0)
            value = np.log(np.exp(added).sum()) - model.score(truth)
        total += importance[example] * value
    return total


@settings(deadline=None, max_examples=20)
@given(
    st.integers(0, 2**32),
    st.sampled_from(LOSSES),
    st.sampled_from(["likelihood", "softmax-margin", "risk"]),
    st.sampled_from([0.3, 1.0, 4.0]),
)
def test_objectives_and_gradients_are_those_of_all_labellings(seed, loss, kind, margin):
    problem, rng = problem_of(seed, loss)
    importance, weights = rng.random(len(problem)), rng.normal(size=problem.dimension)
    value, gradient = GraphObjective(problem, kind, importance, 2, margin)(weights)

    def wanted(some):
        return by_definition(problem, kind, importance, some, margin)

    np.testing.assert_allclose(value, wanted(weights), rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(gradient, approx_fprime(weights, wanted, 1e-7), rtol=1e-4, atol=1e-5)


def examples():
    problem, _ = problem_of(3, LOSSES[0])
    graphs = problem.graphs * 4
    labels = [np.where(graph.nodes.toarray()[:, 0] > 0, "on", "off").tolist() for graph in graphs]
    return graphs, labels


@pytest.mark.parametrize("kind", ["likelihood", "softmax-margin", "risk"])
def test_graphs_are_learned(kind, tmp_path):
    X, y = examples()
    loss = None if kind == "likelihood" else tt.losses.FBeta(background="off")
    crf = GraphCRF(loss, objective=kind, c2=0.05, tolerance=0.05).fit(X, y)
    assert crf.score(X, y) > 0.9
    save(crf, tmp_path / "crf.npz")
    other = load(tmp_path / "crf.npz")
    assert other.get_params() == crf.get_params() and other.log_loss(X, y) == crf.log_loss(X, y)


def test_probabilities_are_those_of_the_models():
    X, y = examples()
    crf = GraphCRF(c2=0.1).fit(X, y)
    check_probabilities(crf, X, y)
    assert len(crf.predict(X[:2], decode=MaxExpected(tt.losses.FBeta(background="off")))) == 2


def test_losses_that_do_not_count_by_nodes_are_refused():
    X, y = examples()
    with pytest.raises(tt.ModelError, match="cannot be summed over labellings of graphs"):
        GraphCRF(tt.losses.ZeroOne(), objective="risk").fit(X, y)
