"""Models, features and truths of the built-in problems agree; a broken contract is detected."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st
from learning_problems import LOSSES, dense, graphs, sequences
from scipy import sparse

import tallytree as tt
from tallytree.bulk.chains import Chains
from tallytree.learning import (
    Diverse,
    Graph,
    GraphProblem,
    SequenceProblem,
    TopTallies,
    check_problem,
    grid_graph,
    label_graphs,
)
from tallytree.learning.inference import ChainTask


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(sorted(LOSSES)), st.integers(1, 4), st.integers(2, 4))
def test_sequences_keep_the_contract(seed, loss, longest, labels):
    check_problem(sequences(seed, LOSSES[loss], longest=longest, labels=labels), rng=seed)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.sampled_from(sorted(LOSSES)), st.integers(2, 3))
def test_graphs_keep_the_contract(seed, loss, labels):
    check_problem(graphs(seed, LOSSES[loss], labels=labels), rng=seed)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**31))
def test_differences_are_those_of_the_features(seed):
    problem = sequences(seed, LOSSES["hamming"])
    rng = np.random.default_rng(seed)
    for example in range(len(problem)):
        truth = problem.truth(example)
        y = rng.integers(0, 3, len(truth))
        indices, values = problem.difference(example, y)
        got = np.bincount(indices, weights=values, minlength=problem.dimension)
        wanted = dense(problem, example, truth) - dense(problem, example, y)
        np.testing.assert_allclose(got, wanted, atol=1e-12)


def test_images_and_label_sets_keep_the_contract():
    rng = np.random.default_rng(0)
    images = [grid_graph(rng.normal(size=(2, 3, 2))) for _ in range(2)]
    check_problem(GraphProblem(images, [rng.integers(0, 2, (2, 3)) for _ in images], 2, LOSSES["f1"]))
    sets = label_graphs(rng.normal(size=(3, 2)), 4, [[0, 1], [1, 2], [1, 3]])
    check_problem(GraphProblem(sets, rng.integers(0, 2, (3, 4)), 2, LOSSES["iou"]))


def test_a_graph_without_edges_and_a_sequence_of_one():
    check_problem(GraphProblem([Graph(np.ones((2, 1)), [])], [[0, 1]], 2, LOSSES["hamming"]))
    check_problem(SequenceProblem([sparse.csr_matrix(np.ones((1, 2)))], [np.array([1])], 2, LOSSES["f1"]))


class Wrong(SequenceProblem):
    """Forgets the transitions."""

    def features(self, example, labelling):
        indices, values = super().features(example, labelling)
        emissions = indices < self._emissions
        return indices[emissions], values[emissions]


def test_a_broken_contract_is_found():
    rows = [sparse.csr_matrix(np.eye(3))]
    broken = Wrong(rows, [np.array([0, 1, 1])], 2, LOSSES["hamming"])
    with pytest.raises(tt.ModelError, match="example 0: the score of a labelling is"):
        check_problem(broken)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ((np.ones((2, 1)), [[0, 2]]), "edges join nodes 0 to 1, got 0 to 2"),
        ((np.ones((2, 1)), [[0, 1]], np.ones((2, 1))), "there are 1 edges, but 2 rows of edge features"),
        ((np.array([[np.nan], [1.0]]), [[0, 1]]), "nodes must be finite"),
        ((np.ones(2), [[0, 1]]), r"nodes must have two axes, got shape \(2,\)"),
    ],
)
def test_malformed_graphs_are_refused(arguments, text):
    with pytest.raises(tt.ModelError, match=text):
        Graph(*arguments)


def test_examples_that_do_not_fit_together_are_refused():
    two = [Graph(np.ones((1, 1)), []), Graph(np.ones((1, 2)), [])]
    with pytest.raises(tt.ModelError, match="the same numbers of node and edge features"):
        GraphProblem(two, [[0], [1]], 2, LOSSES["hamming"])
    with pytest.raises(tt.ModelError, match="one label for each of its positions"):
        SequenceProblem([sparse.csr_matrix(np.ones((2, 1)))], [np.array([1])], 2, LOSSES["hamming"])


@pytest.mark.parametrize("extra", [TopTallies(3), Diverse(4, 2)])
@pytest.mark.parametrize("make", [sequences, graphs])
def test_further_planes_are_those_of_single_calls(make, extra):
    problem = make(3, LOSSES["f1"])
    weights = np.random.default_rng(3).normal(size=problem.dimension).round(1)
    examples = list(range(len(problem)))
    found = problem.task(examples, weights).solved("slack", extra, 2)
    for example, some in zip(examples, found, strict=True):
        model, loss = problem.model(example, weights), problem.loss_of(example)
        profile = tt.losses.LossProfile(model, loss)
        top = [(one.assignment, one.loss) for one in profile.top(getattr(extra, "count", 1), "slack")]
        if isinstance(extra, Diverse):
            others = [one.assignment for one in tt.diverse_k_best(model, extra.count - 1, extra.distance)]
            top = [top[0], *((y, loss.on(model)(y)) for y in others)]
        assert [(y.tolist(), pytest.approx(cost)) for y, cost in top] == [(y.tolist(), c) for y, c in some]


def test_what_is_not_plain_goes_the_general_way():
    chains = Chains(np.array([[0.0, 1.0], [2.0, 0.0]]), np.zeros((2, 2)), [2, 0], None)
    task = ChainTask(chains, [np.array([0, 0]), np.zeros(0, dtype=np.int64)], LOSSES["hamming"])
    assert [[y.tolist() for y, _ in some] for some in task.solved("margin", None, 1)] == [[[1, 0]], [[]]]
    broken = ChainTask(chains._replace(emissions=np.full((2, 2), np.nan)), task.truths, task.loss)
    with pytest.raises(tt.ModelError, match="nan"):
        broken.solved("margin", None, 1)


@pytest.mark.parametrize("extra", [None, TopTallies(2)])
def test_chains_that_do_not_fit_are_solved_as_models_with_a_warning(monkeypatch, extra):
    rng = np.random.default_rng(5)
    chains = Chains(rng.normal(size=(9, 2)), rng.normal(size=(2, 2)), [4, 5], ("O", "B"))
    task = ChainTask(chains, [rng.integers(0, 2, n) for n in (4, 5)], tt.losses.FBeta(background="O"))
    expected = task.solved("slack", extra, 1)
    monkeypatch.setattr("tallytree.bulk.chains.default_memory_limit", lambda: 100.0)
    with pytest.warns(tt.PerformanceWarning, match="2 chains exceed the memory limit .* solved as models"):
        found = task.solved("slack", extra, 1)
    as_lists = [[[(y.tolist(), c) for y, c in some] for some in every] for every in (found, expected)]
    assert as_lists[0] == as_lists[1]


@pytest.mark.parametrize(("kind", "arguments"), [(TopTallies, [0]), (Diverse, [0]), (Diverse, [2, 0.5])])
def test_numbers_of_planes_are_positive(kind, arguments):
    with pytest.raises(tt.ModelError, match="must be a positive integer, got"):
        kind(*arguments)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.int8, bool])
@pytest.mark.parametrize("made", [sparse.csr_matrix, sparse.csc_matrix, np.asarray])
def test_features_may_be_of_any_dtype(dtype, made):
    rows, truths = np.eye(2)[[0, 1, 1]], [[0, 1, 1]]
    usual = SequenceProblem([rows], truths, 2, tt.losses.HammingDistance())
    problem = SequenceProblem([made(rows.astype(dtype))], truths, 2, tt.losses.HammingDistance())
    assert problem.fingerprint() == usual.fingerprint()
    weights = np.arange(8.0)
    assert problem.model(0, weights).score([0, 1, 0]) == usual.model(0, weights).score([0, 1, 0])


def test_sequences_may_be_dense():
    rows, truths = [np.eye(2)[[0, 1]], np.eye(2)], [[0, 1], [0, 1]]
    made = SequenceProblem([rows[0], rows[1].tolist()], truths, 2, tt.losses.HammingDistance())
    whole = SequenceProblem([*map(sparse.csr_matrix, rows)], truths, 2, tt.losses.HammingDistance())
    assert made.fingerprint() == whole.fingerprint()
    with pytest.raises(tt.ModelError, match="example 1: an example must have shape"):
        SequenceProblem([rows[0], np.ones(2)], truths, 2, tt.losses.HammingDistance())
    with pytest.raises(tt.ModelError, match="loss must be a loss such as HammingDistance"):
        SequenceProblem(rows, truths, 2, "f1")
