"""Sentences by bounds: compared with enumeration and with the full table, and proven."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators

import tallytree as tt
from tallytree.bounding.sentences import SentenceCertificate
from tallytree.kernels import native
from tallytree.running import sentences as running
from tallytree.testing import brute_force, check_bounds
from tallytree.transducers import trellis
from tallytree.transducers.encodings import alphabets_of

SCALINGS = st.sampled_from(["margin", "slack"])
KINDS = st.sampled_from(["bleu", "loose bleu", "rouge-n", "loose rouge-n", "rouge-l"])


def chains(rng, *, labels=3, longest=6):
    """A chain with scores that tie, forbid, or differ in size; some with names, some with an end label."""
    size, many = int(rng.integers(1, longest)), int(rng.integers(1, labels + 1))
    unary = rng.normal(size=(size, many)) * rng.choice([0.0, 0.2, 1.0, 5.0])
    pair = rng.normal(size=(many, many)) * rng.choice([0.0, 0.3, 1.0])
    kind = rng.integers(4)
    if kind == 0:
        unary, pair = np.round(unary), np.round(pair)
    if kind == 1:
        unary[rng.random(unary.shape) < 0.2] = -np.inf
        pair[rng.random(pair.shape) < 0.15] = -np.inf
    names = [f"w{i}" for i in range(many)] if rng.random() < 0.5 else None
    return tt.Model.chain(unary, pair, states=names)


def losses(rng, kind, model):
    """A loss with one to three references, which may hold words that the model does not know."""
    words = list(model.states_of(0) or range(int(model.cardinalities[0])))
    end = words[int(rng.integers(len(words)))] if rng.random() < 0.4 else None
    known = [w for w in words if w != end] + (["x"] if model.states_of(0) else [99])
    most = len(known) if rng.random() < 0.3 or len(known) == 1 else len(known) - 1
    references = [
        [known[int(i)] for i in rng.integers(0, most, size=int(rng.integers(rng.random() > 0.1, 8)))]
        for _ in range(int(rng.integers(1, 4)))
    ]
    order = int(rng.integers(1, 5))
    return {
        "bleu": lambda: tt.losses.Bleu(references, order, end=end),
        "loose bleu": lambda: tt.losses.Bleu(references, order, clip=False, end=end),
        "rouge-n": lambda: tt.losses.RougeN(references, min(order, 3), end=end),
        "loose rouge-n": lambda: tt.losses.RougeN(references, min(order, 3), clip=False, end=end),
        "rouge-l": lambda: tt.losses.RougeL(references, float(rng.choice([0.5, 1, 2])), end=end),
    }[kind]()


def sentences(model, loss):
    """All labellings that are sentences and allowed, with their scores."""
    bound, found = loss.on(model), []
    ends = [] if loss.end is None else model.state_codes(loss.end).tolist()
    everything = brute_force(model)
    for y, score in zip(everything.labellings, everything.scores, strict=True):
        after = [i for i, a in enumerate(y.tolist()) if ends and a == ends[i]]
        if score > -np.inf and after == list(range(after[0], len(y)) if after else []):
            found.append((y, score, bound(y)))
    return found


def check_one(model, rng, kind, scaling):
    """Compare one random question with enumeration, and verify its certificate."""
    loss = losses(rng, kind, model)
    every = sentences(model, loss)
    if not every:
        return
    truth, truth_score, _ = every[int(rng.integers(len(every)))]
    margin = float(rng.choice([0.0, 0.5, 1.0, 4.0, 20.0]))
    found = tt.loss_augmented(model, loss, scaling, margin=margin, truth=truth, strategy="bounds")
    values = [
        margin * cost + score - truth_score if scaling == "margin" else cost * (margin + score - truth_score)
        for _, score, cost in every
    ]
    assert found.value == pytest.approx(max(values), abs=1e-9)
    assert found.loss == loss.on(model)(found.assignment)
    assert isinstance(found.certificate, SentenceCertificate) and found.certificate.optimal
    check_bounds(found)


@pytest.mark.sanitize
@given(generators(), KINDS, SCALINGS)
@settings(max_examples=250, deadline=None)
def test_equal_to_enumeration_and_proven(rng, kind, scaling):
    check_one(chains(rng), rng, kind, scaling)


@given(generators(), KINDS, SCALINGS, st.sampled_from([1, 4, 20]))
@settings(max_examples=100, deadline=None)
def test_boxes_that_are_cut(rng, kind, scaling, few):
    """With few cells to a box, boxes are cut and shares are moved: equal to enumeration all the same."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(running, "FEW_CELLS", few)
        check_one(chains(rng, longest=7), rng, kind, scaling)


@given(generators(), KINDS, SCALINGS)
@settings(max_examples=60, deadline=None)
def test_equal_to_the_whole_table(rng, kind, scaling):
    """The same value, and what is counted has the same names."""
    model = chains(rng, longest=8)
    loss = losses(rng, kind, model)
    every = sentences(model, loss)
    if not every:
        return
    truth = every[int(rng.integers(len(every)))][0]
    margin = float(rng.choice([0.5, 1.0, 8.0]))
    found, full = (
        tt.loss_augmented(model, loss, scaling, margin=margin, truth=truth, strategy=strategy)
        for strategy in ("auto", "full")
    )
    assert found.value == pytest.approx(full.value, abs=1e-9)
    assert found.tally._fields == full.tally._fields
    bound = loss.on(model)
    assert float(bound.value(*found.tally)) == pytest.approx(found.loss, abs=1e-9)


@given(generators(), KINDS)
@settings(max_examples=60, deadline=None)
def test_states_that_are_fixed_or_left_out(rng, kind):
    model = chains(rng)
    loss = losses(rng, kind, model).replace(end=None)
    every = sentences(model, loss)
    if not every:
        return
    truth, truth_score, _ = every[int(rng.integers(len(every)))]
    kept = every[int(rng.integers(len(every)))][0]
    at = int(rng.integers(len(model)))
    for scaling in ("margin", "slack"):
        found = tt.loss_augmented(model, loss, scaling, truth=truth, fixed={at: int(kept[at])})
        values = [
            cost + score - truth_score if scaling == "margin" else cost * (1 + score - truth_score)
            for y, score, cost in every
            if y[at] == kept[at]
        ]
        assert found.value == pytest.approx(max(values), abs=1e-9)


def real(size, words, bonus, seed=0):
    rng = np.random.default_rng(seed)
    reference = rng.integers(0, words, size)
    unary = rng.normal(size=(size, words)) + bonus * (np.arange(words) == reference[:, None])
    return tt.Model.chain(unary, 0.5 * rng.normal(size=(words, words))), reference.tolist()


@pytest.mark.parametrize("margin", [1.0, 10.0])
@pytest.mark.parametrize("bonus", [0.0, 3.0, 4.0])
def test_real_lengths(margin, bonus):
    """Forty words out of forty, in few cells; the whole table is beyond any memory."""
    model, reference = real(40, 40, bonus)
    for loss in (tt.losses.Bleu(reference), tt.losses.RougeN(reference), tt.losses.RougeL(reference)):
        for scaling in ("margin", "slack"):
            found = tt.loss_augmented(model, loss, scaling, margin=margin)
            assert found.certificate.optimal and found.certificate.cells < 50_000
            assert found.value >= margin * loss(reference) - 1e-9


def test_batches_of_real_lengths():
    models, references = zip(*(real(30, 20, 3.0, seed) for seed in range(4)), strict=True)
    loss = tt.losses.Bleu()
    batch = tt.loss_augmented_batch(models, loss, "slack", margin=4.0, truths=references)
    for model, reference, found in zip(models, references, batch, strict=True):
        alone = tt.loss_augmented(model, loss.against(reference), "slack", margin=4.0)
        assert found.value == alone.value and (found.assignment == alone.assignment).all()


def test_a_real_length_is_proven():
    model, reference = real(14, 8, 4.0)
    for loss in (tt.losses.Bleu(reference), tt.losses.RougeN(reference), tt.losses.RougeL(reference)):
        check_bounds(tt.loss_augmented(model, loss, margin=5.0))


def test_the_certificate_is_checked():
    """A checker that finds nothing wrong with anything would be of no use."""
    model, reference = real(12, 6, 4.0)
    loss = tt.losses.Bleu(reference)

    def evidence_of(found):
        assert any(one.part.budget > 0.01 for one in found.proof.plan.parts)
        return found.proof.plan

    def fails(found):
        with pytest.raises(AssertionError):
            check_bounds(found)

    for change in (-0.1, 0.1):
        found = tt.loss_augmented(model, loss, margin=4.0)
        evidence = evidence_of(found)
        evidence.passes = tuple(
            one._replace(part=one.part._replace(most=one.part.most + change)) for one in evidence.passes
        )
        fails(found)
    found = tt.loss_augmented(model, loss, margin=4.0)
    evidence = evidence_of(found)
    evidence.parts = tuple(one._replace(part=one.part._replace(budget=0.0)) for one in evidence.parts)
    fails(found)
    found = tt.loss_augmented(model, loss, margin=4.0)
    evidence_of(found).parts = ()
    fails(found)
    found = tt.loss_augmented(model, loss, margin=4.0)
    evidence_of(found).shares = tuple(2 * one for one in evidence_of(found).shares)
    fails(found)


def test_alignments_are_mixed():
    """A heavy loss: the shares of ROUGE-L mix alignments, and those of ROUGE-1 positions; both are proven."""
    model, reference = real(14, 6, 0.0)
    for loss in (tt.losses.RougeL(reference), tt.losses.RougeN(reference, 1)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "FEW_CELLS", 1)
            found = tt.loss_augmented(model, loss, "slack", margin=30.0)
        assert found.value == pytest.approx(tt.loss_augmented(model, loss, "slack", margin=30.0).value)
        shares = found.proof.plan.shares
        assert any(((one > 0) & (one < 1)).any() for one in shares)
        check_bounds(found)
        found.proof.plan.shares = tuple(np.minimum(1.0, 3 * one) for one in shares)
        with pytest.raises(AssertionError, match=r"mixture of alignments|more often than it counts"):
            check_bounds(found)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_rouge_l_in_few_cells(scaling):
    """Charges along a single alignment need over 20,000 cells if scores do not favour the truth."""
    for seed in range(3):
        model, reference = real(40, 40, 0.0, seed)
        for margin in (1.0, 10.0):
            found = tt.loss_augmented(model, tt.losses.RougeL(reference), scaling, margin=margin)
            assert found.certificate.optimal and found.certificate.cells < 5_000


def test_a_limit_of_cells_is_not_approached_for_ever():
    """The last cells are spent at once, not in ever smaller parts."""
    model, reference = real(60, 40, 0.0)
    measured = tt.losses.RougeN(reference, 1).on(model).measured()
    problem = running.sentence_problem(running.chain_tables(model), alphabets_of(model), measured)
    truth = np.array(reference)
    asked = running.Searched("slack", 1.0, model.score(truth), (truth,), 3_000.0, 2.0**31)
    found = running.search(problem, asked)
    assert not found.finished and 3_000 <= found.cells < 10_000 and found.bound > found.value


def test_it_reads_as_an_argument():
    model, reference = real(12, 6, 4.0)
    text = tt.loss_augmented(model, tt.losses.Bleu(reference), margin=4.0).explain()
    for piece in (
        "right4 = 0, the loss is 1",
        "(a plain pass)",
        "all such sentences were examined",
        "ruled out by",
    ):
        assert piece in text


def test_where_the_search_ends_it_says_what_is_known(monkeypatch):
    """With a heavy loss, few cells and no memory for a table."""
    monkeypatch.setattr(trellis, "MOST_MOVES", 2_000)
    rng = np.random.default_rng(3)
    model = tt.Model.chain(0.1 * rng.normal(size=(30, 4)), np.zeros((4, 4)))
    loss = tt.losses.RougeL(rng.integers(0, 4, 30).tolist())
    with pytest.raises(tt.BudgetError, match=r"no labelling has a value above .* a gap of"):
        tt.loss_augmented(model, loss, margin=100.0, memory_limit=3e4)


def test_interrupts_are_heard():
    model, reference = real(40, 40, 4.0)
    native.interrupt_at(3, 1e4)
    with pytest.raises(KeyboardInterrupt):
        tt.loss_augmented(model, tt.losses.Bleu(reference), margin=10.0)


def test_a_limit_of_operations_ends_the_search() -> None:
    rng = np.random.default_rng(0)
    reference = rng.integers(0, 20, 20).tolist()
    model = tt.Model.chain(rng.normal(size=(20, 20)), 0.5 * rng.normal(size=(20, 20)))
    loss = tt.losses.RougeN(reference, 1)
    best = tt.loss_augmented(model, loss, "slack", margin=10.0).value
    for strategy in ("bounds", "auto"):
        with pytest.raises(tt.BudgetError, match="reached its limit") as told:
            tt.loss_augmented(model, loss, "slack", margin=10.0, operation_limit=2e3, strategy=strategy)
        assert told.value.bound >= best - 1e-9
