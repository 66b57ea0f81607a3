"""Damaged models, checkpoints and stored sequences give the right result or one of our errors."""

import io
import json
import shutil
import tracemalloc
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import tallytree as tt
from tallytree.learning import (
    CuttingPlanes,
    FrankWolfe,
    GraphSVM,
    SequenceSVM,
    Subgradient,
    TreeSVM,
    WindowFeatures,
    grid_graph,
    load,
    save,
    store_sequences,
)
from tallytree.learning.attributes import Hashed
from tallytree.learning.files import array_of
from tallytree.learning.stored import StoredSequences
from tallytree.parsing import parse_tree

# --- saved estimators ---------------------------------------------------------------------------------------

SENTENCES = [[("the", "DT"), ("cat", "NN")], [("a", "DT"), ("dog", "NN")]]
LABELS = [["B", "I"], ["B", "O"]]


def tagger(**options: object) -> SequenceSVM:
    with warnings.catch_warnings(action="ignore"):
        svm = SequenceSVM(tt.losses.FBeta(background="O"), features=WindowFeatures(), C=1.0, **options)
        return svm.fit(SENTENCES, LABELS)


@pytest.fixture(scope="module")
def kept(tmp_path_factory) -> dict[str, np.ndarray]:
    path = tmp_path_factory.mktemp("kept") / "model.npz"
    save(tagger(), path, notes={"a": [1, None]})
    with np.load(path) as stored:
        return {name: stored[name] for name in stored.files}


def written(path: Path, kept: dict[str, np.ndarray], **changes: object) -> Path:
    header = json.loads(kept["header"].tobytes())
    for key, value in changes.items():
        place, steps = header, key.split("__")
        for step in steps[:-1]:
            place = place[step]
        place[steps[-1]] = value
    text = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path / "model.npz", **{**kept, "header": text})
    return path / "model.npz"


def test_notes_and_features_come_back(tmp_path, kept):
    svm = load(written(tmp_path, kept))
    assert svm.notes_ == {"a": [1, None]}
    assert svm.features == WindowFeatures()
    assert [one.tolist() for one in svm.predict(SENTENCES)] == LABELS


def value(kind: str, **parameters: object) -> dict[str, object]:
    return {"class": kind, "parameters": parameters}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"class": ["SequenceSVM"]}, "an unknown estimator"),
        ({"class": "Pipeline"}, "unknown estimator 'Pipeline'"),
        ({"parameters": None}, "is damaged, or from another version"),
        ({"parameters__C": "x"}, "C must be a positive number, got 'x'"),
        ({"parameters__other": 1}, "unexpected keyword argument 'other'"),
        ({"parameters__loss": value("os.system")}, "is not a loss or solver of tallytree"),
        (
            {"parameters__loss": value("Labels", names=None, count=2)},
            "unknown loss Labels",
        ),
        ({"parameters__loss": value("FBeta", beta="x")}, "is damaged"),
        ({"parameters__features": value("WindowFeatures", templates=[[[0, 1e9]]])}, "a template is"),
        ({"attributes__labels_": 7}, "it has no labels"),
        (
            {"attributes__labels_": value("Labels", names=["x"], count=2)},
            "2 labels need as many distinct names",
        ),
        ({"attributes__encoder_": value("Hashed", size=10**9)}, "but its features and labels need"),
        ({"attributes__encoder_": value("Hashed", size=4.0)}, "an integer of at least 1 and below 2"),
        ({"attributes__encoder_": value("Hashed", size=0)}, "an integer of at least 1 and below 2"),
        ({"attributes__encoder_": value("Columns", size=-1)}, "an integer of at least 0 and below 2"),
        ({"attributes__encoder_": value("Vocabulary", names=[1])}, "the attributes of a vocabulary"),
        ({"attributes__weights_": 7}, "it sets 'weights_', which is not a parameter of saved estimators"),
        ({"attributes": {}}, "is damaged"),
        ({"history": [[1, 2]]}, "is damaged"),
        ({"history": [[1, "a", 1, True, 1, 1, 1, 1]]}, "pass 1 of its history is"),
        ({"notes": 5}, "is damaged"),
    ],
)
def test_changed_models_are_refused(tmp_path, kept, changes, message):
    with pytest.raises(tt.ModelError, match=message):
        load(written(tmp_path, kept, **changes))


@pytest.mark.parametrize(
    "change", [("weights", np.zeros(3)), ("weights", np.array([[0.0]])), ("header", np.zeros(2))]
)
def test_changed_arrays_are_refused(tmp_path, kept, change):
    np.savez(tmp_path / "model.npz", **{**kept, change[0]: change[1]})
    with pytest.raises(tt.ModelError):
        load(tmp_path / "model.npz")


def test_weights_that_are_not_finite_are_refused(tmp_path, kept):
    np.savez(tmp_path / "model.npz", **{**kept, "weights": np.full_like(kept["weights"], np.nan)})
    with pytest.raises(tt.ModelError, match="its weights are not a one-dimensional array of finite numbers"):
        load(tmp_path / "model.npz")


def test_a_graph_svm_is_checked_as_well(tmp_path):
    graphs = [grid_graph(np.array([[[1.0], [-1.0]]]))]
    save(GraphSVM(C=1.0).fit(graphs, [[1, 0]]), tmp_path / "kept.npz")
    with np.load(tmp_path / "kept.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    assert load(written(tmp_path, kept)).predict(graphs)[0].tolist() == [[1, 0]]
    for widths in ([1], [1, -2], [5, 5], "ab"):
        with pytest.raises(tt.ModelError, match="is damaged"):
            load(written(tmp_path, kept, attributes__widths_=widths))


def test_archives_that_unpack_to_more_are_refused(tmp_path, kept):
    with zipfile.ZipFile(tmp_path / "model.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.npy", b"\0" * 10_000_000)
    tracemalloc.start()
    try:
        with pytest.raises(tt.ModelError, match="its parts are compressed"):
            load(tmp_path / "model.npz")
        assert tracemalloc.get_traced_memory()[1] < 1e6
    finally:
        tracemalloc.stop()


def test_files_larger_than_memory_are_refused(tmp_path, kept, monkeypatch):
    monkeypatch.setattr("tallytree.learning.files.default_memory_limit", lambda: 100.0)
    with pytest.raises(tt.BudgetError, match="more than half of the memory"):
        load(written(tmp_path, kept))


@given(st.data())
@settings(max_examples=40)
def test_damaged_bytes_are_refused_or_harmless(tmp_path_factory, kept, data):
    path = written(tmp_path_factory.getbasetemp(), kept)
    content = bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(1, 3))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)) | st.just(len(content)))])
    try:
        assert [one.tolist() for one in load(path).predict(SENTENCES)] == LABELS
    except tt.ModelError:
        return


HEADER = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"


@pytest.mark.parametrize(
    "header",
    [
        HEADER.replace(b"(1,)", b"(99999999999999999,)"),
        HEADER.replace(b"(1,)", b"(-1, -1)"),
        HEADER.replace(b"<f8", b"|O8"),
        HEADER.replace(b"'<f8'", b"[('a', '<f8')]"),
        HEADER.replace(b"False", b"exit()"),
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (1",  # TokenError, in NumPy's own reader
        b"(" * 9000,
    ],
)
def test_headers_of_arrays_are_matched_and_not_evaluated(header):
    start = b"\x93NUMPY\x01\x00" + (len(header) + 1).to_bytes(2, "little")
    with pytest.raises(ValueError, match=r"a part is not an array of numbers|do not match an array"):
        array_of(start + header + b"\n" + b"\0" * 8)


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6).reshape(2, 3),
        np.asfortranarray(np.ones((2, 3))),
        np.array(True),
        np.zeros((0, 2), np.float32),
    ],
)
def test_arrays_come_back(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    found = array_of(buffer.getvalue())
    assert np.array_equal(found, array)
    assert found.dtype == array.dtype


# --- checkpoints --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", [FrankWolfe(), FrankWolfe(averaging=True), CuttingPlanes(), Subgradient()])
def test_damaged_checkpoints_are_refused(tmp_path, solver):
    options = {"solver": solver, "tolerance": 0.0}
    tagger(checkpoint=tmp_path / "kept.npz", max_passes=1, **options)
    with np.load(tmp_path / "kept.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    for name, array in kept.items():
        if name == "header":
            continue
        longer = np.concatenate((np.atleast_1d(array), np.atleast_1d(array), np.ones(1, array.dtype)))
        for wrong in (longer, np.full_like(array, -1) if array.dtype.kind == "i" and array.ndim else longer):
            np.savez(tmp_path / "run.npz", **{**kept, name: wrong})
            with pytest.raises(tt.ModelError, match=r"is damaged .*; delete it to start over"):
                tagger(checkpoint=tmp_path / "run.npz", max_passes=2, **options)
    for name in kept:
        np.savez(tmp_path / "run.npz", **{one: array for one, array in kept.items() if one != name})
        with pytest.raises(tt.ModelError, match="is damaged"):
            tagger(checkpoint=tmp_path / "run.npz", max_passes=2, **options)


# --- sequences on disk --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def corpus(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("corpus") / "kept"
    encoder = Hashed(8)
    store_sequences(folder, [(encoder.rows([["a"], ["b", "c"]]), [0, 1]), (encoder.rows([["a"]]), [2])])
    return folder


def read_all(folder: Path) -> int:
    problem = StoredSequences(folder, labels=3, loss=tt.losses.HammingDistance())
    return len(problem.models(range(len(problem)), np.zeros(problem.dimension)))


@given(st.data())
@settings(max_examples=40)
def test_damaged_folders_are_refused_or_harmless(tmp_path_factory, corpus, data):
    folder = tmp_path_factory.getbasetemp() / "damaged"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(corpus, folder)
    file = folder / data.draw(st.sampled_from(sorted(path.name for path in corpus.iterdir())))
    content = bytearray(file.read_bytes())
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    else:
        content = content[: data.draw(st.integers(0, len(content)))] + data.draw(st.binary(max_size=8))
    file.write_bytes(content)
    try:
        assert read_all(folder) == 2
    except tt.ModelError:
        return


# --- parsers ------------------------------------------------------------------------------------------------


def test_a_tree_svm_is_checked_as_well(tmp_path):
    trees = [parse_tree("(S (NP (NN fish)) (VP (VB swim)))"), parse_tree("(S (NP (NN eels)) (VP (VB eat)))")]
    save(TreeSVM(tolerance=0.5).fit([tree.words for tree in trees], trees), tmp_path / "kept.npz")
    with np.load(tmp_path / "kept.npz") as stored:
        kept = {name: stored[name] for name in stored.files}
    assert load(written(tmp_path, kept)).predict(["fish eat"]) == [
        parse_tree("(S (NP (NN fish)) (VP (VB eat)))")
    ]
    header = json.loads(kept["header"].tobytes())
    counted = header["attributes"]["model_"]["parameters"]["counted"]["parameters"]
    for part, wrong in (
        ("binary", [["S", "NP"]]),
        ("binary", [["S", "NP", "VP", "x"]]),
        ("unary", 7),
        ("words", [["a", "NN", "many"]]),
        ("words", []),
        ("binarisation", None),
        ("words", [["a", "NN", 0]]),
        ("words", [["a", "NN", 1e12]]),
        ("words", [["a", "NN", 10**15]]),
        ("smoothing", -1),
    ):
        kept_part = counted[part]
        counted[part] = wrong
        with pytest.raises(tt.ModelError, match="is damaged"):
            load(written(tmp_path, kept, attributes=header["attributes"]))
        counted[part] = kept_part
