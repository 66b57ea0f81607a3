"""The questions of the figure for a sentence, and how their cost should grow with the number of words M.

A chain costs ``M·N²·R`` with R tallies, a chart ``M³·R²``, and k counts that grow with the sentence make
``R ~ M^k``: so the degree in M is ``1 + k``, or ``3 + 2k``. We count fewer than the paper's table does where
nothing is lost by it: a capped count stays small, weights on a lattice are one count, and two counts that
determine each other are one.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import tallytree as tt
from tallytree.losses import Loss

MARGIN, SLACK, OTHER = "margin", "slack", "other uses"
WHOLE: dict[str, Any] = {"strategy": "full"}  # the theory is about whole tables


class Answer(NamedTuple):
    """The cost of an answer; the seconds are nan if it would take too long."""

    seconds: float
    operations: float


Ask = Callable[[Any], Answer]
Counts = tuple[int, int | None]
"""Counts that grow with the sentence: in our messages, and by the paper's table (None: not in it)."""


class Question(NamedTuple):
    """One curve."""

    name: str
    kind: str  # margin, slack or other uses
    counts: Counts
    ask: Ask
    beside: str = ""  # the loss whose slack scaling another use is compared with


class Counted(NamedTuple):
    """A loss, and what is counted for it."""

    name: str
    loss: Loss
    margin: Counts
    slack: Counts


def both_scalings(losses: list[Counted], ask: Callable[[Loss, str], Ask]) -> Iterator[Question]:
    for name, loss, margin, slack in losses:
        yield Question(name, MARGIN, margin, ask(loss, MARGIN))
        yield Question(name, SLACK, slack, ask(loss, SLACK))


def timed(run: Callable[[], Any]) -> tuple[float, Any]:
    start = time.perf_counter()
    result = run()
    return time.perf_counter() - start, result


# ---------------------------------------------------------------- chains


class Sentence(NamedTuple):
    """A chain of labels with scores, and the truth."""

    model: tt.Model
    truth: list[str]


def tagging(classes: list[str]) -> list[Question]:
    """Every word counts: true and false positives add up to M, so any loss needs one count at most."""
    losses, pairs = tt.losses, len(classes) ** 2
    weights = [[0 if a == b else 1 if a[:2] == b[:2] else 2 for b in classes] for a in classes]
    local = [
        Counted("0/1", losses.ZeroOne(), (0, 1), (0, 1)),
        Counted("Hamming", losses.HammingLoss(), (0, 0), (1, 1)),
        Counted("weighted Hamming", losses.WeightedHamming(weight=weights), (0, 0), (1, pairs)),
        Counted("false positives", losses.FalsePositives(), (0, 0), (1, 1)),
        Counted("recall", losses.Recall(), (0, 0), (1, 1)),
        Counted("precision", losses.Precision(), (0, 2), (1, 2)),
        Counted("F1", losses.FBeta(), (0, 2), (1, 2)),
        Counted("intersection over union", losses.IntersectionOverUnion(), (1, 2), (1, 2)),
        Counted("label count", losses.LabelCount(), (1, 1), (1, 1)),
    ]
    return [*both_scalings(local, _augmented), *_diverse(), _bound("Hamming", losses.HammingLoss(), (1, 1))]


def chunking(classes: list[str]) -> list[Question]:
    """Words outside of all chunks are the background, so true and false positives are two counts."""
    outside, losses, pairs = {"background": "O"}, tt.losses, len(classes) ** 2
    weights = [[0 if a == b else 2 if "O" in (a, b) else 1 for b in classes] for a in classes]
    f1 = losses.FBeta(**outside)
    local = [
        Counted("0/1", losses.ZeroOne(), (0, 1), (0, 1)),
        Counted("Hamming", losses.HammingLoss(), (0, 0), (1, 1)),
        Counted("weighted Hamming", losses.WeightedHamming(weight=weights), (0, 0), (1, pairs)),
        Counted("false positives", losses.FalsePositives(**outside), (0, 0), (1, 1)),
        Counted("recall", losses.Recall(**outside), (0, 0), (1, 1)),
        Counted("precision", losses.Precision(**outside), (2, 2), (2, 2)),
        Counted("F1", f1, (2, 2), (2, 2)),
        Counted("intersection over union", losses.IntersectionOverUnion(**outside), (2, 2), (2, 2)),
        Counted("label count", losses.LabelCount(), (1, 1), (1, 1)),
        Counted("chunk F1", losses.ChunkFBeta(), (2, None), (2, None)),
    ]
    bounds = [_bound("Hamming", losses.HammingLoss(), (1, 1)), _bound("F1", f1, (3, 2))]
    return [*both_scalings(local, _augmented), *_diverse(), *bounds]


def _augmented(loss: Loss, scaling: str) -> Ask:
    def ask(sentence: Sentence) -> Answer:
        bound = loss.against(sentence.truth)
        return _answer(lambda: [tt.loss_augmented(sentence.model, bound, scaling, **WHOLE)])

    return ask


def _diverse() -> Iterator[Question]:
    """Further outputs that differ from all before them in a quarter of the words."""
    for k, beside in ((2, "Hamming"), (3, "F1")):

        def ask(sentence: Sentence, k: int = k) -> Answer:
            distance = max(1, len(sentence.truth) // 4)
            return _answer(lambda: tt.diverse_k_best(sentence.model, k, distance, **WHOLE))

        yield Question(f"{k} diverse outputs", OTHER, (k - 1, k - 1), ask, beside)


def _bound(name: str, loss: Loss, counts: Counts) -> Question:
    """The maximum of one sentence in the generalisation bound."""

    def ask(sentence: Sentence) -> Answer:
        model, truth = sentence
        bound = loss.against(truth)
        return _answer(lambda: [tt.bounds.worst_within_margin(model, bound, truth, **WHOLE).solution])

    return Question(f"bound of {name}", OTHER, counts, ask, name)


def _answer(run: Callable[[], list[tt.Solution]]) -> Answer:
    seconds, found = timed(run)
    return Answer(seconds, sum(solution.certificate.operations for solution in found))
