"""The labelling with the least expected loss, compared with all pairs of labellings."""

from collections import Counter
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk.best_corpus import best_of_corpus
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.least_loss import expected_losses, least_loss, likely_nodes
from tallytree.losses import chunks_of

pytestmark = pytest.mark.sanitize

LABELS = {
    "BIO": ("O", "B-NP", "I-NP"),
    "two types": ("B-VP", "O", "B-NP", "I-NP"),
    "BIOES": ("O", "B-NP", "I-NP", "E-NP", "S-NP"),
    "one": ("O",),
}
LOSSES = [
    tt.losses.HammingDistance(),
    tt.losses.HammingLoss(),
    tt.losses.FBeta(),
    tt.losses.SymmetricDifference(),
    tt.losses.FalsePositives(),
    tt.losses.FBeta(background="O"),
    tt.losses.FBeta(background="O", beta=2.0),
    tt.losses.Precision(background="O"),
    tt.losses.Recall(background="O"),
    tt.losses.FalsePositives(background="O"),
    tt.losses.SymmetricDifference(background="O"),
]


@st.composite
def cases(draw, chunks=None):
    scheme = draw(st.sampled_from(sorted(LABELS)))
    names = LABELS[scheme]
    of_chunks = tt.losses.ChunkFBeta(
        scheme="BIOES" if scheme == "BIOES" else "BIO", beta=draw(st.sampled_from([0.5, 1.0, 2.0]))
    )
    whole = draw(st.booleans()) if chunks is None else chunks
    loss = of_chunks if whole else draw(st.sampled_from(LOSSES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    lengths = draw(st.lists(st.integers(1, 3 if len(names) > 4 else 4), min_size=1, max_size=3))
    scale = draw(st.sampled_from([0.3, 2.0]))
    size = len(names)
    scores, links = scale * rng.normal(size=(sum(lengths), size)), scale * rng.normal(size=(size, size))
    return Chains(scores, links, lengths, names), loss, rng


def matrix(chains, loss, number):
    """All labellings of a chain, and the expected loss of each."""
    every, p = map(np.array, all_labellings(chains, number))
    names = [[chains.names[label] for label in row] for row in every.tolist()]
    found = np.zeros(len(every))
    for truth, probability in zip(names, p, strict=True):
        against = loss.against(truth)
        found += probability * np.array([against(row) for row in names])
    return every, found


@settings(deadline=None, max_examples=60)
@given(cases())
def test_no_labelling_has_a_smaller_expected_loss(case):
    chains, loss, _ = case
    found = least_loss(chains, loss)
    for number, labels in enumerate(np.split(found.labels, np.cumsum(chains.lengths)[:-1])):
        every, losses = matrix(chains, loss, number)
        own = losses[(every == labels).all(axis=1)].item()
        assert own == pytest.approx(losses.min(), abs=1e-10)
        assert found.losses[number] == pytest.approx(own, abs=1e-10)


@settings(deadline=None, max_examples=40)
@given(cases(), st.booleans())
def test_expected_losses_are_those_over_all_truths(case, jaccard):
    chains, loss, rng = case
    loss = tt.losses.IntersectionOverUnion(background="O") if jaccard else loss
    if getattr(loss, "background", 0) is None:
        return
    labels = rng.integers(0, len(chains.names), sum(chains.lengths))
    found = expected_losses(chains, loss, labels)
    for number, one in enumerate(np.split(labels, np.cumsum(chains.lengths)[:-1])):
        every, losses = matrix(chains, loss, number)
        assert found[number] == pytest.approx(losses[(every == one).all(axis=1)].item(), abs=1e-10)


@settings(deadline=None, max_examples=40)
@given(cases(chunks=True))
def test_chunks_are_as_likely_as_in_all_labellings(case):
    chains, loss, _ = case
    kinds = sorted({name[2:] for name in chains.names if name != "O"})
    found = {
        (chain, (kinds[kind], first, last)): probability
        for chain, first, last, kind, probability in likely_nodes(chains, loss, 0.01).tolist()
    }
    wanted = Counter()
    for number in range(len(chains.lengths)):
        for labels, probability in zip(*all_labellings(chains, number), strict=True):
            names = [chains.names[label] for label in labels]
            for chunk in chunks_of(names, loss.scheme):
                wanted[number, tuple(chunk)] += probability
    likely = {chunk: probability for chunk, probability in wanted.items() if probability > 0.01}
    assert found.keys() == likely.keys()
    for chunk, probability in likely.items():
        assert found[chunk] == pytest.approx(probability, rel=1e-9)


def test_what_is_not_known_exactly_is_said():
    chains = Chains(np.zeros((2, 3)), np.zeros((3, 3)), [2], ("O", "B-NP", "I-NP"))
    assert least_loss(chains, tt.losses.IntersectionOverUnion(background="O")) is None
    assert least_loss(chains._replace(names=("O", "I-NP", "I-VP")), tt.losses.ChunkFBeta()) is None
    assert least_loss(chains._replace(names=("O", "NP", "VP")), tt.losses.ChunkFBeta(scheme="IO")) is None
    with pytest.raises(tt.ModelError, match="background 'Q'"):
        least_loss(chains, tt.losses.FBeta(background="Q"))
    far = chains._replace(emissions=np.array([[0.0, 900.0, 0.0]] * 2))
    with pytest.raises(tt.ModelError, match="more than 500 apart"):
        least_loss(far, tt.losses.ChunkFBeta())


def test_threads_change_nothing_and_long_chains_are_fine():
    rng = np.random.default_rng(0)
    lengths = [60, 1, 33, 80]
    chains = Chains(
        3 * rng.normal(size=(sum(lengths), 3)), rng.normal(size=(3, 3)), lengths, ("O", "B-NP", "I-NP")
    )
    one, other = (least_loss(chains, tt.losses.ChunkFBeta(), threads) for threads in (1, 3))
    assert np.array_equal(one.labels, other.labels) and np.array_equal(one.losses, other.losses)
    again = expected_losses(chains, tt.losses.ChunkFBeta(), one.labels)
    np.testing.assert_allclose(one.losses, again, rtol=1e-9)
    best = expected_losses(chains, tt.losses.ChunkFBeta(), viterbi(chains))
    assert (one.losses <= best + 1e-12).all()


def viterbi(chains):
    return np.concatenate([some[0][0] for some in best_of_chains(chains)])


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 2**32), st.sampled_from([0.5, 1.0, 2.0]), st.booleans())
def test_no_labelling_of_a_corpus_has_a_better_ratio(seed, beta, chunks):
    rng = np.random.default_rng(seed)
    names, lengths = ("O", "B-NP", "I-NP"), [2, 1]
    chains = Chains(2 * rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), lengths, names)
    loss = tt.losses.ChunkFBeta(beta=beta) if chunks else tt.losses.FBeta(beta=beta, background="O")
    found = best_of_corpus(chains, loss)
    ratios, measures = corpus_by_definition(chains, loss)
    assert found.f == pytest.approx(max(ratios.values()), abs=1e-10)
    assert ratios[tuple(found.labels.tolist())] == pytest.approx(found.f, abs=1e-10)
    assert abs(measures[tuple(found.labels.tolist())] - found.f) <= found.within + 1e-10


def corpus_by_definition(chains, loss):
    """For each labelling of both chains, the ratio of expected counts, and the expected F-measure."""
    parts = [all_labellings(chains, number) for number in range(2)]
    pairs = product(zip(*parts[0], strict=True), zip(*parts[1], strict=True))
    every = {(*a, *b): p * q for (a, p), (b, q) in pairs}
    nodes = {labels: nodes_in(chains, loss, labels) for labels in every}
    weight, ratios, measures = loss.beta**2, {}, {}
    size = sum(p * len(nodes[truth]) for truth, p in every.items())
    for labels, mine in nodes.items():
        right = sum(p * len(mine & nodes[truth]) for truth, p in every.items())
        whole = weight * size + len(mine)
        ratios[labels] = (1 + weight) * right / whole if whole else 1.0
        measures[labels] = sum(
            p
            * (
                (1 + weight) * len(mine & nodes[truth]) / d
                if (d := weight * len(nodes[truth]) + len(mine))
                else 1.0
            )
            for truth, p in every.items()
        )
    return ratios, measures


def all_labellings(chains, number):
    begin, length = sum(chains.lengths[:number]), chains.lengths[number]
    every = np.array(list(product(range(len(chains.names)), repeat=length)))
    scores = chains.emissions[begin + np.arange(length), every].sum(axis=1)
    p = np.exp(scores + chains.links[every[:, :-1], every[:, 1:]].sum(axis=1))
    return every.tolist(), (p / p.sum()).tolist()


def nodes_in(chains, loss, labels):
    """The nodes of both chains."""
    found, begin = set(), 0
    for number, length in enumerate(chains.lengths):
        names = [chains.names[label] for label in labels[begin : begin + length]]
        found |= {(number, node) for node in loss.against(names).nodes(names)}
        begin += length
    return found
