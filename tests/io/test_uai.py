"""Reading and writing UAI files."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tallytree.errors import ModelError
from tallytree.io import read_uai, write_uai
from tallytree.model.model import Model

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "uai"

EXAMPLE = """MARKOV
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""

in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def saved(folder: Path, text: str | bytes, name: str = "model.uai") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def labellings(model: Model) -> list[tuple[int, ...]]:
    return list(product(*(range(n) for n in model.cardinalities.tolist())))


def scores(model: Model) -> list[float]:
    return [float(model.score(np.array(y, dtype=int))) for y in labellings(model)]


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


# Reading


def test_the_example_of_the_format(tmp_path: Path) -> None:
    model = read_uai(saved(tmp_path, EXAMPLE))
    assert model.cardinalities.tolist() == [2, 2, 3]
    assert sum(len(block.scopes) for block in model.blocks) == 3
    assert model.score([0, 1, 2]) == pytest.approx(np.log(0.436) + np.log(0.872) + np.log(0.189))
    assert model.score([0, 1, 1]) == -np.inf


def test_bayes_tables_are_read_in_the_same_order(tmp_path: Path) -> None:
    model = read_uai(saved(tmp_path, "BAYES 2  2 3  2  1 0  2 0 1  2 .25 .75  6 .5 .25 .25 .125 .125 .75"))
    assert model.score([1, 2]) == pytest.approx(np.log(0.75 * 0.75))


def test_a_factor_over_nothing_is_a_constant(tmp_path: Path) -> None:
    assert read_uai(saved(tmp_path, "MARKOV 1 2 1 0 1 0.5")).score([1]) == pytest.approx(np.log(0.5))


def test_a_model_without_variables(tmp_path: Path) -> None:
    model = read_uai(saved(tmp_path, "MARKOV 0 0"))
    assert len(model.cardinalities) == 0
    assert model.score([]) == 0.0


@in_a_folder
@given(data=st.data())
def test_words_may_be_split_anywhere_over_lines(data: st.DataObject, tmp_path: Path) -> None:
    words = EXAMPLE.split()
    gaps = data.draw(
        st.lists(
            st.sampled_from([" ", "\n", "\t", "\r\n", "\n \n"]), min_size=len(words), max_size=len(words)
        )
    )
    text = "".join(word + gap for word, gap in zip(words, gaps, strict=True))
    assert scores(read_uai(saved(tmp_path, text))) == scores(read_uai(saved(tmp_path, EXAMPLE)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: expected MARKOV or BAYES, got the end of the file"),
        ("Markov 1", "line 1, column 1: expected MARKOV or BAYES, got 'Markov'"),
        ("MARKOV\n -1", "line 2, column 2: expected the number of variables.*got '-1'"),
        ("MARKOV 1000000000000 2", "expected the number of variables, at most 1 .*got '1000000000000'"),
        ("MARKOV " + "9" * 5000 + " 2", "expected the number of variables, at most 1 .*got '9{40}…'"),
        ("MARKOV 2 2 0 1", "expected a number of states from 1 to .* for variable 1, got '0'"),
        ("MARKOV 1 2147483648 0", "expected a number of states.* for variable 0, got '2147483648'"),
        ("MARKOV 1 2 9 1 0 2 1 1", "expected the number of factors, at most .*got '9'"),
        (
            "MARKOV 2 2 2 1\n9 0 1\n1 1",
            "line 2, column 1: expected the number of variables of factor 0.*got '9'",
        ),
        (
            "MARKOV 2 2 2 1\n2 0 2\n4 1 1 1 1",
            "line 2, column 5: expected a variable of factor 0, 0 to 1, got '2'",
        ),
        ("MARKOV 2 2 2 1 2 1 1 4 1 1 1 1", "expected a variable that factor 0 does not have yet, got '1'"),
        ("MARKOV 1 2 1 1 0\n\n3 1 1 1", "line 3, column 1: expected the length of table 0, 2, got '3'"),
        (
            "MARKOV 1 2 1 1 0 2 1",
            "expected all 2 entries of table 0 .1 are present., got the end of the file",
        ),
        ("MARKOV 1 2 1 1 0 2 1\n", "line 2, column 1: expected all 2 entries"),
        ("MARKOV 1 2 1 1 0 2 1 x", "column 22: expected a number, got 'x'"),
        ("MARKOV 1 2 1 1 0 2 1 1_0", "expected a number, got '1_0'"),
        ("MARKOV 1 2 1 1 0 2 1 -0.5", "expected a finite, non-negative weight, got '-0.5'"),
        ("MARKOV 1 2 1 1 0 2 1 nan", "expected a finite, non-negative weight.*got 'nan'"),
        ("MARKOV 1 2 1 1 0 2 inf 1", "expected a finite, non-negative weight.*got 'inf'"),
        ("MARKOV 1 2 1 1 0 2 1 1e999", "expected a finite, non-negative weight.*got '1e999'"),
        ("MARKOV 1 2 1 1 0 2 1 1e-999", "expected a weight that fits in a double.*got '1e-999'"),
        ("MARKOV 1 2 1 1 0 2 1 1 1", "column 24: expected the end of the file, got '1'"),
        (
            "MARKOV 40 " + "2 " * 40 + "1 40 " + " ".join(map(str, range(40))),
            "at most 31 variables in factor 0",
        ),
        (
            "MARKOV 30 " + "1999 " * 30 + "1 30 " + " ".join(map(str, range(30))) + f" {1999**30}",
            "the length of table 0",
        ),
        (
            "MARKOV 4 " + "1000 " * 4 + f"1 4 0 1 2 3 {10**12} 1 1",
            "expected all 1000000000000 entries .*2 are present",
        ),
    ],
)
def test_malformed_text_is_refused_where_it_is_wrong(text: str, message: str, tmp_path: Path) -> None:
    path = saved(tmp_path, text)
    with pytest.raises(ModelError, match=message) as error:
        read_uai(path)
    assert str(path) in str(error.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match=r"got '\\xff\\xfe'"):
        read_uai(saved(tmp_path, b"\xff\xfe MARKOV"))


def test_zero_forbids_however_it_is_written(tmp_path: Path) -> None:
    model = read_uai(saved(tmp_path, "MARKOV 1 6 1 1 0 6  0 0.0 .0e5 -0 +0E-999 1"))
    assert scores(model) == [-np.inf] * 5 + [0.0]


@in_a_folder
@given(cut=st.integers(0, len(EXAMPLE.rstrip()) - 6))
def test_a_truncated_file_is_refused(cut: int, tmp_path: Path) -> None:
    with pytest.raises(ModelError):
        read_uai(saved(tmp_path, EXAMPLE[:cut]))


@in_a_folder
@given(data=st.data())
def test_mutated_text_raises_nothing_but_model_error(data: st.DataObject, tmp_path: Path) -> None:
    words: list[bytes] = EXAMPLE.encode().split()
    odd = [
        b"0",
        b"-1",
        b"1",
        b"7",
        b"2.5",
        b"1e400",
        b"nan",
        b"-inf",
        b"1000000000000",
        b"0x1p3",
        b"1_0",
        b"\xff",
        b"",
    ]
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(words) - 1))
        words[at] = data.draw(st.one_of(st.sampled_from(odd), st.binary(max_size=6)))
    try:
        model = read_uai(saved(tmp_path, b"\n".join(words)))
    except ModelError:
        return
    assert all(block.tables.size < 1000 for block in model.blocks)


@in_a_folder
@given(noise=st.binary(max_size=200), preamble=st.sampled_from([b"", b"MARKOV ", b"BAYES 2 2 2 "]))
def test_noise_raises_nothing_but_model_error(noise: bytes, preamble: bytes, tmp_path: Path) -> None:
    path = saved(tmp_path, preamble + noise)
    for evidence in (None, path):
        with suppress(ModelError):
            read_uai(path, evidence)


def test_a_million_words_in_many_tables(tmp_path: Path) -> None:
    factors = 100_000
    text = f"MARKOV 2 2 3 {factors}\n" + "2 0 1\n" * factors + "6 1 2 3 4 5 6.25\n" * factors
    model = read_uai(saved(tmp_path, text))
    assert model.score([1, 2]) == pytest.approx(factors * np.log(6.25))


def test_a_missing_file_says_so(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_uai(tmp_path / "nowhere.uai")


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
        ({3: 0}, "evidence has variable 3; they are 0 to 2"),
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
