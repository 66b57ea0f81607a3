"""NLTK's Viterbi parser on the same grammar, at lengths that it can do."""

from __future__ import annotations

import time
from collections.abc import Sequence
from math import exp
from typing import Any

import numpy as np
from common import Row, best_time

from tallytree import parsing


def beside_nltk(
    grammar: parsing.Grammar, trees: list[parsing.Tree], lengths: Sequence[int], seconds: float
) -> list[Row]:
    """Time one sentence of each length, until NLTK has used a given number of seconds."""
    try:
        import nltk
    except ImportError:
        print("NLTK: skipped, not installed (it comes with the bench extra)\n")
        return []
    rows, spent = [], 0.0
    for length in lengths:
        last = rows[-1]["NLTK s"] if rows else 0.0
        if spent + 2 * last > seconds:  # the next one takes longer
            break
        words = next(tree.words for tree in trees if len(tree) == length)
        forest = parsing.Forest(grammar, words)
        parser = nltk.ViterbiParser(nltk_grammar(nltk, grammar, forest), max_time=None)
        start = time.perf_counter()
        theirs = next(parser.parse(list(map(str, range(length)))))
        took = time.perf_counter() - start
        ours = best_time(lambda words=words: parsing.Forest(grammar, words).best(), rounds=3)
        same = abs(np.log(theirs.prob()) - forest.best().score) < 1e-6
        rows.append(
            {"words": length, "tallytree s": ours, "NLTK s": took, "ratio": took / ours, "same": same}
        )
        spent += took
    return rows


def nltk_grammar(nltk: Any, grammar: parsing.Grammar, forest: parsing.Forest) -> Any:
    """Return the same rules; words are named by position, because their scores are not normalised."""

    class Weighted(nltk.PCFG):
        def __init__(self, start: Any, productions: list[Any]) -> None:
            nltk.CFG.__init__(self, start, productions)

    names = [nltk.Nonterminal(name or "ROOT") for name in grammar.symbols]
    rules = [
        nltk.ProbabilisticProduction(names[head], [names[c] for c in children], prob=exp(score))
        for table, scores in ((grammar.binary, grammar.binary_scores), (grammar.unary, grammar.unary_scores))
        for (head, *children), score in zip(table.tolist(), scores.tolist(), strict=True)
    ]
    rules += [
        nltk.ProbabilisticProduction(names[tag], [str(word)], prob=exp(score))
        for (word, tag), score in np.ndenumerate(forest.scores.words)
        if score > -np.inf
    ]
    return Weighted(names[grammar.root], rules)
