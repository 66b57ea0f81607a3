"""UAI evidence, and writing UAI models."""

from __future__ import annotations

import os
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uai_files import EXAMPLE, in_a_folder, labellings, saved, scores

from tallytree.errors import ModelError
from tallytree.io import read_uai, write_uai
from tallytree.model.model import Model

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "uai"


@st.composite
def models(draw: st.DrawFn, largest: float = 50.0) -> Model:
    cardinalities = draw(st.lists(st.integers(1, 3), max_size=4))
    entries = st.one_of(st.floats(-largest, largest), st.just(-np.inf))
    factors = []
    for _ in range(draw(st.integers(0, 5))):
        order = draw(st.permutations(range(len(cardinalities))))
        scope = tuple(order[: draw(st.integers(0, min(3, len(order))))])
        shape = [cardinalities[v] for v in scope]
        size = int(np.prod(shape))
        table = np.array(draw(st.lists(entries, min_size=size, max_size=size))).reshape(shape)
        factors.append((scope, table))
    return Model(cardinalities, factors=factors)


# Evidence


@pytest.mark.parametrize("text", ["", " \n", "0", "0\n", "1\n0\n", "1 0"])
def test_no_evidence(text: str, tmp_path: Path) -> None:
    path = saved(tmp_path, EXAMPLE)
    assert scores(read_uai(path, saved(tmp_path, text, "none.evid"))) == scores(read_uai(path))


@pytest.mark.parametrize(
    "text", ["2 0 1 2 0", "2\n0 1\n2 0\n", "1\n2 0 1 2 0\n", "1\n2\n2 0\n0 1", "3 0 1 2 0 0 1"]
)
def test_evidence_forbids_all_other_states(text: str, tmp_path: Path) -> None:
    path = saved(tmp_path, EXAMPLE)
    free, bound = read_uai(path), read_uai(path, saved(tmp_path, text, "some.evid"))
    assert bound.cardinalities.tolist() == free.cardinalities.tolist()
    for y, before, after in zip(labellings(free), scores(free), scores(bound), strict=True):
        assert after == (pytest.approx(before) if (y[0], y[2]) == (1, 0) else -np.inf)


def test_observed_variables_are_cut_out_of_the_other_scopes(tmp_path: Path) -> None:
    model = read_uai(saved(tmp_path, EXAMPLE), {1: 1})
    scopes = sorted(tuple(scope) for block in model.blocks for scope in block.scopes.tolist())
    assert scopes == [(0,), (0,), (1,), (2,)]


@in_a_folder
@given(model=models(), data=st.data())
def test_a_dictionary_and_a_file_of_evidence_agree(model: Model, data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    write_uai(model, path)
    observed = {
        v: data.draw(st.integers(0, n - 1))
        for v, n in enumerate(model.cardinalities.tolist())
        if data.draw(st.booleans())
    }
    text = f"{len(observed)} " + " ".join(f"{v} {s}" for v, s in observed.items())
    bound = read_uai(path, observed)
    assert scores(bound) == scores(read_uai(path, saved(tmp_path, text, "model.evid")))
    for y, before, after in zip(labellings(model), scores(read_uai(path)), scores(bound), strict=True):
        agrees = all(y[v] == s for v, s in observed.items())
        assert after == (pytest.approx(before, abs=1e-12) if agrees else -np.inf)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 3 0", "line 1, column 3: expected an observed variable, 0 to 2, got '3'"),
        ("1 2 3", "expected a state of variable 2, 0 to 2, got '3'"),
        ("2 0 1", "expected the number of observed variables, at most 1 .*got '2'"),
        ("1 0 1 2 2", "expected the end of the file, got '2'"),
        ("2 0 1 0 0", "expected the state 1 that variable 0 already has, got '0'"),
        ("3 0 1 1", "expected one sample of evidence .*got '3'"),
        ("x", "expected the number of observed variables.*got 'x'"),
        ("1 0 x", "expected a state of variable 0.*got 'x'"),
    ],
)
def test_malformed_evidence_is_refused(text: str, message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=message):
        read_uai(saved(tmp_path, EXAMPLE), saved(tmp_path, text, "bad.evid"))


@pytest.mark.parametrize(
    ("evidence", "message"),
    [
        ({3: 0}, "evidence has variable 3, but variables are 0 to 2"),
        ({-1: 0}, "evidence has variable -1"),
        ({True: 0}, "evidence has variable True"),
        ({2: 3}, "evidence sets variable 2 to state 3; its states are 0 to 2"),
        ({2: 1.0}, "state 1.0"),
    ],
)
def test_a_malformed_dictionary_is_refused(evidence: dict[int, int], message: str, tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=re.escape(message)):
        read_uai(saved(tmp_path, EXAMPLE), evidence)


def test_evidence_makes_no_table_out_of_a_mere_declaration(tmp_path: Path) -> None:
    path = saved(tmp_path, "MARKOV 1 2147483647 0")
    assert read_uai(path).cardinalities.tolist() == [2147483647]
    with pytest.raises(ModelError, match=r"have 2147483647 states, far more than .* has entries"):
        read_uai(path, {0: 5})


def test_numpy_integers_are_evidence(tmp_path: Path) -> None:
    path = saved(tmp_path, EXAMPLE)
    assert scores(read_uai(path, {np.int64(0): np.int8(1)})) == scores(read_uai(path, {0: 1}))  # type: ignore[dict-item]


# Writing


@in_a_folder
@given(model=models())
def test_a_written_model_reads_back(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    write_uai(model, path)
    back = read_uai(path)
    assert back.cardinalities.tolist() == model.cardinalities.tolist()
    assert [b.scopes.tolist() for b in back.blocks] == [b.scopes.tolist() for b in model.blocks]
    for ours, theirs in zip(model.blocks, back.blocks, strict=True):
        np.testing.assert_allclose(
            np.broadcast_to(ours.tables, theirs.tables.shape), theirs.tables, 1e-15, 1e-15
        )


@in_a_folder
@given(model=models(largest=20_000.0))
def test_scores_whose_weights_are_no_doubles_survive(model: Model, tmp_path: Path) -> None:
    path = tmp_path / "model.uai"
    write_uai(model, path)
    np.testing.assert_allclose(scores(read_uai(path)), scores(model), rtol=1e-12, atol=1e-9)


def test_powers_of_two_read_back_exactly(tmp_path: Path) -> None:
    model = Model(
        [3], factors=[((0,), np.log([0.25, 1.0, 0.0], where=[True, True, False], out=np.full(3, -np.inf)))]
    )
    write_uai(model, tmp_path / "m.uai")
    assert scores(read_uai(tmp_path / "m.uai")) == scores(model)


def test_scores_out_of_all_proportion_are_refused(tmp_path: Path) -> None:
    model = Model([2], factors=[((0,), np.array([0.0, 1e9]))])
    with pytest.raises(
        ModelError, match=r"factor over \(0,\) has a score of magnitude 1e\+09.*divide all scores"
    ):
        write_uai(model, tmp_path / "m.uai")
    assert list(tmp_path.iterdir()) == []


def test_a_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = saved(tmp_path, EXAMPLE)

    def fail(self: Path, target: Path) -> None:
        raise OSError("no")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="no"):
        write_uai(Model([2], factors=[]), path)
    assert path.read_text() == EXAMPLE
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_pipes_and_devices_are_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_uai(Model([2], factors=[]), pipe)
        assert os.read(end, 100).startswith(b"MARKOV")
    finally:
        os.close(end)
    assert pipe.is_fifo() and list(tmp_path.iterdir()) == [pipe]


def test_a_file_that_cannot_be_written_is_named_as_it_was_given(tmp_path: Path) -> None:
    for path in (tmp_path / "no" / "x.uai", tmp_path):
        with pytest.raises(OSError) as caught:
            write_uai(Model([2], factors=[]), path)
        assert caught.value.filename == str(path)


def test_writing_through_a_link_keeps_the_link(tmp_path: Path) -> None:
    path, link = saved(tmp_path, ""), tmp_path / "link.uai"
    link.symlink_to(path)
    write_uai(Model([2], factors=[]), link)
    assert link.is_symlink()
    assert path.read_text().startswith("MARKOV")


# Files of the competition


@pytest.mark.parametrize(
    ("name", "variables", "factors", "observed"),
    [
        ("Alchemy_11", 440, 860, 0),
        ("CSP_12", 67, 271, 0),
        ("Pedigree_11", 385, 385, 37),
        ("Promedus_27", 410, 410, 5),
        ("Segmentation_11", 228, 845, 0),
        ("Segmentation_12", 229, 851, 0),
    ],
)
def test_real_files(name: str, variables: int, factors: int, observed: int, tmp_path: Path) -> None:
    if not SHARED.is_dir():
        pytest.skip(f"the competition's files are not there: {SHARED}")
    model = read_uai(SHARED / f"{name}.uai")
    assert len(model.cardinalities) == variables
    assert sum(len(block.scopes) for block in model.blocks) == factors
    bound = read_uai(SHARED / f"{name}.uai", SHARED / f"{name}.uai.evid")
    assert sum(len(block.scopes) for block in bound.blocks) == factors + observed
    write_uai(bound, tmp_path / "again.uai")
    again = read_uai(tmp_path / "again.uai")
    y = np.zeros(variables, dtype=int)
    assert again.score(y) == pytest.approx(bound.score(y))
