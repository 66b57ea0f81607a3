"""Decoding for a metric, compared with the expected loss of every labelling, on chains and other graphs."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st
from learning_problems import sentences, strings

import tallytree as tt
from tallytree.learning import MaxExpected, SequenceCRF, SequenceSVM
from tallytree.testing import brute_force, random_model

EXACT = [
    tt.losses.HammingDistance(),
    tt.losses.HammingLoss(),
    tt.losses.FBeta(background=0, beta=2.0),
    tt.losses.FBeta(),
    tt.losses.Precision(background=0),
    tt.losses.Recall(background=0),
    tt.losses.SymmetricDifference(background=0),
    tt.losses.FalsePositives(),
]


def expected(model, loss):
    """All labellings, and what each is expected to lose."""
    every = brute_force(model)
    p = np.exp(every.scores - every.scores.max())
    p /= p.sum()
    lost = np.zeros(len(p))
    for truth, probability in zip(every.labellings, p, strict=True):
        if probability:
            against = loss.against(truth).on(model)
            lost += probability * np.array([against(one) for one in every.labellings])
    return every.labellings, lost


def of(labelling, labellings, lost):
    return lost[(labellings == labelling).all(axis=1)].item()


@settings(deadline=None, max_examples=40)
@given(
    st.sampled_from(["chain", "tree", "cycle", "disconnected"]), st.sampled_from(EXACT), st.integers(0, 2**32)
)
def test_no_labelling_of_any_model_is_better(shape, loss, seed):
    model = random_model(seed, shape, variables=4, states=2, forbidden=0.1)
    choice = MaxExpected(loss).choice(model)
    labellings, lost = expected(model, loss)
    assert of(choice.labels, labellings, lost) == pytest.approx(lost.min(), abs=1e-10)
    assert choice.loss == pytest.approx(lost.min(), abs=1e-10)
    assert choice.exact and choice.error == 0.0


def chain(seed=0, names=("O", "B-NP", "I-NP"), length=4):
    rng = np.random.default_rng(seed)
    size = len(names)
    return tt.Model.chain(rng.normal(size=(length, size)), rng.normal(size=(size, size)), states=names)


@pytest.mark.parametrize("scale", [0.5, 1.0, 3.0])
def test_chunks_of_a_chain(scale):
    model, loss = chain(), tt.losses.ChunkFBeta()
    choice = MaxExpected(loss, scale=scale).choice(model)
    blocks = [block.with_tables(block.tables * scale) for block in model.blocks]
    hotter = tt.Model.from_blocks(model.cardinalities, blocks, states=model.states)
    _, lost = expected(hotter, loss)
    assert choice.loss == pytest.approx(lost.min())


def test_other_losses_need_samples_and_say_how_good_they_are():
    model = chain()
    loss = tt.losses.IntersectionOverUnion(background="O")
    with pytest.raises(tt.ModelError, match=r"no exact method .* samples=100"):
        MaxExpected(loss)(model)
    labellings, lost = expected(model, loss)
    choice = MaxExpected(loss, samples=200).choice(model)
    assert not choice.exact and choice.error == 0.0  # what it loses is known all the same
    assert choice.loss == pytest.approx(of(choice.labels, labellings, lost), abs=1e-10)
    assert choice.loss <= of(tt.solve(model).assignment, labellings, lost) + 1e-12


def test_losses_without_tables_are_estimated():
    model = chain(1)
    loss = tt.losses.ZeroOne()
    choice = MaxExpected(loss, samples=400).choice(model)
    labellings, lost = expected(model, loss)
    assert not choice.exact and 0.0 < choice.error < 0.05
    assert abs(choice.loss - of(choice.labels, labellings, lost)) < 5 * choice.error


@pytest.mark.parametrize("samples", [0, -3])
def test_bad_samples_are_refused(samples):
    with pytest.raises(tt.ModelError, match="samples must be a positive integer"):
        MaxExpected(tt.losses.ZeroOne(), samples=samples)(chain())


def test_what_cannot_be_asked_is_refused():
    with pytest.raises(tt.ModelError, match="remove where="):
        MaxExpected(EXACT[0])(chain(), where=tt.count(state="O") >= 1)
    with pytest.raises(tt.ModelError, match="scale must be a positive number"):
        MaxExpected(EXACT[0], scale=0.0)(chain())
    with pytest.raises(tt.ModelError, match="background 'Q'"):
        MaxExpected(tt.losses.FBeta(background="Q"))(chain())


@pytest.mark.parametrize("estimator", [SequenceCRF(c2=0.1), SequenceSVM(tolerance=0.3)], ids=repr)
@pytest.mark.parametrize("loss", [tt.losses.FBeta(background="D"), tt.losses.HammingLoss()], ids=repr)
def test_estimators_decode_in_one_batch(estimator, loss):
    words, y = sentences(8)
    X = [strings(sentence) for sentence in words]
    decoder = MaxExpected(loss, scale=1.0)
    found = estimator.fit(X, y).predict(X, decode=decoder)
    one_by_one = [decoder(model).tolist() for model in estimator._models(X)]
    assert [labels.tolist() for labels in found] == one_by_one
    assert estimator.predict([], decode=decoder) == []


def test_a_loss_by_its_name():
    model = tt.Model.chain([[0.5, 0.0]] * 3, np.zeros((2, 2)), states=["O", "B"])
    assert (MaxExpected("f1")(model) == MaxExpected(tt.losses.FBeta(background="O"))(model)).all()
    model = tt.Model.chain([[1.5, 0.0]] * 3, np.zeros((2, 2)), states=["O", "B"])
    assert (MaxExpected("f2")(model) == MaxExpected(tt.losses.FBeta(beta=2.0, background="O"))(model)).all()
    with pytest.raises(tt.ModelError, match="unknown loss 'g2'; the names are accuracy, hamming, f1"):
        MaxExpected("g2")
