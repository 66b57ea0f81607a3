"""Losses by name: every name, contradictions, and the range of beta."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.losses import LOSS_NAMES, ChunkFBeta, FBeta, HammingDistance, RougeL, as_loss
from tallytree.losses.names import base_name


def test_every_name_is_listed():
    assert "accuracy" in LOSS_NAMES
    with pytest.raises(tt.ModelError) as caught:
        as_loss("nothing")
    assert all(name in str(caught.value) for name in LOSS_NAMES)
    assert as_loss("accuracy") == as_loss("hamming") == HammingDistance()


@pytest.mark.parametrize(("wrong", "near"), [("chunk_f1", "chunk-f1"), ("F1", "f1"), ("Hamming", "hamming")])
def test_the_nearest_name_is_suggested(wrong, near):
    with pytest.raises(
        tt.ModelError, match=rf"^unknown loss '{wrong}'; did you mean '{near}'\? The names are"
    ):
        as_loss(wrong)


def test_a_class_is_not_a_loss():
    text = r"unknown loss <class '.*\.FBeta'>; it is a class, so call it, as in FBeta\(\)"
    with pytest.raises(tt.ModelError, match=text):
        as_loss(FBeta)


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        ("f2", {"beta": 3.0}, r"'f2' has beta 2, but beta=3\.0 was given as well; use 'f1' with beta=3\.0"),
        ("chunk-f0.5", {"beta": 1.0}, r"'chunk-f0\.5' has beta 0\.5, but beta=1\.0 .* use 'chunk-f1' with"),
        ("hamming", {"beta": 2.0}, r"the loss 'hamming' has no parameter 'beta'"),
        ("f1", {"bate": 2.0}, r"the loss 'f1' has no parameter 'bate'; it has background, beta"),
        ("chunk-f1", {"bate": 2.0}, r"no parameter 'bate'; it has background, beta, scheme"),
        (FBeta(), {"beta": 2.0}, r"beta=2\.0 is for a loss given by name; use loss\.replace\(beta=2\.0\)"),
    ],
)
def test_contradictions_are_refused(name, parameters, text):
    with pytest.raises(tt.ModelError, match=text):
        as_loss(name, **parameters)


def test_what_agrees_is_accepted():
    assert as_loss("f2", beta=2) == as_loss("f1", beta=2.0) == FBeta(beta=2.0, background="O")
    assert as_loss("chunk-f1", beta=2.0) == ChunkFBeta(beta=2.0) == as_loss("chunk-f2.0")
    assert [base_name(one) for one in ("chunk-f0.5", "f2", "accuracy", "iou")] == [
        "chunk-f1", "f1", "hamming", "iou",
    ]  # fmt: skip


@pytest.mark.parametrize("kind", [FBeta, ChunkFBeta, lambda beta: RougeL([["a"]], beta=beta)])
@pytest.mark.parametrize(
    "beta", [0, 0.0, -1.0, 1e-300, 1e-7, 1e7, 1e300, np.inf, np.nan, "2", None, True, 10**400, np.float32(0)]
)
def test_betas_out_of_range_are_refused(kind, beta):
    with pytest.raises(tt.ModelError, match=r"^beta must be a number from 1e-06 to 1e\+06, got ") as caught:
        kind(beta=beta)
    assert ("losses.Recall" in str(caught.value)) == (kind in (FBeta, ChunkFBeta))


EXTREME = st.sampled_from([1e-6, 1e-3, 1.0, 1e3, 1e6, 1, 2, np.float32(0.5), np.int64(2)])


@settings(deadline=None, max_examples=200)
@given(EXTREME, st.integers(0, 30), st.integers(0, 30), st.integers(0, 30))
def test_betas_within_range_are_exact(beta, tp, fp, missed):
    size, square = tp + missed, Fraction(float(beta)) ** 2
    whole = square * size + tp + fp
    expected = float(1 - (1 + square) * tp / whole) if whole else 0.0
    loss = FBeta(["a"] * size + ["O"] * fp, beta=beta, background="O")
    found = ["a"] * tp + ["O"] * missed + ["a"] * fp
    assert loss(found) == pytest.approx(expected, abs=1e-14)
    assert loss.value(tp, fp) == pytest.approx(expected, abs=1e-14)
