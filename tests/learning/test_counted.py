"""Examples with known label counts only: the objective compared with enumeration, and what is learned."""

from itertools import product

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import approx_fprime

import tallytree as tt
from tallytree.learning import SequenceCRF, SequenceProblem
from tallytree.learning.labels import Labels
from tallytree.learning.likelihoods import CountedObjective, SequenceObjective
from tallytree.learning.weighting import counts_of

COUNTS = [{1: (1, 1)}, {0: (0, 1), 2: (1, 2)}, {1: (0, 0)}, {0: (0, 9)}]


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.floats(0.1, 3.0))
def test_the_objective_is_the_probability_of_the_counts(seed, weight):
    rng = np.random.default_rng(seed)
    labelled = [sparse.csr_matrix(rng.normal(size=(3, 2)))]
    problem = SequenceProblem(labelled, [rng.integers(0, 3, 3)], 3, tt.losses.HammingDistance())
    rows = [sparse.csr_matrix(rng.normal(size=(length, 2))) for length in (3, 2, 1, 0)]
    alone = SequenceObjective(problem, "likelihood", np.ones(1), all_states=True)
    objective = CountedObjective(alone, rows, COUNTS, weight)
    weights = rng.normal(size=objective.dimension)
    value, gradient = objective(weights)

    def wanted(some):
        total = alone(some)[0]
        for matrix, counts in zip(rows[:3], COUNTS, strict=False):
            every = np.array(list(product(range(3), repeat=matrix.shape[0])))
            scores = (matrix @ some[:6].reshape(2, 3))[np.arange(matrix.shape[0]), every].sum(axis=1)
            scores += some[6:].reshape(3, 3)[every[:, :-1], every[:, 1:]].sum(axis=1)
            kept = np.ones(len(every), dtype=bool)
            for label, (low, high) in counts.items():
                often = (every == label).sum(axis=1)
                kept &= (often >= low) & (often <= high)
            p = np.exp(scores)
            total -= weight * np.log(p[kept].sum() / p.sum())
        return total

    np.testing.assert_allclose(value, wanted(weights), rtol=1e-10)
    np.testing.assert_allclose(gradient, approx_fprime(weights, wanted, 1e-7), rtol=1e-4, atol=1e-5)
    assert not objective.convex


def test_counts_teach_what_no_label_says():
    X, y = [[["the"], ["cat"]]], [["D", "N"]]
    told = [[["fox"], ["a"]], [["a"], ["fox"]], [["fox"], ["fox"]]]
    counts = [{"N": 1}, {"N": (1, 1)}, {"N": 2}]
    crf = SequenceCRF(c2=0.01, tolerance=1e-3).fit(X, y, counted=(told, counts))
    assert crf.predict([[["fox"]], [["a"]]])[0].tolist() == ["N"]
    assert crf.predict([[["a"]]])[0].tolist() == ["D"]
    assert crf.converged_ and crf.gradient_norm_ < 0.1
    assert crf._counted is None


@pytest.mark.parametrize(
    ("counts", "text"),
    [
        ([{"N": 3}], "counted example 0: 3 of 'N' is impossible with 2 positions"),
        ([{"N": -1}], "is impossible with 2 positions"),
        ([{"N": 0.3}], r"0.3 of 'N' is not an integer, .*; multiply a proportion by the 2 positions"),
        ([{"N": (0.2, 0.4)}], r"\(0.2, 0.4\) of 'N' is not an integer, nor a range of integers"),
        ([{"N": "1"}], "'1' of 'N' is not an integer"),
        ([{"N": float("nan")}], "nan of 'N' is not an integer"),
        ([{"N": (0, 1, 2)}], r"\(0, 1, 2\) of 'N' is not an integer"),
        ([{"N": (None, None)}], r"\(None, None\) of 'N' is not an integer"),
        ([{"N": (2, 1)}], r"\(2, 1\) of 'N' is an empty range; write \(1, 2\)"),
        ([{"N": 2, "D": 1}], "counted example 0: .* is impossible with 2 positions"),
        ([{"N": 0, "D": 1}], "is impossible with 2 positions"),
        ([{"Z": 1}], "counted example 0: 'Z' is not a label"),
        ([{}], "counts map labels to numbers"),
        ([3], "counts map labels to numbers"),
        ([], "there are 1 counted examples but 0 counts"),
    ],
)
def test_counts_that_cannot_be_are_refused(counts, text):
    with pytest.raises(tt.ModelError, match=text):
        SequenceCRF().fit([[["the"], ["cat"]]], [["D", "N"]], counted=([[["a"], ["fox"]]], counts))


def test_open_ends_and_whole_floats_are_counts():
    labels, rows = Labels(("D", "N"), 2), [np.zeros((3, 2))] * 4
    known = [{"N": (1, None)}, {"N": (None, 2)}, {"N": 2.0}, {"N": [1, 2]}]
    assert counts_of(known, rows, labels) == [{1: (1, 3)}, {1: (0, 2)}, {1: (2, 2)}, {1: (1, 2)}]
