"""Parsing as a training problem: features give the scores, oracles are exact, solvers find the optimum."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st
from joblib import parallel_config
from learning_problems import check_planes, dense, labellings, objective, optimum, trees

import tallytree as tt
from tallytree.learning import (
    Binarisation,
    CuttingPlanes,
    Diverse,
    ExactOracle,
    FrankWolfe,
    Subgradient,
    TopTallies,
    TreebankGrammar,
    TreeFeatures,
    TreeModel,
    TreeProblem,
    check_problem,
    oracle,
    train,
)
from tallytree.parsing import Forest, parse_tree

LOSSES = {
    "f1": tt.losses.FBeta(),
    "recall": tt.losses.Recall(),
    "false positives": tt.losses.FalsePositives(),
    "difference": tt.losses.SymmetricDifference(),
    "crossing": tt.losses.CrossingBrackets(),
    "crossing rate": tt.losses.CrossingBracketsRate(),
    "zero-one": tt.losses.ZeroOne(),
}
BINARISATIONS = [
    Binarisation(),
    Binarisation(horizontal=0, tail="single"),
    Binarisation(horizontal=2, vertical=2),
    Binarisation(horizontal=None, vertical=3, tail="single"),
]
ROUNDING = 1e-6  # of the reference, which is an interior point


@settings(max_examples=25, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(BINARISATIONS),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([None, 5]),
)
def test_scores_are_offsets_and_products_with_features(seed, binarisation, prior, hashed):
    problem = trees(seed, LOSSES["f1"], binarisation=binarisation, prior=prior, hashed=hashed)
    weights = np.random.default_rng(seed).normal(size=problem.dimension)
    for example, forest in enumerate(problem.models(range(len(problem)), weights)):
        every = labellings(problem, example)
        assert problem.truth(example) in every
        assert len(set(every)) == len(every)  # a tree has one derivation
        scores = [problem.offset(example, tree) + dense(problem, example, tree) @ weights for tree in every]
        np.testing.assert_allclose([forest.score(tree) for tree in every], scores, atol=1e-9)
        assert forest.best().score == pytest.approx(max(scores), abs=1e-9)


@pytest.mark.parametrize("binarisation", BINARISATIONS, ids=repr)
def test_without_weights_it_is_the_plain_grammar(binarisation):
    problem = trees(4, LOSSES["f1"], examples=4, binarisation=binarisation, prior=0.5)
    grammar = problem.scorer.counted.grammar
    for example, forest in enumerate(problem.models(range(4), np.zeros(problem.dimension))):
        plain = Forest(grammar, problem.truth(example).words)
        assert forest.best().score == pytest.approx(0.5 * plain.best().score)
        for tree in labellings(problem, example):
            assert forest.score(tree) == pytest.approx(0.5 * plain.score(tree))


@settings(max_examples=12, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(sorted(LOSSES)),
    st.sampled_from(["margin", "slack"]),
    st.sampled_from([None, TopTallies(3), Diverse(3, distance=1)]),
)
def test_the_first_plane_is_the_highest_and_all_are_planes(seed, loss, scaling, extra):
    problem = trees(seed, LOSSES[loss])
    weights = np.random.default_rng(seed).normal(size=problem.dimension)
    check_planes(problem, ExactOracle(problem, scaling, extra), weights, scaling)


SOLVERS = {
    "frank-wolfe": FrankWolfe(batch=2),
    "one slack": CuttingPlanes("one"),
    "each slack": CuttingPlanes("each"),
}


@pytest.mark.parametrize(
    ("solver", "loss", "scaling"),
    [
        *(("frank-wolfe", loss, scaling) for loss in ("f1", "difference") for scaling in ("margin", "slack")),
        *(
            (solver, "f1", scaling)
            for solver in ("one slack", "each slack")
            for scaling in ("margin", "slack")
        ),
        ("each slack", "zero-one", "margin"),
        ("one slack", "zero-one", "slack"),
    ],
)
def test_the_gap_bounds_the_distance_to_the_optimum(solver, loss, scaling):
    problem, solver = trees(3, LOSSES[loss], examples=4), SOLVERS[solver]
    best = optimum(problem, 0.5, scaling)
    found = train(problem, solver, C=0.5, scaling=scaling, tolerance=1e-3, max_passes=300)
    assert found.converged
    assert found.primal == pytest.approx(objective(problem, found.weights, 0.5, scaling), rel=1e-9)
    assert found.dual <= best * (1 + ROUNDING)
    assert found.primal >= best * (1 - ROUNDING)
    assert found.primal < objective(problem, np.zeros(problem.dimension), 0.5, scaling)


@pytest.mark.parametrize("extra", [TopTallies(3), Diverse(2, distance=1)], ids=repr)
def test_several_planes_lead_to_the_same_optimum(extra):
    problem = trees(3, LOSSES["f1"], examples=4)
    best = optimum(problem, 0.5, "slack")
    found = train(problem, C=0.5, scaling="slack", tolerance=1e-3, max_passes=300, extra=extra)
    assert found.converged
    assert found.dual <= best * (1 + ROUNDING)
    assert found.primal >= best * (1 - ROUNDING)


def test_other_workers_give_the_same_planes(monkeypatch):
    monkeypatch.setattr(oracle, "_PIECE", 2)
    monkeypatch.setattr(oracle, "_WORTH_PROCESSES", 0.0)
    problem = trees(3, LOSSES["f1"], examples=4)
    weights = np.random.default_rng(0).normal(size=problem.dimension)
    with parallel_config(backend="threading"):
        shared = ExactOracle(problem, n_jobs=2).planes(range(4), weights)
    sent = pickle.loads(pickle.dumps(problem.task(range(4), weights)))
    found = sent.solved("margin", None, 1)
    for example, (plane,) in enumerate(ExactOracle(problem).planes(range(4), weights)):
        assert shared[example][0].at(weights) == plane.at(weights)
        ((tree, cost),) = found[example]
        assert cost == pytest.approx(problem.cost(example, tree))
        value = cost + problem.model(example, weights).score(tree)
        assert value - problem.model(example, weights).score(problem.truth(example)) == pytest.approx(
            plane.at(weights)
        )


def test_subgradients_keep_their_bound_with_an_offset():
    problem = trees(3, LOSSES["f1"], examples=4)
    best = optimum(problem, 0.2, "margin")
    found = train(problem, Subgradient(), C=0.2, tolerance=0.05, max_passes=30)
    assert found.dual <= best * (1 + ROUNDING)
    assert found.primal >= best * (1 - ROUNDING)


def test_problems_are_checked_like_others():
    problem = trees(2, LOSSES["f1"], examples=3)
    check_problem(problem)

    class Wrong(TreeProblem):
        def offset(self, example, labelling):
            return 0.0

    wrong = Wrong([problem.truth(0)], problem.scorer, LOSSES["f1"])
    with pytest.raises(tt.ModelError, match="example 0: the score of a labelling is"):
        check_problem(wrong)


def test_a_tree_of_another_grammar_is_refused():
    known, other = (parse_tree(text) for text in ("(S (A (n a)) (n b))", "(S (n b) (A (n a)))"))
    counted = TreebankGrammar.of([known])
    model = TreeModel(counted, TreeFeatures.of([known], counted))
    with pytest.raises(
        tt.ModelError, match="example 1: a tree has the rule 'S' → 'n' 'A', which is not in the grammar"
    ):
        TreeProblem([known, other], model, LOSSES["f1"])
    with pytest.raises(
        tt.ModelError, match="example 0: a tree has the rule 'A' → 'v', which is not in the grammar"
    ):
        TreeProblem([parse_tree("(S (A (v a)) (n b))")], model, LOSSES["f1"])
    with pytest.raises(tt.ModelError, match="prior must be a non-negative number, got -1"):
        TreeModel(counted, model.features, -1.0)


def test_fingerprints_tell_problems_apart():
    problem = trees(2, LOSSES["f1"])
    assert problem.fingerprint() == trees(2, LOSSES["f1"]).fingerprint()
    others = [trees(3, LOSSES["f1"]), trees(2, LOSSES["recall"]), trees(2, LOSSES["f1"], prior=0.5)]
    assert len({problem.fingerprint(), *(other.fingerprint() for other in others)}) == 4
