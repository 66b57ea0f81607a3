"""Chunks, and chunk-level F-measures."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators

import tallytree as tt
from tallytree.losses.chunk_matches import ChunkMatches
from tallytree.testing import brute_force, check_loss, check_machine
from tallytree.transducers.chunks import Chunk

LABELS = {
    "BIO": ["O", "B-x", "I-x", "B-y", "I-y"],
    "BIOES": ["O", "B-x", "I-x", "E-x", "S-x"],
    "IO": ["O", "I-x", "I-y", "z"],
}


def scorer(labels, scheme):
    """The rules of CoNLL's scorer one by one, in its own way: where do chunks end, where do they begin?"""

    def split(label):
        if label == "O":
            return "O", ""
        return tuple(label.split("-", 1)) if "-" in label else ("I", label)

    def ends(before, kind, tag, other):
        return (
            (before == "B" and tag in "BSO")
            or (before == "I" and tag in "BSO")
            or (before == "E" and tag in "EIOBS")
            or before == "S"
            or (before != "O" and kind != other)
        )

    def begins(before, kind, tag, other):
        return (
            tag == "B"
            or tag == "S"
            or (before in "ES" and tag in "EI")
            or (before == "O" and tag in "EI")
            or (tag != "O" and kind != other)
        )

    found, first = set(), None
    before, kind = "O", ""
    for position, (tag, other) in enumerate([*map(split, labels), ("O", "")]):
        if first is not None and ends(before, kind, tag, other):
            found.add((kind, first, position - 1))
            first = None
        if begins(before, kind, tag, other):
            first = position
        before, kind = tag, other
    return found


@pytest.mark.parametrize("scheme", list(LABELS))
@given(data=st.data())
@settings(max_examples=150, deadline=None)
def test_chunks_are_those_of_the_scorer(scheme, data):
    labels = data.draw(st.lists(st.sampled_from(LABELS[scheme]), max_size=9))
    found = tt.losses.chunks_of(labels, scheme)
    assert len(found) == len(set(found)) and set(found) == scorer(labels, scheme)


def test_known_sequences():
    assert tt.losses.chunks_of(["I-NP", "B-NP", "I-VP", "O", "I-VP", "I-VP"]) == [
        Chunk("NP", 0, 0),
        Chunk("NP", 1, 1),
        Chunk("VP", 2, 2),
        Chunk("VP", 4, 5),
    ]
    assert tt.losses.chunks_of(["B", "I", "O", "B"]) == [Chunk("", 0, 1), Chunk("", 3, 3)]


@st.composite
def problems(draw):
    scheme = draw(st.sampled_from(list(LABELS)))
    labels = LABELS[scheme]
    size, rng = draw(st.integers(1, 4)), draw(generators())
    unary, pairwise = (
        rng.normal(size=(size, len(labels))),
        rng.normal(size=(size - 1, len(labels), len(labels))),
    )
    if draw(st.booleans()):
        unary, pairwise = np.rint(unary), np.rint(pairwise)
    pick = st.sampled_from(labels)
    truth = draw(st.one_of(st.lists(pick, min_size=size, max_size=size), st.just(["O"] * size)))
    return scheme, tt.Model.chain(unary, pairwise, states=labels), truth


@given(problems(), st.sampled_from([0.5, 1.0, 2.0]))
@settings(max_examples=25, deadline=None)
def test_loss_augmented_inference(problem, beta):
    scheme, model, truth = problem
    check_loss(tt.losses.ChunkFBeta(truth, beta=beta, scheme=scheme), model, margins=(0.5, 1.0))


@given(problems())
@settings(max_examples=25, deadline=None)
def test_the_machine_keeps_the_contract(problem):
    scheme, model, truth = problem
    check_machine(ChunkMatches(tuple(tt.losses.chunks_of(truth, scheme)), scheme, "O"), model)


def test_variables_that_have_other_labels():
    """Names are read for each variable on its own."""
    model = tt.Model(
        [2, 3, 2],
        [((v,), np.arange(n, dtype=float)) for v, n in enumerate([2, 3, 2])],
        states=[["B-x", "O"], ["O", "I-x", "B-y"], ["I-x", "O"]],
    )
    check_loss(tt.losses.ChunkFBeta(["B-x", "I-x", "O"]), model)


def test_a_grid_of_one_row_is_a_chain():
    labels = LABELS["BIO"][:3]
    row = tt.Model.grid(np.eye(3).reshape(1, 3, 3), np.eye(3), np.eye(3), states=labels)
    loss, truth = tt.losses.ChunkFBeta(), ["B-x", "I-x", "O"]
    check_loss(loss.against(truth), row)
    check_loss(tt.losses.RougeL(truth), row)


def test_few_states_are_added():
    """One or two pairs a position beside the labels."""
    rng = np.random.default_rng(0)
    labels = ["O", *(f"{tag}-{kind}" for kind in "abcdefghijk" for tag in "BI")]
    model = tt.Model.chain(rng.normal(size=(30, 23)), rng.normal(size=(23, 23)), states=labels)
    truth = ["B-a", "I-a", "I-a", "O", "B-b", "B-c"] * 5
    reduction = tt.losses.ChunkFBeta(truth).reduce(model)
    assert reduction.model.cardinalities.max() <= 25
    profile = tt.profile(reduction, reduction.statistics)
    assert profile.best().score == pytest.approx(tt.solve(model).score)


def test_what_is_wrong_is_said():
    with pytest.raises(tt.ModelError, match="scheme must be 'BIO', 'BIOES' or 'IO', got 'BILOU'"):
        tt.losses.ChunkFBeta(["O"], scheme="BILOU")
    loss = tt.losses.ChunkFBeta(["O", "B-x"])
    with pytest.raises(tt.ModelError, match="the truth has 2 variables, the labelling has 1"):
        loss(["O"])
    with pytest.raises(tt.ModelError, match="'E-x' is not a label of the BIO scheme"):
        loss(["O", "E-x"])
    assert loss.linear() is None and loss.size == 1


@given(generators())
@settings(max_examples=10, deadline=None)
def test_chunks_of_a_corpus(rng):
    """Counted over two sentences at once, against all pairs of labellings."""
    models = [
        tt.Model.chain(rng.normal(size=(3, 3)), rng.normal(size=(3, 3)), states=LABELS["BIO"][:3])
        for _ in "ab"
    ]
    truths = [rng.choice(LABELS["BIO"][:3], size=3).tolist() for _ in models]
    gold = [set(tt.losses.chunks_of(truth)) for truth in truths]
    size = sum(map(len, gold))
    options = []
    for model, truth, right in zip(models, truths, gold, strict=True):
        every = brute_force(model)
        found = [set(tt.losses.chunks_of(model.labels(y).tolist())) for y in every.labellings]
        counts = [(len(one & right), len(one)) for one in found]
        options.append(list(zip(every.scores - model.score(truth), counts, strict=True)))
    for scaling in ("margin", "slack"):
        best = -np.inf
        for (a, (tp, n)), (b, (tq, m)) in product(*options):
            whole = size + n + m
            loss = 1 - 2 * (tp + tq) / whole if whole else 0.0
            best = max(best, loss + a + b if scaling == "margin" else loss * (1 + a + b))
        found = tt.loss_augmented_corpus(models, truths, tt.losses.ChunkFBeta(), scaling)
        assert found.value == pytest.approx(best, abs=1e-9)


def test_the_chunks_of_a_string():
    with pytest.raises(tt.ModelError, match=r"got the string 'B-NP I-NP'; use labels.split\(\)"):
        tt.losses.chunks_of("B-NP I-NP")


def test_a_label_outside_its_scheme_says_how_to_use_it():
    for label, hint in (
        ("S-NP", "use scheme='BIOES'"),
        (3, "give the labels names"),
        ("X", "the schemes are BIO"),
    ):
        with pytest.raises(tt.ModelError, match=hint):
            tt.losses.chunks_of([label])


@pytest.mark.parametrize("label", [["B-NP"], {}, np.zeros(2)])
def test_labels_that_are_no_strings(label):
    with pytest.raises(tt.ModelError, match="expected a sequence of strings"):
        tt.losses.chunks_of(["O", label])
