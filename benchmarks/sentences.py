"""Sentence losses at realistic lengths, by bounds, and hand-written C++ (``../shared/limit/pruned``).

A chain of 40 words and a vocabulary of 40; the score of the reference's word is raised by a *bonus*. *ms* is
the whole call, from a model to a certified labelling; *search ms* the compiled search alone, with prepared
arrays, to be compared with *pruned ms*: C++ that knows BLEU-4 and ROUGE-L, one reference and margin scaling.
They are run in turns; BLEU-4 by *pruned* runs once. All figures are the worst of three problems.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pruned
from common import Row, interleaved, show

import tallytree as tt
from tallytree.losses.query import loss_query
from tallytree.running.sentences import Searched, chain_tables, search, sentence_problem
from tallytree.transducers.encodings import alphabets_of

LOSSES: dict[str, Callable[[Any], Any]] = {
    "Bleu(4)": tt.losses.Bleu,
    "RougeN(2)": tt.losses.RougeN,
    "RougeN(1)": lambda reference: tt.losses.RougeN(reference, 1),
    "RougeL": tt.losses.RougeL,
}
PRUNED = {"Bleu(4)": "bleu", "RougeL": "rouge"}


def speech(length: int, words: int, bonus: float, seed: int) -> tuple[Any, Any, list[int]]:
    """Return scores of words and of pairs, and a reference."""
    rng = np.random.default_rng(seed)
    reference = rng.integers(0, words, length)
    unary = rng.normal(size=(length, words)) + bonus * (np.arange(words) == reference[:, None])
    return unary, 0.5 * rng.normal(size=(words, words)), reference.tolist()


def one(name: str, scaling: str, bonus: float, margin: float, seed: int, length: int, quick: bool) -> Row:
    """Time one problem."""
    unary, pairs, reference = speech(length, 40, bonus, seed)
    model, loss = tt.Model.chain(unary, pairs), LOSSES[name](reference)
    asked = loss_query(model, loss)
    tables, alphabets, measured = chain_tables(model), alphabets_of(model), asked.loss.measured()
    problem, truth = sentence_problem(tables, alphabets, measured), np.array(reference)
    wanted = Searched(scaling, margin, asked.truth_score, (truth,), 1e8, 2.0**31)
    native = pruned.module(PRUNED[name], PRUNED[name]) if name in PRUNED and scaling == "margin" else None
    contenders: dict[str, Callable[[], Any]] = {
        "ms": lambda: tt.loss_augmented(model, loss, scaling, margin=margin),
        "search ms": lambda: search(problem, wanted),
    }
    if native is not None and name == "RougeL":
        contenders["pruned ms"] = lambda: native.solve(unary, pairs, truth, margin)
    times = interleaved(contenders, rounds=5, budget=0.2 if quick else 0.6, clock=time.process_time)
    found = tt.loss_augmented(model, loss, scaling, margin=margin)
    row = {column: seconds * 1e3 for column, seconds in times.items()} | {"cells": found.certificate.cells}
    if native is not None and not quick:
        start = time.process_time()
        value, _, state = native.solve(unary, pairs, truth, margin)
        row.setdefault("pruned ms", (time.process_time() - start) * 1e3)
        same = abs(value - asked.truth_score - found.value) < 1e-8
        assert same or state["failed"], (name, bonus, margin, seed)
    return row


def worst(name: str, scaling: str, bonus: float, margin: float, length: int, quick: bool) -> Row:
    """Return the worst figures of three problems."""
    rows = [one(name, scaling, bonus, margin, seed, length, quick) for seed in range(1 if quick else 3)]
    columns = {key for row in rows for key in row}
    figures = {key: max(row.get(key, float("nan")) for row in rows) for key in sorted(columns)}
    return {"loss": name, "M": length, "scaling": scaling, "bonus": bonus, "margin": margin, **figures}


def main(*, quick: bool = False) -> dict[str, list[Row]]:
    rows = [
        worst(name, scaling, bonus, margin, 40, quick)
        for name in LOSSES
        for scaling in ("margin", "slack")
        for margin in (1.0, 4.0, 10.0)
        for bonus in ((3.0,) if quick else (0.0, 2.0, 3.0, 4.0, 5.0))
    ]
    show("Sentences of 40 words by bounds", rows)
    return {"sentences": rows}
