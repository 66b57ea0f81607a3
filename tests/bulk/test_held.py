"""The memory that batches and corpora count besides tables, compared with the growth of a process."""

import numpy as np
import pytest
from memory import grown, needs_proc

import tallytree as tt
from tallytree.bounding.certificate import BoundsEvidence
from tallytree.testing import check_bounds

BATCH = """
    import contextlib, warnings
    def asked(count, length, loss, **options):
        rng = np.random.default_rng(0)
        models = [chain(length, 3, seed) for seed in range(count)]
        truths = [rng.integers(0, 3, length) for _ in models]
        def run(limit):
            return len(tt.loss_augmented_batch(models, loss, truths=truths, memory_limit=limit, **options))
        return run
    def small(limit):  # under many limits, so that the code of all of them is loaded
        some = asked(2, {length}, {arguments}, errors="return")
        for limit in (*np.geomspace(1e4, 1e7, 30), None):
            with contextlib.suppress(tt.BudgetError), warnings.catch_warnings(action="ignore"):
                some(limit)
    f, h, ones = tt.losses.FBeta(background=0), tt.losses.HammingLoss(), tt.count(state=1)
    call = asked({count}, {length}, {arguments})
"""

CORPUS = """
    def tree(rng, length):
        parents = [-1, *(int(rng.integers(max(0, i - 3), i)) for i in range(1, length))]
        return tt.Model.tree(np.array(parents), rng.normal(size=(length, 3)), rng.normal(size=(3, 3)))
    def line(rng, length):
        return tt.Model.chain(rng.normal(size=(length, 3)), np.arange(9.0).reshape(3, 3) / 9)
    def asked(count, make, length):
        rng = np.random.default_rng(0)
        models = [make(rng, length) for _ in range(count)]
        truths = [rng.integers(0, 3, length) for _ in models]
        loss = tt.losses.FBeta(background=0)
        return lambda limit: tt.loss_augmented_corpus(models, truths, loss, memory_limit=limit).value
    small, call = asked(2, {make}, {length}), asked({count}, {make}, {length})
"""


def least_limit(code, growth):
    """Return the least of some limits under which a call runs, and what it takes then."""
    for share in np.arange(0.8, 1.35, 0.05):
        found = grown(code, limit=share * growth)
        if not found["refused"]:
            return share * growth, found["growth"]
    raise AssertionError(f"refused at 1.3 times what it takes: {found['refused']}")


# Losses are in tables for each size of a truth; problems under a constraint have queries of their own.
@needs_proc
@pytest.mark.parametrize(
    ("count", "length", "arguments"),
    [
        (500, 100, "f"),
        (300, 300, "f"),
        (2500, 10, "h"),
        (1200, 60, "f, where=ones >= 1"),
        (600, 60, "h, fixed={0: 1}"),
    ],
)
def test_a_batch_takes_what_it_counts(count, length, arguments):
    code = BATCH.format(count=count, length=length, arguments=f"{arguments}, threads=1")
    limit, growth = least_limit(code, grown(code)["growth"])
    assert growth == pytest.approx(limit, rel=0.25)
    refused = grown(code, limit=0.5 * limit)
    assert "problems and answers: together" in refused["refused"]
    assert refused["growth"] <= 0.5 * limit, "what does not fit is not made"


@needs_proc
@pytest.mark.parametrize("limit", [10.7e6, 11.2e6])
def test_a_batch_keeps_to_a_tight_limit(limit):
    """Tables of runs one after the other do not leave a heap in pieces behind."""
    code = BATCH.format(count=600, length=60, arguments="f, where=ones >= 1, threads=1")
    found = grown(code, limit=limit)
    assert not found["refused"] and found["growth"] <= limit


@needs_proc
@pytest.mark.parametrize(
    ("count", "make", "length"), [(300, "line", 18), (300, "line", 60), (200, "tree", 20)]
)
def test_a_corpus_takes_what_it_counts(count, make, length):
    code = CORPUS.format(count=count, make=make, length=length)
    free = grown(code)["growth"]
    limit, growth = least_limit(code, free)
    assert growth == pytest.approx(limit, rel=0.25)
    assert grown(code, limit=0.6 * free)["refused"], "it takes more than that"
    for share in (1.2, 1.3, 1.4):
        assert not grown(code, limit=share * free)["refused"], "nor is more memory less"


def chunk_chain(rng, length=60):
    names = ["O", *(f"{p}-{k}" for k in "abcdefghijk" for p in "BI")]
    return tt.Model.chain(2 * rng.normal(size=(length, 23)), rng.normal(size=(23, 23)), states=names)


def test_an_answer_found_by_bounds_makes_its_model_again_for_the_certificate():
    rng = np.random.default_rng(0)
    found = tt.loss_augmented(
        chunk_chain(rng), tt.losses.ChunkFBeta(rng.integers(0, 23, 60)), strategy="bounds"
    )
    assert not isinstance(found.proof.plan, BoundsEvidence), "it would keep the model that was solved"
    evidence = found.proof.rests_on()
    assert evidence.model.key != found.model.key and evidence.parts == found.certificate.parts
    check_bounds(found)


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("recipe", [tt.losses.HammingLoss(), tt.losses.FBeta(background=0)])
def test_proofs_hold_when_their_queries_are_made_again(recipe, scaling):
    """Linear losses are folded into the score; a constraint is counted, too."""
    rng = np.random.default_rng(1)
    model = tt.Model.chain(rng.normal(size=(40, 3)), rng.normal(size=(3, 3)))
    where = tt.count(state=1) == 9
    found = tt.loss_augmented(
        model, recipe.against(rng.integers(0, 3, 40)), scaling, where=where, strategy="bounds"
    )
    assert isinstance(found.proof.rests_on(), BoundsEvidence)
    check_bounds(found)


@needs_proc
def test_answers_found_by_bounds_do_not_keep_models():
    code = """
        names = ["O", *(f"{p}-{k}" for k in "abcdefghijk" for p in "BI")]
        def asked(count, length):
            rng, pair = np.random.default_rng(0), np.random.default_rng(1).normal(size=(23, 23))
            scores = [2 * rng.normal(size=(length, 23)) for _ in range(count)]
            models = [tt.Model.chain(one, pair, states=names) for one in scores]
            losses = [tt.losses.ChunkFBeta(rng.integers(0, 23, length)) for _ in models]
            def run(limit):
                return len([tt.loss_augmented(*one, strategy="bounds") for one in zip(models, losses)])
            return run
        small, call = asked(2, 5), asked(60, 60)
    """
    assert grown(code)["growth"] < 25e6  # 68e6 with the models


@pytest.mark.filterwarnings("ignore::tallytree.errors.PerformanceWarning")
@pytest.mark.parametrize(
    "loss", [tt.losses.FBeta(background=0), tt.losses.SymmetricDifference(background=0)], ids=["f", "linear"]
)
def test_a_long_model_among_short_ones_is_solved_on_its_own(loss):
    """Its losses of all tallies would not fit; those of the others do."""
    rng = np.random.default_rng(0)
    models = [tt.Model.chain(rng.normal(size=(n, 3)), rng.normal(size=(3, 3))) for n in [20] * 20 + [3000]]
    losses = [loss.against(rng.integers(0, 3, len(model))) for model in models]
    limit = {"memory_limit": 2e8}
    found = tt.loss_augmented_batch(models, losses, "slack", **limit)
    for number in (0, -1):
        alone = tt.loss_augmented(models[number], losses[number], "slack", **limit)
        assert found[number].value == pytest.approx(alone.value, rel=1e-12)
