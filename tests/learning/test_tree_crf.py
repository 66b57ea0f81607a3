"""CRFs on trees: the likelihood and its gradient compared with enumeration, and the estimator."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import trees
from scipy.optimize import approx_fprime

import tallytree as tt
from tallytree.learning import MaxBrackets, TreeCRF, load, save
from tallytree.learning.tree_crf import TreeObjective
from tallytree.parsing import parse_tree

TREES = [
    parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))"),
    parse_tree("(S (NP (NN fish)) (VP (VB swim)))"),
    parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NP (NN fish)) (PP (IN of) (NP (NN fish))))))"),
    parse_tree("(S (NP (NN fish)) (VP (VP (VB eat) (NP (NN fish))) (PP (IN with) (NP (NN fish)))))"),
]
SENTENCES = [" ".join(tree.words) for tree in TREES]


@pytest.mark.parametrize("seed", range(4))
def test_the_gradient_is_that_of_the_sum_over_trees(seed):
    problem = trees(seed, tt.losses.FBeta())
    rng = np.random.default_rng(seed)
    importance, weights = rng.random(len(problem)), 0.3 * rng.normal(size=problem.dimension)
    objective = TreeObjective(problem, "likelihood", importance, threads=2)
    value, gradient = objective(weights)

    def wanted(some):
        total = 0.0
        for example, weight in enumerate(importance):
            forest, truth = problem.model(example, some), problem.truth(example)
            score = problem.offset(example, truth) + sum(
                some[index] * value for index, value in zip(*problem.features(example, truth), strict=True)
            )
            total += weight * (forest.log_partition() - score)
        return total

    np.testing.assert_allclose(value, wanted(weights), rtol=1e-10)
    np.testing.assert_allclose(gradient, approx_fprime(weights, wanted, 1e-7), rtol=1e-4, atol=1e-5)


LOSSES = [
    tt.losses.FBeta(),
    tt.losses.FBeta(beta=2.0),
    tt.losses.Recall(),
    tt.losses.SymmetricDifference(),
    tt.losses.CrossingBrackets(),
]


@pytest.mark.parametrize("objective", ["softmax-margin", "risk"])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@pytest.mark.parametrize("margin", [1.0, 4.0])
def test_objectives_with_losses_are_those_of_all_trees(loss, objective, margin):
    problem = trees(1, loss)
    rng = np.random.default_rng(1)
    importance, weights = rng.random(len(problem)), 0.3 * rng.normal(size=problem.dimension)
    value, gradient = TreeObjective(problem, objective, importance, 2, margin)(weights)

    def wanted(some):
        total = 0.0
        for example, weight in enumerate(importance):
            truth = problem.truth(example)
            every = list(tt.k_best(problem.model(example, some), 10_000))
            scores = np.array([one.score for one in every])
            costs = np.array([problem.cost(example, one.tree) for one in every])
            if objective == "risk":
                shares = np.exp(scores - np.logaddexp.reduce(scores))
                total += weight * float(shares @ costs)
            else:
                indices, values = problem.features(example, truth)
                right = problem.offset(example, truth) + float(some[indices] @ values)
                total += weight * (np.logaddexp.reduce(scores + margin * costs) - right)
        return total

    np.testing.assert_allclose(value, wanted(weights), rtol=1e-9)
    np.testing.assert_allclose(gradient, approx_fprime(weights, wanted, 1e-7), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("objective", ["softmax-margin", "risk"])
def test_trees_are_learned_for_a_loss(objective):
    crf = TreeCRF("f1", objective=objective, c2=0.01, max_passes=60).fit(SENTENCES, TREES)
    assert crf.predict(SENTENCES) == TREES


def test_trees_are_learned(tmp_path):
    crf = TreeCRF(c2=0.1, tolerance=1e-3).fit(SENTENCES, TREES)
    assert crf.converged_ and crf.predict(SENTENCES) == TREES
    assert crf.predict(SENTENCES, decode=MaxBrackets()) == TREES
    untrained = TreeCRF(c2=1e9).fit(SENTENCES, TREES)
    assert crf.log_loss(SENTENCES, TREES) < untrained.log_loss(SENTENCES, TREES)
    save(crf, tmp_path / "crf.npz")
    assert load(tmp_path / "crf.npz").log_loss(SENTENCES, TREES) == crf.log_loss(SENTENCES, TREES)


def test_threads_change_nothing():
    one, other = (TreeCRF(n_jobs=n).fit(SENTENCES, TREES).weights_ for n in (1, 3))
    assert np.array_equal(one, other)


def test_what_trees_do_not_have_is_refused():
    with pytest.raises(tt.ModelError, match="a loss of trees such as"):
        TreeCRF("hamming", objective="risk").fit(SENTENCES, TREES)
    with pytest.raises(tt.ModelError, match="no classes to weigh"):
        TreeCRF(class_weight="balanced").fit(SENTENCES, TREES)
    with pytest.raises(tt.ModelError, match="the weight of example 1 is -1"):
        TreeCRF().fit(SENTENCES, TREES, sample_weight=[1.0, -1.0, 0.0, 1.0])
