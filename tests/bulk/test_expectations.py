"""Sums and objectives of chains, and their derivatives, compared with enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk import expectations
from tallytree.bulk.chain_sums import ChainSums, _add_logarithms
from tallytree.bulk.chains import Chains
from tallytree.bulk.counted import evidence_of_counts
from tallytree.bulk.expectations import SparseRows, laid_chains, objective_of_chains, sum_chains
from tallytree.kernels import native

pytestmark = pytest.mark.sanitize

NAMES = {2: ("O", "B-NP"), 3: ("O", "B-NP", "I-NP"), 4: ("O", "B-NP", "I-NP", "B-VP"), 1: ("O",)}
LOSSES = [
    tt.losses.HammingDistance(),
    tt.losses.FBeta(background="O", beta=2.0),
    tt.losses.Recall(background="O"),
    tt.losses.IntersectionOverUnion(background="O"),
    tt.losses.ChunkFBeta(),
]


@st.composite
def chains(draw, empty=True):
    """A few short chains: ties, far scores, forbidden ones (never all)."""
    size = draw(st.integers(1, 4))
    lengths = draw(st.lists(st.integers(0 if empty else 1, 4), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    scale = draw(st.sampled_from([1.0, 30.0, 2000.0]))
    scores, links = scale * rng.normal(size=(sum(lengths), size)), scale * rng.normal(size=(size, size))
    if draw(st.booleans()):
        scores, links = scores.round(), links.round()
    forbidden = draw(st.sampled_from([0.0, 0.3]))
    scores[rng.random(scores.shape) < forbidden] = -np.inf
    links[rng.random(links.shape) < forbidden] = -np.inf
    scores[:, 0] = np.where(np.isinf(scores[:, 0]), 0.0, scores[:, 0])
    links[0, 0] = 0.0 if np.isinf(links[0, 0]) else links[0, 0]
    return Chains(scores, links, lengths, NAMES[size])


def labellings(some, begin, length):
    """All labellings of a chain, and their scores."""
    labels = np.array(list(product(range(some.emissions.shape[1]), repeat=length)), dtype=np.int64)
    scores = some.emissions[begin + np.arange(length), labels].sum(axis=1)
    return labels, scores + some.links[labels[:, :-1], labels[:, 1:]].sum(axis=1)


def by_definition(some, objective, importance, losses):
    """The values, and derivatives by shares of labellings: d/dF of a function of all F, times indicators."""
    values, by_labels, by_links = [], np.zeros_like(some.emissions), np.zeros_like(some.links)
    begin = 0
    for number, length in enumerate(some.lengths):
        labels, scores = labellings(some, begin, length)
        costs = losses(number, begin, labels)
        added = scores + (costs if objective == "softmax-margin" else 0.0)
        top = added.max()
        shares = np.exp(added - top)
        value = top + np.log(shares.sum())
        shares /= shares.sum()
        if objective == "risk":
            value = shares @ costs
            shares *= costs - value
        values.append(value)
        for m in range(length):
            np.add.at(by_labels[begin + m], labels[:, m], importance[number] * shares)
        for m in range(1, length):
            np.add.at(by_links, (labels[:, m - 1], labels[:, m]), importance[number] * shares)
        begin += length
    return np.array(values), by_labels, by_links


def agree(found, wanted):
    size = max(1.0, *np.abs(wanted[0]))  # how far sums of scores are rounded
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12 * size, atol=1e-13 * size)


def in_logarithms(laid, importance):
    """Sums as they are made where plain products would underflow."""
    shapes = importance.shape, laid.emissions.shape, laid.links.shape
    found = ChainSums(*map(np.zeros, shapes))
    _add_logarithms(laid, importance, 2, None, np.flatnonzero(laid.lengths), found)
    return found


@settings(deadline=None)
@given(chains(), st.integers(0, 2**32))
def test_sums_are_those_over_all_labellings(some, seed):
    importance = np.random.default_rng(seed).normal(size=len(some.lengths))
    wanted = by_definition(some, "likelihood", importance, lambda *_: 0.0)
    agree(sum_chains(some, importance), wanted)
    agree(in_logarithms(laid_chains(some), importance), wanted)


@settings(deadline=None)
@given(chains(empty=False), st.sampled_from(LOSSES), st.sampled_from(["softmax-margin", "risk"]), st.data())
def test_objectives_are_those_of_all_labellings(some, loss, objective, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    names = np.array(some.names, dtype=object)
    truths = rng.integers(0, len(names), sum(some.lengths))
    importance = rng.normal(size=len(some.lengths))

    def losses(number, begin, labels):
        against = loss.against(names[truths[begin : begin + some.lengths[number]]].tolist())
        return np.array([against(names[row].tolist()) for row in labels])

    found = objective_of_chains(some, loss, truths, objective, importance)
    agree(found, by_definition(some, objective, importance, losses))


@pytest.mark.parametrize("scale", [1.0, 1000.0])
def test_results_do_not_depend_on_threads_or_instruction_sets(scale):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 30, 40).tolist()
    some = Chains(scale * rng.normal(size=(sum(lengths), 5)), rng.normal(size=(5, 5)), lengths, None)
    loss, truths = tt.losses.FBeta(background=0), rng.integers(0, 5, sum(lengths))
    before, found = native.instruction_set(), []
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            found += [
                sum_chains(some, threads=threads)
                + objective_of_chains(some, loss, truths, "risk", threads=threads)
                for threads in (1, 2, 5)
            ]
    finally:
        native.use_instruction_set(before)
    for one in found[1:]:
        assert all(map(np.array_equal, one, found[0]))


def test_scores_too_far_apart_for_products_are_summed_in_logarithms():
    some = Chains(np.array([[0.0, -2000.0], [-2000.0, 0.0]]), np.array([[0, -np.inf], [0, 0]]), [2], None)
    *_, left_out = native.chain_sums(*laid_chains(some), np.ones(1), None, 1)
    assert left_out.tolist() == [1]
    found = sum_chains(some)
    np.testing.assert_allclose(found.labels, [[0.5, 0.5], [0.5, 0.5]], rtol=1e-12)
    np.testing.assert_allclose(found.values, [-2000 + np.log(2)])


def test_a_chain_that_does_not_fit_is_named(monkeypatch):
    some = Chains(np.zeros((42, 2)), np.zeros((2, 2)), [2, 40], None)
    monkeypatch.setattr(expectations, "default_memory_limit", lambda: 40_000)
    with pytest.raises(tt.BudgetError, match="chain 1 "):
        objective_of_chains(some, tt.losses.FBeta(background=0), np.arange(42) % 2, "risk")


def forbidding(some):
    """The same chains with one label more, which is never allowed: they are summed in logarithms."""
    scores = np.pad(some.emissions, ((0, 0), (0, 1)), constant_values=-np.inf)
    names = None if some.names is None else (*some.names, "B-none")
    return Chains(scores, np.pad(some.links, (0, 1)), some.lengths, names)


@pytest.mark.parametrize("loss", [tt.losses.ChunkFBeta(), tt.losses.FBeta(background="O", beta=0.5)])
@pytest.mark.parametrize("objective", ["softmax-margin", "risk"])
@pytest.mark.parametrize("scale", [0.1, 20.0, 70.0])
def test_products_and_logarithms_agree(loss, objective, scale):
    rng = np.random.default_rng(1)
    lengths = [1, 2, 60, 25]
    scores, links = rng.normal(size=(sum(lengths), 4)), rng.normal(size=(4, 4))
    truths = rng.integers(0, 4, sum(lengths))
    scores[np.arange(len(truths)), truths] += 3.0  # tallies far from the truth are as good as impossible
    some, importance = Chains(scale * scores, scale * links, lengths, NAMES[4]), rng.normal(size=4)
    assert np.ptp(scale * links) + scale * np.ptp(scores, axis=1).max() < 1000.0
    found = objective_of_chains(some, loss, truths, objective, importance)
    wanted = objective_of_chains(forbidding(some), loss, truths, objective, importance)
    size = max(1.0, np.abs(wanted.values).max())
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-13 * size, atol=1e-12)
    np.testing.assert_allclose(found.labels, wanted.labels[:, :4], atol=1e-12 * size)
    np.testing.assert_allclose(found.links, wanted.links[:4, :4], atol=1e-11 * size)


@pytest.mark.parametrize("scale", [0.1, 5.0, 60.0])
def test_evidence_in_products_and_logarithms_agrees(scale):
    rng = np.random.default_rng(2)
    lengths = [1, 3, 40, 12]
    scores, links = rng.normal(size=(sum(lengths), 4)), rng.normal(size=(4, 4))
    some, importance = Chains(scale * scores, scale * links, lengths, None), rng.normal(size=4)
    counts = [
        {1: (0, 1), 3: (0, 0)},
        {1: (1, 1), 3: (0, 2)},
        {1: (2, 3), 3: (7, 9)},
        {1: (0, 12), 3: (12, 12)},
    ]
    found = evidence_of_counts(some, counts, importance)
    wanted = evidence_of_counts(forbidding(some), counts, importance)
    size = max(1.0, np.abs(wanted.values).max())
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-12, atol=1e-13 * size)
    np.testing.assert_allclose(found.labels, wanted.labels[:, :4], atol=1e-12 * size)
    np.testing.assert_allclose(found.links, wanted.links[:4, :4], atol=1e-11 * size)


def test_tables_that_are_computed_again_give_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    some = forbidding(Chains(rng.normal(size=(300, 2)), rng.normal(size=(2, 2)), [300], None))
    asked = some, tt.losses.HammingDistance(), rng.integers(0, 2, 300), "risk"
    whole = objective_of_chains(*asked)
    for limit in (2_400_000, 1_500_000):  # 300 tables of up to 900 numbers, twice
        monkeypatch.setattr(expectations, "default_memory_limit", lambda limit=limit: limit)
        assert all(map(np.array_equal, objective_of_chains(*asked), whole))


def test_a_loss_without_tables_is_refused():
    some = Chains(np.zeros((2, 2)), np.zeros((2, 2)), [2], None)
    with pytest.raises(tt.ModelError, match="the background 7 is not one of them"):
        objective_of_chains(some, tt.losses.FBeta(background=7), np.zeros(2, dtype=np.int64), "risk")


@settings(deadline=None)
@given(st.integers(0, 40), st.integers(0, 9), st.integers(0, 70), st.integers(0, 2**32))
def test_sparse_products(rows, columns, labels, seed):
    rng = np.random.default_rng(seed)
    dense = np.where(rng.random((rows, columns)) < 0.4, rng.normal(size=(rows, columns)), 0.0)
    sparse = pytest.importorskip("scipy.sparse")
    matrix, table = sparse.csr_matrix(dense), rng.normal(size=(columns, labels))
    found = SparseRows.of(matrix).times(table, threads=2)
    np.testing.assert_allclose(found, dense @ table, rtol=1e-12, atol=1e-12)
    for name in native.instruction_sets():
        native.use_instruction_set(name)
        again = SparseRows.of(matrix).times(table, threads=1)
        native.use_instruction_set()
        np.testing.assert_array_equal(again, found)
