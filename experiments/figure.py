"""The paper's figure: run-time against the length of a sentence, for three tasks and every loss that applies.

Points, tables and pictures are written to ``build/figure``.
"""

import csv
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from data import base_noun_phrases, tagging
from figure_charts import Chart, parsing_questions
from figure_picture import draw, save
from figure_questions import OTHER, SLACK, Question, Sentence, chunking
from figure_questions import tagging as tagging_questions
from options import Options

import tallytree as tt
from tallytree import parsing
from tallytree.learning import FrankWolfe, SequenceSVM

OUT = Path(__file__).parents[1] / "build" / "figure"
LONGEST = 40  # words, as in the paper
FITTED = (15, LONGEST)  # words: shorter sentences say more about overheads than about degrees
BEYOND = (30, 60)  # words: degrees of operations again, where terms of lower degree matter less
ROUNDS, QUICK = 5, 0.05  # what takes less than so many seconds is timed so often, the best counts
LEARNED = 600  # sentences that the scores of chains are learned from
RATE = 2e9  # operations a second, to tell what would take too long


class Task(NamedTuple):
    """Sentences by length, each made when it is asked for, and what is asked of them."""

    name: str
    trees: bool
    questions: list[Question]
    sentences: dict[int, list[Callable[[], Any]]]

    def degree(self, counts: int | None) -> int | None:
        """Return the degree in the number of words with as many counts."""
        return None if counts is None else 3 + 2 * counts if self.trees else 1 + counts


class Point(NamedTuple):
    """One answer."""

    task: str
    question: str
    kind: str
    words: int
    seconds: float
    operations: float


class Curve(NamedTuple):
    """A question of a task, its points, and the exponents of power laws fitted to them."""

    task: Task
    question: Question
    points: list[Point]

    def known(self, what: str, within: tuple[int, int]) -> np.ndarray:
        """Return (words, seconds or operations) of the sentences of such lengths that have been measured."""
        low, high = within
        at = [(p.words, getattr(p, what)) for p in self.points if low <= p.words <= high]
        return np.array([pair for pair in at if np.isfinite(pair[1])]).reshape(-1, 2)

    def fit(self, what: str, within: tuple[int, int] = FITTED) -> tuple[float, float]:
        """Return exponent and logarithm of the factor of a power law, by least squares on logarithms."""
        known = np.log(self.known(what, within))
        if len(np.unique(known[:, 0])) < 3:
            return np.nan, np.nan
        slope, constant = np.polyfit(*known.T, 1)
        return float(slope), float(constant)

    def median(self, what: str, words: int) -> float:
        near = [getattr(p, what) for p in self.points if abs(p.words - words) <= 1]
        return float(np.median(near)) if near else np.nan


# ---------------------------------------------------------------- tasks


def tasks(options: Options) -> Iterator[Task]:
    learned = options.sentences or LEARNED
    for name, corpus, questions in (
        ("tagging", tagging, tagging_questions),
        ("base noun phrases", base_noun_phrases, chunking),
    ):
        chains, classes = _chains(corpus(options.treebank, learned))
        yield Task(name, False, questions(classes), chains)
    yield Task("parsing", True, parsing_questions(), _charts(options))


def _chains(corpus: Any) -> tuple[dict[int, list[Callable[[], Sentence]]], list[str]]:
    """Score held-out sentences by an SVM after a few passes."""
    svm = SequenceSVM(C=0.1, solver=FrankWolfe(averaging=True), tolerance=0.0, max_passes=3)
    svm.fit(corpus.train_features, corpus.train_labels)
    classes = svm.classes_.tolist()
    found = defaultdict(list)
    for features, truth in zip(corpus.test_features, corpus.test_labels, strict=True):
        if set(truth) <= set(classes):

            def make(features: Any = features, truth: list[str] = truth) -> Sentence:
                unary = svm.encoder_.rows(features) @ svm.emissions_
                return Sentence(tt.Model.chain(unary, svm.transitions_, states=classes), truth)

            found[len(truth)].append(make)
    return found, classes


def _charts(options: Options) -> dict[int, list[Callable[[], Chart]]]:
    """Take the sentences that the grammar was counted on, as training does; of long ones only the plans."""
    trees = parsing.read_treebank(options.treebank / "train.mrg")
    grammar = parsing.Grammar.from_treebank(trees, horizontal=0, vertical=1, tail="single")
    found = defaultdict(list)
    for tree in trees:
        if len(tree) % 3 == 1:  # 4, 7, …, 40 words, and on
            most = RATE * options.seconds / 12 if len(tree) <= LONGEST else 0.0
            found[len(tree)].append(lambda tree=tree, most=most: Chart(grammar, tree, most))
    return found


# ---------------------------------------------------------------- measuring


def measured(task: Task, seconds: float) -> Iterator[Point]:
    """Ask about one sentence of each length, then about further ones while there is time."""
    end = time.perf_counter() + seconds
    lengths = sorted(words for words in task.sentences if 4 <= words <= BEYOND[1])
    for number in range(max(len(task.sentences[words]) for words in lengths)):
        for words in lengths:
            if number and time.perf_counter() > end:
                return
            if number < len(task.sentences[words]):
                yield from _points(task, words, task.sentences[words][number]())
        print(f"{task.name}: {number + 1} sentence(s) of each length", file=sys.stderr)


def _points(task: Task, words: int, sentence: Any) -> Iterator[Point]:
    """Ask all questions in turn, quick ones several times."""
    best = {question: question.ask(sentence) for question in task.questions}
    for _ in range(ROUNDS - 1):
        for question in [question for question in best if best[question].seconds < QUICK]:
            best[question] = min(best[question], question.ask(sentence))
    for question, answer in best.items():
        yield Point(task.name, question.name, question.kind, words, *answer)


def curves(task: Task, points: list[Point]) -> list[Curve]:
    by_question = defaultdict(list)
    for point in points:
        by_question[point.question, point.kind].append(point)
    return [Curve(task, q, by_question[q.name, q.kind]) for q in task.questions]


# ---------------------------------------------------------------- tables


def table(found: list[Curve]) -> Iterator[str]:
    """One line for losses of the same degrees; of several slopes and times the least and the largest."""
    yield "| task | losses | | paper | theory | operations | 30 to 60 words | time | 20 words | 40 words |"
    yield "| --- | --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    groups = defaultdict(list)
    for curve in found:
        groups[curve.task.name, curve.question.kind, curve.question.counts].append(curve)
    for (task, kind, (ours, paper)), group in groups.items():
        names = ", ".join(curve.question.name for curve in group)
        cells = [task, names, kind, *map(_whole, map(group[0].task.degree, (paper, ours)))]
        fits = (("operations", FITTED), ("operations", BEYOND), ("seconds", FITTED))
        cells += [_range([curve.fit(*fit)[0] for curve in group], _decimal) for fit in fits]
        lengths = (20, 40)
        cells += [_range([curve.median("seconds", n) for curve in group], _duration) for n in lengths]
        yield f"| {' | '.join(cells)} |"


def ratios(found: list[Curve]) -> Iterator[str]:
    """Compare the other uses with slack scaling, sentence by sentence."""
    yield "| task | use | compared with slack scaling for | operations | time |"
    yield "| --- | --- | --- | ---: | ---: |"
    slack = {(c.task.name, c.question.name): c for c in found if c.question.kind == SLACK}
    for curve in found:
        if curve.question.kind == OTHER:
            other = slack[curve.task.name, curve.question.beside]
            parts = [_short(_ratio(curve, other, what)) for what in ("operations", "seconds")]
            names = (curve.task.name, curve.question.name, curve.question.beside)
            yield f"| {' | '.join((*names, *parts))} |"


def _ratio(curve: Curve, other: Curve, what: str) -> float:
    """Return the geometric mean over the sentences that both answered, of 20 words and more."""
    pairs = [
        (getattr(a, what), getattr(b, what))
        for a, b in zip(curve.points, other.points, strict=True)
        if 20 <= a.words <= LONGEST
    ]
    logs = [np.log(a / b) for a, b in pairs if np.isfinite(a) and np.isfinite(b)]
    return float(np.exp(np.mean(logs))) if logs else np.nan


def _range(numbers: list[float], text: Callable[[float], str]) -> str:
    texts = list(dict.fromkeys(text(number) for number in sorted(numbers) if np.isfinite(number)))
    return f"{texts[0]} to {texts[-1]}" if len(texts) > 1 else "".join(texts)


def _whole(number: int | None) -> str:
    return "" if number is None else f"{number:,}"


def _decimal(number: float) -> str:
    return f"{number:.1f}" if np.isfinite(number) else ""


def _short(number: float) -> str:
    return f"{number:.2g}" if np.isfinite(number) else ""


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.2g} ms" if seconds < 0.0995 else f"{seconds:.2g} s"


def run(options: Options) -> None:
    OUT.mkdir(parents=True, exist_ok=True)
    found: list[Curve] = []
    for task in tasks(options):
        points = list(measured(task, options.seconds / 3))
        found += curves(task, points)
        _write(found)
    print("\n## Run-time against length\n", *table(found), sep="\n")
    print("\n## Beside slack scaling\n", *ratios(found), sep="\n")
    print(f"\npoints.csv, tables.md, figure-seconds.png and figure-operations.png are in {OUT}")


def _write(found: list[Curve]) -> None:
    with (OUT / "points.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(Point._fields)
        writer.writerows(point for curve in found for point in curve.points)
    text = "\n".join([*table(found), "", *ratios(found), ""])
    (OUT / "tables.md").write_text(text, encoding="utf-8")
    for what in ("seconds", "operations"):
        save(draw(found, what, FITTED), OUT / f"figure-{what}.png")
