"""Signals at random moments: afterwards, the same call gives the same bits."""

import random
import signal

import numpy as np
import pytest
from interrupts import bits
from memory import little

import tallytree as tt


def cut_question(threads):
    """Samples and a labelling from checkpoints."""
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(120, 3)), rng.normal(size=(3, 3)))
    statistics = [tt.count(model, state=s, name=f"state{s}") for s in (0, 1)]
    whole = tt.plan(model, statistics)
    plan = tt.plan(model, statistics, memory_limit=little(whole, 0.3))
    assert plan.segments > 1
    d = tt.distribution(model, statistics, plan=plan, threads=threads)
    p = tt.profile(model, statistics, plan=plan, threads=threads)
    return lambda: (d.sample(2, rng=1), p.at(40, 30).assignment)


def rolling_question(threads):
    """A profile, the labellings of some tallies, and max-marginals, of tables that roll."""
    rng = np.random.default_rng(4)
    model = tt.Model.chain(rng.normal(size=(1500, 4)), rng.normal(size=(4, 4)))
    ones = tt.count(model, state=1, name="ones")
    p = tt.profile(model, [ones], threads=threads)
    assert p.plan.layout.unrolled_bytes

    def ask():
        fresh = tt.profile(model, [ones], threads=threads)
        return fresh.scores, fresh.at(700).assignment, p.at(300).assignment, p.max_marginals(200)

    return ask


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("question", [cut_question, rolling_question])
def test_signals_at_random_instants(question, threads):
    ask = question(threads)
    expected, stopped, instants = bits(ask()), 0, random.Random(0)
    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        for _ in range(25):
            try:
                signal.setitimer(signal.ITIMER_REAL, instants.uniform(1e-4, 0.05))
                while True:
                    ask()
            except KeyboardInterrupt:
                stopped += 1
            assert bits(ask()) == expected
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert stopped == 25
