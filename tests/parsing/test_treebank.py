"""Trees, treebank files, binarised trees, lexicons and grammars."""

import pickle
from collections import Counter
from math import exp, log
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.parsing import (
    CountedWords,
    Forest,
    Grammar,
    Tree,
    binarise,
    labels_of,
    parse_tree,
    read_treebank,
    unbinarise,
    without_functions,
    without_traces,
    write_treebank,
)
from tallytree.parsing import compiled as compiled_grammars

labels = st.sampled_from(["S", "NP", "VP", "PRT|ADVP", "-LRB-", "WHNP-1"])
words = st.sampled_from(["fish", "1.5", "-LRB-", "*", "naïve", "'s"])
tags = st.builds(Tree, st.sampled_from(["NN", "''", "-NONE-", "."]), words)
trees = st.recursive(tags, lambda below: st.builds(Tree, labels, st.lists(below, min_size=1, max_size=4)))
phrases = st.builds(Tree, labels, st.lists(trees, min_size=1, max_size=4))


# --- trees --------------------------------------------------------------------------------------------------


@given(phrases)
def test_tree_speaks_of_itself(tree: Tree) -> None:
    spans: Counter[tuple[str, int, int]] = Counter()

    def walk(node: Tree, start: int) -> int:
        if node.word is not None:
            return start + 1
        end = start
        for child in node.children:
            end = walk(child, end)
        spans[node.label, start, end] += 1
        return end

    assert walk(tree, 0) == len(tree) == len(tree.words) == len(tree.tags)
    assert tree.constituents() == spans
    assert pickle.loads(pickle.dumps(tree)) == tree
    assert hash(Tree(tree.label, tree.children)) == hash(tree)
    assert parse_tree(tree.pretty(), traces=True, functions=True) == tree


def test_depth_counts_constituents_above() -> None:
    tree = parse_tree("(S (NP (NN a)) (VP (VB b) (NP (NN c))))")
    found = [(node.tree.label, node.depth) for node in Tree("", [tree]).nodes() if not node.tree.is_tag]
    assert found == [("", 0), ("S", 0), ("NP", 1), ("VP", 1), ("NP", 2)]


def test_trees_are_checked_and_immutable() -> None:
    tree = Tree("NP", [Tree("NN", "fish")])
    with pytest.raises(AttributeError, match="immutable"):
        tree.label = "VP"  # type: ignore[misc]
    with pytest.raises(tt.ModelError, match="neither children nor a word"):
        Tree("NP", [])
    with pytest.raises(tt.ModelError, match="the children of 'NP' must be trees, got 'fish'"):
        Tree("NP", ["fish"])  # type: ignore[list-item]
    with pytest.raises(tt.ModelError, match="label of a tree must be a string"):
        Tree(1, "fish")  # type: ignore[arg-type]
    assert tree != "(NP (NN fish))"


# --- files --------------------------------------------------------------------------------------------------


@given(st.lists(phrases, max_size=4))
def test_files_come_back(tmp_path_factory: pytest.TempPathFactory, corpus: list[Tree]) -> None:
    path = tmp_path_factory.mktemp("treebank") / "trees.mrg"
    write_treebank(path, corpus)
    assert read_treebank(path, traces=True, functions=True) == corpus
    assert list(path.parent.iterdir()) == [path]


def test_outer_brackets_traces_and_functions(tmp_path: Path) -> None:
    path = tmp_path / "trees.mrg"
    path.write_text(
        "( (S (NP-SBJ-1 (NN fish)) (VP (VBZ seems) (S (NP (-NONE- *-1)) (VP (TO to) (VP (VB swim)))))) )\n"
        "((X (-NONE- *)))\n( (NP=2 (-LRB- -LRB-)) (PRT|ADVP (RP up)) )\n"
    )
    first, second = read_treebank(path)
    assert str(first) == "(S (NP (NN fish)) (VP (VBZ seems) (S (VP (TO to) (VP (VB swim))))))"
    assert str(second) == "( (NP (-LRB- -LRB-)) (PRT|ADVP (RP up)))"
    assert Counter(label for label, *_ in second.constituents()) == {"NP": 1, "PRT|ADVP": 1}
    kept = read_treebank(path, traces=True, functions=True)
    assert [tree.label for tree in kept] == ["S", "X", ""]
    assert kept[0].children[0].label == "NP-SBJ-1"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(S (NN fish)\n  (VP (VB swim)", r"text, line 2, column 3: the bracket '\(VP' is never closed"),
        ("(S (NN fish)))", "text, line 1, column 14: a closing bracket is outside"),
        ("(S (NN fish))\n\n fish", "text, line 3, column 2: 'fish' is outside"),
        ("(S\n (NP))", r"text, line 2, column 2: the bracket '\(NP' is empty"),
        ("(S (NN old fish))", "column 4: the tag '\\(NN' has more than one word: old fish"),
        ("(S fish (NN fish))", r"column 1: the bracket '\(S' contains words \('fish'\) and brackets"),
    ],
)
def test_broken_brackets_are_located(text: str, message: str) -> None:
    with pytest.raises(tt.ModelError, match=message):
        parse_tree(text)


def test_one_tree_is_expected() -> None:
    with pytest.raises(tt.ModelError, match="one tree, got 2"):
        parse_tree("(A (a b)) (A (a b))")
    with pytest.raises(tt.ModelError, match="the tree has only traces"):
        parse_tree("(A (-NONE- *))")


def test_files_that_are_no_treebanks(tmp_path: Path) -> None:
    path = tmp_path / "trees.mrg"
    path.write_bytes(b"(S (NN \xff))")
    with pytest.raises(tt.ModelError, match=r"trees\.mrg is not UTF-8 text"):
        read_treebank(path)
    path.write_text("\ufeff(S (NN fish))", encoding="utf-8")  # with a mark of the order of bytes
    assert read_treebank(path) == [parse_tree("(S (NN fish))")]
    with pytest.raises(
        tt.ModelError, match="line 1, column 601: brackets are nested more than 200 levels deep"
    ):
        parse_tree("(S " * 5000)
    deep = parse_tree("(S " * 198 + "(NN fish)" + ")" * 198)
    assert unbinarise(binarise(deep)) == deep and len(deep) == 1


def test_what_brackets_cannot_hold(tmp_path: Path) -> None:
    path = tmp_path / "trees.mrg"
    write_treebank(path, [Tree("X", [Tree("-LRB-", "("), Tree("NN", "a)b")])])
    assert path.read_text() == "(X (-LRB- -LRB-) (NN a-RRB-b))\n"
    for tree in (Tree("X", [Tree("NN", "a b")]), Tree("X(", [Tree("NN", "a")]), Tree("X", [Tree("NN", "")])):
        with pytest.raises(tt.ModelError, match="no spaces, and labels no brackets"):
            write_treebank(path, [tree])


def test_cleaning() -> None:
    tree = Tree("S-1", [Tree("-NONE-", "*")])
    assert without_traces(tree) is None
    assert str(without_functions(tree)) == "(S (-NONE- *))"


# --- binarised trees ----------------------------------------------------------------------------------------


@given(
    phrases,
    st.sampled_from([None, 0, 1, 2, 3]),
    st.integers(1, 3),
    st.sampled_from(["collapse", "keep"]),
    st.sampled_from(["pair", "single"]),
)
def test_binarised_trees_come_back(tree, horizontal, vertical, unaries, tail) -> None:
    options = {"horizontal": horizontal, "vertical": vertical, "unaries": unaries, "tail": tail}
    for whole in (tree, Tree("", [tree])):
        binary = binarise(whole, **options)
        assert unbinarise(binary) == whole
        assert binary.tagged == whole.tagged
        for node in binary.nodes():
            assert len(node.tree.children) <= 2
            single = len(node.tree.children) == 1 and not node.tree.children[0].is_tag
            if unaries == "collapse" and tail == "pair" and node.tree.label:
                assert not single
            if node.tree.label.startswith("@"):
                remembered = node.tree.label.split("/")[1:]
                assert horizontal is None or len(remembered) <= horizontal


def test_vertical_annotation() -> None:
    tree = parse_tree("(S (VP (VB eat) (NP (NN fish) (NN soup))))")
    assert str(binarise(tree, vertical=3, unaries="keep")) == (
        "(S (VP^S (VB eat) (NP^VP^S (NN fish) (NN soup))))"
    )
    assert str(binarise(tree, vertical=2)) == "(S+VP (VB eat) (NP^VP (NN fish) (NN soup)))"
    assert labels_of("S+VP^X^Y") == ("S", "VP")


def test_marks_in_labels_are_refused() -> None:
    for label in ("@NP", "NP^S", "S+VP"):
        with pytest.raises(tt.ModelError, match="marker of binarised trees"):
            binarise(Tree(label, [Tree("NN", "fish")]))
        with pytest.raises(tt.ModelError, match="marker of binarised trees"):
            binarise(Tree("NP", [Tree(label, "fish")]))
    for option in ("unaries", "tail"):
        with pytest.raises(tt.ModelError, match=f"{option} must be one of '.*', got 'kept'"):
            binarise(Tree("NP", [Tree("NN", "fish")]), **{option: "kept"})
    with pytest.raises(tt.ModelError, match="vertical must be at least 1"):
        binarise(Tree("NP", [Tree("NN", "fish")]), vertical=0)


# --- grammars -----------------------------------------------------------------------------------------------

CORPUS = [
    parse_tree("(S (NP (DT the) (NN cat)) (VP (VBD saw) (NP (DT the) (JJ old) (NN dog))))"),
    parse_tree("(S (NP (NN rain)) (VP (VBD fell)))"),
    parse_tree("(FRAG (NP (NP (DT the) (NN dog)) (PP (IN of) (NP (NN rain)))))"),
]


@pytest.mark.parametrize("unaries", ["collapse", "keep"])
@pytest.mark.parametrize("tail", ["pair", "single"])
@pytest.mark.parametrize(("horizontal", "vertical"), [(0, 1), (1, 2), (None, 3)])
def test_counted_grammar(unaries, tail, horizontal, vertical) -> None:
    grammar = Grammar.from_treebank(
        CORPUS, horizontal=horizontal, vertical=vertical, unaries=unaries, tail=tail, max_chain=3
    )
    total = dict.fromkeys(range(len(grammar.symbols)), 0.0)
    for rules, scores in ((grammar.binary, grammar.binary_scores), (grammar.unary, grammar.unary_scores)):
        for parent, score in zip(rules[:, 0].tolist(), scores.tolist(), strict=True):
            total[parent] += exp(score)
    parents = {*grammar.binary[:, 0].tolist(), *grammar.unary[:, 0].tolist()}
    np.testing.assert_allclose([total[p] for p in parents], 1.0)
    for tree in CORPUS:  # the trees it was counted on are trees of the grammar, with their own score
        binary = binarise(
            Tree("", [tree]), horizontal=horizontal, vertical=vertical, unaries=unaries, tail=tail
        )
        rules = Counter(
            (node.tree.label, *(child.label for child in node.tree.children))
            for node in binary.nodes()
            if node.tree.children
        )
        names = grammar.symbols
        known = {
            tuple(names[s] for s in r): v for r, v in zip(grammar.binary, grammar.binary_scores, strict=True)
        }
        known |= {
            tuple(names[s] for s in r): v for r, v in zip(grammar.unary, grammar.unary_scores, strict=True)
        }
        lexical = sum(grammar.lexicon.scores(word, i == 0)[tag] for i, (word, tag) in enumerate(tree.tagged))
        expected = lexical + sum(known[rule] * count for rule, count in rules.items())
        np.testing.assert_allclose(Forest(grammar, tree.words).score(tree), expected)


def test_smoothed_words() -> None:
    tagged = [("the", "DT")] * 8 + [("walks", "NNS"), ("barked", "VBD"), ("Smith", "NNP")]
    lexicon = CountedWords(tagged)
    assert set(lexicon.scores("the")) == {"DT"}  # seen often: only as it was seen
    assert set(lexicon.scores("The", True)) == {"DT"}  # the first word without its capital
    assert set(lexicon.scores("jumped")) == {"VBD"}  # looks like barked
    assert set(lexicon.scores("Miller")) == {"NNS", "VBD", "NNP"}  # no rare word looks like it
    assert set(lexicon.scores("Brown")) == {"NNP"}
    assert set(lexicon.scores("9")) == {"NNS", "VBD", "NNP"}  # like nothing: like any rare word
    share = (1 + 1.0) / (1 + 1.0)
    np.testing.assert_allclose(lexicon.scores("walks")["NNS"], log(share) + log(1 / 11) - log(1 / 11))
    with pytest.raises(tt.ModelError, match="smoothing must be positive"):
        CountedWords(tagged, smoothing=0)


def test_bad_grammars_are_refused() -> None:
    words = {"n": {"fish": 0.0}}
    with pytest.raises(tt.ModelError, match="tuple of 3 symbols"):
        Grammar({("S", "n"): 0.0}, {}, words, root="S")  # type: ignore[dict-item]
    with pytest.raises(tt.ModelError, match="tuple of 2 symbols"):
        Grammar({}, {("S", 1): 0.0}, words, root="S")  # type: ignore[dict-item]
    for score in (np.nan, np.inf, "x", None):
        with pytest.raises(
            tt.ModelError, match=r"score of rule .* is (nan|inf|'x'|None); scores must be at most 1e.290"
        ):
            Grammar({("S", "n", "n"): score}, {}, words, root="S")  # type: ignore[dict-item]
        with pytest.raises(tt.ModelError, match="score of 'fish' below 'n' is"):
            Grammar({}, {}, {"n": {"fish": score}}, root="n")  # type: ignore[dict-item]
        with pytest.raises(tt.ModelError, match="score of unknown words below 'n' is"):
            Grammar({}, {}, words, root="n", unknown={"n": score})  # type: ignore[dict-item]
    with pytest.raises(tt.ModelError, match="mapping of word to score, got 'fish'"):
        Grammar({}, {}, {"n": "fish"}, root="n")  # type: ignore[dict-item]
    with pytest.raises(tt.ModelError, match="unlabelled symbol as its only child"):
        Grammar({("@X", "n", "n"): 0.0}, {("S", "@X"): 0.0}, words, root="S")
    with pytest.raises(tt.ModelError, match="max_chain"):
        Grammar({("S", "n", "n"): 0.0}, {}, words, root="S", max_chain=-1)
    with pytest.raises(tt.ModelError, match="at least one tree"):
        Grammar.from_treebank([])


def test_too_many_chains_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_grammars, "_MOST_CHAINS", 1000)
    names = [f"X{i}" for i in range(12)]
    unary = {(a, b): 0.0 for a in names for b in names}
    binary = {("X0", "X1", "X2"): 0.0}
    grammar = Grammar(binary, unary, {name: {"a": 0.0} for name in names}, root="X0", max_chain=9)
    with pytest.raises(tt.ModelError, match="lower max_chain"):
        Forest(grammar, "a")


# --- scoring ------------------------------------------------------------------------------------------------


def test_bracket_scores() -> None:
    gold = parse_tree("(S (NP (NN a) (, ,) (NN b)) (PRT (RP c)) (VP (VB d)) (. .))")
    same = parse_tree("(S (NP (NN a) (NN ,) (NN b)) (ADVP (RP c)) (VP (VB d) (. .)))")
    other = parse_tree("(S (NN a) (X (, ,)) (NP (NN b) (RP c)) (VP (VB d)) (. .))")
    perfect = tt.parsing.score_brackets([gold], [same])
    assert perfect == (1.0, 1.0, 1.0, 1.0, 1, 0)
    mixed = tt.parsing.score_brackets([gold, gold, gold], [same, other, None])
    # right: 4 + (S, VP) + 0; found: 4 + 3 + 0; wanted: 12
    np.testing.assert_allclose(mixed[:4], (6 / 7, 6 / 12, 12 / 19, 1 / 3))
    assert (mixed.sentences, mixed.failed) == (3, 1)
    strict = tt.parsing.score_brackets([gold], [same], ignored=(), alike={})
    assert strict.f1 == pytest.approx(2 * 2 / 8)  # VP ends elsewhere, PRT is called otherwise
    with pytest.raises(tt.ModelError, match="a parse has the words"):
        tt.parsing.score_brackets([gold], [parse_tree("(S (NN a))")])
    assert tt.parsing.score_brackets([], []).f1 == 1.0
