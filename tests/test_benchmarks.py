"""Benchmarks are not timed here, but what they reach into has to be there."""

import sys
from pathlib import Path

import pytest

import tallytree as tt

FOLDER = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def phases(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    before = set(sys.modules)
    import phases

    yield phases
    for name in set(sys.modules) - before:
        if (FOLDER / f"{name}.py").is_file():
            del sys.modules[name]


def test_the_phases_of_a_call_are_clocked(phases):
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
