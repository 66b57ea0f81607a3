"""Losses of sentences and of chunks, and losses of a corpus as a whole, by their definitions."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from draws import Rng, case, instruction_set, model_of
from on_losses import LOSSES, positives, scaled, truth_of
from oracle import Case, expect, near

import tallytree as tt

Sentence = list[Any]
STYLES = ("normal", "ties", "decimals")
TAGS = ("O", "B-X", "I-X", "B-Y")


def grams(sentence: Sentence, n: int) -> Counter[tuple[Any, ...]]:
    """Count the n-grams of a sentence."""
    return Counter(tuple(sentence[i : i + n]) for i in range(len(sentence) - n + 1))


def bleu(y: Sentence, references: list[Sentence], order: int, clip: bool) -> float:
    """Return one minus BLEU."""
    closest = min(references, key=lambda one: (abs(len(one) - len(y)), len(one)))
    if not y:
        return 0.0 if not closest else 1.0
    product_of = 1.0
    for n in range(1, order + 1):
        found = grams(y, n)
        most = {g: max(grams(one, n)[g] for one in references) for g in found}
        right = sum(min(k, most[g]) if clip else k * bool(most[g]) for g, k in found.items())
        product_of *= right / sum(found.values()) if found else 0.0
    brevity = 1.0 if len(y) >= len(closest) else math.exp(1 - len(closest) / len(y))
    return 1 - brevity * product_of ** (1 / order)


def rouge_n(y: Sentence, references: list[Sentence], n: int, clip: bool) -> float:
    """Return one minus ROUGE-N."""
    found, right, whole = grams(y, n), 0, 0
    for one in references:
        whole += sum(grams(one, n).values())
        right += sum(min(k, found[g]) if clip else found[g] for g, k in grams(one, n).items())
    return max(0.0, 1 - right / whole) if whole else 0.0


def common(x: Sentence, y: Sentence) -> int:
    """Return the length of the longest common subsequence."""
    if not x or not y:
        return 0
    if x[-1] == y[-1]:
        return 1 + common(x[:-1], y[:-1])
    return max(common(x[:-1], y), common(x, y[:-1]))


def rouge_l(y: Sentence, references: list[Sentence], beta: float) -> float:
    """Return one minus ROUGE-L."""
    measures = []
    for one in references:
        length = common(y, one)
        whole = len(y) + beta**2 * len(one)
        measures.append((1 + beta**2) * length / whole if whole else 1.0)
    return 1 - sum(measures) / len(measures)


def chunks(labels: Sentence) -> set[tuple[str, int, int]]:
    """Return the chunks of a sentence: its type, where it begins and where it ends."""
    found, begin = set(), 0
    for at in range(1, len(labels) + 1):
        goes_on = at < len(labels) and labels[at] == f"I-{labels[begin][2:]}"
        if not goes_on:
            if labels[begin] != "O":
                found.add((labels[begin][2:], begin, at - 1))
            begin = at
    return found


def chunk_f1(y: Sentence, truth: Sentence) -> float:
    """Return one minus the F-measure of chunks."""
    found, gold = chunks(y), chunks(truth)
    return LOSSES["FBeta"]((len(found & gold), len(found - gold), len(gold)))


def drawn_loss(rng: Rng, states: int, length: int) -> tuple[Any, Callable[[Sentence], float]]:
    """Draw a loss of sentences, and its definition (nan for no sentence); at times a label ends it."""
    end = int(rng.integers(0, states)) if rng.random() < 0.4 else None
    words = [w for w in range(states) if w != end]
    references = [
        [int(w) for w in rng.choice(words, int(rng.integers(1, length + 2)))]
        for _ in range(int(rng.integers(1, 3)))
    ]
    n, clip, beta = int(rng.integers(1, 4)), bool(rng.random() < 0.5), float(rng.choice([0.5, 1.0, 2.0]))
    loss, value = [
        (tt.losses.Bleu(references, max_order=n, clip=clip, end=end), lambda y: bleu(y, references, n, clip)),
        (tt.losses.RougeN(references, n=n, clip=clip, end=end), lambda y: rouge_n(y, references, n, clip)),
        (tt.losses.RougeL(references, beta=beta, end=end), lambda y: rouge_l(y, references, beta)),
    ][int(rng.integers(0, 3))]

    def of(y: Sentence) -> float:
        words = y[: y.index(end)] if end in y else y
        return math.nan if set(y[len(words) :]) - {end} else value(words)

    return loss, of


def check(rng: Rng, drawn: Case, model: tt.Model, loss: Any, costs: np.ndarray, truth: np.ndarray) -> None:
    """Compare the worst labelling with the values of all of them."""
    scaling, margin = str(rng.choice(["margin", "slack"])), float(rng.choice([0.5, 1.0, 3.0]))
    values = scaled(drawn, truth, costs, scaling, margin)
    found = tt.loss_augmented(model, loss, scaling, margin=margin, truth=truth)
    row, best = drawn.number(found.assignment), float(values.max())
    expect(near(found.loss, float(costs[row]), 1e-9), "loss", loss, found.loss, costs[row])
    expect(near(float(values[row]), best, 1e-9 * (1 + abs(best))), "worst", loss, values[row], best)


def sentences(rng: Rng) -> None:
    """The worst sentence for BLEU and ROUGE; references need not be as long as the chain."""
    instruction_set(rng)
    drawn = case(rng, kind="chain", styles=STYLES, counts=0)
    loss, of = drawn_loss(rng, drawn.cardinalities[0], len(drawn.cardinalities))
    costs = np.array([of(y) for y in drawn.labellings.tolist()])
    model, drawn.scores[np.isnan(costs)] = model_of(drawn), -np.inf
    truth = truth_of(rng, drawn)
    if truth is not None:
        check(rng, drawn, model, loss, np.nan_to_num(costs), truth)


def chunked(rng: Rng) -> None:
    """The worst labelling for the F-measure of chunks, alone and in batches."""
    instruction_set(rng)
    drawn = case(rng, kind="chain", styles=STYLES, counts=0)
    tags = TAGS[: drawn.cardinalities[0]]
    model = tt.Model(drawn.cardinalities, drawn.factors, states=[tags] * len(drawn.cardinalities))
    truth = truth_of(rng, drawn)
    assert truth is not None
    named = [[tags[s] for s in y] for y in drawn.labellings.tolist()]
    right = [tags[s] for s in truth]
    costs = np.array([chunk_f1(y, right) for y in named])
    check(rng, drawn, model, tt.losses.ChunkFBeta(right), costs, truth)
    scaling = str(rng.choice(["margin", "slack"]))
    found = tt.loss_augmented_batch([model] * 2, tt.losses.ChunkFBeta(), scaling, truths=[right] * 2)
    for one in found:
        drawn.expect_solution(one, scaled(drawn, truth, costs, scaling, 1.0), f"chunks {scaling}")


def corpus(rng: Rng) -> None:
    """The worst labellings of several models together, by a loss of all their nodes."""
    drawn = [case(rng, styles=STYLES, counts=0, most=24, variables=4) for _ in range(int(rng.integers(1, 4)))]
    drawn = drawn[:2] if math.prod(len(d.scores) for d in drawn) > 3000 else drawn
    truths = [d.labellings[int(rng.integers(0, len(d.labellings)))] for d in drawn]
    name, background = str(rng.choice(["FBeta", "Precision", "Recall", "IntersectionOverUnion"])), 0
    scaling, margin = str(rng.choice(["margin", "slack"])), float(rng.choice([0.5, 1.0, 3.0]))
    counts = [[positives(y, t, background) for y in d.labellings] for d, t in zip(drawn, truths, strict=True)]
    base = sum(float(d.scores[d.number(t)]) for d, t in zip(drawn, truths, strict=True))
    best = -math.inf
    for rows in product(*(range(len(d.scores)) for d in drawn)):
        total = np.sum([counts[k][row] for k, row in enumerate(rows)], axis=0).tolist()
        more = sum(float(d.scores[row]) for d, row in zip(drawn, rows, strict=True)) - base
        cost = LOSSES[name](tuple(total))
        best = max(best, margin * cost + more if scaling == "margin" else cost * (margin + more))
    loss = getattr(tt.losses, name)(background=background)
    models = [model_of(d) for d in drawn]
    found = tt.loss_augmented_corpus(models, truths, loss, scaling, margin=margin)
    expect(near(found.value, best, 1e-9 * (1 + abs(best))), f"corpus {name} {scaling}", found.value, best)
