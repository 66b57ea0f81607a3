"""Constituency parsing on the Penn Treebank sample: quality, speed and NLTK, F1-slack inference, memory.

The tables are printed as they stand in ``docs/parsing.md``.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from common import DATA, Row, paste, slope
from parsing_memory import forecasts
from parsing_nltk import beside_nltk

import tallytree as tt
from tallytree import parsing

TREEBANK = DATA / "wsj"

GRAMMARS: dict[str, dict[str, Any]] = {
    "h=0 v=1, single": {"horizontal": 0, "vertical": 1, "tail": "single"},
    "h=1 v=1": {"horizontal": 1, "vertical": 1},
    "h=2 v=2": {"horizontal": 2, "vertical": 2},
}
COMPACT = "h=0 v=1, single"


def main(*, quick: bool = False) -> dict[str, list[Row]]:
    if not TREEBANK.is_dir():
        print(f"parsing: skipped, there is no treebank in {TREEBANK} (set TALLYTREE_DATA)\n")
        return {}
    train, dev = (parsing.read_treebank(TREEBANK / f"{name}.mrg") for name in ("train", "dev"))
    short = [tree for tree in dev if len(tree) <= 40][: 20 if quick else None]
    grammars = {name: parsing.Grammar.from_treebank(train, **o) for name, o in GRAMMARS.items()}

    data = {"quality": [quality(name, grammar, short) for name, grammar in grammars.items()]}
    paste(f"{len(short)} sentences of up to 40 words of dev.mrg", data["quality"], CONVENTIONS)

    lengths, seconds = ((4, 6), 20.0) if quick else ((4, 6, 8, 10, 12, 14, 16, 18, 20), 100.0)
    data["nltk"] = beside_nltk(grammars[COMPACT], train, lengths, seconds)
    if data["nltk"]:
        paste(f"NLTK's ViterbiParser, {COMPACT}", [*data["nltk"], exponents(data["nltk"])], NLTK)

    sizes = (10, 20) if quick else (10, 20, 30, 40)
    measured = [slack(grammars, train, n, 2 if quick else 5) for n in sizes]
    data["slack"], data["operations"] = [row for row, _ in measured], [row for _, row in measured]
    paste("F1, slack scaling: seconds", [*data["slack"], exponents(data["slack"])], SLACK)
    paste("F1, slack scaling: add-max operations", [*data["operations"], exponents(data["operations"])])

    data["memory"] = forecasts(quick)
    if data["memory"]:
        paste("memory: forecast and measured", data["memory"], MEMORY)
    return data


CONVENTIONS = (
    "Grammars counted on train.mrg. F1 of labelled brackets over all sentences together, by the usual "
    "scorer's conventions: words tagged , : `` '' . are taken out first, PRT counts as ADVP, tags and the "
    "outermost empty bracket are no constituents, a sentence without a parse has no brackets "
    "(score_brackets). Sentences/s: from words to a certified tree."
)
NLTK = (
    "One sentence of train.mrg of each length, the same rules, the same best score; best of three, NLTK once."
)
SLACK = (
    "Sentences of train.mrg; the median of five of each length. Full chart: one sentence, strategy='full'. "
    "Exponents of a power law in the number of words, least squares on logarithms."
)
MEMORY = "Growth of the resident set in a separate process, from the forest to the parse."


def quality(name: str, grammar: parsing.Grammar, trees: list[parsing.Tree]) -> Row:
    """F1 of the best tree, and of the one with the most expected brackets."""
    row: Row = {"grammar": name, "symbols": len(grammar.symbols), "binary rules": len(grammar.binary)}
    for title, decode in (
        ("best tree", parsing.Forest.best),
        ("max_bracket(0.3)", lambda forest: forest.max_bracket(0.3)),
    ):
        start, found = time.perf_counter(), []
        for tree in trees:
            try:
                found.append(decode(parsing.Forest(grammar, tree.words)).tree)
            except tt.InfeasibleError:
                found.append(None)
        seconds = time.perf_counter() - start
        scores = parsing.score_brackets(trees, found)
        row |= {f"F1, {title}": scores.f1, f"sentences/s, {title}": len(trees) / seconds}
    return row | {"no parse": scores.failed}


def slack(
    grammars: dict[str, parsing.Grammar], train: list[parsing.Tree], words: int, count: int
) -> tuple[Row, Row]:
    """Seconds and operations of one inference and, on the compact grammar, of the full chart."""
    trees = [tree for tree in train if len(tree) == words][:count]
    seconds: Row = {"words": words}
    operations: Row = {"words": words}
    for name, grammar in grammars.items():
        found = [infer(grammar, tree, "auto") for tree in trees]
        seconds[f"{name} s"] = float(np.median([s for s, _ in found]))
        operations[name] = float(np.median([spent(proof) for _, proof in found]))
    seconds["full chart s"], proof = infer(grammars[COMPACT], trees[0], "full")
    price = proof.price
    operations |= {"full chart": price.operations, "tallies R": price.tallies}
    return seconds, operations | {"forecast MiB": price.peak_bytes / 2**20}


def spent(proof: Any) -> float:
    """Return the operations of a chart, or of all passes of a search by bounds."""
    if isinstance(proof, parsing.TreeBoundsCertificate):
        return len(proof.passes) * proof.chart.operations
    operations: float = proof.price.operations
    return operations


def infer(grammar: parsing.Grammar, tree: parsing.Tree, strategy: str) -> tuple[float, Any]:
    """Return the seconds from words to the most violating tree, and its certificate."""
    start = time.perf_counter()
    forest = parsing.Forest(grammar, tree.words)
    found = parsing.loss_augmented(forest, tt.losses.FBeta(tree), "slack", strategy=strategy)
    seconds = time.perf_counter() - start
    return seconds, found.certificate


def exponents(rows: list[Row]) -> Row:
    """Return the last line of a table: for each column the exponent of a power law in the number of words."""
    words = [row["words"] for row in rows]
    fitted = {
        key: slope(words, [row[key] for row in rows]) for key in rows[0] if key not in ("words", "same")
    }
    return {"words": "exponent", **{key: f"{value:.1f}" for key, value in fitted.items()}}
