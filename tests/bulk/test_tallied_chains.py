"""Sums of chains for all tallies, and derivatives of functions of them, compared with enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk.chain_sums import LaidChains
from tallytree.bulk.tallied_chains import TalliedChains
from tallytree.kernels import native

pytestmark = pytest.mark.sanitize

ZEROS, ONES = tt.count(state=0), tt.count(state=1)
NEVER = 10**6
"""A cap that no tally reaches: capped statistics are summed in logarithms."""


def tables(rng, length, size, linked):
    """A statistic with a table for each position and, if linked, each two neighbours, in either order."""
    pairs = [((m,), rng.integers(-2, 3, size=size)) for m in range(length)]
    for m in range(1, length) if linked else ():
        table = rng.integers(-1, 2, size=(size, size))
        pairs.append(((m - 1, m), table) if rng.random() < 0.5 else ((m, m - 1), table))
    pairs.append(((), np.array(rng.integers(-3, 4))))
    return tt.Statistic(pairs, name=f"tables of {length}")


@st.composite
def problems(draw):
    """Chains with statistics: far scores, forbidden ones, single labels, negative entries, caps."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    size, count, longest = draw(st.integers(1, 3)), draw(st.integers(1, 3)), draw(st.integers(1, 4))
    lengths = np.full(count, longest)
    kinds = draw(st.lists(st.sampled_from(["count", "capped", "alone", "linked"]), min_size=1, max_size=2))
    statistics = []
    for kind in kinds:
        if kind in ("count", "capped"):
            one = tt.count(state=int(rng.integers(size)))
            statistics.append(one.capped(2) if kind == "capped" else one)
        else:
            statistics.append(tables(rng, longest, size, kind == "linked"))
    if {"alone", "linked"}.isdisjoint(kinds):
        lengths = rng.integers(1, longest + 1, size=count)
        longest = int(lengths.max())
    scale, forbidden = (
        draw(st.sampled_from([1.0, 30.0, 120.0, 2000.0])),
        draw(st.sampled_from([0.0, 0.3, 0.6])),
    )
    shape = (count, longest - 1, size, size) if draw(st.booleans()) else (size, size)
    emissions, links = scale * rng.normal(size=(count, longest, size)), scale * rng.normal(size=shape)
    for scores in (emissions, links):
        scores[rng.random(scores.shape) < forbidden] = -np.inf
    return LaidChains.padded(emissions, links, lengths.astype(np.int64)), tuple(statistics)


def labellings(chains, number):
    """All labellings of a chain, and their scores."""
    length, size = int(chains.lengths[number]), chains.emissions.shape[1]
    labels = np.array(list(product(range(size), repeat=length)), dtype=np.int64)
    at = int(chains.starts[number]) + np.arange(length)
    scores = chains.emissions[at, labels].sum(axis=1)
    if chains.links.ndim == 2:
        return labels, scores + chains.links[labels[:, :-1], labels[:, 1:]].sum(axis=1)
    first = int(chains.starts[number]) - number
    return labels, scores + chains.links[first + np.arange(length - 1), labels[:, :-1], labels[:, 1:]].sum(1)


def by_definition(chains, statistics, found, gains):
    """The sums of all tallies, and derivatives by shares of labellings."""
    sums = np.full(found.sums.shape, -np.inf)
    by_labels, by_links = np.zeros_like(chains.emissions), np.zeros_like(chains.links)
    for number in range(len(chains.lengths)):
        labels, scores = labellings(chains, number)
        bound = [one.on(chains.model(number)) for one in statistics]
        tallies = np.array([[one.tally(some) for one in bound] for some in labels]) - found.low
        start = int(chains.starts[number])
        for tally in set(map(tuple, tallies[scores > -np.inf].tolist())):
            chosen = (tallies == tally).all(axis=1) & (scores > -np.inf)
            some, top = scores[chosen], scores[chosen].max()
            sums[(number, *tally)] = top + np.log(np.exp(some - top).sum())
            shares = gains[(number, *tally)] * np.exp(some - sums[(number, *tally)])
            for m in range(labels.shape[1]):
                np.add.at(by_labels[start + m], labels[chosen, m], shares)
            for m in range(1, labels.shape[1]):
                table = by_links if by_links.ndim == 2 else by_links[start - number + m - 1]
                np.add.at(table, (labels[chosen, m - 1], labels[chosen, m]), shares)
    return sums, by_labels, by_links


def agree(found, slopes, wanted):
    finite = np.abs(wanted[0][np.isfinite(wanted[0])])
    size = max(1.0, finite.max(initial=0.0))  # how far sums of scores are rounded
    np.testing.assert_array_equal(found.sums == -np.inf, wanted[0] == -np.inf)
    np.testing.assert_allclose(found.sums, wanted[0], rtol=0, atol=1e-14 * size + 1e-12)
    np.testing.assert_allclose(slopes.labels, wanted[1], rtol=0, atol=1e-13 * size + 1e-11)
    np.testing.assert_allclose(slopes.links, wanted[2], rtol=0, atol=1e-13 * size + 1e-11)


@given(problems(), st.integers(0, 2**32), st.sampled_from([0.0, 0.5, 0.9]))
@settings(max_examples=300, deadline=None)
def test_sums_and_their_derivatives(problem, seed, idle):
    chains, statistics = problem
    found, rng = TalliedChains(chains, statistics, None, 1), np.random.default_rng(seed)
    gains = rng.normal(size=found.sums.shape)
    gains[rng.random(gains.shape) < idle] = 0.0
    ignored = np.where(found.sums == -np.inf, np.nan, gains)  # whatever is gained with what is impossible
    agree(found, found.slopes(ignored), by_definition(chains, statistics, found, gains))


class Neighbours(tt.Recipe):
    """Counts neighbours with different labels, on chains of any length; a single position has none."""

    key = "neighbours"

    def on(self, model):
        size = model.cardinalities[0]
        pairs = [((m - 1, m), 1 - np.eye(size, dtype=np.int64)) for m in range(1, len(model))]
        return tt.Statistic(pairs or [((0,), np.zeros(size, dtype=np.int64))], name="neighbours")


@pytest.mark.parametrize("lengths", [(1,), (1, 1), (1, 2), (3, 1, 4), (4, 3)])
def test_neighbours_of_chains_some_of_which_are_single_positions(lengths):
    rng, statistics = np.random.default_rng(4), (Neighbours(), ONES)
    emissions, links = rng.normal(size=(len(lengths), max(lengths), 2)), rng.normal(size=(2, 2))
    chains = LaidChains.padded(emissions, links, np.array(lengths))
    found = TalliedChains(chains, statistics, None, 1)
    gains = rng.normal(size=found.sums.shape)
    agree(found, found.slopes(gains), by_definition(chains, statistics, found, gains))


def long_chains(sharp, forbidden=0.0, length=30, size=4, seed=0):
    rng = np.random.default_rng(seed)
    emissions = sharp * rng.normal(size=(6, length, size))
    links = rng.normal(size=(size, size))
    emissions[rng.random(emissions.shape) < forbidden] = -np.inf
    emissions[:, :, 2:3] = 0.0
    return LaidChains.padded(emissions, links, np.array([length, 1, 2, length // 2, length - 1, length]))


LONG = [
    pytest.param(sharp, forbidden, id=f"{sharp} {forbidden}")
    for sharp in (0.1, 3.0, 15.0, 40.0, 100.0)  # rare tallies: up to exp(-9000) of the sum
    for forbidden in (0.0, 0.3)
]


@pytest.mark.parametrize(("sharp", "forbidden"), LONG)
@pytest.mark.parametrize("counted", [(ZEROS,), (ZEROS, ONES)], ids=len)
def test_rare_tallies_are_as_certain_as_in_logarithms(sharp, forbidden, counted):
    chains = long_chains(sharp, forbidden)
    found = TalliedChains(chains, counted, None, 1)
    logs = TalliedChains(chains, tuple(one.capped(NEVER) for one in counted), None, 1)
    every = found.sums.shape
    sums = logs.sums[tuple(slice(size) for size in every)]
    np.testing.assert_array_equal(found.sums == -np.inf, sums == -np.inf)
    np.testing.assert_allclose(found.sums, sums, rtol=1e-13, atol=1e-11)
    rng = np.random.default_rng(1)
    for gains in (rng.normal(size=every), np.where(rng.random(every) < 0.05, 1.0, 0.0)):
        given_logs = np.zeros(logs.sums.shape)
        given_logs[tuple(slice(size) for size in every)] = gains
        ours, theirs = found.slopes(gains), logs.slopes(given_logs)
        np.testing.assert_allclose(ours.labels, theirs.labels, rtol=0, atol=1e-9)
        np.testing.assert_allclose(ours.links, theirs.links, rtol=0, atol=1e-9)


@pytest.mark.parametrize(
    ("chains", "counted", "wanted"),
    [
        (long_chains(1.0), (ZEROS,), True),
        (long_chains(1.0), (ZEROS, ONES), True),
        (long_chains(1.0, 0.3), (ZEROS, ONES), True),
        (long_chains(1.0), (Neighbours(),), True),
        (long_chains(1.0, size=1), (ZEROS,), True),
        (long_chains(1e-12), (ZEROS,), True),
        (long_chains(1.0), (ZEROS.capped(NEVER),), False),
        (long_chains(1.0, length=4, size=5), tuple(tt.count(state=s) for s in range(5)), False),
        (long_chains(2000.0), (ZEROS,), False),
    ],
    ids=["one", "two", "forbidden", "pairs", "single", "equal", "capped", "five", "far apart"],
)
def test_products_are_used_where_they_are_certain(chains, counted, wanted):
    found = TalliedChains(chains, counted, None, 1)
    assert all(found._batch.plain) if wanted else not any(found._batch.plain[::5])  # those are long
    found.slopes(np.ones_like(found.sums))
    assert all(found._batch.plain) if wanted else not any(found._batch.plain[::5])


@pytest.mark.parametrize("forbidden", [False, True])
def test_only_chains_with_tallies_beyond_products_are_left_to_logarithms(forbidden):
    emissions = np.zeros((3, 60, 2))
    emissions[1, :, 0] = -20.0  # all zeros: exp(-1200) of the sum
    if forbidden:
        emissions[2, 0, 0] = -np.inf
    chains = LaidChains.padded(emissions, np.zeros((2, 2)), np.full(3, 60))
    found = TalliedChains(chains, (ZEROS,), None, 1)
    assert found._batch.plain == [True, False, True]
    for tally, plain in ((1, True), (59, False)):  # of a likely tally of that chain, derivatives are certain
        gains = np.zeros_like(found.sums)
        gains[:, tally] = 1.0
        slopes = found.slopes(gains)
        assert found._batch.plain == [True, plain, True]
        np.testing.assert_allclose(slopes.labels[:, 0].reshape(3, 60).sum(1), tally, rtol=1e-12)


@pytest.mark.parametrize("gain", [1e-200, 1e30, 1e60, 1e200])
def test_derivatives_grow_with_what_is_gained(gain):
    chains = long_chains(3.0)
    found = TalliedChains(chains, (ZEROS,), None, 1)
    gains = np.random.default_rng(2).normal(size=found.sums.shape)
    once, more = found.slopes(gains).labels, found.slopes(gain * gains).labels
    np.testing.assert_allclose(more / gain, once, rtol=0, atol=1e-11)


@pytest.mark.parametrize("gain", [1e-250, 1e-30, 1e30, 1e200])
def test_derivatives_behind_an_unlikely_label_grow_with_what_is_gained(gain):
    emissions, links = np.array([[[0.0, -200.0], [0.0, 0.0]]]), np.array([[-np.inf, -np.inf], [0.0, 0.0]])
    chains = LaidChains.padded(emissions, links, np.array([2]))  # a likely label that nothing may follow
    found = TalliedChains(chains, (ZEROS,), None, 1)
    slopes = found.slopes(np.full_like(found.sums, gain))
    np.testing.assert_allclose(slopes.labels, [[0.0, 2 * gain], [gain, gain]], rtol=1e-12)


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
def test_the_same_bits_on_all_threads_and_instruction_sets(forbidden):
    chains = long_chains(3.0, forbidden, size=5)
    gains = np.random.default_rng(3).normal(size=(6, 31, 31))

    def bits(threads):
        found = TalliedChains(chains, (ZEROS, ONES), None, threads)
        return [array.tobytes() for array in (found.sums, *found.slopes(gains)[1:])]

    wanted = bits(1)
    assert bits(3) == wanted
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            assert bits(2) == wanted
    finally:
        native.use_instruction_set()


def test_nothing_is_gained():
    found = TalliedChains(long_chains(1.0), (ZEROS,), None, 1)
    slopes = found.slopes(np.zeros_like(found.sums))
    assert not slopes.labels.any() and not slopes.links.any()


def test_numbers_of_the_wrong_shape_are_refused():
    batch = native.Batch(native.TallyMode.AUTO, 1e9)
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    ones = ONES.on(model)
    from tallytree.bulk.tallied_chains import bound_on

    bound = bound_on((ones,), 2, 2, None)
    scores = [np.zeros((2, 2)), np.zeros((1, 2, 2))]
    batch.add(bound.skeleton, bound.shifts, *bound.limits, scores, [], [], False)
    assert np.exp(batch.tally_sums([0], [3], 1)).round(9).tolist() == [[1.0, 2.0, 1.0]]
    for low, extent in (([0, 0], [3, 3]), ([0], [3, 3]), ([0], [0]), ([1], [3])):
        with pytest.raises(ValueError, match=r"statistic|others|extent|outside"):
            batch.tally_sums(low, extent, 1)
    for gains in (np.zeros((2, 3)), np.zeros(3), np.zeros((1, 3, 3))):
        with pytest.raises(ValueError, match="gains"):
            batch.differentiate(gains, [0], 1)
