"""Helpers for tests of memory: limits that cut plans into segments, and the growth of a separate process."""

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from tallytree.kernels import native
from tallytree.planning.plan import MODES, tally_limits

PROC = Path("/proc/self/status")
needs_proc = pytest.mark.skipif(not PROC.exists(), reason=f"reads {PROC}, which is not there")

_MEASURE = """
    import ctypes, gc, json, sys
    import numpy as np, tallytree as tt
    from tallytree import parsing

    def status(field):  # what getrusage says begins with the memory of the process that forked this one
        lines = open("/proc/self/status").read().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith(field))

    def chain(length, states, seed=0):
        rng = np.random.default_rng(seed)
        return tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))

    def measured(call, limit):
        gc.collect()
        ctypes.CDLL(None).malloc_trim(0)  # what making the inputs has left behind
        open("/proc/self/clear_refs", "w").write("5")  # the peak is counted from here
        before, refused, said = status("VmRSS"), None, None
        try:
            said = call(limit)
        except tt.BudgetError as error:
            refused = str(error)
        return {"growth": max(status("VmHWM") - before, 0), "refused": refused, "said": said}
"""


def little(plan, share):
    """Return the memory limit that leaves a plan a share of what its tables take."""
    return plan.peak_bytes - (1 - share) * plan.layout.arena_bytes


def rolled(plan, segments):
    """Let the tables of a plan roll, however small: as large ones do, in so many segments on each side."""
    single = plan.precision == "single"
    tables = [block.tables for statistic in plan.statistics for block in statistic.blocks]
    limits = tally_limits(plan.statistics, plan.window)
    plan.layout = native.Layout(
        plan.skeleton, tables, *limits, MODES[plan.mode], plan.limit, single, max(segments, 2)
    )
    return plan


def grown(code, limit=None, timeout=120, kept=True):
    """Run code that defines `small` and `call`, functions of a limit; measure `call` in its own process.

    `kept`: whether to count what the C library keeps of freed memory, as it does by default. That depends on
    the order of all allocations of the process, and varies by some megabytes.
    """
    end = f"small(None)\nprint(json.dumps(measured(call, {limit!r})))"
    whole = "\n".join((textwrap.dedent(_MEASURE), textwrap.dedent(code), end))
    done = subprocess.run(
        [sys.executable, "-c", whole],
        capture_output=True,
        text=True,
        check=False,
        timeout=timeout,
        env=os.environ | ({} if kept else {"MALLOC_MMAP_THRESHOLD_": "131072"}),
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
