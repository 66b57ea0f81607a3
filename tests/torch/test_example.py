"""The example runs in small, and learns something."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

SCRIPT = Path(__file__).parents[2] / "examples" / "tagger.py"


def test_the_tagger_learns_with_every_objective(capsys, device):
    found = runpy.run_path(str(SCRIPT))["main"](quick=True, device=str(device))
    assert set(found) == {"likelihood", "hinge", "risk"}
    assert min(found.values()) > 0.2
    assert "at most three chunks" in capsys.readouterr().out
