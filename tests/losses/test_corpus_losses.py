"""Corpus losses, compared with all combinations of labellings and with a plain join."""

from collections import Counter
from contextlib import nullcontext
from itertools import product
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators, models

import tallytree as tt
from tallytree.losses.corpus.pool import without_chords
from tallytree.losses.corpus.search import minimise
from tallytree.losses.corpus.union import Corpus
from tallytree.testing import brute_force

KINDS = [
    tt.losses.FBeta,
    tt.losses.Precision,
    tt.losses.Recall,
    tt.losses.IntersectionOverUnion,
    tt.losses.FalsePositives,
]


def asked(joined, *arguments, **keywords):
    """Ask in the usual way, by bounds where they can be asked; or by joining profiles."""
    with patch.object(Corpus, "search", lambda *_: None) if joined else nullcontext():
        return tt.loss_augmented_corpus(*arguments, **keywords)


def pooled(loss, truths, labellings):
    """Compute the loss of a corpus from its definition."""
    found, gold = Counter(), Counter()
    for k, (truth, y) in enumerate(zip(truths, labellings, strict=True)):
        nodes = loss.against(truth).nodes
        found.update({(k, node): 1 for node in nodes(y)})
        gold.update({(k, node): 1 for node in nodes(truth)})
    return loss.compare(found, gold)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("background", [None, 0])
@given(
    data=st.data(),
    scaling=st.sampled_from(["margin", "slack"]),
    margin=st.sampled_from([0.0, 1.0, 5.0]),
    joined=st.booleans(),
)
def test_the_best_of_all_combinations_is_found(kind, background, data, scaling, margin, joined):
    loss = kind(background=background)
    parts = [data.draw(models(largest=2, states=3)) for _ in range(data.draw(st.integers(1, 3)))]
    everything = [brute_force(model, []) for model in parts]
    possible = [e.labellings[e.scores > -np.inf].tolist() for e in everything]
    truths = [data.draw(st.sampled_from(some)) for some in possible]
    right = sum(model.score(y) for model, y in zip(parts, truths, strict=True))
    values = [
        tt.losses.scaled(
            scaling,
            pooled(loss, truths, ys),
            sum(model.score(y) for model, y in zip(parts, ys, strict=True)) - right,
            margin,
        )
        for ys in product(*possible)
    ]
    found = asked(joined, parts, truths, loss, scaling, margin=margin)
    assert found.value == pytest.approx(max(values), abs=1e-9)
    labellings = [solution.assignment.tolist() for solution in found.solutions]
    assert found.loss == pytest.approx(pooled(loss, truths, labellings))
    scores = [model.score(y) for model, y in zip(parts, labellings, strict=True)]
    assert found.score == pytest.approx(sum(scores), abs=1e-9)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("margin", [1.0, 20.0])
@settings(max_examples=25)
@given(rng=generators(), count=st.integers(5, 12), fine=st.booleans(), by_profiles=st.booleans())
def test_a_plain_join_finds_the_same(scaling, margin, rng, count, fine, by_profiles):
    sizes = rng.integers(3, 8, count).tolist()
    draw = rng.normal if fine else lambda size: rng.integers(-2, 3, size) / 2
    parts = [tt.Model.chain(draw(size=(m, 3)), draw(size=(3, 3))) for m in sizes]
    truths = [rng.integers(0, 3, m).tolist() for m in sizes]
    loss = tt.losses.FBeta(background=0)
    found = asked(by_profiles, parts, truths, loss, scaling, margin=margin)
    tables = [
        tt.losses.LossProfile(model, loss.against(y)).table() for model, y in zip(parts, truths, strict=True)
    ]
    joined = {(0, 0): 0.0}
    for tallies, scores in tables:
        new: dict[tuple[int, int], float] = {}
        for (tp, fp), score in joined.items():
            for (a, b), more in zip(tallies.tolist(), scores.tolist(), strict=True):
                key = (tp + a, fp + b)
                new[key] = max(new.get(key, -np.inf), score + more)
        joined = new
    size = sum(loss.against(y).size for y in truths)
    tp, fp = np.array(list(joined)).T
    losses = loss.of_counts(tp, fp, size)
    values = tt.losses.scaled(scaling, losses, np.array(list(joined.values())) - found.truth_score, margin)
    assert found.value == pytest.approx(values.max(), abs=1e-9)


def test_few_tallies_survive_the_bound():
    rng = np.random.default_rng(5)
    sizes = rng.integers(5, 20, 60).tolist()
    parts = [tt.Model.chain(rng.normal(size=(m, 4)), rng.normal(size=(4, 4))) for m in sizes]
    truths = [rng.integers(0, 4, m).tolist() for m in sizes]
    values = []
    for joined in (False, True):
        lines: list[str] = []
        loss = tt.losses.FBeta(background=0)
        found = asked(joined, parts, truths, loss, margin=60.0, progress=lines.append)
        assert found.report.tallies > 100_000
        assert found.report.joined < found.report.tallies / 100
        assert "survived the bound" in str(found.report)
        assert any("bound" in line for line in lines)
        assert (found.certificate is None) == joined
        values.append(found.value)
    assert values[0] == pytest.approx(values[1])


def test_a_corpus_beyond_any_table():
    """Thousands of variables, of several numbers of states: the labellings are those of the best prices."""
    rng = np.random.default_rng(1)
    sizes = rng.integers(1, 30, 200).tolist()
    parts = [
        tt.Model.chain(rng.normal(size=(m, 3 + m % 2)), rng.normal(size=(3 + m % 2,) * 2)) for m in sizes
    ]
    truths = [rng.integers(0, 3, m).tolist() for m in sizes]
    found = tt.loss_augmented_corpus(parts, truths, tt.losses.FBeta(background=0), "slack", margin=5.0)
    assert found.certificate.optimal and found.report.tallies > 1_000_000
    assert "no labellings of all models together" in str(found.certificate)
    assert found.solutions[0].certificate.claim == found.certificate.claim
    more = asked(True, parts[:40], truths[:40], tt.losses.FBeta(background=0), "slack", margin=5.0)
    less = asked(False, parts[:40], truths[:40], tt.losses.FBeta(background=0), "slack", margin=5.0)
    assert more.value == pytest.approx(less.value) and more.tally == less.tally


def test_memory_that_ends_says_what_is_known():
    rng = np.random.default_rng(1)
    parts = [tt.Model.chain(np.zeros((20, 3)), np.zeros((3, 3))) for _ in range(40)]
    truths = [rng.integers(0, 3, 20).tolist() for _ in parts]
    with pytest.raises(tt.BudgetError):
        tt.loss_augmented_corpus(parts, truths, tt.losses.FBeta(background=0), memory_limit=1e6)


def test_what_is_no_corpus_is_refused():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match="true and false positives"):
        tt.loss_augmented_corpus([model], [[0, 0]], tt.losses.HammingLoss())
    with pytest.raises(tt.ModelError, match="a list of models"):
        tt.loss_augmented_corpus(model, [[0, 0]], tt.losses.FBeta())
    with pytest.raises(tt.ModelError, match="at least one model"):
        tt.loss_augmented_corpus([], [], tt.losses.FBeta())
    with pytest.raises(tt.ModelError, match="2 models and 1 truths"):
        tt.loss_augmented_corpus([model, model], [[0, 0]], tt.losses.FBeta())


@given(rng=generators(), size=st.integers(1, 3))
def test_the_ellipsoid_closes_in_on_the_minimum(rng, size):
    planes, heights = rng.normal(size=(9, size)), rng.normal(size=9)
    planes = np.concatenate((planes, np.eye(size) * 4, -np.eye(size) * 4))  # bounded below
    heights = np.concatenate((heights, np.full(2 * size, -6.0)))
    seen = []

    def function(x):
        values = planes @ x + heights
        seen.append(values.max())
        return values.max(), planes[values.argmax()]

    minimise(function, np.zeros(size), 10.0, 1e-7, most=2000)
    points = rng.normal(size=(2000, size)) * 3
    assert min(seen) <= (points @ planes.T + heights).max(axis=1).min() + 1e-6


@given(rng=generators(), size=st.integers(1, 3), count=st.integers(1, 30), parts=st.integers(1, 3))
def test_no_vertex_is_left_out(rng, size, count, parts):
    tallies = np.unique(rng.integers(0, 4, (count, size)), axis=0)
    everything = np.concatenate([tallies] * parts)
    part = np.repeat(np.arange(parts), len(tallies))
    scores = rng.integers(-3, 4, len(part)).astype(float)
    kept = without_chords(part, everything, scores)
    for multipliers in rng.normal(size=(50, size)) * 3:
        values = scores + everything @ multipliers
        for k in range(parts):
            assert values[kept][part[kept] == k].max() == pytest.approx(values[part == k].max())


@settings(max_examples=30)
@given(rng=generators(), sizes=st.lists(st.integers(1, 5), min_size=1, max_size=5), bioes=st.booleans())
def test_chunks_of_sentences_one_after_the_other(rng, sizes, bioes):
    """As one document: no chunk goes on from one sentence to the next, whatever labels they begin with."""
    labels = ["O", "B-X", "I-X", "E-X", "S-X", "I-Y"] if bioes else ["O", "B-X", "I-X", "B-Y", "I-Y"]
    n = len(labels)
    parts = [tt.Model.chain(rng.normal(size=(m, n)), rng.normal(size=(n, n)), states=labels) for m in sizes]
    truths = [rng.choice(labels, m).tolist() for m in sizes]
    loss = tt.losses.ChunkFBeta(scheme="BIOES" if bioes else "BIO")
    for scaling, margin in (("margin", 3.0), ("slack", 1.0)):
        found, joined = (asked(j, parts, truths, loss, scaling, margin=margin) for j in (False, True))
        assert found.value == pytest.approx(joined.value) and found.tally == joined.tally
        every = zip(found.solutions, truths, strict=True)
        losses = [loss.against(truth)(solution.labels) for solution, truth in every]
        assert [solution.loss for solution in found.solutions] == pytest.approx(losses)
        assert np.array([tuple(solution.tally) for solution in found.solutions]).sum(axis=0).tolist() == list(
            found.tally
        )
