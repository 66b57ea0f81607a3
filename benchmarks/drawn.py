"""Questions drawn at random, to judge ``strategy="auto"`` by problems that no constant was fitted to.

Shapes, sizes, scores, statistics and questions are all drawn: chains, trees, stars, cycles, grids, factors
of three variables, parse trees and batches; weak and strong coupling, ties, heavy losses. Tables take a tenth
of a millisecond to some tenths of a second. Constants were chosen by seeds below 13,000, and judged by those
from there on (``bounds.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, reduce
from operator import and_
from typing import Any, NamedTuple

import numpy as np
from common import DATA

import tallytree as tt
from tallytree import parsing
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.truth_tables import Search

Rng = np.random.Generator
Scopes = list[tuple[int, ...]]


class Drawn(NamedTuple):
    """A question, to be asked with any strategy."""

    kind: str
    name: str
    ask: Callable[[str], Any]


def question(seed: int) -> Drawn:
    """Return the question of a seed."""
    rng = np.random.default_rng([seed, 16])
    kinds: list[Callable[[Rng], Drawn]] = [constrained, loss, function, batch, chunks, trees]
    shares = [0.5, 0.12, 0.1, 0.14, 0.04, 0.1]
    return kinds[int(rng.choice(len(kinds), p=shares))](rng)


# --- models -------------------------------------------------------------------------------------------------


def _chain(rng: Rng, size: int, _: float) -> Scopes:
    return [(v, v + 1) for v in range(size - 1)]


def _tree(rng: Rng, size: int, _: float) -> Scopes:
    reach = int(rng.choice([2, 5, size]))
    return [(int(rng.integers(max(0, v - reach), v)), v) for v in range(1, size)]


def _star(rng: Rng, size: int, _: float) -> Scopes:
    return [(0, v) for v in range(1, size)]


def _cycle(rng: Rng, size: int, _: float) -> Scopes:
    return [(v, (v + 1) % size) for v in range(size)]


def _triples(rng: Rng, size: int, _: float) -> Scopes:
    return [(v, v + 1, v + 2) for v in range(max(size - 2, 1))]


def _grid(rng: Rng, size: int, rows: float) -> Scopes:
    across, down = max(int(size / rows), 2), int(rows)
    places = [(r, c) for r in range(down) for c in range(across)]
    right = [(r * across + c, r * across + c + 1) for r, c in places if c + 1 < across]
    return right + [(r * across + c, (r + 1) * across + c) for r, c in places if r + 1 < down]


_SHAPES: dict[str, tuple[Callable[[Rng, int, float], Scopes], int]] = {  # and their width
    "chain": (_chain, 1),
    "tree": (_tree, 1),
    "star": (_star, 1),
    "cycle": (_cycle, 2),
    "triples": (_triples, 2),
    "grid": (_grid, 0),
}
_WEIGHTS = [0.2, 0.2, 0.08, 0.1, 0.07, 0.35]


class Problem(NamedTuple):
    """A model of a shape, and the words for it."""

    name: str
    model: tt.Model
    scopes: Scopes


def _problem(rng: Rng, operations: float, statistics: int) -> Problem:
    """Return a model whose table takes about so many operations."""
    shape = str(rng.choice(list(_SHAPES), p=_WEIGHTS))
    make, width = _SHAPES[shape]
    states = int(rng.choice([2, 2, 3, 5, 10]))
    if shape == "grid":
        states = min(states, 4)
        most = np.log(operations / 3000) / np.log(states) - 1
        width = int(rng.integers(2, max(3, min(most + 1, 13))))
    size = (operations / float(states) ** (width + 1)) ** (1 / (1 + statistics))
    size = int(np.clip(size, 2 * max(width, 3), 6000))
    scopes = make(rng, size, width)
    size = max(max(scope) for scope in scopes) + 1
    words, model = _scored(rng, size, states, scopes)
    sides = f"{width} x {size // width}" if shape == "grid" else f"{size}"
    return Problem(f"{shape} of {sides}, {states} states, {words}", model, scopes)


def _scored(rng: Rng, size: int, states: int, scopes: Scopes) -> tuple[str, tt.Model]:
    """Return a model with random scores: neighbours that agree, that differ, that do as they like."""
    coupling, arity = float(rng.choice([0.1, 0.3, 1, 1, 3, 10, 30])), len(scopes[0])
    kind = str(rng.choice(["random", "each", "attractive", "repulsive"]))
    same = np.eye(states).reshape([states, states] + [1] * (arity - 2))
    pairs = {
        "random": coupling * rng.normal(size=(states,) * arity),
        "each": coupling * rng.normal(size=(len(scopes), *(states,) * arity)),
        "attractive": coupling * np.broadcast_to(same, (states,) * arity),
        "repulsive": -coupling * np.broadcast_to(same, (states,) * arity),
    }[kind]
    unary = rng.normal(size=(size, states)) * (rng.random() >= 0.03)
    ties = rng.random() < 0.15
    if ties:
        unary, pairs = np.round(2 * unary) / 2, np.round(2 * pairs) / 2
    tables = np.broadcast_to(pairs, (len(scopes), *(states,) * arity))
    factors = [((v,), unary[v]) for v in range(size)] + list(zip(scopes, tables, strict=True))
    words = f"{kind} {coupling:g}{', ties' if ties else ''}{'' if unary.any() else ', all 0'}"
    return words, tt.Model([states] * size, factors)


def _operations(rng: Rng, low: float = 6.0, high: float = 9.3) -> float:
    return float(10 ** rng.uniform(low, high))


def _statistics(rng: Rng, problem: Problem, number: int) -> list[tt.Statistic]:
    """Return counts of states, weights, or numbers of neighbours that agree."""
    model, made = problem.model, []
    states = model.alike
    kinds = ["state", "state", "state", "weights", "pairs"]
    for k in range(number):
        kind, name = str(rng.choice(kinds)), f"s{k}"
        if kind == "state":
            made.append(tt.count(model, state=(k + 1) % states, name=name))
        elif kind == "weights":
            weights = rng.integers(0, 3, size=(len(model), states))
            made.append(tt.Statistic([((v,), weights[v]) for v in range(len(model))], name=name))
        else:
            agree = np.eye(states, dtype=np.int64)
            made.append(tt.Statistic([(scope[:2], agree) for scope in problem.scopes], name=name))
    return made


# --- single questions ---------------------------------------------------------------------------------------


def constrained(rng: Rng) -> Drawn:
    """Draw a constraint: equalities, windows, combinations, alternatives."""
    number = int(rng.choice([1, 1, 2, 3]))
    problem = _problem(rng, _operations(rng), number)
    statistics = _statistics(rng, problem, number)
    where = _constraint(rng, statistics, problem.model)
    return Drawn(
        f"constraint on {number}",
        f"{where}, {problem.name}",
        lambda way: tt.solve(problem.model, where=where, strategy=way),
    )


def _constraint(rng: Rng, statistics: list[tt.Statistic], model: tt.Model) -> Any:
    """Return a constraint that some labelling satisfies: the tally of one is near its numbers."""
    states = model.alike
    skewed = rng.dirichlet(np.full(states, float(rng.choice([0.3, 1.0, 5.0]))))
    labels = rng.choice(states, size=len(model), p=skewed)
    at = [int(s.on(model).tally(labels)) for s in statistics]
    one, a = statistics[0], at[0]
    wide = max(1, a // 10)
    kinds = [
        one == a,
        one == a,
        one <= a,
        one >= a,
        (one >= a - wide) & (one <= a + wide),
        (one == a) | (one >= a + wide),
        one != a,
        statistics[-1] - one <= at[-1] - a if len(statistics) > 1 else one <= a,
    ]
    others = [s == b if rng.random() < 0.6 else s >= b for s, b in zip(statistics[1:], at[1:], strict=True)]
    return reduce(and_, others, kinds[int(rng.integers(len(kinds)))])


def _losses(rng: Rng, truth: Any) -> Any:
    names = tt.losses
    return [
        lambda: names.FBeta(truth, background=0),
        lambda: names.FBeta(truth, background=0, beta=2.0),
        lambda: names.IntersectionOverUnion(truth, background=0),
        lambda: names.Precision(truth, background=0),
        lambda: names.LabelCount(truth),
    ][int(rng.integers(5))]()


def loss(rng: Rng) -> Drawn:
    """Draw a loss, with margins up to ten times the number of variables."""
    problem = _problem(rng, _operations(rng), 2)
    model = problem.model
    truth = np.where(rng.random(len(model)) < 0.5, 0, rng.integers(0, model.alike, len(model)))
    asked, scaling = _losses(rng, truth), str(rng.choice(["margin", "slack"]))
    margin = float(rng.choice([1.0, 10.0, len(model), 10.0 * len(model)]))
    return Drawn(
        "loss",
        f"{type(asked).__name__}, {scaling} {margin:g}, {problem.name}",
        lambda way: tt.loss_augmented(model, asked, scaling, margin=margin, strategy=way),
    )


def function(rng: Rng) -> Drawn:
    """Draw an objective that is a function of one or two tallies, some with plateaus."""
    number = int(rng.choice([1, 2]))
    problem = _problem(rng, _operations(rng, high=8.7), number)
    statistics, at = _statistics(rng, problem, number), len(problem.model) // 3
    objectives: list[Callable[..., Any]] = [
        lambda score, *tallies: score - 0.05 * sum((t - at) ** 2 for t in tallies),
        lambda score, *tallies: score * (1 + tallies[0]) / (1 + sum(tallies)),
        lambda score, *tallies: np.floor(score / 5) - 0.01 * np.abs(tallies[0] - at),
        lambda score, *tallies: np.minimum(score, at) - 0.01 * np.abs(tallies[-1] - at),
        lambda score, *tallies: np.sign(score) + 0.0 * tallies[0],
    ]
    which = int(rng.integers(len(objectives)))
    return Drawn(
        "function",
        f"function {which} of {number}, {problem.name}",
        lambda way: tt.solve(problem.model, statistics, objectives[which], strategy=way),
    )


# --- batches ------------------------------------------------------------------------------------------------


def batch(rng: Rng) -> Drawn:
    """Draw a batch of models of one shape, with a constraint or a loss."""
    each, by_loss = _operations(rng, 4.7, 7.2), rng.random() < 0.5
    number = 2 if by_loss else int(rng.choice([1, 1, 2]))
    first = _problem(rng, each, number)
    count = int(np.clip(3e7 / each, 3, 20))
    models = [first.model, *(_again(rng, first) for _ in range(count - 1))]
    if not by_loss:
        where = _constraint(rng, _statistics(rng, first, number), first.model)
        return Drawn(
            "batch of constraints",
            f"{where}, {first.name}",
            lambda way: tt.solve_batch(models, where=where, threads=1, strategy=way),
        )
    states, size = first.model.alike, len(first.model)
    truths = [np.where(rng.random(size) < 0.5, 0, rng.integers(0, states, size)) for _ in models]
    scaling, margin = str(rng.choice(["margin", "slack"])), float(rng.choice([1.0, 10.0, size]))
    asked = _losses(rng, None)
    return Drawn(
        "batch of losses",
        f"{type(asked).__name__}, {scaling} {margin:g}, {first.name}",
        lambda way: tt.loss_augmented_batch(
            models, asked, scaling, truths=truths, margin=margin, threads=1, strategy=way
        ),
    )


def _again(rng: Rng, problem: Problem) -> tt.Model:
    """Return the model with other scores of single variables."""
    blocks = [
        block.with_tables(rng.permutation(block.tables)) if block.arity == 1 else block
        for block in problem.model.blocks
    ]
    return tt.Model.from_blocks(problem.model.cardinalities, blocks)


def chunks(rng: Rng) -> Drawn:
    """Draw sentences with losses of chunks or positions, for one tally or four, at some point of training."""
    names = (
        "O",
        *(f"{place}-{kind}" for kind in "ABCDEFGHIJK"[: int(rng.integers(1, 12))] for place in "BI"),
    )
    lengths = rng.integers(5, 41, 30).tolist()
    truths = [np.where(rng.random(n) < 0.45, 0, rng.integers(0, len(names), n)) for n in lengths]
    trained, factor = float(rng.choice([0.0, 0.1, 0.5, 3.5])), float(rng.choice([0.0, 0.1, 0.3, 1.0, 1.0]))
    right = np.arange(len(names)) == np.concatenate(truths)[:, None]
    unary = factor * rng.normal(size=right.shape) + trained * right
    chains = Chains(unary, factor * rng.normal(size=(len(names),) * 2), lengths, names)
    asked = tt.losses.ChunkFBeta() if rng.random() < 0.7 else tt.losses.FBeta(background="O")
    scaling, tallies = str(rng.choice(["margin", "slack"])), int(rng.choice([1, 4]))
    return Drawn(
        f"sentences, {tallies} tallies",
        f"{type(asked).__name__}, {scaling}, {len(names)} labels, trained {trained:g}, scores {factor:g}",
        lambda way: best_of_chains(chains, asked, truths, scaling, tallies, 1, Search(way)),
    )


# --- parse trees --------------------------------------------------------------------------------------------


@cache
def _treebank() -> tuple[list[Any], list[parsing.Grammar]]:
    trees = parsing.read_treebank(DATA / "wsj" / "train.mrg")
    settings: list[dict[str, Any]] = [
        {"horizontal": 0, "vertical": 1, "tail": "single"},
        {"horizontal": 1, "vertical": 1},
        {"horizontal": 2, "vertical": 2},
    ]
    return trees, [parsing.Grammar.from_treebank(trees, **one) for one in settings]


def trees(rng: Rng) -> Drawn:
    """Draw a question about the trees of a sentence; a constraint on a model if there is no treebank."""
    if not (DATA / "wsj").is_dir():
        return constrained(rng)
    every, grammars = _treebank()
    words = int(rng.integers(6, 27))
    some = [tree for tree in every if len(tree) == words]
    truth, which = some[int(rng.integers(len(some)))], int(rng.integers(3))
    forest = parsing.Forest(grammars[which], truth.words)
    kind, where = int(rng.integers(3)), _tree_constraint(rng, truth)
    if kind == 0:
        scaling = str(rng.choice(["margin", "slack"]))
        return Drawn(
            "tree",
            f"F1 {scaling}, {words} words, grammar {which}",
            lambda way: parsing.loss_augmented(forest, tt.losses.FBeta(truth), scaling, strategy=way),
        )
    return Drawn(
        "tree",
        f"{where}, {words} words, grammar {which}",
        lambda way: tt.solve(forest, where=where, strategy=way),
    )


def _tree_constraint(rng: Rng, truth: Any) -> Any:
    """Return a constraint on up to three labels, near what the true tree has."""
    labels = rng.permutation(["NP", "VP", "PP", "S"])[: int(rng.integers(1, 4))].tolist()
    counts, labelled = [parsing.count(label) for label in labels], [node.tree.label for node in truth.nodes()]
    at = [max(0, labelled.count(label) + int(rng.integers(-1, 3))) for label in labels]
    kinds = [
        lambda s, a: s == a,
        lambda s, a: s <= a,
        lambda s, a: s >= a,
        lambda s, a: (s == a) | (s == a + 2),
    ]
    chosen = [kinds[int(rng.integers(4 if k == 0 else 3))] for k in range(len(labels))]
    return reduce(and_, [make(s, a) for make, s, a in zip(chosen, counts, at, strict=True)])
