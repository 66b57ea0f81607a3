"""Batches of chunk losses, compared with single calls."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators

import tallytree as tt
from tallytree import losses
from tallytree.bulk.loss_batch import most_violated

# ---------------------------------------------------------------- chunks


TAGS = ["O", "B-NP", "I-NP", "B-VP", "I-VP"]


@st.composite
def tagged_chains(draw):
    """Draw a chain of chunk tags, with one table of neighbours or one for each two, and a truth."""
    rng, length = draw(generators()), draw(st.integers(1, 6))
    pair = rng.normal(size=(5, 5) if draw(st.booleans()) else (length - 1, 5, 5))
    unary = rng.normal(size=(length, 5))
    unary[rng.random(unary.shape) < draw(st.sampled_from([0.0, 0.1]))] = -np.inf
    pair[rng.random(pair.shape) < draw(st.sampled_from([0.0, 0.1]))] = -np.inf
    return tt.Model.chain(unary, pair, states=TAGS), rng.integers(0, 5, length)


@settings(max_examples=60, deadline=None)
@given(
    pairs=st.lists(tagged_chains(), min_size=1, max_size=5),
    scaling=st.sampled_from(["margin", "slack"]),
    count=st.integers(1, 3),
    named=st.booleans(),
)
def test_chunks_are_counted_without_a_machine_for_each_truth(pairs, scaling, count, named):
    recipe = losses.ChunkFBeta(beta=0.5)
    possible = [(model, truth) for model, truth in pairs if model.score(truth) > -np.inf]
    batch, truths = [model for model, _ in possible], [truth for _, truth in possible]
    if named:
        truths = [[TAGS[label] for label in truth] for truth in truths]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(losses.ChunkFBeta, "reduce", None)
        one = tt.loss_augmented_batch(batch, recipe, scaling, truths=truths, margin=0.7, threads=2)
        several = most_violated(batch, recipe, truths, scaling, count, 1)
    for model, truth, found, some in zip(batch, truths, one, several, strict=True):
        loss = recipe.against(truth).on(model)
        expected = tt.loss_augmented(model, loss, scaling, margin=0.7)
        assert found.value == pytest.approx(expected.value, rel=1e-12, abs=1e-12)
        assert found.score == model.score(found.assignment)
        assert found.loss == pytest.approx(loss(found.assignment), rel=1e-12, abs=1e-15)
        assert found.tally._fields == expected.tally._fields
        assert loss.value(*found.tally) == found.loss
        best = tt.losses.LossProfile(model, loss).top(count, scaling)
        assert [s.value for s in some] == pytest.approx([s.value for s in best], rel=1e-12, abs=1e-12)
        assert "optimal" in found.explain() and found.certificate.variables == expected.certificate.variables


def test_chunks_on_models_that_are_no_chains_have_a_machine_each():
    rng = np.random.default_rng(0)
    chain = tt.Model.chain(rng.normal(size=(4, 5)), rng.normal(size=(5, 5)), states=TAGS)
    pairs = [((v,), chain.blocks[0].tables[v]) for v in (1, 0, 3, 2)]
    pairs += [((v, v + 1), chain.blocks[1].tables[0]) for v in range(3)]
    other = tt.Model([5] * 4, pairs, states=TAGS)
    loss = losses.ChunkFBeta(["O", "B-NP", "I-NP", "O"])
    for found in tt.loss_augmented_batch([chain, other], loss, "slack"):
        assert found.value == pytest.approx(tt.loss_augmented(chain, loss, "slack").value)
    with pytest.raises(tt.ModelError, match="the truth scores -inf"):
        forbidden = tt.Model.chain(np.full((4, 5), -np.inf), np.zeros((5, 5)), states=TAGS)
        tt.loss_augmented_batch([chain, forbidden], loss, "slack")
