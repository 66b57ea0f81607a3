"""Batches of long chains: large tables share memory, as for single questions, with the same answers."""

import numpy as np
import pytest
from memory import grown, needs_proc

import tallytree as tt


def chain(seed, length, states, ties):
    rng = np.random.default_rng(seed)
    unary, pairs = rng.normal(size=(length, states)), 3 * rng.normal(size=(states, states))
    if ties:
        unary, pairs = np.round(unary), np.round(pairs)
    unary[rng.random(unary.shape) < 0.02] = -np.inf
    return tt.Model.chain(np.where(np.isfinite(unary).any(1, keepdims=True), unary, 0.0), pairs)


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("threads", [1, 2])
def test_answers_are_those_of_single_questions(ties, threads):
    """Small and large tables in turns, whose layouts reuse memory."""
    models = [chain(seed, length, 3, ties) for seed, length in enumerate((40, 4000, 60, 3500, 4000, 30))]
    for model in models:
        ones = tt.count(model, state=1)
        single = tt.solve(model, where=ones == len(model) // 3, strategy="full")
        for batch in ([model], [model, models[0], model]):
            found = tt.solve_batch(
                batch,
                where=tt.count(state=1) == len(model) // 3,
                strategy="full",
                threads=threads,
                errors="return",
            )
            for other in found[::2]:
                assert other.score == pytest.approx(single.score, rel=1e-12)
                assert other.tally == single.tally
                assert ones.tally(other.labels) == len(model) // 3


@needs_proc
@pytest.mark.parametrize("limit", [100e6, 230e6, 1e9])
def test_tables_share_memory(limit):
    """Whether or not there would be room for all tables."""
    asked = """
        def asked(length):
            model = tt.Model.chain(np.random.default_rng(0).normal(size=(length, 3)), np.eye(3))
            where = tt.count(model, state=1) == length // 2
            asked = {"where": where, "strategy": "full", "threads": 1}
            return lambda limit: tt.solve_batch([model], **asked, memory_limit=limit)[0].score
        small, call = asked(50), asked(6000)
    """
    assert grown(asked, limit=limit)["growth"] < 60e6, "all tables take 216 MB"
