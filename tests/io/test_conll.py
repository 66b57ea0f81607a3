"""Sentences in columns, and features from them."""

import io

import pytest

import tallytree as tt
from tallytree.io import iter_conll, read_conll, read_conllu

COLUMNS = "the DT B-NP\ncat\tNN  I-NP\n\n\n-DOCSTART- -X- O\n\nyes UH O\n"


def test_columns_are_read_from_files_and_streams(tmp_path):
    wanted = [[("the", "DT", "B-NP"), ("cat", "NN", "I-NP")], [("yes", "UH", "O")]]
    (tmp_path / "a.txt").write_text(COLUMNS, encoding="utf-8")
    assert read_conll(tmp_path / "a.txt") == read_conll(str(tmp_path / "a.txt")) == wanted
    assert read_conll(io.StringIO(COLUMNS)) == wanted
    assert read_conll(io.StringIO("")) == []


def test_comments_are_left_out_where_asked():
    assert read_conll(io.StringIO("# a\nb c\n"), comments="#") == [[("b", "c")]]
    assert read_conll(io.StringIO("# a\nb c\n")) == [[("#", "a"), ("b", "c")]]


def test_sentences_come_one_by_one():
    lines = iter(["a b\n", "\n", "c d\n", "e\n"])
    sentences = iter_conll(lines)
    assert next(sentences) == [("a", "b")]
    with pytest.raises(tt.ModelError, match="line 4 of the file has 1 column, but earlier lines have 2: 'e'"):
        next(sentences)


def row(*first):
    return "\t".join([*first, *"_" * (10 - len(first))]) + "\n"


def test_conllu_is_read():
    text = (
        "# sent_id = 1\n"
        + row("1-2", "vámonos")
        + row("1", "vamos", "ir", "VERB")
        + row("2", "nos", "nosotros")
    )
    text += row("2.1", "empty") + "\n" + "# next\n" + row("1", "a b")
    first, second = read_conllu(io.StringIO(text))
    assert [token.form for token in first] == ["vamos", "nos"]
    assert first[0].upos == "VERB"
    assert second[0].form == "a b"
    assert len(read_conllu(io.StringIO(text), words_only=False)[0]) == 4


def test_conllu_with_other_columns_is_refused(tmp_path):
    (tmp_path / "b.conllu").write_text("1 cats cat\n", encoding="utf-8")
    with pytest.raises(
        tt.ModelError, match=r"line 1 of .*b.conllu has 1 column separated by tabs instead of 10"
    ):
        read_conllu(tmp_path / "b.conllu")


def test_bytes_that_are_here_already_are_read():
    text = "the DT B-NP\ncat NN I-NP\n\nyes UH O\n"
    there = tt.io.Source("there", b"\xef\xbb\xbf" + text.encode())
    assert tt.io.read_conll(there) == tt.io.read_conll(io.StringIO(text))
    with pytest.raises(tt.ModelError, match=r"line 2 of there has 1 column, "):
        tt.io.read_conll(tt.io.Source("there", b"a b\nc\n"))
    with pytest.raises(tt.ModelError, match=r"there is no UTF-8|there .*UTF-8|UTF-8"):
        tt.io.read_conll(tt.io.Source("there", b"\xff\xfe a\n"))
    with pytest.raises(tt.ModelError, match="returns bytes; open it as text"):
        tt.io.read_conll(io.BytesIO(text.encode()))


def test_text_in_place_of_a_path_is_an_error_of_one_line():
    for read in (read_conll, read_conllu):
        with pytest.raises(
            tt.ModelError, match=r"got text with several lines that begins with 'a DT B'; write"
        ):
            read("a DT B\n" * 1000)
