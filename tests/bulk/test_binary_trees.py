"""Sums over binary trees and the best trees, compared with enumeration and with forests."""

from functools import cache
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tallytree.bulk.binary_trees import best_binary_trees, draw_binary_trees, sum_binary_trees
from tallytree.kernels import native
from tallytree.model.pairs import LARGEST_SCORE

pytestmark = pytest.mark.sanitize


@cache
def trees(words, labels):
    """All trees, as ones (N, T, T, C)."""
    found = []
    for spans in _bracketings(0, words - 1):
        for chosen in product(range(labels), repeat=len(spans)):
            ones = np.zeros((words, words, labels), dtype=np.int64)
            for (i, j), label in zip(spans, chosen, strict=True):
                ones[i, j, label] = 1
            found.append(ones)
    return np.array(found)


def _bracketings(first, last):
    if first == last:
        return [[(first, last)]]
    return [
        [(first, last), *left, *right]
        for split in range(first, last)
        for left in _bracketings(first, split)
        for right in _bracketings(split + 1, last)
    ]


@st.composite
def charts(draw, longest, most_labels):
    """Scores, nan where nothing is looked at, and lengths: ties, forbidden spans, and scores far apart."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = np.array(draw(st.lists(st.integers(1, longest), min_size=1, max_size=4)))
    words, labels = lengths.max() + draw(st.integers(0, 2)), draw(st.integers(1, most_labels))
    shape = len(lengths), words, words, labels
    values = draw(
        st.sampled_from(
            [[0.0], [-1.0, 0.0, 2.0], [0.0, -np.inf], [0.5, 800.0, -800.0, -np.inf], [1e9, -1e9, 0.3]]
        )
    )
    scores = rng.choice(values, shape) if draw(st.booleans()) else rng.normal(size=shape)
    below = np.arange(words)[:, None] > np.arange(words)
    scores[:, below] = np.nan
    for table, length in zip(scores, lengths, strict=True):
        table[length:] = table[:, length:] = np.nan
    return scores, lengths


def enumerated(table, length):
    """All trees of a sentence, their scores, and how far sums of these scores may be off."""
    every = trees(length, table.shape[2])
    own = np.where(every == 1, table[:length, :length], 0.0)
    sizes = np.where(np.isfinite(own), np.abs(own), 0.0).sum(axis=(1, 2, 3))
    return every, own.sum(axis=(1, 2, 3)), (8 + 4 * length) * np.finfo(float).eps * max(sizes.max(), 1)


@settings(max_examples=150)
@given(charts(4, 2), st.integers(1, 3))
def test_sums_are_those_of_all_trees(chart, threads):
    scores, lengths = chart
    found = sum_binary_trees(scores, lengths, threads)
    assert not len(found.left_out)
    for number, length in enumerate(lengths.tolist()):
        every, sums, error = enumerated(scores[number], length)
        top, marginals = sums.max(), np.zeros(scores.shape[1:])
        value = top if top == -np.inf else top + np.log(np.exp(sums - top).sum())
        if top > -np.inf:
            shares = np.exp(sums - value)
            marginals[:length, :length] = np.einsum("n,nijc->ijc", shares / shares.sum(), every)
        assert found.values[number] == pytest.approx(value, rel=0, abs=error)
        assert found.marginals[number] == pytest.approx(marginals, rel=0, abs=2 * error)


@settings(max_examples=150)
@given(charts(4, 2), st.integers(1, 3))
def test_best_trees_are_the_best(chart, threads):
    scores, lengths = chart
    best, left_out = best_binary_trees(scores, lengths, threads)
    for number, length in enumerate(lengths.tolist()):
        every, sums, error = enumerated(scores[number], length)
        assert (number in left_out) == (sums.max() == -np.inf)
        if number in left_out:
            continue
        same = (every == best[number, :length, :length]).all(axis=(1, 2, 3))
        assert same.sum() == 1
        assert best[number].sum() == 2 * length - 1
        assert sums[same][0] == pytest.approx(sums.max(), rel=0, abs=error)


@settings(max_examples=60)
@given(charts(4, 2), st.integers(1, 3), st.sampled_from([0.0, 1 - 2.0**-53, None]))
def test_drawn_trees_are_allowed(chart, threads, uniform):
    scores, lengths = chart
    rng, shape = np.random.default_rng(len(lengths)), (3, len(lengths), 3 * scores.shape[1])
    uniforms = rng.random(shape) if uniform is None else np.full(shape, uniform)
    drawn, left_out = draw_binary_trees(scores, lengths, uniforms, threads)
    assert np.array_equal(drawn, draw_binary_trees(scores, lengths, uniforms, 1)[0])
    for number, length in enumerate(lengths.tolist()):
        every, sums, _ = enumerated(scores[number], length)
        assert (number in left_out) == (sums.max() == -np.inf)
        for tree in drawn[:, number] if number not in left_out else ():
            same = (every == tree[:length, :length]).all(axis=(1, 2, 3))
            assert sums[same] > -np.inf
            assert tree.sum() == 2 * length - 1


@settings(max_examples=40)
@given(charts(20, 5), st.integers(1, 3))
def test_bits_depend_neither_on_threads_nor_on_the_instruction_set(chart, threads):
    found = []
    for name in native.instruction_sets():
        native.use_instruction_set(name)
        sums, (best, missing) = sum_binary_trees(*chart, threads), best_binary_trees(*chart, threads)
        native.use_instruction_set()
        found.append([*sums, best, missing])
    wanted = [*sum_binary_trees(*chart, 1), *best_binary_trees(*chart, 1)]
    for some in found:
        assert all(np.array_equal(one, other) for one, other in zip(some, wanted, strict=True))


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 2 * LARGEST_SCORE, -2 * LARGEST_SCORE])
def test_sentences_with_invalid_scores_are_left_out(wrong):
    scores = np.zeros((3, 3, 3, 2))
    scores[1, 0, 2, 1] = wrong
    lengths = np.array([3, 3, 3])
    found = sum_binary_trees(scores, lengths, 1)
    assert found.left_out.tolist() == best_binary_trees(scores, lengths, 1)[1].tolist() == [1]
    assert draw_binary_trees(scores, lengths, np.zeros((1, 3, 9)), 1)[1].tolist() == [1]
    assert found.values[[0, 2]] == pytest.approx(np.log(64))
    assert not sum_binary_trees(scores, np.array([3, 2, 3]), 1).left_out.size  # it is padding


def test_the_largest_scores_do_not_overflow():
    scores = np.full((1, 9, 9, 1), LARGEST_SCORE)
    assert sum_binary_trees(scores, np.array([9]), 1).values[0] == pytest.approx(17 * LARGEST_SCORE)
    assert not best_binary_trees(-scores, np.array([9]), 1)[1].size


@pytest.mark.parametrize(
    ("shape", "lengths"),
    [((1, 2, 3, 1), [2]), ((1, 2, 2, 0), [2]), ((2, 2, 2, 1), [2]), ((1, 2, 2, 1), [3]), ((1, 2, 2, 1), [0])],
)
def test_shapes_are_checked(shape, lengths):
    for function in (sum_binary_trees, best_binary_trees):
        with pytest.raises(ValueError, match=r"scores are \[sentence\]|no such length"):
            function(np.zeros(shape), np.array(lengths), 1)
    with pytest.raises(ValueError, match="numbers are"):
        draw_binary_trees(np.zeros((1, 2, 2, 1)), np.array([2]), np.zeros((1, 1, 5)), 1)
