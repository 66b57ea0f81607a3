"""Train on real corpora for several losses, next to sklearn-crfsuite on the same features.

``make experiments`` runs everything; ``python experiments/run.py --help`` has ways to run less.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import sklearn_crfsuite
from data import Task, base_noun_phrases, chunking, tagging
from planes import compare
from sklearn.exceptions import ConvergenceWarning

import tallytree as tt
from tallytree.learning import FrankWolfe, SequenceSVM, accuracy, corpus_f

DATA = Path(__file__).parents[2] / "shared" / "data"
TOKENS = tt.losses.FBeta(background="O")
CHUNKS = tt.losses.ChunkFBeta()
TASKS = ["chunking", "tagging", "base-np", "planes"]


class Row(NamedTuple):
    """A line of the table."""

    name: str
    score: float
    seconds: float
    note: str = ""


def crfsuite(task: Task) -> Iterator[tuple[str, Any]]:
    yield "sklearn-crfsuite, L-BFGS", sklearn_crfsuite.CRF(algorithm="lbfgs", c2=1.0)
    yield "sklearn-crfsuite, averaged perceptron", sklearn_crfsuite.CRF(algorithm="ap", max_iterations=50)


def machines(kind: str, tolerance: float, passes: int) -> Iterator[tuple[str, SequenceSVM]]:
    """Yield what to train. The values of C were chosen on 1,000 training sentences and 500 others."""
    common = {"tolerance": tolerance, "max_passes": passes}
    few = {"solver": FrankWolfe(averaging=True), "tolerance": 0.0, "max_passes": 6}
    yield "Hamming, margin, average of 6 passes", SequenceSVM(C=0.1, **few)
    yield "Hamming, margin", SequenceSVM(C=0.1, **common)
    if kind == "chunks":
        yield "F1 of tokens, slack", SequenceSVM(TOKENS, scaling="slack", C=0.3, **common)
        yield "F1 of chunks, slack", SequenceSVM(CHUNKS, scaling="slack", C=0.3, **common)


def judged(kind: str, truths: list[list[str]], found: list[Any]) -> float:
    if kind == "tags":
        return 100 * accuracy(truths, found)
    return 100 * corpus_f(truths, [list(one) for one in found], CHUNKS).f


def trained(name: str, estimator: Any, task: Task, kind: str) -> Row:
    started = time.perf_counter()
    estimator.fit(task.train_features, task.train_labels)
    seconds = time.perf_counter() - started
    score = judged(kind, task.test_labels, estimator.predict(task.test_features))
    return Row(name, score, seconds, note(estimator))


def note(estimator: Any) -> str:
    if not isinstance(estimator, SequenceSVM):
        return ""
    oracle, last = estimator._trained.oracle, estimator.history_[-1]
    speed = oracle.calls / oracle.seconds
    return f"{last.number} passes, gap {100 * last.relative_gap:.2g} %, {speed:,.0f} oracle calls/s"


def experiment(title: str, task: Task, kind: str, arguments: argparse.Namespace) -> None:
    print(f"\n## {title}: {len(task.train_labels):,} sentences, judged on {len(task.test_labels):,}\n")
    print("| | " + ("accuracy" if kind == "tags" else "F1 of chunks") + " | seconds | of L-BFGS | |")
    print("| --- | ---: | ---: | ---: | --- |")
    baseline = None
    everything = [*crfsuite(task), *machines(kind, arguments.tolerance, arguments.passes)]
    for name, estimator in everything:
        if arguments.only and arguments.only not in name:
            continue
        row = trained(name, estimator, task, kind)
        baseline = row.seconds if baseline is None else baseline
        ratio = row.seconds / baseline
        print(f"| {row.name} | {row.score:.2f} | {row.seconds:.0f} | {ratio:.2f} | {row.note} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="the folder with conll2000/ and wsj/")
    parser.add_argument("--sentences", type=int, help="learn from as many sentences only")
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--tolerance", type=float, default=0.02, help="the relative gap to stop at")
    parser.add_argument("--task", choices=TASKS, action="append")
    parser.add_argument("--only", help="only what has this in its name")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore", ConvergenceWarning)
    wanted = arguments.task or TASKS
    if not arguments.data.exists():
        sys.exit(f"there is no data in {arguments.data}; name its folder with --data")
    if "chunking" in wanted:
        path = arguments.data / "conll2000" / "train.txt"
        experiment("Chunking, CoNLL-2000", chunking(path, arguments.sentences), "chunks", arguments)
    if "tagging" in wanted:
        task = tagging(arguments.data / "wsj", arguments.sentences)
        experiment("Tagging, treebank sample", task, "tags", arguments)
    if "base-np" in wanted:
        task = base_noun_phrases(arguments.data / "wsj", arguments.sentences)
        experiment("Base noun phrases, treebank sample", task, "chunks", arguments)
    if "planes" in wanted:
        compare(arguments.data / "conll2000" / "train.txt", arguments.sentences or 300, 0.05)


if __name__ == "__main__":
    main()
