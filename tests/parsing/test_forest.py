"""Plain parsing, compared with the enumeration of all trees."""

from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treebanks import Sentence, best_scores, sentences

import tallytree as tt
from tallytree.kernels import native
from tallytree.parsing import Forest, Grammar, Parse, Tree, parse_tree
from tallytree.running.charts import Scores

few = settings(max_examples=40)
close = {"rtol": 1e-9, "atol": 1e-9}


@given(sentences())
def test_best_tree(sentence: Sentence) -> None:
    best = best_scores(sentence)
    found = sentence.forest.best()
    np.testing.assert_allclose(found.score, max(best.values()), **close)
    np.testing.assert_allclose(best[found.tree], found.score, **close)
    assert found.tree.words == sentence.forest.words


@given(sentences())
def test_scores_of_given_trees(sentence: Sentence) -> None:
    for tree, score in list(best_scores(sentence).items())[-8:]:
        np.testing.assert_allclose(sentence.forest.score(tree), score, **close)


@given(sentences())
def test_inside_sum(sentence: Sentence) -> None:
    expected = np.logaddexp.reduce([score for _, score in sentence.trees])
    np.testing.assert_allclose(sentence.forest.log_partition(), expected, **close)


@given(sentences())
@few
def test_expected_constituents_and_tags(sentence: Sentence) -> None:
    forest, labels = sentence.forest, sentence.forest.grammar.labels
    weights = np.exp(
        [score for _, score in sentence.trees] - np.logaddexp.reduce([s for _, s in sentence.trees])
    )
    expected: dict[tuple[str, int, int], float] = defaultdict(float)
    tags: Counter[tuple[int, str]] = Counter()
    for (tree, _), weight in zip(sentence.trees, weights, strict=True):
        for constituent, count in tree.constituents().items():
            expected[constituent] += weight * count
        for i, tag in enumerate(tree.tags):
            tags[i, tag] += weight
    got = forest.expectations()
    for (start, end, label), value in np.ndenumerate(got.constituents):
        assert value == pytest.approx(expected.get((labels[label], start, end), 0.0), abs=1e-9)
    for (i, symbol), value in np.ndenumerate(got.tags):
        assert value == pytest.approx(tags[i, forest.grammar.symbols[symbol]], abs=1e-9)


@given(sentences())
@few
def test_expected_rules_are_slopes(sentence: Sentence) -> None:
    """The derivative of the inside score by a rule's score is how often the rule is expected."""
    forest, grammar = sentence.forest, sentence.forest.grammar
    n, step = len(forest.words), 1e-5
    got = forest.expectations()
    for name, counts in (("binary_scores", got.binary), ("unary_scores", got.unary)):
        for rule in range(len(counts)):
            sums = []
            for sign in (1, -1):
                scores = sentence.anchored.get(name, np.zeros((n + 1, n + 1, len(counts)))).copy()
                scores[:, :, rule] += sign * step
                moved = Forest(grammar, forest.words, **{**sentence.anchored, name: scores})
                sums.append(moved.log_partition())
            np.testing.assert_allclose(counts[rule], (sums[0] - sums[1]) / (2 * step), atol=1e-4)


@given(sentences(), st.sampled_from([20.0, 200.0, 2000.0]))
@few
def test_sums_of_scores_far_apart(sentence: Sentence, factor: float) -> None:
    """Products of probabilities would vanish, or be beyond all doubles."""
    s = sentence.forest.scores
    forest = sentence.forest.rescored(Scores(*(factor * scores for scores in (s.words, s.rules, s.chains))))
    scores = [factor * score for _, score in sentence.trees]
    total = np.logaddexp.reduce(scores)
    assert forest.log_partition() == pytest.approx(total, rel=1e-12)
    weights = np.exp(np.array(scores) - total)
    tagged = np.zeros((len(forest.words), len(forest.grammar.symbols)))
    for (tree, _), weight in zip(sentence.trees, weights, strict=True):
        for i, tag in enumerate(tree.tags):
            tagged[i, forest.grammar.symbols.index(tag)] += weight
    np.testing.assert_allclose(forest.expectations().tags, tagged, atol=1e-9)


@given(sentences(longest=5, trees=2), st.sampled_from([1.0, 50.0, 150.0, 600.0]), st.integers(0, 99))
@few
def test_sums_by_products_are_those_of_logarithms(sentence: Sentence, spread: float, seed: int) -> None:
    """Where each rule has a score for each span, every term is a logarithm of its own."""
    grammar, words = sentence.forest.grammar, sentence.forest.words
    moved = grammar.word_scores(words) + np.random.default_rng(seed).normal(
        scale=spread, size=(len(words), len(grammar.symbols))
    )
    n, anchored = len(words), {k: v for k, v in sentence.anchored.items() if k != "binary_scores"}
    zeros = np.zeros((n + 1, n + 1, len(grammar.binary)))
    one = Forest(grammar, words, word_scores=moved, **anchored)
    other = Forest(grammar, words, word_scores=moved, binary_scores=zeros, **anchored)
    assert one.log_partition() == pytest.approx(other.log_partition(), rel=1e-12)
    for mine, theirs in zip(one.expectations(), other.expectations(), strict=True):
        np.testing.assert_allclose(mine, theirs, atol=1e-9)
    assert one.best().score == other.best().score


def test_an_item_that_dwarfs_all_others_and_leads_nowhere() -> None:
    rules = {("S", "n", "n"): -1.0, ("S", "S", "n"): -2.0, ("S", "n", "S"): -2.5}
    plain = Forest(Grammar(rules, {}, {"n": {"a": 0.5}}, root="S"), ["a"] * 6)
    dead = {("X", "d", "d"): 50.0, ("X", "X", "X"): 60.0}
    grammar = Grammar(rules | dead, {}, {"n": {"a": 0.5}, "d": {"a": 900.0}}, root="S")
    forest = Forest(grammar, ["a"] * 6)
    assert forest.log_partition() == pytest.approx(plain.log_partition(), rel=1e-14)
    assert forest.expectations().binary[:3].sum() == pytest.approx(5.0)
    assert forest.max_bracket().tree == plain.max_bracket().tree


@pytest.mark.parametrize("faint", [-600.0, -650.0, -710.0, -1500.0])
@pytest.mark.parametrize("rule", [0.0, 80.0])
def test_what_is_around_an_item_that_is_not_there_is_beyond_all_doubles(faint: float, rule: float) -> None:
    """Over the second three words B is a C, and faint; around an A, were there one, would be all the rest."""
    rules = {("S", "B", "z"): 0.0, ("S", "S", "S"): 0.0, ("A", "x", "y"): rule, ("C", "c", "y"): 0.0}
    lexicon = {tag: {tag: 0.0} for tag in "xyzc"}
    forest = Forest(Grammar(rules, {("B", "A"): 0.0, ("B", "C"): faint}, lexicon, root="S"), [*"xyzcyzxyz"])
    expected = forest.expectations()
    np.testing.assert_allclose(expected.binary, [2.0, 1.0, 3.0, 2.0], **close)  # A, C, and S of B and of S
    np.testing.assert_allclose(expected.unary, [2.0, 1.0], **close)
    np.testing.assert_allclose(expected.tags.sum(axis=1), 1.0, **close)


@given(sentences())
@few
def test_max_bracket(sentence: Sentence) -> None:
    weights = np.exp(
        [score for _, score in sentence.trees] - np.logaddexp.reduce([s for _, s in sentence.trees])
    )
    every = [tree.constituents() for tree, _ in sentence.trees]

    def gain(tree: Tree, penalty: float) -> float:
        mine = tree.constituents()
        right = [(mine & other).total() for other in every]
        return float(weights @ right) - penalty * mine.total()

    scores = best_scores(sentence)
    for penalty in (0.0, 0.4):
        found = sentence.forest.max_bracket(penalty)
        best = max(gain(tree, penalty) for tree in scores)
        np.testing.assert_allclose(found.value, best, **close)
        np.testing.assert_allclose(gain(found.tree, penalty), best, **close)
        np.testing.assert_allclose(found.score, scores[found.tree], **close)


@pytest.mark.sanitize
def test_every_instruction_set_gives_the_same() -> None:
    rng = np.random.default_rng(3)
    symbols = ["S", "A", "B", "n", "v"]
    binary = {(a, b, c): float(rng.normal()) for a in symbols[:3] for b in symbols for c in symbols}
    grammar = Grammar(binary, {("A", "n"): -1.0}, {"n": {"x": 0.0}, "v": {"x": -1.0}}, root="S")
    answers = []
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            forest = Forest(grammar, ["x"] * 11)
            answers.append((forest.best(), forest.log_partition(), forest.expectations().binary.tolist()))
    finally:
        native.use_instruction_set("")
    assert all(answer == answers[0] for answer in answers)


def small() -> Grammar:
    return Grammar({("S", "N", "V"): 0.0}, {}, {"N": {"fish": 0.0}, "V": {"swim": 0.0}}, root="S")


def test_tree_that_the_grammar_does_not_have() -> None:
    forest = Forest(small(), "fish swim")
    assert forest.score(parse_tree("(S (V fish) (N swim))")) == -np.inf
    assert forest.score(parse_tree("(S (X (N fish)) (V swim))")) == -np.inf
    with pytest.raises(tt.ModelError, match="the tree has the words"):
        forest.score(parse_tree("(S (N fish) (V eat))"))


def test_sentence_without_a_tree() -> None:
    forest = Forest(small(), "swim fish")
    assert forest.log_partition() == -np.inf
    for question in (forest.best, forest.expectations, forest.max_bracket):
        with pytest.raises(tt.InfeasibleError, match="no tree for 'swim fish'"):
            question()


def test_unknown_word() -> None:
    with pytest.raises(tt.ModelError, match="'eel' is not in the lexicon"):
        Forest(small(), "eel swim")
    words = np.array([[0.0, -np.inf, -np.inf], [-np.inf, -np.inf, 0.0]])
    assert Forest(small(), "eel swim", word_scores=words).best() == Parse(
        0.0, 0.0, (), parse_tree("(S (N eel) (V swim))")
    )


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"span_scores": np.zeros((2, 2, 1))}, r"span_scores has shape \(2, 2, 1\).* \(3, 3, 1\)"),
        ({"span_scores": np.full((3, 3, 1), np.nan)}, "span_scores contains nan"),
        ({"binary_scores": np.full((3, 3, 1), np.inf)}, r"binary_scores contains nan, \+inf"),
        ({"word_scores": np.zeros((2, 2))}, "word_scores must have shape"),
        ({"word_scores": np.zeros((2, 3))}, "except for tags of the lexicon"),
        ({"span_scores": "good"}, "span_scores must be an array of numbers"),
    ],
)
def test_bad_scores_are_refused(options: dict[str, np.ndarray], text: str) -> None:
    with pytest.raises(tt.ModelError, match=text):
        Forest(small(), "fish swim", **options)


def test_what_is_no_sentence_and_no_grammar() -> None:
    for words in ("", [], ["fish", 3], 5):
        with pytest.raises(tt.ModelError, match=r"a sentence must (have at least one word|be a string)"):
            Forest(small(), words)  # type: ignore[arg-type]
    with pytest.raises(tt.ModelError, match=r"needs a tallytree\.parsing\.Grammar, got 'fish'"):
        Forest("fish", "fish")  # type: ignore[arg-type]
    forest = Forest(small(), "fish swim")
    with pytest.raises(tt.ModelError, match=r"expected a tallytree\.parsing\.Tree, got"):
        forest.score("(S (N fish) (V swim))")  # type: ignore[arg-type]
    with pytest.raises(tt.ModelError, match="penalty must be a finite number"):
        forest.max_bracket(np.nan)


class Tensor:
    """What a model of another library gives: an array by its own account."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.values, dtype=dtype)


def test_scores_may_be_anything_like_an_array() -> None:
    values = np.random.default_rng(0).normal(size=(3, 3, 1)).astype(np.float32)
    scores = {Forest(small(), "fish swim", span_scores=s).best().score for s in (values, Tensor(values))}
    assert scores == {float(values[0, 2, 0])}
