"""Constituency parsing on the Penn Treebank sample: quality, speed beside NLTK, and F1-slack inference."""

from __future__ import annotations

import time
from math import exp
from typing import Any

import numpy as np
from common import ROOT, Row, interleaved, show, slope

import tallytree as tt
from tallytree import parsing

DATA = ROOT.parent / "shared" / "data" / "wsj"

GRAMMARS: dict[str, dict[str, Any]] = {
    "h=0 v=1, single": {"horizontal": 0, "vertical": 1, "tail": "single"},
    "h=1 v=1": {"horizontal": 1, "vertical": 1},
    "h=2 v=2": {"horizontal": 2, "vertical": 2},
}
COMPACT = "h=0 v=1, single"


def main(*, quick: bool = False) -> dict[str, list[Row]]:
    if not DATA.is_dir():
        print(f"skipped: no treebank at {DATA}\n")
        return {}
    train, dev = (parsing.read_treebank(DATA / f"{name}.mrg") for name in ("train", "dev"))
    short = [tree for tree in dev if len(tree) <= 40][: 40 if quick else None]
    grammars = {name: parsing.Grammar.from_treebank(train, **o) for name, o in GRAMMARS.items()}
    data = {"quality": [quality(name, grammar, short) for name, grammar in grammars.items()]}
    show(f"{len(short)} sentences of up to 40 words", data["quality"], QUALITY)
    data["nltk"] = beside_nltk(grammars[COMPACT], short, 1 if quick else 3)
    if data["nltk"]:
        show("one sentence, the best tree of the same grammar", data["nltk"])
    sizes = (10, 20) if quick else (10, 20, 30, 40)
    data["slack"] = [slack(grammars, train, n, 2 if quick else 5) for n in sizes]
    exponents = {
        key: slope([row["words"] for row in data["slack"]], [row[key] for row in data["slack"]])
        for key in data["slack"][0]
        if key.endswith("s") and key != "words" and all(isinstance(row[key], float) for row in data["slack"])
    }
    show(
        "loss-augmented, F1, slack scaling: median of some sentences",
        data["slack"],
        "exponents: " + ", ".join(f"{key} {value:.1f}" for key, value in exponents.items()),
    )
    return data


QUALITY = (
    "F1 of labelled brackets without punctuation, PRT as ADVP (score_brackets); trained on train.mrg; "
    "sentences/s include words to certified tree"
)


def quality(name: str, grammar: parsing.Grammar, trees: list[parsing.Tree]) -> Row:
    """F1 of the best tree, and of the one with the most expected brackets."""
    row: Row = {"grammar": name, "symbols": len(grammar.symbols), "rules": len(grammar.binary)}
    for title, decode in (
        ("best", parsing.Forest.best),
        ("max bracket", lambda forest: forest.max_bracket(0.3)),
    ):
        start, found = time.perf_counter(), []
        for tree in trees:
            try:
                found.append(decode(parsing.Forest(grammar, tree.words)).tree)
            except tt.InfeasibleError:
                found.append(None)
        seconds = time.perf_counter() - start
        scores = parsing.score_brackets(trees, found)
        row |= {f"{title} F1": scores.f1, f"{title} exact": scores.exact}
        row |= {f"{title} sentences/s": len(trees) / seconds, "no parse": scores.failed}
    return row


# --- NLTK ---------------------------------------------------------------------------------------------------


def beside_nltk(grammar: parsing.Grammar, trees: list[parsing.Tree], count: int) -> list[Row]:
    try:
        import nltk
    except ImportError:
        print("NLTK: skipped, not installed (it comes with the bench extra)\n")
        return []
    rows = []
    for wanted in (6, 9, 12)[:count]:
        words = min((tree.words for tree in trees), key=lambda words: abs(len(words) - wanted))
        length = len(words)
        forest = parsing.Forest(grammar, words)
        parser = nltk.ViterbiParser(_nltk_grammar(nltk, grammar, forest), max_time=None)
        theirs = next(parser.parse(list(map(str, range(length)))))
        seconds = interleaved(
            {
                "ours": lambda words=words: parsing.Forest(grammar, words).best(),
                "NLTK": lambda parser=parser, n=length: next(parser.parse(list(map(str, range(n))))),
            },
            rounds=3,
        )
        same = abs(np.log(theirs.prob()) - forest.best().score) < 1e-6
        ratio = seconds["NLTK"] / seconds["ours"]
        times = {f"{name} s": value for name, value in seconds.items()}
        rows.append({"words": length, **times, "ratio": ratio, "same": same})
    return rows


def _nltk_grammar(nltk: Any, grammar: parsing.Grammar, forest: parsing.Forest) -> Any:
    """The same rules; words are called by their place, since their scores are not normalised."""

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


# --- F1 under slack scaling ---------------------------------------------------------------------------------


def slack(grammars: dict[str, parsing.Grammar], train: list[parsing.Tree], words: int, count: int) -> Row:
    """Seconds for one inference, with items pruned and, on the compact grammar, without."""
    trees = [tree for tree in train if len(tree) == words][:count]
    row: Row = {"words": words}
    for name, grammar in grammars.items():
        row[f"{name} s"] = float(np.median([_seconds(grammar, tree, True) for tree in trees]))
    row["all items s"] = _seconds(grammars[COMPACT], trees[0], False)
    forest = parsing.Forest(grammars[COMPACT], trees[0].words)
    plan = parsing.plan(forest, parsing.counted_loss(tt.losses.FBeta(trees[0])).statistics)
    row |= {"Gop": plan.operations / 1e9, "MiB": plan.peak_bytes / 2**20, "tallies": plan.tallies}
    return row


def _seconds(grammar: parsing.Grammar, tree: parsing.Tree, prune: bool) -> float:
    start = time.perf_counter()
    forest = parsing.Forest(grammar, tree.words)
    parsing.loss_augmented(forest, tt.losses.FBeta(tree), "slack", prune=prune)
    return time.perf_counter() - start
