"""A thousand sentences at once, F1 with slack scaling: one by one, compared with C, on one and two threads.

The C (``../shared/limit``) makes tables of scores alone: it plans, chooses and decodes nothing.
Times are processor times, of all threads together, but for the gain of the second thread.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from common import Row, show, skipped, yardstick

import tallytree as tt
from tallytree.kernels import native

LOSS = tt.losses.FBeta(background=0)


class Sentences:
    """Chains of random lengths with random scores and truths, about half of them background."""

    def __init__(self, count: int, lengths: tuple[int, int], states: int) -> None:
        rng = np.random.default_rng(0)
        pair = rng.standard_normal((states, states))
        self.models, self.truths = [], []
        for length in rng.integers(lengths[0], lengths[1] + 1, count):
            self.models.append(tt.Model.chain(rng.standard_normal((length, states)), pair))
            self.truths.append(np.where(rng.random(length) < 0.45, 0, rng.integers(1, states, length)))

    def __len__(self) -> int:
        return len(self.models)

    def batch(self, threads: int) -> Callable[[], object]:
        return lambda: tt.loss_augmented_batch(
            self.models, LOSS, "slack", truths=self.truths, threads=threads
        )

    def one_by_one(self) -> None:
        for model, truth in zip(self.models, self.truths, strict=True):
            tt.loss_augmented(model, LOSS.against(truth), "slack")

    def arithmetic(self) -> Callable[[], object]:
        """Return our upward passes alone: plans, statistics and factors are ready."""
        ready = []
        for model, truth in zip(self.models, self.truths, strict=True):
            statistics = LOSS.against(truth).reduce(model).statistics
            ready.append((tt.plan(model, statistics).layout, [block.tables for block in model.blocks]))

        def run() -> None:
            for layout, tables in ready:
                native.Run(layout, tables, native.MAX_PLUS)

        return run

    def in_c(self) -> Callable[[], object]:
        """Return the recursion of the C, its buffers and summed factors ready."""
        dp, kernels = yardstick("dp"), yardstick("ckern")
        call = partial(bound, dp, kernels)
        ready = []
        for model, truth in zip(self.models, self.truths, strict=True):
            unary, pair = (block.tables for block in model.blocks)
            states = np.arange(unary.shape[1])
            factors = np.concatenate([np.zeros((1, *pair.shape[1:])), pair + unary[1:, None, :]])
            right = kernels.i64((truth[:, None] == states) & (states > 0))
            wrong = kernels.i64((truth[:, None] != states) & (states > 0))
            ready.append(call(np.ascontiguousarray(unary[0]), np.ascontiguousarray(factors), right, wrong))

        def run() -> None:
            for forward in ready:
                forward()

        return run


def bound(dp: Any, kernels: Any, u0: Any, factors: Any, right: Any, wrong: Any) -> Callable[[], object]:
    """Bind the arguments of the C's recursion, its buffer included: a call then is the recursion alone."""
    length, states, _ = factors.shape
    tp, fp = (kernels.i64(np.cumsum(counted.max(1)) + 1) for counted in (right, wrong))
    offsets = dp.offsets(states * tp * fp)
    arrays = (u0, factors, right, wrong, np.empty(offsets[-1]), offsets, tp, fp)
    pointers = (*map(kernels.ptr, arrays), ctypes.c_int(1))
    arguments = (kernels.L(length), ctypes.c_int(states), *pointers)
    function = kernels.fn("chain2")
    return lambda kept=arrays: function(*arguments)


def measured(contenders: dict[str, Callable[[], object]], rounds: int) -> dict[str, np.ndarray]:
    """Return the processor and wall times of each, a row for every round; they take turns."""
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, run in contenders.items():
            wall, cpu = time.perf_counter(), time.process_time()
            run()
            times[name].append((time.process_time() - cpu, time.perf_counter() - wall))
    return {name: np.array(each) for name, each in times.items()}


CASES = {"M = 25, N = 10": (400, (25, 25), 10), "M = 5 to 40, N = 23": (1000, (5, 40), 23)}


def rows(cases: Sequence[str], quick: bool) -> list[Row]:
    table: list[Row] = []
    for title in cases:
        count, lengths, states = CASES[title]
        sentences = Sentences(count // 4 if quick else count, lengths, states)
        contenders: dict[str, Any] = {
            "arithmetic": sentences.arithmetic(),
            "batch": sentences.batch(1),
            "two threads": sentences.batch(2),
            "one by one": sentences.one_by_one,
        }
        if yardstick("dp") is not None:
            contenders["C"] = sentences.in_c()
        times = measured(contenders, 3 if quick else 15)
        each = {name: found[:, 0].min() / len(sentences) * 1e6 for name, found in times.items()}
        table.append(
            {
                "case": title,
                **{
                    f"{name} us": each[name]
                    for name in ("C", "arithmetic", "batch", "one by one")
                    if name in each
                },
                "overhead / arithmetic": each["batch"] / each["arithmetic"] - 1,
                "C / batch": each.get("C", np.nan) / each["batch"],
                # both of a round meet the same machine, which is not the same for long
                "two threads": float(np.median(times["batch"][:, 1] / times["two threads"][:, 1])),
                "cpu of two": float(np.median(times["two threads"][:, 0] / times["batch"][:, 0])),
            }
        )
    return table


def main(quick: bool = False) -> dict[str, list[Row]]:
    if yardstick("dp") is None:
        skipped("batches compared with C")
    data = {"sentences": rows(list(CASES), quick)}
    show("sentences, F1 with slack scaling (microseconds of processor time each)", data["sentences"])
    return data


if __name__ == "__main__":
    main()
