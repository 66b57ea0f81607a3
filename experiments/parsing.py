"""Parsing of the treebank sample: estimated grammars, and parsers trained on top of them."""

import time
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

from options import Options

import tallytree as tt
from tallytree.learning import Decoder, FrankWolfe, MaxBrackets, TreeSVM
from tallytree.parsing import Forest, Grammar, Tree, read_treebank, score_brackets

SENTENCES, LONGEST = 1500, 25
COMPACT = {"horizontal": 0, "vertical": 1}
GRAMMARS = {"h=0 v=1": COMPACT, "h=1 v=1": {"horizontal": 1, "vertical": 1}, "h=2 v=2": {}}
COUNTED = MaxBrackets(0.3)  # as the benchmark of plain grammars has it
LEARNED = MaxBrackets(0.5, scale=2.0)  # chosen with the other settings, see machines()


class Row(NamedTuple):
    """A line of the table."""

    name: str
    parses: list[Tree | None]
    seconds: float
    told: tuple[str, str, str] = ("", "", "")


def run(options: Options) -> None:
    """Count and train on sentences of a length, judge on others of that length."""
    longest = options.longest or LONGEST
    train, test = (
        [tree for tree in read_treebank(options.treebank / name) if len(tree) <= longest]
        for name in ("train.mrg", "dev.mrg")
    )
    train = train[: options.sentences or SENTENCES]
    words = f"{len(train):,} sentences of up to {longest} words, judged on {len(test):,}"
    print(f"\n## Parsing, treebank sample: {words}\n")
    print("| | F1 | precision | recall | exact | seconds | passes | gap | oracle calls/s |")
    print("| --- |" + 8 * " ---: |")
    for row in chain(counted(train, test, options), learned(train, test, options)):
        s = score_brackets(test, row.parses)
        figures = " | ".join(f"{100 * part:.1f}" for part in (s.f1, s.precision, s.recall, s.exact))
        print(f"| {row.name} | {figures} | {row.seconds:.0f} | {' | '.join(row.told)} |", flush=True)


def counted(train: list[Tree], test: list[Tree], options: Options) -> Iterator[Row]:
    """Yield what plain grammars find."""
    for name, settings in GRAMMARS.items():
        if options.wants(f"{name}, estimated"):
            started = time.perf_counter()
            grammar = Grammar.from_treebank(train, **settings)
            seconds = time.perf_counter() - started
            yield Row(f"{name}, estimated", [best(Forest(grammar, tree.words)) for tree in test], seconds)
            parses = [best(Forest(grammar, tree.words), COUNTED) for tree in test]
            yield Row(f"{name}, estimated, expected brackets", parses, seconds)


def best(forest: Forest, decode: Decoder | None = None) -> Tree | None:
    try:
        return forest.best().tree if decode is None else decode(forest)
    except tt.InfeasibleError:
        return None


def machines(options: Options) -> Iterator[tuple[str, TreeSVM, MaxBrackets]]:
    """Yield what to train, and how to find expected brackets: a loss of at most 1 makes smaller scores.

    Settings were chosen on 300 training sentences, judged on 137 others of them."""
    few = {"solver": FrankWolfe(averaging=True), "tolerance": 0.0, "max_seconds": options.seconds, **COMPACT}
    yield "h=0 v=1, brackets, margin", TreeSVM(C=0.1, prior=0.3, max_passes=5, min_count=2, **few), LEARNED
    loss = tt.losses.FBeta()
    svm = TreeSVM(loss, C=2.0, prior=0.03, max_passes=3, min_count=2, **few)
    yield "h=0 v=1, F1, margin", svm, MaxBrackets(0.5, scale=20.0)


def learned(train: list[Tree], test: list[Tree], options: Options) -> Iterator[Row]:
    """Yield what trained parsers find."""
    X, new = ([tree.words for tree in trees] for trees in (train, test))
    for name, svm, decode in machines(options):
        if options.wants(name):
            started = time.perf_counter()
            svm.fit(X, train)
            seconds = time.perf_counter() - started
            yield Row(name, svm.predict(new), seconds, told(svm))
            yield Row(f"{name}, expected brackets", svm.predict(new, decode=decode), seconds)


def told(svm: Any) -> tuple[str, str, str]:
    """Return passes, gap and speed."""
    oracle, last = svm._trained.oracle, svm.history_[-1]
    return str(last.number), f"{100 * last.relative_gap:.3g} %", f"{oracle.calls / oracle.seconds:,.0f}"
