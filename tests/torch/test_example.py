"""The example runs on small data and learns something."""

import runpy
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("sklearn")

SCRIPT = Path(__file__).parents[2] / "examples" / "tagger.py"


@pytest.mark.parametrize("letters", [False, True])
def test_the_tagger_learns_with_every_objective(letters, capsys, device):
    found = runpy.run_path(str(SCRIPT))["main"](quick=True, device=str(device), letters=letters, width=32)
    assert set(found) == {"likelihood", "hinge", "risk"}
    assert min(found.values()) > 0.2
    assert "at most three chunks" in capsys.readouterr().out


def test_the_notebook_runs():
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(SCRIPT.with_suffix(".ipynb"), as_version=4)
    resources = {"metadata": {"path": str(SCRIPT.parent)}}
    nbclient.NotebookClient(notebook, timeout=300, resources=resources).execute()
    printed = [o.get("text", "") for cell in notebook.cells for o in cell.get("outputs", [])]
    assert any("risk" in text for text in printed)
