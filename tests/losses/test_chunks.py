"""Chunks, and chunk-level F-measures."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators

import tallytree as tt
from tallytree.losses.chunk_kinds import kinds_of
from tallytree.losses.chunk_matches import ChunkMatches
from tallytree.testing import brute_force, check_bounds, check_loss, check_machine
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


def factors_in_any_order(model, rng):
    """The same chain with factors turned round, split in two, or without some factors of one variable."""
    factors = []
    for block in model.blocks:
        for k, scope in enumerate(block.scopes.tolist()):
            table = block.tables[k if len(block.tables) > 1 else 0]
            if len(scope) == 1 and rng.random() < 0.3:
                continue
            if rng.random() < 0.3:
                share = np.where(rng.random(table.shape) < 0.5, np.nan_to_num(table, neginf=0.0), 0.0)
                factors.append((scope, share))
                table = table - share
            factors.append((scope[::-1], table.T) if rng.random() < 0.3 else (scope, table))
    return tt.Model(model.cardinalities, factors, states=model.states)


@given(problems(), generators(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_kinds_of_positions_count_what_the_machine_counts(problem, rng, other):
    """States assembled from kinds have the same profile as those of the machine, moved along the chain."""
    scheme, model, truth = problem
    if other:
        model = factors_in_any_order(model, rng)
    if rng.random() < 0.3:
        model = model.restricted(fixed={0: truth[0]})
    loss = tt.losses.ChunkFBeta(truth, scheme=scheme)
    machine = ChunkMatches(tuple(tt.losses.chunks_of(truth, scheme)), scheme, "O")
    by_kinds, by_machine = loss.reduce(model), tt.transduce(model, machine)
    ours = tt.profile(by_kinds, by_kinds.statistics)
    theirs = tt.profile(by_machine, by_machine.statistics)
    np.testing.assert_array_equal(ours.tallies, theirs.tallies)
    np.testing.assert_allclose(ours.scores, theirs.scores, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("scheme", list(LABELS))
def test_long_documents_are_certified(scheme, scaling):
    rng = np.random.default_rng(3)
    labels = LABELS[scheme]
    unary, truth = rng.normal(size=(400, len(labels))), rng.integers(len(labels), size=400)
    unary[np.arange(400), truth] += 1.0
    model = tt.Model.chain(unary, rng.normal(size=(len(labels),) * 2), states=labels)
    loss = tt.losses.ChunkFBeta([labels[one] for one in truth], scheme=scheme)
    found = tt.loss_augmented(model, loss, scaling, margin=30.0)
    assert found.certificate.optimal and "plain pass" in found.explain()
    assert found.loss == pytest.approx(loss(found.labels.tolist()), abs=1e-12)
    check_bounds(found)


def test_labels_that_mean_the_same_are_left_to_the_machine():
    labels = ["O", "I-z", "z"]
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)), states=labels)
    assert kinds_of(tuple(labels), "IO", "O") is None
    check_loss(tt.losses.ChunkFBeta(["I-z", "z", "O", "z"], scheme="IO"), model)


def test_tables_are_made_for_types_that_occur():
    """With 100 types there are 20,000 pairs of kinds."""
    labels = ["O", *(f"{tag}-{kind}" for kind in range(100) for tag in "BI")]
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(6, 201)), rng.normal(size=(201, 201)), states=labels)
    truth = ["B-7", "I-7", "O", "B-99", "B-7", "O"]
    reduction = tt.losses.ChunkFBeta(truth).reduce(model)
    assert reduction.model.cardinalities.tolist() == [201, 202, 201, 202, 202, 201]
    assert kinds_of(tuple(labels), "BIO", "O")._link.cache_info().currsize == 5


@given(problems(), generators())
@settings(max_examples=30, deadline=None)
def test_hits_are_counted_by_definition(problem, rng):
    scheme, model, truth = problem
    y = rng.integers(len(LABELS[scheme]), size=len(model))
    losses = (
        tt.losses.ChunkFBeta(truth, scheme=scheme),
        tt.losses.FBeta(truth, background="O"),
        tt.losses.FBeta(truth),
    )
    for loss in losses:
        bound = loss.on(model)
        nodes = bound.nodes(y)
        right = sum(node in bound.gold for node in nodes)
        assert bound.hits(y) == (right, len(nodes) - right)
        names = [LABELS[scheme][one] for one in y]
        assert loss.hits(names) == bound.hits(y)
        assert bound.size == bound.gold.total() == loss.size


def test_what_is_wrong_is_said():
    with pytest.raises(tt.ModelError, match="scheme must be 'BIO', 'BIOES' or 'IO', got 'BILOU'"):
        tt.losses.ChunkFBeta(["O"], scheme="BILOU")
    loss = tt.losses.ChunkFBeta(["O", "B-x"])
    with pytest.raises(tt.ModelError, match="the truth has 2 variables, the labelling has 1"):
        loss(["O"])
    with pytest.raises(tt.ModelError, match="'E-x' is not a label of the BIO scheme"):
        loss(["O", "E-x"])
    assert loss.linear() is None and loss.size == 1


CORPORA = {
    "alike": (LABELS["BIO"][:3], LABELS["BIO"][:3]),
    "different labels": (LABELS["BIO"][:3], ["O", "I-y", "B-x", "I-x"]),
    "labels that mean the same": (["O", "z", "I-z"], ["O", "z", "I-z"]),
}


@pytest.mark.parametrize("names", list(CORPORA))
@given(generators())
@settings(max_examples=10, deadline=None)
def test_chunks_of_a_corpus(names, rng):
    """Counted over two sentences at once, against all pairs of labellings."""
    scheme = "IO" if "z" in CORPORA[names][0] else "BIO"
    chunks_of, recipe = partial(tt.losses.chunks_of, scheme=scheme), tt.losses.ChunkFBeta(scheme=scheme)
    models = [
        tt.Model.chain(rng.normal(size=(3, n)), rng.normal(size=(n, n)), states=labels)
        for labels, n in ((labels, len(labels)) for labels in CORPORA[names])
    ]
    truths = [rng.choice(labels, size=3).tolist() for labels in CORPORA[names]]
    gold = [set(chunks_of(truth)) for truth in truths]
    size = sum(map(len, gold))
    options = []
    for model, truth, right in zip(models, truths, gold, strict=True):
        every = brute_force(model)
        found = [set(chunks_of(model.labels(y).tolist())) for y in every.labellings]
        counts = [(len(one & right), len(one)) for one in found]
        options.append(list(zip(every.scores - model.score(truth), counts, strict=True)))
    for scaling in ("margin", "slack"):
        best = -np.inf
        for (a, (tp, n)), (b, (tq, m)) in product(*options):
            whole = size + n + m
            loss = 1 - 2 * (tp + tq) / whole if whole else 0.0
            best = max(best, loss + a + b if scaling == "margin" else loss * (1 + a + b))
        found = tt.loss_augmented_corpus(models, truths, recipe, scaling)
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
