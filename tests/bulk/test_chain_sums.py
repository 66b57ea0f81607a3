"""Chains anywhere in long arrays: padded or packed, shared or separate links, with truths, and sampled."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk.best_chains import best_laid_chains
from tallytree.bulk.chain_bends import bend_laid_chains, entropies_of
from tallytree.bulk.chain_sums import LaidChains, draw_laid_chains, sum_laid_chains
from tallytree.kernels import native

pytestmark = pytest.mark.sanitize


@st.composite
def padded_chains(draw):
    """A few short chains in padded arrays, whose padding is nan; something is always allowed."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    labels = draw(st.integers(1, 3))
    lengths = np.array(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    longest, count = lengths.max() + draw(st.integers(0, 1)), len(lengths)
    scale = draw(st.sampled_from([1.0, 30.0, 2000.0]))
    own = draw(st.booleans())
    scores = scale * rng.normal(size=(count, longest, labels))
    links = scale * rng.normal(size=(count, longest - 1, labels, labels) if own else (labels, labels))
    for table in (scores, links):
        table[rng.random(table.shape) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
        table[..., 0] = np.where(np.isinf(table[..., 0]), 0.0, table[..., 0])
    for i, length in enumerate(lengths):
        scores[i, length:] = np.nan
        if own:
            links[i, length - 1 :] = np.nan
    return LaidChains.padded(scores, links, lengths)


def enumerated(chains, number):
    """All labellings of a chain, and their scores."""
    model = chains.model(number)
    labels = np.array(list(product(range(chains.emissions.shape[1]), repeat=len(model))))
    return labels, np.array([model.score(row) for row in labels])


@settings(deadline=None)
@given(padded_chains(), st.integers(0, 2**32))
def test_sums_less_truths(chains, seed):
    rng = np.random.default_rng(seed)
    truths = rng.integers(0, chains.emissions.shape[1], len(chains.emissions))
    importance = rng.normal(size=len(chains.lengths))
    found = sum_laid_chains(chains, importance, 2, truths)
    by_labels, by_links = np.zeros_like(found.labels), np.zeros_like(found.links)
    for i, (start, length) in enumerate(zip(chains.starts, chains.lengths, strict=True)):
        labels, scores = enumerated(chains, i)
        right = (labels == truths[start : start + length]).all(axis=1)
        top = scores.max()
        value = top + np.log(np.exp(scores - top).sum()) - scores[right][0]
        np.testing.assert_allclose(found.values[i], value, rtol=1e-10, atol=1e-9)
        if value == np.inf:
            continue
        shares = np.exp(scores - top) / np.exp(scores - top).sum() - right
        for row, share in zip(labels, importance[i] * shares, strict=True):
            by_labels[np.arange(start, start + length), row] += share
            for m in range(1, length):
                at = (row[m - 1], row[m])
                by_links[at if by_links.ndim == 2 else (start - i + m - 1, *at)] += share
    np.testing.assert_allclose(found.labels, by_labels, atol=1e-9)
    np.testing.assert_allclose(found.links, by_links, atol=1e-9)


@settings(deadline=None)
@given(padded_chains())
def test_best(chains):
    found = best_laid_chains(chains, 2)
    for i, (start, length) in enumerate(zip(chains.starts, chains.lengths, strict=True)):
        _, scores = enumerated(chains, i)
        assert chains.model(i).score(found[start : start + length]) == pytest.approx(scores.max(), rel=1e-12)


@settings(deadline=None)
@given(padded_chains(), st.integers(0, 2**32))
def test_draws_follow_their_numbers(chains, seed):
    uniforms = np.random.default_rng(seed).random((3, len(chains.emissions)))
    found = [draw_laid_chains(chains, uniforms, threads) for threads in (1, 3)]
    assert np.array_equal(*found)
    for i, (start, length) in enumerate(zip(chains.starts, chains.lengths, strict=True)):
        model = chains.model(i)
        assert all(model.score(row) > -np.inf for row in found[0][:, start : start + length])


@pytest.mark.parametrize("own", [False, True])
def test_how_sums_move(own):
    rng = np.random.default_rng(0)
    scores, lengths = rng.normal(size=(3, 4, 3)), np.array([4, 1, 3])
    links = rng.normal(size=(3, 3, 3, 3) if own else (3, 3))
    scores[0, 1, 2] = links[..., 0, 1] = -np.inf
    moves = rng.normal(size=scores.shape), rng.normal(size=links.shape)
    ones, step, ends = np.ones(3), 1e-5, []
    for sign in (1, -1):
        moved = [table + sign * step * move for table, move in zip((scores, links), moves, strict=True)]
        ends.append(sum_laid_chains(LaidChains.padded(*moved, lengths), ones, 1))
    laid = LaidChains.padded(scores, links, lengths)
    found = bend_laid_chains(laid, moves[0].reshape(-1, 3), moves[1].reshape(laid.links.shape), ones, 2)
    for one, ahead, behind in zip(found, *ends, strict=True):
        np.testing.assert_allclose(one, (ahead - behind) / (2 * step), atol=1e-8)
    for i, entropy in enumerate(entropies_of(laid, 2)):
        _, values = enumerated(laid, i)
        shares = np.exp(values - np.logaddexp.reduce(values))
        assert entropy == pytest.approx(-sum(p * np.log(p) for p in shares if p > 0))


def test_forbidden_labels_stay_with_plain_products():
    rng = np.random.default_rng(0)
    scores, links = rng.normal(size=(5, 20, 4)), rng.normal(size=(4, 4))
    links[1, 2] = links[0, 0] = -np.inf
    chains = LaidChains.padded(scores, links, np.full(5, 20))
    *_, left_out = native.chain_sums(*chains, np.ones(5), None, 1)
    assert not left_out.any()


def test_a_way_that_gets_ever_less_likely_is_summed_in_logarithms():
    # nothing leads back from label 1, which loses 40 at each position, and only label 1 may come last
    scores = np.zeros((1, 40, 2))
    scores[0, :, 1] = -40.0
    scores[0, 20:, 0] = -np.inf
    links = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    chains = LaidChains.padded(scores, links, np.array([40]))
    *_, left_out = native.chain_sums(*chains, np.ones(1), None, 1)
    assert left_out.tolist() == [1]
    found = sum_laid_chains(chains, np.ones(1), 1)
    assert found.values[0] == pytest.approx(-1600.0)
    np.testing.assert_allclose(found.labels[:, 1], 1.0)
    assert draw_laid_chains(chains, np.full((1, 40), 0.5), 1).tolist() == [[1] * 40]


def test_all_forbidden():
    scores = np.full((1, 2, 2), -np.inf)
    chains = LaidChains.padded(scores, np.zeros((2, 2)), np.array([2]))
    found = sum_laid_chains(chains, np.ones(1), 1)
    assert found.values[0] == -np.inf
    assert not found.labels.any()
    with pytest.raises(tt.InfeasibleError, match="chain 0 is forbidden"):
        best_laid_chains(chains, 1)
    with pytest.raises(tt.InfeasibleError):
        draw_laid_chains(chains, np.ones((1, 2)) / 2, 1)
