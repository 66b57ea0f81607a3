"""Results of long runs: one file each, so that a run resumes where the last one ended."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tallytree.losses import chunks_of

Rows = np.ndarray
"""For each sentence to be judged by: chunks that are right, that were found, and that are true."""


class Key(NamedTuple):
    """What was run."""

    task: str
    corpus: str
    size: int | None
    seed: int
    contestant: str

    @property
    def file(self) -> str:
        name = self.contestant.replace(" ", "-").replace(",", "")
        return f"{self.task}.{self.corpus}.{self.size or 'all'}.{self.seed}.{name}.json"


class Result(NamedTuple):
    """What came out: rows for each decoder, what was chosen, and seconds of processor time."""

    key: Key
    rows: dict[str, Rows]
    chosen: dict[str, Any]
    seconds: float


def is_there(folder: Path, key: Key) -> bool:
    return (folder / key.file).exists()


def keep(folder: Path, result: Result) -> None:
    """Write a result under another name first, so that no file is ever half a result."""
    folder.mkdir(parents=True, exist_ok=True)
    rows = {name: some.tolist() for name, some in result.rows.items()}
    whole = {"key": result.key._asdict(), "rows": rows, "chosen": result.chosen, "seconds": result.seconds}
    unfinished = folder / f"{result.key.file}.unfinished"
    unfinished.write_text(json.dumps(whole))
    os.replace(unfinished, folder / result.key.file)


def kept(folder: Path, task: str) -> Iterator[Result]:
    """Yield the results of a task that are there."""
    for path in sorted(folder.glob(f"{task}.*.json")):
        found = json.loads(path.read_text())
        rows = {name: np.array(some) for name, some in found["rows"].items()}
        yield Result(Key(**found["key"]), rows, found["chosen"], found["seconds"])


def counts(truths: list[Any], found: list[Any]) -> Rows:
    """Return right, found and true chunks of each sentence."""
    rows = []
    for truth, one in zip(truths, found, strict=True):
        gold, mine = set(chunks_of(list(truth))), set(chunks_of(list(one)))
        rows.append((len(gold & mine), len(mine), len(gold)))
    return np.array(rows)


def measure(rows: Rows, beta: float) -> float:
    """Return 100 times the F-measure of all sentences together."""
    right, found, true = rows.sum(axis=0)
    return 100 * (1 + beta**2) * right / max(beta**2 * true + found, 1)


def interval(rows: list[Rows], base: list[Rows], beta: float) -> tuple[float, float, float]:
    """Return the mean difference to a base, and 95 % of what a paired bootstrap of sentences gives."""
    rng = np.random.default_rng(0)
    drawn = rng.multinomial(len(base[0]), np.full(len(base[0]), 1 / len(base[0])), size=1000)
    apart = sum(
        _measures(drawn @ a, beta) - _measures(drawn @ b, beta) for a, b in zip(rows, base, strict=True)
    )
    low, high = np.quantile(apart / len(rows), (0.025, 0.975))
    mean = np.mean([measure(a, beta) - measure(b, beta) for a, b in zip(rows, base, strict=True)])
    return float(mean), float(low), float(high)


def signed(value: float) -> str:
    """Return a difference with its sign."""
    return f"{value:+.2f}".replace("-", "−")


def ranged(interval: tuple[float, float, float]) -> str:
    """Return a mean difference and its interval."""
    mean, low, high = map(signed, interval)
    return f"{mean} ({low} to {high})"


def _measures(sums: np.ndarray, beta: float) -> np.ndarray:
    right, found, true = sums.T
    return 100 * (1 + beta**2) * right / np.maximum(beta**2 * true + found, 1)
