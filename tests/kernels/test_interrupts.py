"""Native code during signals, and alongside other threads."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time

import numpy as np
import pytest

from tallytree.kernels import native

# ---------------------------------------------------------------- signals and threads

# Each takes four seconds or more on a fast machine: an answer within one shows that it was interrupted.
WORK = {
    "chain": """
        model = tt.Model.chain(rng.normal(size=(24_000, 30)), rng.normal(size=(30, 30)))
        work = lambda: tt.profile(model, [tt.count(state=1)], threads=1)
    """,
    "chain on three threads": """
        model = tt.Model.chain(rng.normal(size=(24_000, 30)), rng.normal(size=(30, 30)))
        work = lambda: tt.profile(model, [tt.count(state=1)], threads=3)
    """,
    "large join": """
        a, b = rng.normal(size=(1, 60, 4000)), rng.normal(size=(1, 60, 4000))
        work = lambda: native.join(a, b)
    """,
    "log-sum-exp": """
        model = tt.Model.chain(rng.normal(size=(8000, 16)), rng.normal(size=(16, 16)))
        work = lambda: tt.distribution(model, [tt.count(state=1)])
    """,
    "marginals": """
        model = tt.Model.chain(rng.normal(size=(5000, 8)), rng.normal(size=(8, 8)))
        d = tt.distribution(model, [tt.count(state=1)])
        work = d.marginals
    """,
    "order": """
        free = np.zeros((2, 2))
        model = tt.Model.grid(np.zeros((500, 500, 2)), free, free)
        work = lambda: tt.plan(model, order="min-fill")
    """,
    "planning": """
        model = tt.Model.chain(rng.normal(size=(200, 6)), rng.normal(size=(6, 6)))
        sums = [tt.node_statistic(rng.integers(0, 3, size=(200, 6))) for _ in range(4)]
        work = lambda: tt.plan(model, sums, memory_limit=4e9)
    """,
    "cells": """
        model = tt.Model.chain(rng.normal(size=(4000, 60)), rng.normal(size=(60, 60)))
        work = lambda: tt.profile(model, [tt.count(state=1)], layout="cells")
    """,
    "batch": """
        models = [tt.Model.chain(rng.normal(size=(1500, 30)), rng.normal(size=(30, 30))) for _ in range(40)]
        work = lambda: tt.solve_batch(models * 5, [tt.count(state=1)], threads=3, strategy="full")
    """,
    "batch of small ones": """
        models = [tt.Model.chain(rng.normal(size=(4, 3)), rng.normal(size=(3, 3)))] * 40_000
        choose = lambda item, tallies, scores: [0]
        batch = native.Batch(0, 1e9)
        plan = tt.plan(models[0])
        for model in models:
            batch.add(plan.skeleton, [], [], [], [], [b.tables for b in model.blocks], [], [], True)
        work = lambda: [batch.run(2, choose) for _ in range(1000)]
    """,
    "binary trees": """
        scores, lengths = rng.normal(size=(1, 2000, 2000, 1)), np.array([2000])
        work = lambda: native.tree_sums(scores, lengths, 1)
    """,
    "ranking": """
        model = tt.Model.chain(rng.normal(size=(40, 4)), rng.normal(size=(4, 4)))
        profile = tt.profile(model)
        run = native.Run(profile.plan.layout, [block.tables for block in model.blocks], native.MAX_PLUS)
        search = native.KBest(run, run.root()[0])
        work = lambda: search.next(10**7)
    """,
}


def script(name, after):
    return (
        "import signal, sys, threading, time\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import numpy as np\nimport tallytree as tt\n"
        "from tallytree.kernels import native\nrng = np.random.default_rng(0)\n"
        + textwrap.dedent(WORK[name])
        + textwrap.dedent(after)
    )


def check_interrupted(name, before=""):
    code = """
        print("started", flush=True)
        try:
            work()
            print("finished", flush=True)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic(), flush=True)
            work = None
            tt.profile(tt.Model([2], [((0,), [0.0, 1.0])])).best()  # all is well afterwards
            print("usable", flush=True)
    """
    with subprocess.Popen(
        [sys.executable, "-c", before + script(name, code)], stdout=subprocess.PIPE, text=True
    ) as child:
        try:
            assert child.stdout.readline() == "started\n"
            time.sleep(0.3)
            sent = time.monotonic()
            child.send_signal(signal.SIGINT)
            word, _, moment = child.stdout.readline().strip().partition(" ")
            assert word == "interrupted"
            assert float(moment) - sent < 1.0  # about 0.05 s on a quiet machine
            assert child.stdout.readline() == "usable\n"
        finally:
            child.kill()


@pytest.mark.parametrize("name", sorted(WORK))
def test_control_c_interrupts(name):
    check_interrupted(name)


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs processes bound to a processor")
def test_control_c_interrupts_threads_that_share_a_processor_with_others():
    bind = "import os\nos.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
    busy = [subprocess.Popen([sys.executable, "-c", bind + "while True: pass"]) for _ in range(2)]
    try:
        check_interrupted("chain on three threads", bind)
    finally:
        for other in busy:
            other.kill()
            other.wait()


def test_other_threads_run_meanwhile():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(1, 30, 2000)), rng.normal(size=(1, 30, 2000))
    span, ticks = [0.0, 0.0], []

    def work():
        span[0] = time.perf_counter()
        native.join(a, b)
        span[1] = time.perf_counter()

    thread = threading.Thread(target=work)
    thread.start()
    while thread.is_alive():
        ticks.append(time.perf_counter())
        time.sleep(0.002)
    thread.join()
    during = [t for t in ticks if span[0] < t < span[1]]
    assert span[1] - span[0] > 0.05, "too quick to tell"
    assert len(during) > 10
    assert np.diff(during).max() < 0.5 * (span[1] - span[0])
