"""Losses, margin and slack scaling, and many problems at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from draws import USUAL, Rng, case, instruction_set, model_of, statistics_of
from oracle import Case, expect, near
from questions import objective, values, where

import tallytree as tt

Positives = tuple[int, int, int]
LOSSES: dict[str, Callable[[Positives], float]] = {  # from true and false positives and the size of the truth
    "FBeta": lambda n: 0.0 if not n[2] + n[0] + n[1] else 1 - 2 * n[0] / (n[2] + n[0] + n[1]),
    "Precision": lambda n: 1 - n[0] / (n[0] + n[1]) if n[0] + n[1] else float(n[2] > 0),
    "Recall": lambda n: 1 - n[0] / n[2] if n[2] else 0.0,
    "FalsePositives": lambda n: float(n[1]),
    "SymmetricDifference": lambda n: float(n[1] + n[2] - n[0]),
    "IntersectionOverUnion": lambda n: 1 - n[0] / (n[2] + n[1]) if n[2] + n[1] else 0.0,
}
PLAIN: dict[str, Callable[[np.ndarray, np.ndarray], float]] = {
    "HammingDistance": lambda y, truth: float((y != truth).sum()),
    "HammingLoss": lambda y, truth: float((y != truth).mean()),
    "ZeroOne": lambda y, truth: float((y != truth).any()),
    "LabelCount": lambda y, truth: abs(int(y.sum()) - int(truth.sum())) / len(y),
}


def positives(y: np.ndarray, truth: np.ndarray, background: int | None) -> Positives:
    """Count true and false positives, and what there is to find."""
    nodes = np.ones(len(y), dtype=bool) if background is None else y != background
    gold = np.ones(len(y), dtype=bool) if background is None else truth != background
    return int((nodes & (y == truth)).sum()), int((nodes & (y != truth)).sum()), int(gold.sum())


def loss_of(rng: Rng, drawn: Case, truth: np.ndarray, names: list[str]) -> tuple[tt.losses.Loss, np.ndarray]:
    """Draw a loss, and compute it for every labelling by its definition."""
    name = str(rng.choice(names))
    if name in PLAIN:
        return getattr(tt.losses, name)(truth), np.array([PLAIN[name](y, truth) for y in drawn.labellings])
    background = None if rng.random() < 0.3 else 0
    made = getattr(tt.losses, name)(truth, background=background)
    return made, np.array([LOSSES[name](positives(y, truth, background)) for y in drawn.labellings])


def truth_of(rng: Rng, drawn: Case) -> np.ndarray | None:
    """Draw a possible labelling."""
    possible = np.flatnonzero(drawn.scores > -np.inf)
    return drawn.labellings[int(rng.choice(possible))] if len(possible) else None


def scaled(drawn: Case, truth: np.ndarray, losses: np.ndarray, scaling: str, margin: float) -> np.ndarray:
    """Return the objective of every labelling."""
    with np.errstate(invalid="ignore"):
        more = drawn.scores - drawn.scores[drawn.number(truth)]
        whole = margin * losses + more if scaling == "margin" else losses * (margin + more)
    return np.where(drawn.scores > -np.inf, whole, -np.inf)


def losses(rng: Rng) -> None:
    """The worst labelling for a loss, margin or slack scaled, under constraints."""
    instruction_set(rng)
    drawn = case(rng, styles=USUAL)
    truth = truth_of(rng, drawn)
    if truth is None:
        return
    loss, costs = loss_of(rng, drawn, truth, [*LOSSES, *PLAIN])
    scaling, margin = str(rng.choice(["margin", "slack"])), float(rng.choice([0.0, 0.5, 1.0, 3.0]))
    right, keywords = scaled(drawn, truth, costs, scaling, margin), {}
    constraint = where(rng, statistics_of(drawn), drawn.tallies)
    if constraint is not None:
        keywords["where"], right = constraint.given, np.where(constraint.holds, right, -np.inf)
    try:
        found = tt.loss_augmented(model_of(drawn), loss, scaling, margin=margin, **keywords)
    except tt.InfeasibleError:
        expect(right.max() == -np.inf, "loss: infeasible, but there is", loss, right.max())
    else:
        drawn.expect_solution(found, right, f"{loss} {scaling} {margin}")
        expect(near(found.loss, costs[drawn.number(found.assignment)], 1e-12), "loss", found.loss, loss)


def batches(rng: Rng) -> None:
    """Many problems at once: the same answers as one by one."""
    drawn = [case(rng, styles=USUAL, most=200) for _ in range(int(rng.integers(0, 6)))]
    models, statistics = [model_of(d) for d in drawn], [statistics_of(d) for d in drawn]
    functions = [objective(rng, d) for d in drawn]
    constraints = [where(rng, s, d.tallies) for d, s in zip(drawn, statistics, strict=True)]
    given: dict[str, Any] = {"threads": int(rng.integers(1, 4)), "errors": "return"}
    found = tt.solve_batch(models, statistics, functions, where=[c and c.given for c in constraints], **given)
    for one, solution, function, constraint in zip(drawn, found, functions, constraints, strict=True):
        holds = np.ones(len(one.scores), dtype=bool) if constraint is None else constraint.holds
        right = values(function, one, holds)
        if isinstance(solution, tt.Solution):
            one.expect_solution(solution, right, "batch")
        else:
            infeasible = isinstance(solution, tt.InfeasibleError) and right.max() == -np.inf
            expect(infeasible, "batch: error", solution, right.max())
    for one, table in zip(drawn, tt.profile_batch(models, statistics, **given), strict=True):
        best = {tally: float(one.scores[rows].max()) for tally, rows in one.groups().items()}
        expect(
            table.tallies.tolist() == [list(t) for t in sorted(best)],
            "batch: tallies",
            table.tallies.tolist(),
        )
        same = [near(s, best[t], one.slack) for t, s in zip(sorted(best), table.scores.tolist(), strict=True)]
        expect(all(same), "batch: scores", table.scores, best)


def loss_batches(rng: Rng) -> None:
    """Many chains at once against their truths."""
    instruction_set(rng)
    drawn = [case(rng, kind="chain", styles=("normal", "ties", "decimals"), counts=0) for _ in range(4)]
    drawn = [d for d in drawn if d.cardinalities[0] == drawn[0].cardinalities[0]]
    truths = [truth_of(rng, d) for d in drawn]
    scaling, margin = str(rng.choice(["margin", "slack"])), float(rng.choice([0.5, 1.0]))
    name, background = str(rng.choice([*LOSSES])), int(rng.integers(0, 2))
    loss = getattr(tt.losses, name)(background=background)
    found = tt.loss_augmented_batch(
        [model_of(d) for d in drawn],
        loss,
        scaling,
        truths=truths,
        margin=margin,
        threads=int(rng.integers(1, 3)),
    )
    for one, truth, solution in zip(drawn, truths, found, strict=True):
        costs = np.array([LOSSES[name](positives(y, truth, background)) for y in one.labellings])
        one.expect_solution(solution, scaled(one, truth, costs, scaling, margin), f"{loss} {scaling}")
