"""The labelling with the largest expected F, compared with enumeration."""

from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import models

import tallytree as tt
from tallytree.learning import (
    BestDecoder,
    Decoder,
    ExpectedFBeta,
    KBestDecoder,
    MaxExpected,
    SequenceCRF,
    SequenceSVM,
)
from tallytree.testing import brute_force


def expected(model, nothing, beta, scale):
    """Return the expected F of every labelling, allowed or not, from its definition."""
    found = brute_force(model)
    scores = scale * found.scores
    weights = np.exp(scores - scores.max())
    weights /= weights.sum()
    worth = []
    for h in found.labellings:
        right = ((found.labellings == h) & (h != nothing)).sum(axis=1)
        size, count = (found.labellings != nothing).sum(axis=1), int((h != nothing).sum())
        bottom = beta**2 * size + count
        f = np.where(bottom == 0, 1.0, (1 + beta**2) * right / np.maximum(bottom, 1e-300))
        worth.append(weights @ f)
    return found.labellings, np.array(worth)


@settings(max_examples=60, deadline=None)
@given(models(largest=5), st.sampled_from([0.5, 1.0, 2.0]), st.sampled_from([0.3, 1.0]), st.data())
def test_no_labelling_has_a_larger_expected_f(model, beta, scale, data):
    background = data.draw(st.integers(0, int(model.cardinalities.min()) - 1))
    decoder = ExpectedFBeta(beta, background, scale)
    chosen = decoder.assignment(model)
    labellings, worth = expected(model, background, beta, scale)
    (row,) = np.flatnonzero((labellings == chosen).all(axis=1))
    assert worth[row] == pytest.approx(worth.max(), abs=1e-9)


def test_what_it_cannot_do_is_refused():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)), states=["O", "B"])
    with pytest.raises(tt.ModelError, match="remove where="):
        ExpectedFBeta(background="O")(model, where=tt.count(state="B") >= 1)
    with pytest.raises(tt.ModelError, match="scale must be a positive number, or None, got 0"):
        ExpectedFBeta(background="O", scale=0.0)(model)
    with pytest.raises(tt.ModelError, match="no variable of this model has the state 'X'"):
        ExpectedFBeta(background="X")(model)
    with pytest.raises(tt.ModelError, match="every variable must have the background 1"):
        ExpectedFBeta(background=1)(tt.Model([1, 2], []))


def test_best_and_k_best_agree():
    model = tt.Model.chain([[0.0, 1.0], [2.0, 0.0]], np.zeros((2, 2)), states=["O", "B"])
    assert BestDecoder()(model).tolist() == KBestDecoder(2)(model)[0].tolist() == ["B", "O"]
    assert KBestDecoder(9)(model, tt.count(state="B") == 0)[0].tolist() == ["O", "O"]


class OneByOne(BestDecoder):
    each = Decoder.each


@pytest.mark.parametrize("decoder", [BestDecoder(), OneByOne()], ids=["in a batch", "one by one"])
def test_an_example_that_cannot_satisfy_a_constraint_is_named(decoder):
    long, short = (tt.Model.chain(np.zeros((n, 2)), np.zeros((2, 2)), states=["O", "B"]) for n in (3, 1))
    two = tt.count(state="B") == 2
    with pytest.raises(
        tt.InfeasibleError, match=r"example 2: no labelling satisfies 'count_B == 2'.*; pass errors='return'"
    ):
        decoder.each([long, long, short], two)
    *found, error = decoder.each([long, long, short], two, errors="return")
    assert [one.tolist() for one in found] == [decoder(long, two).tolist()] * 2
    assert isinstance(error, tt.InfeasibleError) and str(error).startswith("no labelling satisfies")


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_one_infeasible_example_does_not_lose_the_others(kind):
    X = [[["a"], ["b"], ["a"]], [["b"]], [["a"], ["b"]]]
    model = kind().fit(X, [["A", "B", "A"], ["B"], ["A", "B"]])
    first, error, last = model.predict(X, where="A >= 1 and B >= 1", errors="return")
    assert isinstance(error, tt.InfeasibleError)
    assert (first.tolist(), last.tolist()) == (["A", "B", "A"], ["A", "B"])
    with pytest.raises(
        tt.InfeasibleError, match=r"example 1: .*; pass errors='return' to predict the others"
    ):
        model.predict(X, where="A >= 1 and B >= 1")
    with pytest.raises(tt.ModelError, match="errors must be 'raise' or 'return', got 'ignore'"):
        model.predict(X, errors="ignore")
    with pytest.raises(tt.ModelError, match="is not a label"):  # not the error of an example
        model.predict(X, where="C >= 1", errors="return")


def test_a_list_of_constraints_has_one_for_each_example():
    X = [[["a"], ["b"], ["a"]], [["a"], ["b"]]]
    model = SequenceSVM().fit(X, [["A", "B", "A"], ["A", "B"]])
    for decoder, labels in ((None, lambda z: z.tolist()), (KBestDecoder(1), lambda z: z[0].tolist())):
        found = model.predict(X, where=["B == 0", None], decode=decoder)
        assert [labels(one) for one in found] == [["A", "A", "A"], ["A", "B"]]
        for wrong, text in (
            (["B == 0"], "where has 1 entry for 2 examples; give one per example, or one for all"),
            (["B == 0"] * 3, "where has 3 entries for 2 examples"),
        ):
            with pytest.raises(tt.ModelError, match=text):
                model.predict(X, where=wrong, decode=decoder)


@pytest.mark.parametrize("text", ["1 >= 0", "A - A == 0"])
def test_constraints_that_always_hold_change_nothing(text):
    X = [[["a"], ["b"]], [["b"]]]
    model = SequenceSVM().fit(X, [["A", "B"], ["B"]])
    assert [one.tolist() for one in model.predict(X, where=text)] == [["A", "B"], ["B"]]
    errors = model.predict(X, where=f"not ({text})", errors="return")
    assert all(isinstance(one, tt.InfeasibleError) for one in errors)


def test_other_errors_of_a_batch_are_raised_as_they_are():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)), states=["O", "B"])
    with pytest.raises(tt.ModelError, match=r"^where='b >= 1' uses statistics by name, but none are given"):
        BestDecoder().each([model], "b >= 1")


def test_names_in_place_of_decoders_and_unknown_labels_are_refused():
    X, y = [[["a"], ["b"]], [["b"]]], [["x", "y"], ["y"]]
    fitted = SequenceSVM().fit(X, y)
    with pytest.raises(tt.ModelError, match=r"such as MaxExpected\('chunk-f1'\); got 'chunk-f2'"):
        fitted.predict(X, decode="chunk-f2")
    with pytest.raises(tt.ModelError, match="where uses 'z', which is not a label; the names are x, y"):
        fitted.predict(X, where="z <= 1")


SENTENCES = [[["a"], ["b"], ["a"]], [["b"], ["c"]], [["c"], ["a"], ["b"], ["c"]]]
LABELS = [["B", "O", "B"], ["O", "I"], ["I", "B", "O", "O"]]


@pytest.mark.parametrize(
    "decoder", [ExpectedFBeta(background="O"), MaxExpected("f1"), MaxExpected("accuracy")]
)
def test_scores_of_an_svm_need_a_scale(decoder):
    svm = SequenceSVM(tolerance=0.5).fit(SENTENCES, LABELS)
    with pytest.warns(
        UserWarning, match=r"not log-probabilities.*choose \w+\(scale=\.\.\.\) on held-out data"
    ):
        plain = svm.predict(SENTENCES, decode=decoder)
    scaled = svm.predict(SENTENCES, decode=replace(decoder, scale=1.0))
    assert [z.tolist() for z in plain] == [z.tolist() for z in scaled]
    SequenceCRF().fit(SENTENCES, LABELS).predict(SENTENCES, decode=decoder)  # without a warning


@pytest.mark.parametrize("scale", [None, 0.5, 3.0])
def test_the_best_expected_f_of_many_sentences_is_that_of_each(scale):
    crf = SequenceCRF(c2=0.1).fit(SENTENCES, LABELS)
    decoder = ExpectedFBeta(beta=2.0, background="O", scale=scale)
    found = crf.predict(SENTENCES, decode=decoder)
    assert [z.tolist() for z in found] == [decoder(model).tolist() for model in crf._models(SENTENCES)]


@pytest.mark.parametrize("name", ["predict_marginals", "predict_chunks", "log_loss", "expected_loss"])
def test_an_svm_says_who_has_probabilities(name):
    svm = SequenceSVM()
    assert not hasattr(svm, name) and hasattr(SequenceCRF(), name)
    with pytest.raises(
        AttributeError, match=f"SequenceSVM has no {name}: its scores are not .*use SequenceCRF"
    ):
        getattr(svm, name)
    with pytest.raises(AttributeError, match="object has no attribute 'wieghts_'"):
        getattr(svm, "wieghts_")  # noqa: B009


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_attributes_of_sklearn_crfsuite_are_translated(kind):
    for name, here in (("predict_single", r"predict\(\[x\]\)\[0\]"), ("state_features_", "emissions_")):
        with pytest.raises(AttributeError, match=f"has no {name}, as in sklearn-crfsuite; use {here}$"):
            getattr(kind(), name)
    with pytest.raises(AttributeError, match=f"^'{kind.__name__}' object has no attribute 'predicts'$"):
        kind().predicts  # noqa: B018
