"""Trees of small grammars: profiles, constraints, orders, losses, sums."""

from __future__ import annotations

import operator
from collections import Counter
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from draws import Rng
from on_losses import LOSSES
from oracle import expect, log_sum, near

import tallytree as tt
from tallytree import parsing

SYMBOLS = ("S", "A", "B")
WORDS = ("x", "y")
RELATIONS = (operator.ge, operator.le, operator.eq, operator.ne)
MOST = 400  # trees


class Derived(NamedTuple):
    """A tree as nested tuples, (label, word) or (label, child, …), and its score."""

    tree: tuple[Any, ...]
    score: float


class Sentence(NamedTuple):
    """A forest, and all of its trees."""

    forest: parsing.Forest
    trees: dict[tuple[Any, ...], float]


def rules(rng: Rng, arity: int, share: float, ties: bool) -> dict[tuple[str, ...], float]:
    """Draw rules with the given number of symbols."""
    every = np.array(np.meshgrid(*[SYMBOLS] * arity)).T.reshape(-1, arity).tolist()
    score = (lambda: float(rng.integers(-2, 3))) if ties else (lambda: float(rng.normal()))
    return {tuple(rule): score() for rule in every if rng.random() < share}


def sentence(rng: Rng) -> Sentence | None:
    """Draw a grammar and a sentence; None if it has no tree, or too many."""
    ties = bool(rng.random() < 0.5)
    binary, unary = rules(rng, 3, 0.2, ties), rules(rng, 2, 0.25, ties)
    words = {tag: {w: float(rng.integers(-2, 3)) for w in WORDS if rng.random() < 0.7} for tag in SYMBOLS[1:]}
    chain = int(rng.integers(0, 3))
    text = [str(w) for w in rng.choice(WORDS, int(rng.integers(1, 6)))]
    trees = derived(binary, unary, words, chain, text)
    if not 0 < len(trees) <= MOST:
        return None
    grammar = parsing.Grammar(binary, unary, words, root="S", max_chain=chain)
    return Sentence(parsing.Forest(grammar, text), {d.tree: d.score for d in trees})


def derived(binary: Any, unary: Any, words: Any, chain: int, text: list[str]) -> list[Derived]:
    """Return all trees of a sentence."""

    @cache
    def opened(symbol: str, start: int, end: int) -> list[Derived]:
        found = []
        if end - start == 1 and text[start] in words.get(symbol, {}):
            found.append(Derived((symbol, text[start]), words[symbol][text[start]]))
        for (parent, left, right), score in binary.items():
            if parent == symbol:
                for split in range(start + 1, end):
                    found += [
                        Derived((symbol, a.tree, b.tree), score + a.score + b.score)
                        for a in closed(left, start, split)
                        for b in closed(right, split, end)
                    ]
        if len(found) > 4 * MOST:
            raise OverflowError
        return found

    @cache
    def closed(symbol: str, start: int, end: int, steps: int = chain) -> list[Derived]:
        found = list(opened(symbol, start, end))
        for (parent, child), score in unary.items():
            if parent == symbol and steps:
                found += [
                    Derived((symbol, d.tree), score + d.score) for d in closed(child, start, end, steps - 1)
                ]
        return found

    try:
        return closed("S", 0, len(text))
    except OverflowError:
        return []


def as_tuple(tree: parsing.Tree) -> tuple[Any, ...]:
    """Return a tree of the library as nested tuples."""
    return (tree.label, tree.word) if tree.is_tag else (tree.label, *map(as_tuple, tree.children))


def as_tree(tree: tuple[Any, ...]) -> parsing.Tree:
    """Return nested tuples as a tree of the library."""
    if isinstance(tree[1], str):
        return parsing.Tree(tree[0], tree[1])
    return parsing.Tree(tree[0], [as_tree(child) for child in tree[1:]])


def constituents(tree: tuple[Any, ...], start: int = 0) -> tuple[Counter[Any], int]:
    """Return the labelled spans of a tree other than tags, and its end."""
    if isinstance(tree[1], str):
        return Counter(), start + 1
    found, at = Counter[Any](), start
    for child in tree[1:]:
        below, at = constituents(child, at)
        found += below
    found[tree[0], start, at] += 1
    return found, at


def counted(rng: Rng, trees: list[tuple[Any, ...]], name: str) -> tuple[Any, np.ndarray]:
    """Draw a statistic of trees, and count it by hand."""
    label = str(rng.choice(SYMBOLS)) if rng.random() < 0.7 else None
    low = int(rng.integers(1, 4))
    cap = int(rng.integers(0, 4)) if rng.random() < 0.2 else None

    def total(tree: tuple[Any, ...]) -> int:
        spans = constituents(tree)[0].elements()
        many = sum(label in (None, name) and end - start >= low for name, start, end in spans)
        return many if cap is None else min(many, cap)

    return parsing.count(label, min_length=low, cap=cap, name=name), np.array([total(tree) for tree in trees])


def constraint(rng: Rng, trees: list[tuple[Any, ...]]) -> tuple[Any, np.ndarray]:
    """Draw a constraint on one statistic, or on two; None for none."""
    if rng.random() < 0.2:
        return None, np.ones(len(trees), dtype=bool)
    given, holds = None, np.ones(len(trees), dtype=bool)
    for number in range(int(rng.integers(1, 3))):
        statistic, totals = counted(rng, trees, f"c{number}")
        bound = int(rng.choice([*totals.tolist(), totals.min() - 1, totals.max() + 1, -5]))
        relation = RELATIONS[int(rng.integers(len(RELATIONS)))]
        part = relation(statistic, bound)
        given = part if given is None else given & part
        holds &= relation(totals, bound)
    return given, holds


def check(found: Any, trees: list[tuple[Any, ...]], values: np.ndarray, what: str) -> None:
    """Compare a parse with the values of all trees."""
    tree = as_tuple(found.tree)
    expect(tree in trees, f"{what}: no such tree", tree)
    value = float(values[trees.index(tree)])
    expect(near(found.value, float(values.max()), 1e-9), f"{what}: value", found.value, values.max())
    expect(near(value, float(values.max()), 1e-9), f"{what}: value of the tree", value, values.max())


def solve(rng: Rng) -> None:
    """The best tree under a constraint, and trees in order."""
    drawn = sentence(rng)
    if drawn is None:
        return
    trees, scores = list(drawn.trees), np.array(list(drawn.trees.values()))
    given, holds = constraint(rng, trees)
    right = np.where(holds, scores, -np.inf)
    try:
        found = parsing.solve(drawn.forest, where=given)
    except tt.InfeasibleError:
        expect(not holds.any(), "trees: infeasible, but there are", given, int(holds.sum()))
        return
    check(found, trees, right, f"trees where {given}")
    k = int(rng.integers(1, 30))
    best = parsing.k_best(drawn.forest, k, where=given)
    expected = np.sort(right[holds])[::-1][:k]
    expect(np.allclose([p.score for p in best], expected, atol=1e-9), "trees in order", given, expected)
    expect(len({as_tuple(p.tree) for p in best}) == len(best), "a tree comes twice")


def sums(rng: Rng) -> None:
    """Profiles and distributions of trees."""
    drawn = sentence(rng)
    if drawn is None:
        return
    trees, scores = list(drawn.trees), np.array(list(drawn.trees.values()))
    some = [counted(rng, trees, f"c{n}") for n in range(int(rng.integers(0, 3)))]
    statistics = [statistic for statistic, _ in some]
    groups: dict[tuple[int, ...], list[int]] = {}
    for row in range(len(trees)):
        groups.setdefault(tuple(int(totals[row]) for _, totals in some), []).append(row)
    found = parsing.profile(drawn.forest, statistics)
    expect(
        found.tallies.tolist() == [list(t) for t in sorted(groups)],
        "tallies of trees",
        found.tallies.tolist(),
    )
    best = [scores[groups[tally]].max() for tally in sorted(groups)]
    expect(np.allclose(found.scores, best, atol=1e-9), "scores of trees", found.scores, best)
    logs = [log_sum(scores[groups[tally]]) for tally in sorted(groups)]
    d = parsing.distribution(drawn.forest, statistics)
    expect(np.allclose(d.log_partitions, logs, atol=1e-9), "sums of trees", d.log_partitions, logs)
    drawn_trees = [as_tuple(tree) for tree in d.sample(20, rng=int(rng.integers(1 << 30)))]
    expect(set(drawn_trees) <= set(trees), "a sample is no tree")


def losses(rng: Rng) -> None:
    """The worst tree for a loss, under constraints."""
    drawn = sentence(rng)
    if drawn is None:
        return
    trees, scores = list(drawn.trees), np.array(list(drawn.trees.values()))
    truth = int(rng.integers(len(trees)))
    gold, name = constituents(trees[truth])[0], str(rng.choice([*LOSSES]))
    margin, scaling = float(rng.choice([0.5, 1.0, 2.0])), str(rng.choice(["margin", "slack"]))
    costs = []
    for tree in trees:
        nodes = constituents(tree)[0]
        right = (nodes & gold).total()
        costs.append(LOSSES[name]((right, nodes.total() - right, gold.total())))
    more = scores - scores[truth]
    values = margin * np.array(costs) + more if scaling == "margin" else np.array(costs) * (margin + more)
    given, holds = constraint(rng, trees)
    loss = getattr(tt.losses, name)(as_tree(trees[truth]))
    try:
        found = parsing.loss_augmented(drawn.forest, loss, scaling, margin=margin, where=given)
    except tt.InfeasibleError:
        expect(not holds.any(), "loss of trees: infeasible, but there are", given, int(holds.sum()))
    else:
        check(found, trees, np.where(holds, values, -np.inf), f"{name} {scaling} where {given}")
