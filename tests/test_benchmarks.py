"""Benchmarks are not timed here, but the internals that they use must exist."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import tallytree as tt

NEED_OTHERS = {"parsing_nltk", "peer_torch", "peer_uai"}  # run by interpreters that have other libraries
FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def benchmark(monkeypatch):
    """Import a file of the benchmarks, and forget it afterwards (tests have files of the same names)."""
    monkeypatch.syspath_prepend(str(FOLDER))
    names = [path.stem for path in FOLDER.glob("*.py")]
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    yield importlib.import_module
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


@pytest.mark.parametrize("name", sorted({path.stem for path in FOLDER.glob("*.py")} - NEED_OTHERS))
def test_what_a_benchmark_imports_is_there(benchmark, name):
    assert benchmark(name).__doc__


def test_the_phases_of_a_call_are_clocked(benchmark):
    phases = benchmark("phases")
    model = tt.Model.chain([[0.0, 1.0]] * 5, [[0.0, 0.0]] * 2)
    with phases.clocks() as spent:
        phases.forget()
        tt.profile(model, [tt.count(model, state=1)]).best()
    assert {phase for phase, seconds in spent.items() if seconds > 0} >= {
        "skeleton",
        "plan",
        "decode",
        "certify",
    }


@pytest.mark.parametrize(
    "case, size",
    [("B1", 12), ("B2", 7), ("B3", 5), ("B4", 6), ("B5", 9), ("B6", 20), ("B7grid", 4), ("B7chain", 9)],
)
def test_labellings_of_the_cases_are_compared_with_those_of_c(benchmark, case, size):
    cases, end_to_end = benchmark("cases"), benchmark("end_to_end")
    if benchmark("common").yardstick("dp") is None:
        pytest.skip("../shared/limit is not there")
    end = cases.make(case, size)
    best = end.run().assignment
    assert end_to_end.as_good(end, best)
    assert not end_to_end.as_good(end, np.zeros_like(best)) or not best.any()
