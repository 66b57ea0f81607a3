"""Damaged or unusual sentences, trees and grammars give the right answer or one of our errors."""

import io
import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.io import Source, read_conll, read_conllu
from tallytree.parsing import (
    CountedWords,
    Forest,
    Grammar,
    TaggedWords,
    parse_tree,
    read_grammar,
    read_treebank,
    write_grammar,
)

# --- columns ------------------------------------------------------------------------------------------------

tokens = st.text(
    st.characters(exclude_characters=" \t\r\n\f\v", exclude_categories=["Cs"]), min_size=1, max_size=4
).filter(lambda text: text != "-DOCSTART-")
sentences = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.lists(st.tuples(*[tokens] * width), min_size=1, max_size=3), max_size=3)
)


@given(sentences)
@settings(max_examples=50)
def test_columns_come_back(corpus):
    text = "\n".join("".join("\t".join(row) + "\n" for row in sentence) for sentence in corpus)
    assert read_conll(io.StringIO("\n" + text, newline="\n")) == corpus


@given(st.binary(max_size=60) | st.text(max_size=40).map(str.encode))
@settings(max_examples=40)
def test_any_bytes_are_sentences_or_refused(data):
    for read in (read_conll, read_conllu):
        try:
            found = read(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))
        except tt.ModelError:
            continue
        assert all(sentence and len({len(row) for row in sentence}) == 1 for sentence in found)


TEXTS = {
    "no text": (read_conll, b"a b\n\xff\n", "is not UTF-8 text: line 2 has the byte 0xff"),
    "no CoNLL-U": (read_conllu, b"\xff\n", "is not UTF-8 text: line 1 has the byte 0xff"),
    "no text, much later": (
        read_conll,
        b"word tag\r\n" * 20_000 + "ä".encode() * 5000 + b"\xe4 tag\r\n",
        "line 20001 has the byte 0xe4",
    ),
    "a line without an end": (read_conll, b"a" * (1 << 20) + b"a", "line 1 of .* has more than 1048576"),
    "a word without a number": (
        read_conllu,
        b"x\t" * 9 + b"_\n",
        "line 1 of .* begins with 'x', which is no",
    ),
    "a number of another script": (read_conllu, "١\t".encode() + b"_\t" * 8 + b"_\n", "is not the number"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_texts_are_refused(name, tmp_path):
    read, data, message = TEXTS[name]
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(tt.ModelError, match=message):
        read(tmp_path / "file")


def test_a_space_that_does_not_break_is_part_of_a_token():
    assert read_conll(io.StringIO("10\xa0000 CD\n\x85 X\n")) == [[("10\xa0000", "CD"), ("\x85", "X")]]


def test_a_mark_of_the_byte_order_is_no_token(tmp_path):
    (tmp_path / "file").write_bytes(b"\xef\xbb\xbfa b\n")
    assert read_conll(tmp_path / "file") == [[("a", "b")]]


def test_sentences_that_do_not_fit_are_refused(monkeypatch):
    monkeypatch.setattr("tallytree.io.conll.default_memory_limit", lambda: 6400.0)
    with pytest.raises(tt.BudgetError, match="the sentences of the file up to line 51 could take 64 times"):
        read_conll(io.StringIO("a\n" * 60))
    assert len(list(tt.io.iter_conll(io.StringIO("a\n\n" * 60)))) == 60
    with pytest.raises(tt.BudgetError, match="a sentence of the file up to line 51"):
        list(tt.io.iter_conll(io.StringIO("a\n" * 60)))


def peak_of(work) -> int:
    tracemalloc.start()
    try:
        kept = work()
        return tracemalloc.get_traced_memory()[1] if kept is not None else 0
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("data", [b"a\n" * 8_000, b"a\n\n" * 8_000, "é à\n".encode() * 4_000])
def test_columns_take_no_more_memory_than_supposed(data, tmp_path):
    (tmp_path / "file").write_bytes(data)
    assert peak_of(lambda: read_conll(tmp_path / "file")) < 64 * len(data)


# --- trees --------------------------------------------------------------------------------------------------


@given(st.text(st.sampled_from("() \nab-=\x00*"), max_size=30).map(str.encode) | st.binary(max_size=20))
@settings(max_examples=60)
def test_any_bytes_are_trees_or_refused(data):
    try:
        trees = read_treebank(Source("file", data), traces=True, functions=True)
    except tt.ModelError:
        return
    assert [parse_tree(str(tree), traces=True, functions=True) for tree in trees] == trees


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"(S (NN \xff))", "file is not UTF-8 text"),
        (b"(A " * 5000 + b"(B c)" + b")" * 5000, "column 601: brackets are nested more than 200 levels deep"),
    ],
)
def test_trees_are_refused(data, message):
    with pytest.raises(tt.ModelError, match=message):
        read_treebank(Source("file", data))


def test_the_deepest_tree_can_be_used():
    tree = parse_tree("(A " * 199 + "(B c)" + ")" * 199)
    assert Forest(Grammar.from_treebank([tree]), "c").best().tree == tree
    assert parse_tree(tree.pretty()) == tree


@pytest.mark.parametrize("data", [b"(a b)" * 4_000, b"(a(b c))" * 2_000, b"()" * 3])
def test_trees_take_no_more_memory_than_supposed(data):
    def work():
        try:
            return read_treebank(Source("file", data))
        except tt.ModelError:
            return None

    assert peak_of(work) < 128 * len(data)


# --- grammars -----------------------------------------------------------------------------------------------

FISH = [parse_tree("(S (NP (DT the) (NN fish)) (VP (VB swim)))"), parse_tree("(NP (NN eels) (, ,) (NN cod))")]
GRAMMARS = {
    "counted": Grammar.from_treebank(FISH, smoothing=0.5, rare=3),
    "kept": Grammar.from_treebank(FISH, unaries="keep", max_chain=1, horizontal=None, vertical=1),
    "own": Grammar(
        {("S", "NN", "VB"): -0.1, ("S", "VB", "NN"): -np.inf},
        {("T", "S"): 0.25},
        {"NN": {"fish": -1.0, "the": 0.1}, "VB": {"swim": -np.inf, "the": 2.0}},
        root="T",
        unknown={"NN": -3.0},
    ),
}


@pytest.mark.parametrize("name", GRAMMARS)
def test_grammars_come_back_bit_for_bit(name, tmp_path):
    grammar = GRAMMARS[name]
    write_grammar(tmp_path / "g.json", grammar)
    again = read_grammar(tmp_path / "g.json")
    assert again.symbols == grammar.symbols
    assert (again.root, again.max_chain, again.labels) == (grammar.root, grammar.max_chain, grammar.labels)
    for one in ("binary", "binary_scores", "unary", "unary_scores"):
        assert np.array_equal(getattr(again, one), getattr(grammar, one))
    words = ["The", "fish", "swim", "unheard-of"]
    assert np.array_equal(again.word_scores(words), grammar.word_scores(words))


def test_a_lexicon_of_your_own_is_not_written(tmp_path):
    class Mine:
        tags = frozenset({"NN"})

        def scores(self, word, first):
            return {"NN": 0.0}

    with pytest.raises(
        tt.ModelError, match="a lexicon of type Mine cannot be written; use CountedWords or TaggedWords"
    ):
        write_grammar(tmp_path / "g.json", Grammar({("S", "NN", "NN"): 0.0}, {}, Mine(), root="S"))
    assert not list(tmp_path.iterdir())


def grammar_file(**changes: object) -> Source:
    document = {
        "tallytree_grammar": 1,
        "root": "S",
        "max_chain": 2,
        "binary": [["S", "N", "N", -1.0]],
        "unary": [],
        "words": {"counts": {"a": {"N": 2}}, "smoothing": 1.0, "rare": 5},
    }
    return Source("file", json.dumps({**document, **changes}).encode())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tallytree_grammar": 2}, "expected the version of the format, 1, got 2"),
        ({"binary": [["S", "N", -1.0]]}, r"binary\[0\]: expected a list of 4, got a list of 3"),
        ({"binary": [["S", "N", 7, -1.0]]}, r"binary\[0\]\[2\]: expected a symbol, got 7"),
        ({"binary": [["S", "N", "N", "inf"]]}, r"binary\[0\]\[3\]: expected a finite number, got 'inf'"),
        ({"unary": [["S", "@S", 0.0]]}, "the rule 'S' → '@S' has an unlabelled symbol as its only child"),
        ({"max_chain": 10**9}, "expected how many unary rules"),
        ({"words": {}}, "expected one of the keys counts, scores, got none"),
        ({"words": {"counts": {}, "smoothing": 1.0, "rare": 5}}, "there are no words"),
        (
            {"words": {"counts": {"a": {"N": 0}}, "smoothing": 1.0, "rare": 5}},
            "expected how often a word has",
        ),
        ({"words": {"counts": {"a": {"N": 1}}, "smoothing": 0, "rare": 5}}, "smoothing must be positive"),
        ({"words": {"scores": {"a": {"N": "x"}}, "unknown": {}}}, "expected a finite number, got 'x'"),
        ({"other": 1}, "unknown key 'other'"),
    ],
)
def test_grammars_are_refused(changes, message):
    with pytest.raises(tt.ModelError, match=message):
        read_grammar(grammar_file(**changes))


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 3)
    | st.floats()
    | st.sampled_from(["", "S", "N", "@S", "-inf"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "N", "counts"]), inner),
    max_leaves=6,
)


@given(st.sampled_from(["root", "max_chain", "binary", "unary", "words"]), plain)
@settings(max_examples=40)
def test_any_document_is_a_grammar_or_refused(key, value):
    try:
        grammar = read_grammar(grammar_file(**{key: value}))
        Forest(grammar, "a a").best()
    except tt.TallytreeError:
        return


def test_lexicons_tell_what_they_know():
    assert CountedWords([("a", "N"), ("a", "N"), ("b", "V")]).counts() == {"a": {"N": 2}, "b": {"V": 1}}
    assert TaggedWords({"N": {"a": 1.0}}, {"V": 2.0}).tables() == ({"a": {"N": 1.0}}, {"V": 2.0})
