"""Random problems, drawn without help from the library, so that every version gets the same ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tallytree as tt
from tallytree import parsing

Rng = np.random.Generator
Scopes = list[tuple[int, ...]]
CHUNKS = ("O", "B-NP", "I-NP", "B-VP", "I-VP")
BIO = ("O", "B", "I")
BIOES = ("O", "B", "I", "E", "S")
PATTERNS = (
    ".* O .*",
    "[^ O ]* .{,2}",
    "(O | B-NP I-NP*)*",
    "(O B-NP | .)* O?",
    "B-NP (I-NP | O)*",
    ". .{1,3} .*",
)


def pick(rng: Rng, items: Sequence[Any]) -> Any:
    return items[rng.integers(len(items))]


def coin(rng: Rng, probability: float = 0.5) -> bool:
    return bool(rng.random() < probability)


def seed(rng: Rng) -> int:
    return int(rng.integers(2**31))


# --- models -------------------------------------------------------------------------------------------------


def _chain(rng: Rng, n: int) -> Scopes:
    return [(v, v + 1) for v in range(n - 1)]


def _tree(rng: Rng, n: int) -> Scopes:
    return [(int(rng.integers(v)), v) for v in range(1, n)]


def _star(rng: Rng, n: int) -> Scopes:
    return [(0, v) for v in range(1, n)]


def _cycle(rng: Rng, n: int) -> Scopes:
    return _chain(rng, n) + ([(n - 1, 0)] if n > 2 else [])


def _grid(rng: Rng, n: int) -> Scopes:
    width = max(1, math.isqrt(n))
    return [(v, v + 1) for v in range(n - 1) if (v + 1) % width] + [(v, v + width) for v in range(n - width)]


def _triples(rng: Rng, n: int) -> Scopes:
    return [subset(rng, n, int(size)) for size in np.minimum(rng.integers(2, 4, size=n), n)]


def _parts(rng: Rng, n: int) -> Scopes:
    return [edge for edge in _tree(rng, n) if coin(rng, 0.6)]


SHAPES: dict[str, Callable[[Rng, int], Scopes]] = {
    "chain": _chain,
    "tree": _tree,
    "star": _star,
    "cycle": _cycle,
    "grid": _grid,
    "triples": _triples,
    "parts": _parts,
}


def subset(rng: Rng, n: int, size: int) -> tuple[int, ...]:
    return tuple(rng.choice(n, size, replace=False).tolist())


def scores(rng: Rng, shape: Any, ties: bool) -> np.ndarray:
    return rng.integers(-2, 3, size=shape).astype(float) if ties else rng.normal(size=shape)


def model(rng: Rng, largest: int = 7, states: int = 3, shape: str | None = None) -> tt.Model:
    """Draw a model of any shape: with single states, forbidden entries, ties, constants, repeated scopes."""
    ties, single, forbidden, feasible = (
        coin(rng),
        pick(rng, (0, 0, 0.3)),
        pick(rng, (0, 0, 0.2)),
        coin(rng, 0.9),
    )
    n = 0 if coin(rng, 0.02) else int(rng.integers(1, largest + 1))
    cards = np.where(rng.random(n) < single, 1, rng.integers(2, states + 1, size=n))
    scopes = [(v,) for v in range(n) if coin(rng, 0.8)] + SHAPES[shape or pick(rng, list(SHAPES))](rng, n)
    scopes += [pick(rng, scopes) for _ in range(rng.integers(3)) if scopes]
    scopes += [()] * int(rng.integers(2))
    witness = rng.integers(cards)
    factors = []
    for scope in scopes:
        scope = tuple(rng.permutation(scope).tolist()) if scope else ()
        table = scores(rng, cards[list(scope)], ties) if scope else np.array(float(rng.integers(-2, 3)))
        ruled_out = rng.random(table.shape) < forbidden if scope else np.zeros((), dtype=bool)
        if feasible and scope:
            ruled_out[tuple(witness[list(scope)])] = False
        factors.append((scope, np.where(ruled_out, -np.inf, table)))
    return tt.Model(cards.tolist(), factors)


def chain(rng: Rng, labels: Sequence[str] = CHUNKS, shortest: int = 1, longest: int = 7) -> tt.Model:
    """Draw a chain whose states have names."""
    n, ties = int(rng.integers(shortest, longest + 1)), coin(rng, 0.3)
    pairwise = scores(rng, (len(labels), len(labels)), ties)
    return tt.Model.chain(scores(rng, (n, len(labels)), ties), pairwise, states=list(labels))


def long_model(rng: Rng) -> tt.Model:
    """Draw a chain, a tree or a grid that is large enough for wide tables and for several threads."""
    n, states, ties = int(rng.integers(30, 150)), int(rng.integers(2, 9)), coin(rng, 0.2)
    pairwise = scores(rng, (states, states), ties)
    form = rng.integers(3)
    if form == 0:
        return tt.Model.chain(scores(rng, (n, states), ties), pairwise)
    if form == 1:
        parents = [-1] + [int(rng.integers(max(0, v - 4), v)) for v in range(1, n)]
        return tt.Model.tree(parents, scores(rng, (n, states), ties), pairwise)
    unary = scores(rng, (int(rng.integers(2, 7)), int(rng.integers(6, 16)), 2), ties)
    return tt.Model.grid(unary, pairwise[:2, :2], pairwise[:2, :2].T)


def labelling(rng: Rng, of: tt.Model) -> np.ndarray:
    return rng.integers(of.cardinalities)


def possible(rng: Rng, of: tt.Model) -> np.ndarray:
    """Draw a labelling, one with a finite score if one of some is."""
    some = [labelling(rng, of) for _ in range(30)]
    return next((y for y in some if of.score(y) > -np.inf), some[0])


# --- statistics, constraints, objectives --------------------------------------------------------------------


def statistics(rng: Rng, of: tt.Model, most: int = 3, least: int = 1, capped: float = 0.25) -> list[Any]:
    """Draw statistics of free tables, and counts and matches beside them; some are capped."""
    return [_statistic(rng, of, f"g{p}", capped) for p in range(rng.integers(least, most + 1))]


def _statistic(rng: Rng, of: tt.Model, name: str, capped: float) -> Any:
    n, form = len(of.cardinalities), rng.integers(5)
    cap = int(rng.integers(-1, 5)) if coin(rng, capped) else None
    if form == 0 or not n:
        return tt.count(state=int(rng.integers(2)), name=name, cap=cap)
    if form == 1:
        kind = pick(rng, (tt.matches, tt.mismatches))
        return kind(of, labelling(rng, of), pick(rng, (None, 0)), name=name, cap=cap)
    low, high = pick(rng, ((-2, 2), (0, 1), (0, 2), (-1, 0), (0, 5)))
    scopes = [subset(rng, n, int(rng.integers(1, min(2, n) + 1))) for _ in range(rng.integers(n + 1))]
    scopes += [()] if coin(rng, 0.1) else []
    cards = of.cardinalities
    tables = [np.asarray(rng.integers(low, high + 1, size=cards[list(s)] if s else ())) for s in scopes]
    return tt.Statistic(list(zip(scopes, tables, strict=True)), name=name, cap=cap)


def constraint(rng: Rng, those: Sequence[Any], forms: int = 12) -> tt.Constraint:
    """Draw a constraint on the first and the last of some statistics; the first six forms are linear."""
    a, b, k = those[0], those[-1], int(rng.integers(-2, 6))
    return (
        lambda: a <= k,
        lambda: a >= k,
        lambda: a == k,
        lambda: (a >= k) & (a <= k + 2),
        lambda: 2 * a - 3 * b <= k,
        lambda: (a + b >= k) & (a - b <= k + 1),
        lambda: a != k,
        lambda: ~(a == k),
        lambda: (a <= k - 1) | (a >= k + 3),
        lambda: ((a <= k) | (b >= k)) & (b != 1),
        lambda: ~((a >= k) & (b <= k)),
        lambda: (a - b == 0) | (a + 2 * b >= k),
    )[rng.integers(forms)]()


def objective(rng: Rng) -> Callable[..., Any]:
    """Draw a function of the score and the first tally; the last one decreases in the score."""
    t, weight = int(rng.integers(-1, 5)), float(rng.normal())
    return pick(
        rng,
        (
            lambda score, k, *rest: score - (k - t) ** 2,
            lambda score, k, *rest: score + weight * k,
            lambda score, k, *rest: np.where(k % 2 == 0, score, -np.inf),
            lambda score, k, *rest: np.minimum(score, weight) + 0.25 * k,
            lambda score, k, *rest: (1.5 + np.tanh(k)) * score + sum(rest),
            tt.elementwise(lambda score, k, *rest: score + 5 if k == t else score),
            lambda score, k, *rest: np.where(k > t, -np.inf, np.exp(score / 4)),
            lambda score, k, *rest: weight - score if weight > 0 else score,
        ),
    )


def restriction(rng: Rng, of: tt.Model) -> dict[str, Any]:
    """Draw states that variables must or may take; now and then one that is not there."""
    n, cards = len(of.cardinalities), of.cardinalities.tolist()
    chosen = subset(rng, n, int(rng.integers(min(n, 3) + 1))) if n else ()
    fixed = {v: int(rng.integers(cards[v] + coin(rng, 0.03))) for v in chosen[:2]}
    allowed = {v: sorted({int(s) for s in rng.integers(cards[v], size=2)}) for v in chosen[2:]}
    return {"fixed": fixed, "allowed": allowed}


# --- sentences and trees ------------------------------------------------------------------------------------

PHRASES = ("S", "A", "B", "A^S", "B+S", "@A/B", "@S")
TAGS = ("n", "v", "A")
WORDS = ("fish", "eat", "old")


def _rule_score(rng: Rng, forbid: float = 0.05) -> float:
    if coin(rng, forbid):
        return -np.inf
    return float(rng.integers(-3, 4)) if coin(rng) else float(rng.normal())


def grammar(rng: Rng) -> parsing.Grammar:
    """Draw a grammar that has trees for most sentences."""
    children = (*PHRASES, *TAGS)
    root = pick(rng, ("S", "A", "@S"))
    binary = {(root, "n", root): 0.5, (root, pick(rng, TAGS), root): -0.25, (root, "n", "n"): 0.0}
    for _ in range(rng.integers(3, 14)):
        parent = root if coin(rng, 0.3) else pick(rng, PHRASES)
        binary[parent, pick(rng, children), pick(rng, children)] = _rule_score(rng)
    lower = tuple(name for name in children if not name.startswith("@"))
    unary = {(pick(rng, PHRASES), pick(rng, lower)): _rule_score(rng) for _ in range(rng.integers(5))}
    unary |= {(root, "n"): -0.5} if coin(rng, 0.8) else {}
    words = {tag: {word: _rule_score(rng, 0.0) for word in WORDS if coin(rng, 0.6)} for tag in TAGS}
    words["n"] = {word: _rule_score(rng, 0.0) for word in WORDS}
    unknown = dict.fromkeys(words, -1.0)
    return parsing.Grammar(binary, unary, words, root=root, unknown=unknown, max_chain=int(rng.integers(3)))


def forest(rng: Rng, longest: int = 7) -> parsing.Forest:
    """Draw a grammar and a sentence, some with additional scores for spans and rules."""
    rules = grammar(rng)
    words = [pick(rng, (*WORDS, "new")) for _ in range(rng.integers(1, longest + 1))]
    sizes = {"span_scores": rules.labels, "binary_scores": rules.binary, "unary_scores": rules.unary}
    anchored = {}
    for name, kinds in sizes.items():
        if coin(rng, 0.25):
            values = rng.integers(-2, 3, (len(words) + 1, len(words) + 1, len(kinds))) / 2
            anchored[name] = np.where(rng.random(values.shape) < 0.05, -np.inf, values)
    return parsing.Forest(rules, words, **anchored)


def tree(rng: Rng, words: int, label: str = "S") -> parsing.Tree:
    """Draw a tree with two or three children below each node, and chains."""
    if words == 1:
        tag = parsing.Tree(pick(rng, ("n", "v")), pick(rng, WORDS))
        return parsing.Tree(label, [tag]) if coin(rng, 0.3) else tag
    cuts = sorted(rng.choice(np.arange(1, words), min(words - 1, int(rng.integers(1, 3))), replace=False))
    sizes = np.diff([0, *cuts, words]).tolist()
    node = parsing.Tree(label, [tree(rng, size, pick(rng, "AB")) for size in sizes])
    return parsing.Tree("B", [node]) if coin(rng, 0.1) else node


def tree_statistics(rng: Rng, truth: parsing.Tree, number: int) -> list[parsing.TreeStatistic]:
    every = [
        parsing.count(),
        parsing.count("S"),
        parsing.count(("A", "B"), min_length=2),
        parsing.count(max_length=2, name="short"),
        parsing.count(max_depth=1, name="shallow"),
        parsing.count("A", min_depth=1, max_depth=2, name="middle"),
        parsing.count(min_depth=2, cap=2, name="deep"),
        parsing.true_positives(truth),
        parsing.false_positives(truth),
        parsing.false_positives(truth, cap=1, name="any_wrong"),
        parsing.crossing_brackets(truth),
        parsing.wrong_nodes(truth),
    ]
    return [every[k] for k in subset(rng, len(every), number)]
