"""Small training problems, and their optimum by definition: one constraint for every labelling."""

import clarabel
import numpy as np
import pytest
from scipy import sparse
from treebanks import derivations

import tallytree as tt
from tallytree.learning import (
    Binarisation,
    Graph,
    GraphProblem,
    SequenceProblem,
    TreebankGrammar,
    TreeFeatures,
    TreeModel,
    TreeProblem,
    templated,
)
from tallytree.parsing import Forest, Tree
from tallytree.testing import brute_force

LOSSES = {
    "hamming": tt.losses.HammingDistance(),
    "zero-one": tt.losses.ZeroOne(),
    "f1": tt.losses.FBeta(background=0),
    "iou": tt.losses.IntersectionOverUnion(background=1),
}


def sequences(seed, loss, examples=6, longest=4, labels=3, features=3):
    """Noisy sequences, so that no weights are right everywhere."""
    rng = np.random.default_rng(seed)
    rows = [rng.normal(size=(rng.integers(1, longest + 1), features)) for _ in range(examples)]
    for matrix in rows:
        matrix[rng.random(matrix.shape) < 0.2] = 0.0
    weights = rng.normal(size=(features, labels))
    noisy = [(matrix @ weights + rng.normal(size=(len(matrix), labels))).argmax(axis=1) for matrix in rows]
    return SequenceProblem([sparse.csr_matrix(matrix) for matrix in rows], noisy, labels, loss)


def graphs(seed, loss, examples=4, labels=2, features=2):
    """Noisy cycles of four nodes with a feature on their edges."""
    rng = np.random.default_rng(seed)
    cycle = [[0, 1], [1, 2], [2, 3], [3, 0]]
    inputs = [Graph(rng.normal(size=(4, features)), cycle, rng.normal(size=(4, 2))) for _ in range(examples)]
    return GraphProblem(inputs, [rng.integers(0, labels, 4) for _ in inputs], labels, loss)


def trees(seed, loss, examples=3, longest=4, binarisation=Binarisation(), prior=1.0, hashed=4):  # noqa: B008
    """Random trees over few words, under the grammar that is counted on them."""
    rng = np.random.default_rng(seed)
    truths = [random_tree(rng, rng.integers(2, longest + 1)) for _ in range(examples)]
    counted = TreebankGrammar.of(truths, binarisation)
    features = TreeFeatures.of(truths, counted, hashed=hashed)
    return TreeProblem(truths, TreeModel(counted, features, prior), loss)


def random_tree(rng, words, label="S"):
    """Draw a tree with two or three children below each node, and chains."""
    if words == 1:
        tag = Tree(str(rng.choice(["n", "v"])), str(rng.choice(["fish", "eat"])))
        return Tree(label, [tag]) if rng.random() < 0.3 else tag
    cuts = rng.choice(np.arange(1, words), min(words - 1, rng.integers(1, 3)), replace=False)
    sizes = np.diff([0, *sorted(cuts), words]).tolist()
    tree = Tree(label, [random_tree(rng, size, "AB"[rng.integers(2)]) for size in sizes])
    return Tree("B", [tree]) if rng.random() < 0.1 else tree


def labellings(problem, example):
    """Go through everything that an example could be, by enumeration."""
    model = problem.model(example, np.zeros(problem.dimension))
    if isinstance(model, Forest):
        return [tree for tree, _ in derivations(model.grammar, model.words, {})]
    return brute_force(model).labellings


def all_planes(problem, example, scaling):
    """Return slopes and offsets for every labelling, from features and the definition of the loss."""
    truth = problem.truth(example)
    right, start = dense(problem, example, truth), problem.offset(example, truth)
    slopes, offsets = [], []
    for y in labellings(problem, example):
        cost = problem.cost(example, y)
        factor = cost if scaling == "slack" else 1.0
        slopes.append((right - dense(problem, example, y)) * factor)
        offsets.append(cost - factor * (start - problem.offset(example, y)))
    return np.array(slopes), np.array(offsets)


def dense(problem, example, y):
    indices, values = problem.features(example, y)
    return np.bincount(indices, weights=values, minlength=problem.dimension)


def objective(problem, weights, C, scaling):
    hinges = 0.0
    for example in range(len(problem)):
        slopes, offsets = all_planes(problem, example, scaling)
        hinges += (offsets - slopes @ weights).max()
    return 0.5 * weights @ weights + C * hinges


def optimum(problem, C, scaling):
    """Minimise ½‖w‖² + C Σ ξ over (w, ξ) with ξ_i ≥ b − ⟨w, a⟩ for all labellings: the primal at once."""
    d, n = problem.dimension, len(problem)
    rows, right = [], []
    for example in range(n):
        slopes, offsets = all_planes(problem, example, scaling)
        slack = np.zeros((len(offsets), n))
        slack[:, example] = 1.0
        rows.append(np.hstack((-slopes, -slack)))
        right.append(-offsets)
    quadratic = sparse.diags(np.concatenate((np.ones(d), np.zeros(n)))).tocsc()
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    solution = clarabel.DefaultSolver(
        quadratic,
        np.concatenate((np.zeros(d), np.full(n, C))),
        sparse.csc_matrix(np.vstack(rows)),
        np.concatenate(right),
        [clarabel.NonnegativeConeT(sum(map(len, right)))],
        settings,
    ).solve()
    return solution.obj_val


# --- sentences ----------------------------------------------------------------------------------------------

WORDS = {
    "D": ["the", "a", "this"],
    "N": ["cat", "dog", "run", "tree"],
    "V": ["sees", "run", "likes"],
    "P": ["on", "under"],
}


def sentences(count, seed=0):
    rng = np.random.default_rng(seed)
    y = [list("DNVDN") if rng.random() < 0.5 else list("DNVPDN") for _ in range(count)]
    return [[str(rng.choice(WORDS[label])) for label in labels] for labels in y], y


def strings(words):
    return templated([(word,) for word in words], [((0, 0),), ((0, -1),)])


def check_planes(problem, oracle, weights, scaling):
    """The first plane of each example is the highest, and each is that of some labelling."""
    for example, planes in enumerate(oracle.planes(range(len(problem)), weights)):
        slopes, offsets = all_planes(problem, example, scaling)
        assert planes[0].at(weights) == pytest.approx((offsets - slopes @ weights).max(), abs=1e-9)
        for plane in planes:
            slope = np.bincount(plane.indices, weights=plane.values, minlength=problem.dimension)
            distance = np.abs(slopes - slope).max(axis=1) + np.abs(offsets - plane.offset)
            assert distance.min() < 1e-9


def check_probabilities(crf, X, y):
    """Marginals and likelihoods are those of the models."""
    for found, model in zip(crf.predict_marginals(X), crf._models(X), strict=True):
        np.testing.assert_allclose(found, tt.distribution(model, []).marginals(), atol=1e-12)
    logs = [
        tt.distribution(model, []).log_partition - model.score(labels)
        for model, labels in zip(crf._models(X), y, strict=True)
    ]
    np.testing.assert_allclose(crf.log_loss(X, y), np.mean(logs))
    assert crf.predict_marginals([]) == []
