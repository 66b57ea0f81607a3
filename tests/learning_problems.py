"""Small training problems, and their optimum from the definition: one constraint for every labelling."""

import clarabel
import numpy as np
from scipy import sparse

import tallytree as tt
from tallytree.learning import Graph, GraphProblem, SequenceProblem
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


def all_planes(problem, example, scaling):
    """Return slopes and offsets for every labelling, from features and the definition of the loss."""
    model = problem.model(example, np.zeros(problem.dimension))
    loss = problem.loss_of(example).on(model)
    truth = dense(problem, example, problem.truth(example))
    slopes, offsets = [], []
    for y in brute_force(model).labellings:
        cost = float(loss(y))
        slopes.append((truth - dense(problem, example, y)) * (cost if scaling == "slack" else 1.0))
        offsets.append(cost)
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
