"""Plots in a notebook: cells run in a real kernel, and their images are checked."""

import base64
import io
import re
from pathlib import Path

import numpy as np
import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")
image = pytest.importorskip("matplotlib.image")

FIRST = """
%matplotlib inline
import numpy as np
import matplotlib.pyplot as plt
import tallytree as tt
model = tt.Model.chain([[0, 1.5], [0, -2.5], [0, 3.0], [0, -1.25]], np.eye(2), states=["dry", "wet"])
wet = tt.count(model, state="wet", name="wet")
"""

CELLS = {
    "curve": "tt.plot.profile_curve(tt.profile(model, [wet]));",
    "side by side": "tt.plot.side_by_side(tt.k_best(model, 3));",
    "clique tree": "tt.plot.clique_tree_picture(model, [wet]);",
    "tree": "tt.plot.tree_picture(tt.parsing.parse_tree('(S (NP (NN fish)) (VP (VB eat)))'));",
    "two panels": """
fig, (left, right) = plt.subplots(1, 2)
tt.plot.profile_curve(tt.profile(model, [wet]), ax=left)
tt.plot.profile_curve(tt.profile(model, [wet]), where=wet <= 1, ax=right);
""",
    "side by side, then a curve": """
tt.plot.side_by_side(tt.k_best(model, 3))
tt.plot.profile_curve(tt.profile(model, [wet]));
""",
    "a curve, then a tree": """
tt.plot.profile_curve(tt.profile(model, [wet]))
tt.plot.tree_picture(tt.parsing.parse_tree('(S (NP (NN fish)) (VP (VB eat)))'));
""",
    "saved": """
tt.plot.profile_curve(tt.profile(model, [wet]))
plt.savefig("curve.png");
""",
}


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    folder = tmp_path_factory.mktemp("notebook")
    cells = [nbformat.v4.new_code_cell(source) for source in [FIRST, *CELLS.values()]]
    book = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(
        book, timeout=120, kernel_name="python3", resources={"metadata": {"path": folder}}
    ).execute()
    return folder, dict(zip(CELLS, book.cells[1:], strict=True))


def pixels(png):
    return image.imread(io.BytesIO(png), format="png")[:, :, :3]


def ink(picture):
    """Return the share of pixels that are not white."""
    return float((picture < 0.99).any(axis=2).mean())


@pytest.mark.parametrize("name", CELLS)
def test_a_cell_shows_its_pictures_with_something_on_them(notebook, name):
    outputs = [output for output in notebook[1][name].outputs if "image/png" in output.get("data", {})]
    assert len(outputs) == (2 if ", then " in name else 1)
    assert all(ink(pixels(base64.b64decode(output["data"]["image/png"]))) > 0.01 for output in outputs)


def test_pyplot_saves_what_was_drawn(notebook):
    assert ink(pixels((notebook[0] / "curve.png").read_bytes())) > 0.01


def test_ink_tells_a_blank_picture():
    assert ink(np.ones((4, 4, 3))) == 0.0


def test_the_tour_runs_in_any_folder_and_shows_its_pictures(tmp_path):
    pytest.importorskip("sklearn")
    tour = nbformat.read(Path(__file__).parents[2] / "examples" / "tour.ipynb", as_version=4)
    assert not any(cell.get("outputs") for cell in tour.cells)
    nbclient.NotebookClient(tour, timeout=300, resources={"metadata": {"path": tmp_path}}).execute()
    outputs = [output for cell in tour.cells for output in cell.get("outputs", [])]
    pictures = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
    assert [ink(pixels(base64.b64decode(picture))) > 0.01 for picture in pictures] == [True] * 4
    tables = [o["data"]["text/html"] for o in outputs if "text/html" in o.get("data", {})]
    assert [re.search("<b>(\\w+)", table)[1] for table in tables] == (
        ["Model", "Solution", "Profile", "Solution", "Solution", "Distribution"]
    )
