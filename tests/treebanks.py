"""Random small grammars and sentences, and all their trees by enumeration, for comparison with charts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import islice
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from tallytree import parsing
from tallytree.parsing import Forest, Grammar, Tree, TreeStatistic, count, labels_of
from tallytree.statistics.constraints import Constraint

PHRASES = ("S", "A", "B", "A^S", "B+S", "@A/B", "@S")
LABELLED = tuple(name for name in PHRASES if not name.startswith("@"))
TAGS = ("n", "v", "A")  # the last is a phrase, too
WORDS = ("fish", "eat", "old")
MOST_TREES = 400


@dataclass(frozen=True)
class Sentence:
    """A forest with the anchored scores that it was made from."""

    forest: Forest
    anchored: dict[str, NDArray[np.float64]]
    trees: list[tuple[Tree, float]]  # one for each derivation


Scored = Iterator[tuple[Any, float]]


def derivations(grammar: Grammar, words: tuple[str, ...], anchored: dict[str, Any]) -> Scored:
    """Go through all derivations by the definition, from the names of the symbols."""
    binary = [tuple(grammar.symbols[s] for s in rule) for rule in grammar.binary.tolist()]
    unary = [tuple(grammar.symbols[s] for s in rule) for rule in grammar.unary.tolist()]
    lexical = grammar.word_scores(words)

    def at(name: str, i: int, j: int, rule: int) -> float:
        return float(anchored[name][i, j, rule]) if name in anchored else 0.0

    def labelled(labels: tuple[str, ...], content: Any, i: int, j: int, tag: bool) -> tuple[Any, float]:
        total = 0.0
        for place, label in enumerate(reversed(labels)):
            content = [Tree(label, content)]
            if not (tag and place == 0):
                total += at("span_scores", i, j, grammar.labels.index(label))
        return content, total

    def over(symbol: str, i: int, j: int, chain: int) -> Scored:
        labels = labels_of(symbol)
        if j == i + 1:
            score = lexical[i, grammar.symbols.index(symbol)]
            if score > -np.inf:
                content, extra = labelled(labels, words[i], i, j, True)
                yield content, score + extra
        for number, (parent, left, right) in enumerate(binary):
            for k in range(i + 1, j) if parent == symbol else ():
                own = grammar.binary_scores[number] + at("binary_scores", i, j, number)
                for x, a in over(left, i, k, grammar.max_chain):
                    for y, b in over(right, k, j, grammar.max_chain):
                        content, extra = labelled(labels, x + y, i, j, False)
                        yield content, a + b + own + extra
        for number, (parent, child) in enumerate(unary):
            if parent == symbol and (chain > 0 or not labels):
                own = grammar.unary_scores[number] + at("unary_scores", i, j, number)
                for x, a in over(child, i, j, chain - 1 if labels else grammar.max_chain):
                    content, extra = labelled(labels, x, i, j, False)
                    yield content, a + own + extra

    for content, score in over(grammar.symbols[grammar.root], 0, len(words), grammar.max_chain):
        if score > -np.inf:
            yield (content[0] if len(content) == 1 else Tree("", content)), float(score)


def random_score(rng: np.random.Generator, forbid: float = 0.08) -> float:
    """Ties are wanted, and rules that are there but forbidden."""
    if rng.random() < forbid:
        return -np.inf
    return float(rng.integers(-3, 4)) if rng.random() < 0.5 else float(rng.normal())


def random_grammar(rng: np.random.Generator) -> Grammar:
    children, lower = (*PHRASES, *TAGS), (*LABELLED, *TAGS)

    def some(names: tuple[str, ...]) -> str:
        return names[rng.integers(len(names))]

    root = ("S", "A", "@S")[rng.integers(3)]
    binary = {
        (root if i < 2 else some(PHRASES), some(children), some(children)): random_score(rng)
        for i in range(rng.integers(3, 12))
    }
    unary = {(some(PHRASES), some(lower)): random_score(rng) for _ in range(rng.integers(0, 5))}
    words = {tag: {word: random_score(rng, 0.0) for word in WORDS if rng.random() < 0.8} for tag in TAGS}
    unknown = dict.fromkeys(words, -1.0)
    return Grammar(binary, unary, words, root=root, unknown=unknown, max_chain=int(rng.integers(0, 3)))


def random_anchors(rng: np.random.Generator, grammar: Grammar, n: int) -> dict[str, NDArray[np.float64]]:
    sizes = {
        "span_scores": len(grammar.labels),
        "binary_scores": len(grammar.binary),
        "unary_scores": len(grammar.unary),
    }
    anchored = {}
    for name, size in sizes.items():
        if rng.random() < 0.25:
            values = rng.integers(-2, 3, (n + 1, n + 1, size)) / 2
            anchored[name] = np.where(rng.random(values.shape) < 0.05, -np.inf, values)
    return anchored


def random_sentence(rng: np.random.Generator, longest: int = 5, trees: int = 3) -> Sentence:
    """Draw grammars until a sentence has at least so many trees, and not too many."""
    while True:
        grammar = random_grammar(rng)
        words = tuple(WORDS[i] for i in rng.integers(len(WORDS), size=rng.integers(1, longest + 1)))
        anchored = random_anchors(rng, grammar, len(words))
        found = list(islice(derivations(grammar, words, anchored), MOST_TREES))
        if trees <= len(found) < MOST_TREES:
            return Sentence(Forest(grammar, words, **anchored), anchored, found)


@cache
def _pooled(seed: int, longest: int, trees: int) -> Sentence:
    return random_sentence(np.random.default_rng(seed), longest, trees)


def sentences(longest: int = 5, trees: int = 3) -> st.SearchStrategy[Sentence]:
    """One of some hundred sentences: to enumerate trees costs more than to ask about them."""
    return st.integers(0, 199).map(lambda seed: _pooled(seed, longest, trees))


# --- what is asked of them ----------------------------------------------------------------------------------


def best_scores(sentence: Sentence) -> dict[Tree, float]:
    best: dict[Tree, float] = {}
    for tree, score in sentence.trees:
        best[tree] = max(score, best.get(tree, -np.inf))
    return best


def some_truth(sentence: Sentence, seed: int) -> Tree:
    trees = sorted(best_scores(sentence), key=str)
    return trees[seed % len(trees)]


def some_statistics(sentence: Sentence, seed: int) -> list[TreeStatistic]:
    truth = some_truth(sentence, seed)
    return [
        count(),
        count("S"),
        count(("A", "B"), min_length=2),
        count(max_length=2, name="short"),
        count(max_depth=1, name="shallow"),
        count("A", min_depth=1, max_depth=2, name="middle"),
        count(min_depth=2, cap=2, name="deep"),
        parsing.true_positives(truth),
        parsing.false_positives(truth),
        parsing.false_positives(truth, cap=1, name="any_wrong"),
        parsing.crossing_brackets(truth),
        parsing.wrong_nodes(truth),
        parsing.wrong_nodes(truth, cap=1, name="wrong_once"),
    ]


def by_tally(sentence: Sentence, statistics: list[TreeStatistic]) -> dict[tuple[int, ...], float]:
    best: dict[tuple[int, ...], float] = {}
    for tree, score in best_scores(sentence).items():
        tally = tuple(s.tally(tree) for s in statistics)
        best[tally] = max(score, best.get(tally, -np.inf))
    return best


def some_constraints(sentence: Sentence, seed: int) -> list[Constraint]:
    rng = np.random.default_rng(seed)
    every = some_statistics(sentence, seed)
    size, s_count, tp, fp = every[0], every[1], every[7], every[8]
    shallow, deep = every[4], every[6]
    b = int(rng.integers(0, 6))
    return [
        size <= b,
        count("A") == b % 3,
        (size >= b) & (s_count <= 2),
        (tp >= 1) | (fp == 0),
        ~(size == b),
        fp - tp >= b - 3,
        2 * size - 3 * s_count <= b + 2,
        (shallow >= 1) & (shallow <= b) & (deep <= 1),
        (tp + fp >= 1) & (tp - fp <= b),
    ]


def holds(constraint: Constraint, tree: Tree) -> bool:
    return bool(constraint.holds({s: s.tally(tree) for s in constraint.statistics}))


def toy(words: int = 5) -> Forest:
    rules = {("N", "N", "N"): -1.0, ("M", "N", "N"): -2.0, ("N", "M", "N"): -1.5}
    return Forest(Grammar(rules, {("M", "N"): -1.0}, {"N": {"a": 0.0}}, root="N"), ["a"] * words)
