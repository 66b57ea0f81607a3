"""Losses of a whole corpus: how many passes and cells the search takes, and how long."""

from __future__ import annotations

import time
from typing import Any

from chunking import CORPUS, corpus
from common import Row, show

import tallytree as tt


def row(size: int, loss: Any, scaling: Any, margin: float) -> Row:
    models, truths = corpus(size)
    start = time.process_time()
    found = tt.loss_augmented_corpus(models, truths, loss, scaling, margin=margin)
    return {
        "sentences": size,
        "loss": type(loss).__name__,
        "scaling": scaling,
        "margin": margin,
        "tallies": found.report.tallies,
        "passes": found.report.multipliers,
        "cells": found.report.cells,
        "processor s": time.process_time() - start,
    }


def main(*, quick: bool = False) -> dict[str, list[Row]]:
    if not CORPUS.is_file():
        print(f"corpus: skipped, {CORPUS} is not there (set TALLYTREE_DATA)\n")
        return {}
    f1, iou = tt.losses.FBeta(background="O"), tt.losses.IntersectionOverUnion(background="O")
    chunks = tt.losses.ChunkFBeta()
    rows = []
    for size in (50, 100) if quick else (100, 1000, 8936):
        rows.append(row(size, f1, "margin", float(size)))
        rows.append(row(size, f1, "slack", 1.0))
        rows.append(row(size, iou, "slack", 1.0))
        rows.append(row(size, chunks, "margin", float(size)))
        rows.append(row(size, chunks, "slack", 1.0))
    show("Losses of a corpus, CoNLL-2000, scores from counts", rows)
    return {"corpus": rows}
