"""Expected losses without tables, and their derivatives: compared with enumeration, and with tables."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk import expectations
from tallytree.bulk.chain_sums import LaidChains
from tallytree.bulk.chains import Chains
from tallytree.bulk.expectations import (
    laid_chains,
    objective_by_tables,
    objective_of_chains,
    risks_of_laid_chains,
)
from tallytree.bulk.least_loss import expected_losses
from tallytree.bulk.quadrature import inverses
from tallytree.bulk.quotients import quotient_of
from tallytree.kernels import native

pytestmark = pytest.mark.sanitize

BIO = ("O", "B-x", "I-x", "B-y", "I-y")
LOSSES = [
    (tt.losses.HammingDistance(), BIO),
    (tt.losses.HammingLoss(), BIO),
    (tt.losses.FBeta(background="O"), BIO),
    (tt.losses.FBeta(background="O", beta=0.2), BIO),
    (tt.losses.FBeta(beta=2.0), BIO),
    (tt.losses.Recall(background="O"), BIO),
    (tt.losses.Recall(), BIO),
    (tt.losses.IntersectionOverUnion(background="O"), BIO),
    (tt.losses.IntersectionOverUnion(), BIO),
    (tt.losses.ChunkFBeta(), BIO),
    (tt.losses.ChunkFBeta(beta=3.0), BIO),
    (tt.losses.ChunkFBeta(), ("I-y", "I-x", "O", "B-z", "B-x")),
    (tt.losses.ChunkFBeta(scheme="IO"), ("O", "a", "b", "c", "d")),
    (tt.losses.ChunkFBeta(scheme="BIOES"), ("O", "B-x", "I-x", "E-x", "S-x")),
]


@pytest.mark.parametrize("offset", [1 / 64, 0.25, 1.0, 2.0, 3.7, 20.0, 100.0])
def test_inverses(offset):
    """Few numbers are enough for all inverses, to nearly full accuracy, and all are positive."""
    for most in (1, 4, 17, 60, 200, 700):
        x, w = inverses(offset, most)
        powers = np.arange(most + 1)
        found = (w * x ** powers[:, np.newaxis]).sum(1)
        np.testing.assert_allclose(found, 1 / (offset + powers), rtol=2e-13 + most * 2.3e-16)
        assert (x > 0).all() and (x < 1).all() and (w > 0).all()
        assert len(x) <= min(most // 2 + 1, 3.5 * most**0.5 + 3)


def enumerated(laid, loss, names, truths, importance):
    """Values and derivatives from all labellings: d/dF of the mean is p(y) (Δ(y) - mean)."""
    values, by_labels = [], np.zeros_like(laid.emissions)
    by_links, names = np.zeros_like(laid.links), np.array(names, dtype=object)
    for number, (start, length) in enumerate(zip(laid.starts, laid.lengths, strict=True)):
        at = start + np.arange(length)
        every = np.array(list(product(range(len(names)), repeat=length)), dtype=np.int64)
        own = (at[:-1] - number,) if laid.links.ndim == 3 else ()
        pairs = *own, every[:, :-1], every[:, 1:]
        scores = laid.emissions[at, every].sum(axis=1) + laid.links[pairs].sum(axis=1)
        against = loss.against(names[truths[at]].tolist())
        costs = np.array([against(names[row].tolist()) for row in every])
        shares = np.exp(scores - scores.max())
        shares /= shares.sum()
        values.append(shares @ costs)
        shares *= importance[number] * (costs - values[-1])
        np.add.at(by_labels, (np.broadcast_to(at, every.shape), every), shares[:, np.newaxis])
        where = tuple(np.broadcast_to(index, every[:, 1:].shape) for index in pairs)
        np.add.at(by_links, where, shares[:, np.newaxis])
    return np.array(values), by_labels, by_links


@st.composite
def padded(draw, states, scales=(1.0, 30.0, 1000.0, 1e-300)):
    """Short chains in a padded array, with nan in the padding: ties, far and forbidden scores."""
    lengths = np.array(draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    longest = max(lengths) + draw(st.integers(0, 1))
    own, scale = draw(st.booleans()), draw(st.sampled_from(scales))
    shape = (len(lengths), longest - 1, states, states) if own else (states, states)
    scores, links = scale * rng.normal(size=(len(lengths), longest, states)), scale * rng.normal(size=shape)
    if draw(st.booleans()):
        scores, links = scores.round(), links.round()
    forbidden = draw(st.sampled_from([0.0, 0.3]))
    scores[rng.random(scores.shape) < forbidden] = -np.inf
    links[rng.random(links.shape) < forbidden] = -np.inf
    scores[..., 0], links[..., 0, 0] = np.nan_to_num(scores[..., 0], neginf=0.0), 0.0  # something is allowed
    scores += draw(st.sampled_from([0.0, 1e3, -1e5]))
    scores[np.arange(longest) >= lengths[:, np.newaxis]] = np.nan
    truths = rng.integers(0, states, scores.shape[:2])
    truths[rng.random(truths.shape) < 0.3] = 0
    return LaidChains.padded(scores, links, lengths), truths.ravel(), rng.normal(size=len(lengths))


def agree(found, wanted, size=1.0):
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=3e-13 * size, atol=1e-13 * size)


@pytest.mark.parametrize(("loss", "names"), LOSSES, ids=str)
@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_expected_losses_are_those_over_all_labellings(loss, names, data):
    states = data.draw(st.integers(1, 5))
    laid, truths, importance = data.draw(padded(states))
    found = risks_of_laid_chains(laid, loss, names[:states], truths, importance, 2)
    scores = laid.emissions[np.isfinite(laid.emissions)]
    size = max(1.0, 4 * np.abs(scores).max(initial=0.0))  # how far sums of scores are rounded
    agree(found, enumerated(laid, loss, names[:states], truths, importance), size)


@pytest.mark.parametrize(("loss", "names"), LOSSES, ids=str)
def test_derivatives_are_slopes_of_the_enumerated_values(loss, names):
    rng = np.random.default_rng(0)
    lengths, truths = np.array([4, 3]), rng.integers(0, 5, 7)
    scores, links = rng.normal(size=(7, 5)), rng.normal(size=(5, 5))
    by_scores, by_links, step = rng.normal(size=scores.shape), rng.normal(size=links.shape), 1e-5

    def laid(by):
        some = Chains(scores + by * by_scores, links + by * by_links, lengths.tolist(), names)
        return laid_chains(some)

    found = risks_of_laid_chains(laid(0.0), loss, names, truths, np.ones(2), 1)
    ends = [enumerated(laid(by), loss, names, truths, np.ones(2))[0].sum() for by in (-step, step)]
    slope = (found.labels * by_scores).sum() + (found.links * by_links).sum()
    np.testing.assert_allclose(slope, (ends[1] - ends[0]) / (2 * step), rtol=1e-7, atol=1e-9)


def longer(states, lengths, scale=1.0, right=0.0, own=False, seed=1):
    """Chains that are too long to enumerate; `right` is added to the scores of the truth."""
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=(sum(lengths), states))
    links = scale * rng.normal(
        size=(sum(lengths) - len(lengths), states, states) if own else (states, states)
    )
    truths = rng.integers(0, states, sum(lengths))
    scores[np.arange(len(truths)), truths] += right
    return Chains(scores, links, lengths, None), truths, rng.normal(size=len(lengths))


def left_out(some, loss, truths):
    """The chains that need tables, by number."""
    laid, quotient = laid_chains(some), quotient_of(loss, some.emissions.shape[1], some.names)
    rules = quotient.rules(quotient.sizes(truths, laid.starts, laid.lengths), laid.lengths)
    ones = np.ones(len(laid.lengths))
    *_, left = native.chain_risks(*laid, truths, quotient.compiled, *rules, ones, 1e9, 1)
    return np.flatnonzero(left).tolist()


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("scale", "right"), [(0.1, 0.0), (1.0, 8.0), (15.0, 50.0)])
@pytest.mark.parametrize(("loss", "names"), LOSSES, ids=str)
def test_longer_chains_agree_with_tables(loss, names, scale, right, own):
    some, truths, importance = longer(5, [1, 2, 37, 12], scale, right, own)
    some = some._replace(names=names)
    assert not left_out(some, loss, truths)
    found = objective_of_chains(some, loss, truths, "risk", importance)
    wanted = objective_by_tables(some, loss, truths, "risk", importance)
    np.testing.assert_allclose(found.values, wanted.values, rtol=1e-12)
    np.testing.assert_allclose(found.labels, wanted.labels, atol=1e-12)
    np.testing.assert_allclose(found.links, wanted.links, atol=1e-11)


def test_more_columns_than_fit_a_cache_are_summed_in_parts():
    some, truths, importance = longer(60, [60, 50])
    loss = tt.losses.FBeta(background=0)
    found = objective_of_chains(some, loss, truths, "risk", importance)
    agree(found, objective_by_tables(some, loss, truths, "risk", importance))


@pytest.mark.parametrize(("loss", "names"), [LOSSES[2], LOSSES[9]], ids=str)
def test_small_losses_have_all_digits(loss, names):
    """Errors are counted, not what is right: nothing cancels, and nothing vanishes."""
    rng = np.random.default_rng(3)
    for right in (40.0, 200.0):
        scores, truths = rng.normal(size=(8, 5)), np.array([0, 1, 2, 0, 3, 1, 0, 0])
        scores[np.arange(8), truths] += right
        some = Chains(scores, rng.normal(size=(5, 5)), [5, 3], names)
        assert not left_out(some, loss, truths)
        found = objective_of_chains(some, loss, truths, "risk")
        wanted = enumerated(laid_chains(some), loss, names, truths, np.ones(2))
        assert wanted[0].max() < np.exp(-0.8 * right)
        np.testing.assert_allclose(found.values, wanted[0], rtol=1e-12)
        for one, other in zip(found[1:], wanted[1:], strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-13 * np.abs(other).max())


def test_losses_that_may_vanish_where_labels_are_forbidden_need_tables():
    """The only wrong labelling is 1e-130 times as likely as the right one."""
    scores = np.array([[0.0, -150.0], [0.0, -150.0], [0.0, 0.0]])
    links = np.array([[0.0, -np.inf], [-np.inf, 0.0]])
    some, truths = Chains(scores, links, [3], None), np.zeros(3, dtype=np.int64)
    loss = tt.losses.FBeta(background=0)
    assert left_out(some, loss, truths) == [0]
    found = objective_of_chains(some, loss, truths, "risk")
    np.testing.assert_allclose(found.values, np.exp(-300.0), rtol=1e-12)


def test_only_chains_with_scores_far_apart_need_tables():
    some, truths, importance = longer(5, [6, 4, 5], own=True)
    some.emissions[7] *= 1000.0
    some.links[8, 0] = -np.inf
    loss = tt.losses.ChunkFBeta()
    some = some._replace(names=BIO)
    assert left_out(some, loss, truths) == [1]
    found = objective_of_chains(some, loss, truths, "risk", importance)
    agree(found, objective_by_tables(some, loss, truths, "risk", importance), 1e3)


def test_nothing_is_allowed():
    some, truths, importance = longer(3, [3, 2])
    some.emissions[1] = -np.inf
    found = objective_of_chains(some, tt.losses.FBeta(background=0), truths, "risk", importance)
    assert found.values[0] == -np.inf and np.isfinite(found.values[1])
    assert not found.labels[:3].any() and np.isfinite(found.links).all()


@pytest.mark.parametrize("loss", [tt.losses.FBeta(background="O"), tt.losses.ChunkFBeta()], ids=str)
def test_empty_chains_have_no_loss(loss):
    some, truths, importance = longer(5, [0, 4, 0, 3, 0])
    some = some._replace(names=BIO)
    found = objective_of_chains(some, loss, truths, "risk", importance)
    rest = some._replace(lengths=[4, 3])
    wanted = objective_of_chains(rest, loss, truths, "risk", importance[[1, 3]])
    np.testing.assert_array_equal(found.values, [0.0, wanted.values[0], 0.0, wanted.values[1], 0.0])
    agree(found[1:], wanted[1:])
    np.testing.assert_array_equal(expected_losses(some, loss, truths)[[0, 2, 4]], 0.0)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("loss", "names"), [LOSSES[0], LOSSES[3], LOSSES[9], LOSSES[13]], ids=str)
def test_results_do_not_depend_on_threads_or_instruction_sets(loss, names, own):
    lengths = np.random.default_rng(0).integers(1, 30, 40).tolist()
    some, truths, importance = longer(5, lengths, own=own)
    some, before, found = some._replace(names=names), native.instruction_set(), []
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            found += [
                objective_of_chains(some, loss, truths, "risk", importance, threads=threads)
                for threads in (1, 2, 5)
            ]
    finally:
        native.use_instruction_set(before)
    for one in found[1:]:
        assert all(map(np.array_equal, one, found[0]))


def test_sums_share_the_memory_limit(monkeypatch):
    """Fewer threads change nothing; chains that do not fit are left to tables, which do not fit, either."""
    some, truths, importance = longer(5, [60, 200])
    asked = some, tt.losses.FBeta(background=0), truths, "risk", importance
    whole = objective_of_chains(*asked, threads=8)
    monkeypatch.setattr(expectations, "default_memory_limit", lambda: 1_200_000)
    assert all(map(np.array_equal, objective_of_chains(*asked, threads=8), whole))
    monkeypatch.setattr(expectations, "default_memory_limit", lambda: 500_000)
    with pytest.raises(tt.BudgetError, match="chain 1 "):
        objective_of_chains(*asked)


def test_losses_that_are_no_quotients():
    for loss in (
        tt.losses.Precision(background="O"),
        tt.losses.FBeta(background="O", beta=1e-3),
        tt.losses.ChunkFBeta(beta=100.0),
        tt.losses.FBeta(background="P"),
    ):
        assert quotient_of(loss, 5, BIO) is None
    assert quotient_of(tt.losses.ChunkFBeta(), 5, None) is None


@pytest.mark.parametrize("beta", [1.0, 0.3])
@pytest.mark.parametrize("kind", [tt.losses.FBeta, tt.losses.ChunkFBeta])
def test_expected_losses_of_labellings_agree_with_tables(kind, beta, monkeypatch):
    """Truths are drawn, and labellings given: an F-measure with the inverse of β."""
    some, labels, _ = longer(5, [30, 1, 7])
    some, loss = some._replace(names=BIO), kind(background="O", beta=beta)
    labels[30] = 0
    found = expected_losses(some, loss, labels)
    monkeypatch.setattr(expectations, "turned_quotient", lambda *_: None)
    np.testing.assert_allclose(found, expected_losses(some, loss, labels), rtol=1e-12)


def test_numbers_of_earlier_batches_are_found_again(monkeypatch):
    quotient = quotient_of(tt.losses.FBeta(background=0, beta=1.5), 4, None)
    monkeypatch.setattr("tallytree.bulk.quotients._KEPT", 5)
    for sizes, lengths in (([1, 2], [3, 9]), ([1, 0, 2], [3, 40, 9]), ([5, 6, 7, 8], [9] * 4), ([1], [3])):
        rows, which = quotient.rules(np.array(sizes), np.array(lengths))
        assert len(rows) <= 5
        for size, length, row in zip(sizes, lengths, which.tolist(), strict=True):
            np.testing.assert_array_equal(rows[row], quotient.row(size, length, rows.shape[1]))


def test_invalid_arguments_are_refused():
    some, truths, _ = longer(3, [3, 2])
    laid, quotient = laid_chains(some), quotient_of(tt.losses.FBeta(background=0), 3, None)
    rules, which = quotient.rules(np.array([1, 1]), laid.lengths)
    right = (*laid, truths, quotient.compiled, rules, which, np.ones(2), 1e9, 1)
    native.chain_risks(*right)
    other = quotient_of(tt.losses.FBeta(background=0), 4, None)
    for place, wrong in (
        (4, truths[1:]),
        (4, truths + 3),
        (5, other.compiled),
        (6, np.zeros_like(rules)),
        (6, rules[:, :3].copy()),
        (7, which + len(rules)),
        (7, which[1:]),
        (8, np.ones(3)),
    ):
        with pytest.raises(ValueError, match=r"."):
            native.chain_risks(*right[:place], wrong, *right[place + 1 :])
    none = np.zeros((0, 0)), np.zeros((0, 0), dtype=np.bool_)
    with pytest.raises(ValueError, match="more types than labels"):
        native.QuotientCounts(*none, np.array([5], dtype=np.int32), np.ones((1, 1), dtype=np.bool_), 1.0)
    with pytest.raises(ValueError, match="pairs of labels"):
        native.QuotientCounts(np.zeros((2, 2)), none[1], np.zeros(0, dtype=np.int32), none[1], 1.0)
