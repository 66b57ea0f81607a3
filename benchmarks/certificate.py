"""What the certificate costs: its share of a profile with one decoded labelling, plan excluded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from common import Row, interleaved, show

import tallytree as tt
from tallytree.answers.certificate import BEST, Claim
from tallytree.answers.solution import Certifier, Decoded
from tallytree.solving import ask


def problems() -> dict[str, tuple[tt.Model, Sequence[Any]]]:
    rng = np.random.default_rng(0)

    def chain(m: int, n: int) -> tt.Model:
        return tt.Model.chain(rng.standard_normal((m, n)), rng.standard_normal((m - 1, n, n)))

    short, long, labels, plain = chain(25, 10), chain(1000, 2), chain(160, 5), chain(10_000, 20)
    truth = rng.integers(0, 5, 160)
    pair = rng.standard_normal((2, 2))
    grid = tt.Model.grid(rng.standard_normal((6, 40, 2)), pair, pair)
    return {
        "chain M=25 N=10, count": (short, [tt.count(short, state=1)]),
        "chain M=1000 N=2, count": (long, [tt.count(long, state=1)]),
        "chain M=160 N=5, (TP, FP)": (
            labels,
            [tt.matches(labels, truth, background=0), tt.mismatches(labels, truth, background=0)],
        ),
        "grid 6 x 40, count": (grid, [tt.count(grid, state=1)]),
        "chain M=10000 N=20, plain MAP": (plain, []),
    }


def measure(model: tt.Model, statistics: Sequence[Any], budget: float) -> Row:
    plan = tt.plan(model, statistics)
    best = tt.profile(model, statistics, plan=plan).best()
    query, found = ask(model, statistics), Decoded(best.assignment.ravel(), best.score, best.tally)
    times = interleaved(
        {
            "whole": lambda: tt.profile(model, statistics, plan=plan).best(),
            "certificate": lambda: Certifier(query, plan)(found, Claim(BEST)),
        },
        budget=budget,
    )
    share = times["certificate"] / times["whole"]
    return {
        "profile + best ms": times["whole"] * 1e3,
        "certificate ms": times["certificate"] * 1e3,
        "share %": 100 * share,
    }


def main(quick: bool = False) -> dict[str, list[Row]]:
    rows = [
        {"problem": name, **measure(*problem, 0.3 if quick else 1.0)} for name, problem in problems().items()
    ]
    show("cost of the certificate", rows)
    return {"certificate": rows}


if __name__ == "__main__":
    main()
