"""Cases on machines that read labels, and on parsing."""

from __future__ import annotations

from itertools import islice
from typing import Any

import draws
import numpy as np
from answering import Text, asked
from draws import Rng, coin, pick

import tallytree as tt
from tallytree import parsing, transducers
from tallytree.testing import TREE_LOSSES

# --- machines -----------------------------------------------------------------------------------------------


class LongChunks(tt.Machine):
    """Counts the chunks of three words or more; the state is the length of the open chunk, up to three."""

    outputs = ("long",)
    start = 0

    def step(self, state: int, label: str, at: Any) -> tuple[int, tuple[int]]:
        length = 1 if label.startswith("B") else min(state + 1, 3) if label.startswith("I") else 0
        return length, (int(length == 3 and state == 2),)

    def stop(self, state: int) -> tuple[int]:
        return (0,)


def _automaton(rng: Rng) -> transducers.Automaton:
    states = range(int(rng.integers(1, 4)))
    moves = {(s, label): pick(rng, states) for s in states for label in draws.CHUNKS if coin(rng, 0.8)}
    return transducers.dfa(moves, 0, [s for s in states if coin(rng, 0.7)] or [0])


def _ambiguous(rng: Rng) -> transducers.Automaton:
    labels = [
        transducers.Labels(frozenset(names), coin(rng, 0.3)) for names in (draws.CHUNKS[:2], draws.CHUNKS[3:])
    ]
    moves = [(int(rng.integers(3)), pick(rng, (*labels, None)), int(rng.integers(3))) for _ in range(6)]
    return transducers.Nfa(moves, 0, {0, int(rng.integers(3))}).determinised()


def machines(rng: Rng) -> Any:
    model = draws.chain(rng)
    pattern = pick(
        rng, (tt.valid_bio, lambda: tt.regular(_automaton(rng)), lambda: tt.regular(_ambiguous(rng)))
    )
    encoding = pick(rng, (None, "pairs", "split"))
    nouns = tt.count(state=["B-NP", "I-NP"], name="nouns")

    def answers() -> list[Any]:
        reduced = tt.transduce(model, LongChunks(), pattern(), encoding=encoding)
        (long,) = reduced.statistics
        found = tt.profile(reduced, [long, nouns])
        spread = tt.distribution(reduced, [long])
        return [
            [reduced.model, Text(repr(reduced)), found, asked(found.top, 3)],
            [spread, spread.counts, asked(spread.marginals), asked(spread.sample, 3, rng=1)],
            asked(tt.k_best, reduced, 3, [long]),
            asked(tt.solve, reduced, [nouns], draws.objective(rng), where=long <= 1),
            LongChunks().run([pick(rng, draws.CHUNKS) for _ in range(6)]),
        ]

    return asked(answers)


# --- parsing ------------------------------------------------------------------------------------------------


def parses(rng: Rng) -> Any:
    forest = draws.forest(rng, longest=9)
    return [
        asked(forest.best),
        asked(forest.log_partition),
        asked(forest.expectations),
        asked(forest.max_bracket, pick(rng, (0.0, 0.3))),
        asked(lambda: forest.score(forest.best().tree)),
        Text(forest.price),
    ]


def _truth(rng: Rng, forest: parsing.Forest) -> parsing.Tree:
    """Return one of the best few trees; if there are none, any tree with as many words."""
    found = parsing.k_best(forest, 5)
    return pick(rng, found).tree if found else draws.tree(rng, len(forest.words))


def tree_profiles(rng: Rng) -> Any:
    forest = draws.forest(rng)
    statistics = draws.tree_statistics(rng, _truth(rng, forest), int(rng.integers(1, 4)))
    objective = draws.objective(rng)

    def answers() -> list[Any]:
        found = parsing.profile(forest, statistics)
        if not len(found):
            return [found, asked(found.best)]
        tally = found.tallies[rng.integers(len(found))].tolist()
        return [
            found,
            found.at(*tally),
            asked(found.best),
            asked(found.top, 3, objective),
            asked(lambda: islice(found.ranked(objective), 4)),
        ]

    return [asked(parsing.plan, forest, statistics, memory_limit=2.0**30), asked(answers)]


def tree_constraints(rng: Rng) -> Any:
    forest = draws.forest(rng)
    statistics = draws.tree_statistics(rng, _truth(rng, forest), 2)
    where, objective = draws.constraint(rng, statistics), draws.objective(rng)
    limit = int(rng.integers(500, 20000))
    return [
        asked(parsing.plan, forest, where=where, memory_limit=2.0**30),
        asked(parsing.solve, forest, where=where),
        asked(parsing.solve, forest, statistics, objective, where=where),
        asked(parsing.k_best, forest, 4, where=where),
        asked(parsing.solve, forest, where=where & (parsing.count() >= 30)),
        asked(parsing.plan, forest, statistics, memory_limit=limit),
    ]


def tree_ranking(rng: Rng) -> Any:
    forest = draws.forest(rng)
    statistics = draws.tree_statistics(rng, _truth(rng, forest), 1)
    return [
        asked(parsing.k_best, forest, int(rng.integers(1, 10))),
        asked(parsing.k_best, forest, 4, statistics, draws.objective(rng)),
        asked(lambda: islice(parsing.iter_best(forest, statistics), 4)),
        asked(parsing.diverse_k_best, forest, 3, int(rng.integers(1, 4))),
    ]


def tree_distributions(rng: Rng) -> Any:
    forest = draws.forest(rng)
    statistics = draws.tree_statistics(rng, _truth(rng, forest), int(rng.integers(1, 3)))

    def answers() -> list[Any]:
        found = parsing.distribution(forest, statistics)
        tally = found.tallies[rng.integers(len(found.tallies))].tolist()
        return [
            [found, found.mean(), found.marginal(0), found.sample(3, rng=1)],
            [
                found.sample(2, tally=tally, rng=2),
                found.expectations(),
                asked(found.expectations, tally=tally),
            ],
        ]

    return asked(answers)


def tree_losses(rng: Rng) -> Any:
    forest = draws.forest(rng)
    truth = _truth(rng, forest)
    where = draws.constraint(rng, draws.tree_statistics(rng, truth, 1)) if coin(rng, 0.3) else None
    options = {"where": where, "prune": coin(rng, 0.7)}
    other = draws.tree(rng, len(forest.words))
    answers = []
    for kind in TREE_LOSSES:
        loss, margin = kind(truth), pick(rng, (0.5, 1.0, 3.0))
        found = [
            asked(parsing.loss_augmented, forest, loss, s, margin=margin, **options)
            for s in ("margin", "slack")
        ]
        answers.append([asked(loss, other), found])
    return answers


def tree_paths(rng: Rng) -> Any:
    forest = draws.forest(rng)
    loss = pick(rng, TREE_LOSSES)(_truth(rng, forest))

    def answers(scaling: Any) -> list[Any]:
        path = parsing.loss_augmented_path(forest, loss, 0.0, 20.0, scaling)
        return [path, path.breakpoints, path.value(1.5), path.at(2.5)]

    return [asked(answers, scaling) for scaling in ("margin", "slack")]


def treebanks(rng: Rng) -> Any:
    """Ask for the grammar of some trees, and for what it says of another sentence."""
    trees = [draws.tree(rng, int(rng.integers(2, 8))) for _ in range(rng.integers(2, 8))]
    shape = {"horizontal": pick(rng, (None, 0, 1, 2)), "vertical": int(rng.integers(1, 4))}
    shape |= {"tail": pick(rng, ("pair", "single")), "unaries": pick(rng, ("collapse", "keep"))}
    made = [parsing.binarise(tree, **shape) for tree in trees]

    def answers() -> list[Any]:
        grammar = parsing.Grammar.from_treebank(trees, **shape)
        forest = parsing.Forest(grammar, [pick(rng, (*draws.WORDS, "Fishes")) for _ in range(5)])
        rules = [grammar.symbols, grammar.binary, grammar.binary_scores, grammar.unary, grammar.unary_scores]
        guesses = [parsing.Forest(grammar, tree.words).best().tree for tree in trees]
        judged = parsing.score_brackets(trees, guesses)
        return [rules, grammar.word_scores(forest.words), asked(forest.best), guesses, judged]

    restored = [parsing.unbinarise(tree) for tree in made]
    counts = [sorted(map(str, tree.constituents().elements())) for tree in trees]
    return [made, restored, counts, [tree.pretty() for tree in trees], asked(answers)]


def word_scores(rng: Rng) -> Any:
    """Ask about a longer sentence under scores of words that come from elsewhere."""
    rules = draws.grammar(rng)
    n = int(rng.integers(8, 22))
    tags = np.where(rules.word_scores(draws.WORDS).max(axis=0) > -np.inf, 0.0, -np.inf)
    tags = tags + rng.normal(size=(n, len(rules.symbols))).round(2)
    forest = parsing.Forest(rules, ["x"] * n, word_scores=tags)
    size = parsing.count(name="size")
    profile = asked(parsing.profile, forest, [size, parsing.count("A")])
    spread = asked(lambda: parsing.distribution(forest, [size]))
    return [asked(forest.best), asked(forest.log_partition), profile, spread]
