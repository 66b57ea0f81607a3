"""Reading and writing UAI files."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from uai_files import EXAMPLE, in_a_folder, saved, scores

from tallytree.errors import ModelError
from tallytree.io import read_uai

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
