"""Charts: forecast and measured memory, each in a separate process."""

from __future__ import annotations

import gc
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from common import DATA, Row
from memory import resident

from tallytree import parsing

TRAIN = DATA / "wsj" / "train.mrg"
COMPACT = {"horizontal": 0, "vertical": 1, "tail": "single"}

Forecast = tuple[int, Callable[[], Any]]


def best_tree(forest: parsing.Forest, truth: parsing.Tree) -> Forecast:
    return forest.price.peak_bytes, forest.best


def counted(forest: parsing.Forest, statistics: list[Any]) -> Forecast:
    plan = parsing.plan(forest, statistics)
    return plan.peak_bytes, lambda: parsing.profile(forest, statistics).best()


def positives(forest: parsing.Forest, truth: parsing.Tree) -> Forecast:
    return counted(forest, [parsing.true_positives(truth), parsing.false_positives(truth)])


def tree_size(forest: parsing.Forest, truth: parsing.Tree) -> Forecast:
    return counted(forest, [parsing.count()])


CASES: dict[str, tuple[dict[str, Any], int, Callable[..., Forecast]]] = {
    "h=0 v=1, 20 words, (TP, FP)": (COMPACT, 20, positives),
    "h=2 v=2, 40 words, best tree": ({}, 40, best_tree),
    "h=2 v=2, 20 words, size": ({}, 20, tree_size),
    "h=0 v=1, 30 words, (TP, FP)": (COMPACT, 30, positives),
}


def child(name: str) -> None:
    options, words, ask = CASES[name]
    trees = parsing.read_treebank(TRAIN)
    truth = next(tree for tree in trees if len(tree) == words)
    forest = parsing.Forest(parsing.Grammar.from_treebank(trees, **options), truth.words)
    del trees
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted from here
    before = resident("VmRSS")
    forecast, run = ask(forest, truth)
    run()
    print(json.dumps({"forecast": forecast, "measured": resident("VmHWM") - before}))


def forecasts(quick: bool) -> list[Row]:
    if not Path("/proc/self/clear_refs").is_file():
        print("memory: skipped, there is no /proc here\n")
        return []
    rows: list[Row] = []
    for name in list(CASES)[: 1 if quick else None]:
        done = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True, check=True)
        found = json.loads(done.stdout)
        rows.append(
            {
                "chart": name,
                "forecast MB": found["forecast"] / 1e6,
                "measured MB": found["measured"] / 1e6,
                "measured / forecast": found["measured"] / found["forecast"],
            }
        )
    return rows


if __name__ == "__main__":
    child(sys.argv[1])
