"""Batches by bounds agree with full tables, for everything that a batch can contain."""

from functools import partial
from itertools import product

import numpy as np
import pytest
from bounded_cases import KINDS, MARGINS, allowance, ask, scores_of
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import grown, needs_proc

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.bulk import loss_jobs
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.truth_tables import Search
from tallytree.kernels import native
from tallytree.testing import check_bounds

losses = tt.losses
NAMES = ("O", "B-X", "I-X", "B-Y", "I-Y")
RECIPES = (
    losses.FBeta(background=0),
    losses.FBeta(),
    losses.FBeta(background=1, beta=2.0),
    losses.IntersectionOverUnion(background=0),
    losses.Precision(background=0),
    losses.Recall(background=0),
    losses.HammingLoss(),
)


def sentences(rng, kind, count, longest, states):
    """Return models with truths that they allow."""
    pairs = []
    while len(pairs) < count:
        length = int(rng.integers(1, longest + 1))
        own = rng.random() < 0.3  # links of each position by itself
        links = scores_of(rng, (length - 1, states, states) if own and length > 1 else (states, states), kind)
        model = tt.Model.chain(scores_of(rng, (length, states), kind), links)
        truth = np.where(rng.random(length) < 0.4, 0, rng.integers(0, states, length))
        if model.score(truth) > -np.inf:
            pairs.append((model, truth))
    return pairs


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1), KINDS, st.sampled_from(RECIPES), st.sampled_from(["margin", "slack"]), MARGINS
)
def test_values_are_those_of_whole_tables(seed, kind, recipe, scaling, margin):
    rng = np.random.default_rng(seed)
    pairs = sentences(rng, kind, 4, 9, int(rng.integers(2, 5)))
    full = ask(pairs, recipe, scaling, "full", margin=margin)
    for one, other in zip(full, ask(pairs, recipe, scaling, "bounds", margin=margin), strict=True):
        assert abs(one.value - other.value) <= allowance(one)
        assert other.model.score(other.assignment) == pytest.approx(other.score, rel=1e-12, abs=1e-12)
        if isinstance(other.certificate, BoundsCertificate):
            check_bounds(other)


@settings(max_examples=80, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    KINDS,
    st.sampled_from(RECIPES[:4]),
    st.sampled_from(["margin", "slack"]),
    MARGINS,
    st.booleans(),
)
def test_values_are_those_of_all_labellings(seed, kind, recipe, scaling, margin, trained):
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 4))
    ((model, truth),) = sentences(rng, kind, 1, 5, states)
    if trained:  # the best labelling is right: the second best one bounds all others
        truth = tt.solve(model, strategy="full").assignment
    pairs = [(model, truth)]
    (found,) = ask(pairs, recipe, scaling, "bounds", margin=margin)
    loss, right = recipe.against(truth).on(model), model.score(truth)
    values = []
    for labelling in product(range(states), repeat=len(model)):
        cost, ahead = float(loss(labelling)), model.score(labelling) - right
        if ahead > -np.inf:
            values.append(cost * (margin + ahead) if scaling == "slack" else margin * cost + ahead)
    assert abs(max(values) - found.value) <= allowance(found)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), KINDS, st.sampled_from(RECIPES), st.sampled_from(["margin", "slack"]))
def test_auto_gives_the_labelling_of_the_whole_table(seed, kind, recipe, scaling):
    """If several labellings are equally good, the table decides, so the same one is returned."""
    pairs = sentences(np.random.default_rng(seed), kind, 3, 16, 6)
    full = ask(pairs, recipe, scaling, "full")
    for threads in (1, 2):
        for one, other in zip(full, ask(pairs, recipe, scaling, "auto", threads=threads), strict=True):
            assert (one.value, one.score, one.tally) == (other.value, other.score, other.tally)
            np.testing.assert_array_equal(one.assignment, other.assignment)


def test_auto_searches_where_it_is_worth_it():
    rng = np.random.default_rng(3)
    pairs = sentences(rng, "any", 6, 30, 8)
    found = ask([pair for pair in pairs if len(pair[0]) > 15], RECIPES[0], "slack", "auto")
    assert found and all(isinstance(one.certificate, BoundsCertificate) for one in found)
    assert all("plain pass" in one.explain() for one in found)
    short = ask([(tt.Model.chain(np.eye(2), np.eye(2)), [0, 1])], RECIPES[0], "slack", "auto")
    assert not isinstance(short[0].certificate, BoundsCertificate)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_a_certificate_describes_a_table_only_if_it_was_made(monkeypatch, scaling):
    rng = np.random.default_rng(3)
    pairs = [pair for pair in sentences(rng, "any", 6, 30, 8) if len(pair[0]) > 15]
    found = ask(pairs, RECIPES[0], scaling, "auto")
    made, of = [], losses.LossProfile.of
    monkeypatch.setattr(loss_jobs, "bounded", lambda *asked: None)  # one that would not come to an end again
    monkeypatch.setattr(losses.LossProfile, "of", lambda *asked: made.append(asked) or of(*asked))
    full = ask(pairs, RECIPES[0], scaling, "full")
    for one, other in zip(found, full, strict=True):
        shown = one.certificate
        assert type(shown) is tt.Certificate and shown.tallies == other.certificate.tallies
    assert len(made) == len(found)
    proof = found[0].proof
    wrong = partial(proof.plan.func, *proof.plan.args[:-1], found[0].value - 1e-6)
    with pytest.raises(tt.CertificateError, match="promise the value"):
        proof._replace(plan=wrong).rests_on()


def test_a_truth_that_nothing_violates():
    """Under slack scaling the value is 0, and the truth itself the answer."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 5, 20)
    model = tt.Model.chain(50.0 * np.eye(5)[truth], np.zeros((5, 5)))
    for strategy in ("full", "auto", "bounds"):
        (found,) = ask([(model, truth)], losses.FBeta(background=0), "slack", strategy)
        assert found.value == 0.0 and found.loss == 0.0
        np.testing.assert_array_equal(found.assignment, truth)


def test_strategy_is_checked():
    with pytest.raises(tt.ModelError, match="strategy must be"):
        ask([(tt.Model.chain(np.eye(2), np.eye(2)), [0, 1])], RECIPES[0], "slack", "sideways")


# --- chains for learning ------------------------------------------------------------------------------------


def chains_of(rng, kind, lengths):
    total, states = sum(lengths), len(NAMES)
    scores = scores_of(rng, (total, states), kind), scores_of(rng, (states, states), kind)
    return Chains(*scores, lengths, NAMES), [rng.integers(0, states, n) for n in lengths]


def values_of(chains, loss, truths, found, scaling):
    """Return what is maximised, from the definitions."""
    found_scores = chains.scores(np.concatenate([labels for ((labels, _),) in found]))
    ahead = found_scores - chains.scores(np.concatenate(truths))
    costs = np.array(
        [
            float(loss.against([NAMES[i] for i in truth])([NAMES[i] for i in labels]))
            for truth, ((labels, _),) in zip(truths, found, strict=True)
        ]
    )
    np.testing.assert_allclose(costs, [cost for ((_, cost),) in found], atol=1e-12)
    return costs * (1 + ahead) if scaling == "slack" else costs + ahead


CHAIN_LOSSES = (losses.ChunkFBeta(), losses.ChunkFBeta(beta=0.5), losses.FBeta(background="O"))


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    st.sampled_from(["any", "ties", "huge", "tiny", "strong", "zero"]),
    st.sampled_from(CHAIN_LOSSES),
    st.sampled_from(["margin", "slack"]),
    st.booleans(),
)
def test_chains_have_the_values_of_whole_tables(seed, kind, loss, scaling, trained):
    rng = np.random.default_rng(seed)
    chains, truths = chains_of(rng, kind, rng.integers(1, 9, 4).tolist())
    if trained:
        truths = [labels for ((labels, _),) in best_of_chains(chains)]
    ways = {
        way: best_of_chains(chains, loss, truths, scaling, search=Search(way)) for way in ("full", "bounds")
    }
    full, bounds = (values_of(chains, loss, truths, found, scaling) for found in ways.values())
    size = 1e-12 * (np.abs(chains.emissions).sum() + np.abs(chains.links).sum() * len(chains.emissions))
    np.testing.assert_allclose(bounds, full, rtol=1e-9, atol=1e-11 + size)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 2**32 - 1), st.sampled_from(CHAIN_LOSSES), st.sampled_from(["margin", "slack"]))
def test_prices_of_the_last_time_change_no_answer(seed, loss, scaling):
    """From prices that were good before the scores changed a little, from any others, and from none."""
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(["any", "ties"]))
    chains, truths = chains_of(rng, kind, rng.integers(2, 20, 5).tolist())
    prices = np.full((5, 2), np.nan)
    best_of_chains(chains, loss, truths, scaling, search=Search("auto", prices))
    moved = chains._replace(emissions=chains.emissions + 0.1 * scores_of(rng, chains.emissions.shape, kind))
    full = best_of_chains(moved, loss, truths, scaling, search=Search("full"))
    for start in (prices, 3 * rng.normal(size=(5, 2)), np.full((5, 2), np.inf)):
        warm = best_of_chains(moved, loss, truths, scaling, search=Search("auto", start))
        for ((one, cost),), ((other, other_cost),) in zip(full, warm, strict=True):
            np.testing.assert_array_equal(one, other)
            assert cost == other_cost


def test_prices_are_kept_for_the_next_time():
    rng = np.random.default_rng(2)
    chains, truths = chains_of(rng, "any", [25, 30])
    prices = np.full((2, 2), np.nan)
    best_of_chains(chains, losses.ChunkFBeta(), truths, "slack", search=Search("auto", prices))
    assert np.isfinite(prices).all() and np.abs(prices).max() > 0


@pytest.mark.parametrize("name", native.instruction_sets())
def test_the_same_bits_on_every_instruction_set(name):
    """This includes the final prices, which are sums over passes."""
    rng = np.random.default_rng(8)
    chains, truths = chains_of(rng, "any", [9, 25, 30, 3, 17])
    asked = [(losses.ChunkFBeta(), "slack"), (losses.FBeta(background="O"), "margin")]
    found = {}
    for instructions in ("baseline", name):
        native.use_instruction_set(instructions)
        try:
            prices = [np.full((5, 2), np.nan) for _ in asked]
            labels = [
                [one.tolist() for ((one, _),) in best_of_chains(chains, loss, truths, scaling, search=search)]
                for (loss, scaling), search in zip(asked, (Search("bounds", p) for p in prices), strict=True)
            ]
        finally:
            native.use_instruction_set()
        found[instructions] = labels, [p.tobytes() for p in prices]
    assert found["baseline"] == found[name]


class Below(losses.FBeta, by_size=True):
    """A loss that is below zero for truths of one size: there is no search for it under slack scaling."""

    def of_counts(self, tp, fp, size):
        return super().of_counts(tp, fp, size) - (size == 5)

    def compare(self, found, gold):
        return super().compare(found, gold) - (sum(gold.values()) == 5)


def test_a_search_that_cannot_begin_leaves_the_prices_as_they_were():
    """Those of the sentence before it, on the same thread, are not its own."""
    rng = np.random.default_rng(5)
    chains, _ = chains_of(rng, "any", [30, 20, 20])
    truths = [np.arange(30) % 5, np.arange(20) % 4 == 1, np.arange(20) % 4 == 1]
    prices = np.array([[np.nan, np.nan], [np.nan, np.nan], [0.25, -0.5]])
    search = Search("bounds", prices)
    best_of_chains(chains, Below(background="O"), [t.astype(int) for t in truths], "slack", search=search)
    assert np.abs(prices[0]).max() > 0, "it has been searched for"
    assert prices[1:].tolist() == [[0, 0], [0.25, -0.5]]


@needs_proc
def test_tables_of_neighbours_that_wait_are_counted():
    asked = """
        names = ["O", *(f"{p}-{k}" for k in "abcdefghijk" for p in "BI")]
        def asked(count, length):
            rng = np.random.default_rng(0)
            first = tt.Model.chain(np.zeros((length, 23)), rng.normal(size=(23, 23)), states=names)
            own, links = first.blocks
            blocks = [(own.with_tables(2 * rng.normal(size=(length, 23))), links) for _ in range(count)]
            models = [tt.Model.from_blocks(first.cardinalities, b, states=first.states) for b in blocks]
            ask = {"truths": list(rng.integers(0, 23, (count, length))), "threads": 1, "strategy": "bounds"}
            chunks = tt.losses.ChunkFBeta()
            return lambda limit: len(tt.loss_augmented_batch(models, chunks, memory_limit=limit, **ask))
        small, call = asked(2, 5), asked(400, 60)
    """
    found = grown(asked, limit=4e6)
    assert (found["refused"], found["said"]) == (None, 400)
    assert found["growth"] < 4e6


@pytest.mark.sanitize
def test_tables_of_neighbours_that_are_equal_or_nearly_so():
    # one thread keeps the rows of such a table for the next sentence that has an equal one
    rng = np.random.default_rng(3)
    first = rng.normal(size=(6, 6))
    last = first.copy()
    last[5, 5] += 3.0
    small = rng.normal(size=(4, 4))
    pairs = []
    for number in range(24):
        links = (first, first.copy(), last, small)[number % 4]
        unary = rng.normal(size=(12, len(links)))
        pairs.append((tt.Model.chain(unary, links), rng.integers(0, len(links), 12)))
    found = ask(pairs, RECIPES[0], "slack", "bounds", threads=1)
    alone = [ask([one], RECIPES[0], "slack", "full", threads=1)[0] for one in pairs]
    assert [one.assignment.tolist() for one in found] == [one.assignment.tolist() for one in alone]
    assert sum(one.proof.plan.func.__name__ == "_shown" for one in found) > 18  # by bounds
