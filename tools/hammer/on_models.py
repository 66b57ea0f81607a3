"""Questions about models: profiles, optima, orders, distributions, bounds, ranges of scores, precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from draws import (
    USUAL,
    Rng,
    case,
    chosen_for_plan,
    instruction_set,
    model_of,
    options,
    states_allowed,
    statistics_of,
)
from oracle import Case, expect, log_sum, near
from questions import Where, comparison, objective, values, where

import tallytree as tt


def profile(rng: Rng) -> None:
    """The best score for each tally, and the labellings behind them."""
    instruction_set(rng)
    drawn = case(rng, counts=3)
    model, statistics = model_of(drawn), statistics_of(drawn)
    try:
        found = tt.profile(model, statistics, **options(rng, model, statistics))
    except tt.BudgetError:
        return
    best = {tally: float(drawn.scores[rows].max()) for tally, rows in drawn.groups().items()}
    expect(
        found.tallies.tolist() == [list(t) for t in sorted(best)],
        "tallies",
        found.tallies.tolist(),
        sorted(best),
    )
    for tally, score in zip(sorted(best), found.scores.tolist(), strict=True):
        expect(near(score, best[tally], drawn.slack), "score", tally, score, best[tally])
    for row in rng.permutation(len(found))[:3].tolist():
        solution = found.row(row)
        number = drawn.number(solution.assignment)
        expect(drawn.tallies[number].tolist() == found.tallies[row].tolist(), "tally of", solution)
        expect(near(float(drawn.scores[number]), float(found.scores[row]), drawn.slack), "score of", solution)


def asked(rng: Rng, drawn: Case, statistics: list[tt.Statistic]) -> tuple[dict[str, Any], np.ndarray]:
    """Draw a constraint and allowed states, and return which labellings they allow."""
    keywords: dict[str, Any] = {}
    holds = np.ones(len(drawn.labellings), dtype=bool)
    constraint = where(rng, statistics, drawn.tallies)
    if constraint is not None:
        keywords["where"], holds = constraint
    if rng.random() < 0.3:
        keywords["allowed"] = states_allowed(rng, drawn.cardinalities)
        holds = holds & drawn.restricted(keywords["allowed"])
    return keywords, holds


def solve(rng: Rng) -> None:
    """The best labelling under a constraint, by an objective."""
    instruction_set(rng)
    drawn = case(rng, counts=3)
    model, statistics = model_of(drawn), statistics_of(drawn)
    keywords, holds = asked(rng, drawn, statistics)
    function = objective(rng, drawn)
    right = values(function, drawn, holds)
    read = statistics if function is not None or rng.random() < 0.5 else []
    chosen = options(rng, model, statistics)
    try:
        found = tt.solve(model, read, function, **keywords, **chosen)
    except tt.InfeasibleError:
        expect(right.max() == -np.inf, "infeasible, but there is", right.max())
    except tt.BudgetError:
        expect("memory_limit" in chosen, "over a budget that is not there")
    else:
        drawn.expect_solution(found, right, "solve")


def k_best(rng: Rng) -> None:
    """Labellings in order."""
    drawn = case(rng, most=300)
    model, statistics = model_of(drawn), statistics_of(drawn)
    keywords, holds = asked(rng, drawn, statistics)
    function = objective(rng, drawn)
    right, k = values(function, drawn, holds), int(rng.choice([1, 3, 40, 400]))
    found = tt.k_best(
        model, k, statistics, function, **keywords, **options(rng, model, statistics, tight=False)
    )
    expected = np.sort(right[right > -np.inf])[::-1][:k]
    expect(len(found) == len(expected), "how many", len(found), len(expected))
    rows = [drawn.number(solution.assignment) for solution in found]
    expect(len(set(rows)) == len(rows), "one comes twice", rows)
    for solution, row, value in zip(found, rows, expected.tolist(), strict=True):
        slack = drawn.slack + 1e-12 * abs(value)
        expect(near(solution.value, value, slack), "value in order", solution.value, value)
        expect(near(float(right[row]), value, slack), "value of", solution, value)


def diverse(rng: Rng) -> None:
    """Labellings that are far from each other."""
    drawn = case(rng, most=200, counts=0)
    distance, k = int(rng.integers(1, 4)), int(rng.integers(0, 5))
    right = drawn.scores.copy()
    for solution in tt.diverse_k_best(model_of(drawn), k, distance):
        drawn.expect_solution(solution, right, "diverse")
        far = (drawn.labellings != solution.assignment).sum(axis=1) >= distance
        right, k = np.where(far, right, -np.inf), k - 1
    expect(k == 0 or right.max() == -np.inf, "one more is far enough", right.max())


def distribution(rng: Rng) -> None:
    """Sums, counts, marginals and samples."""
    instruction_set(rng)
    drawn = case(rng, styles=(*USUAL, "tiny"))
    model, statistics = model_of(drawn), statistics_of(drawn)
    groups = drawn.groups()
    chosen = options(rng, model, statistics)
    try:
        found = tt.distribution(model, statistics, **chosen)
    except tt.InfeasibleError:
        expect(not groups, "infeasible, but there are", len(groups))
        return
    except tt.BudgetError:
        expect("memory_limit" in chosen, "over a budget that is not there")
        return
    expect(found.tallies.tolist() == [list(t) for t in sorted(groups)], "tallies", found.tallies.tolist())
    logs = [log_sum(drawn.scores[groups[tally]]) for tally in sorted(groups)]
    expect(
        np.allclose(found.log_partitions, logs, rtol=1e-10, atol=1e-10), "sums", found.log_partitions, logs
    )
    expect(found.counts == tuple(len(groups[tally]) for tally in sorted(groups)), "counts", found.counts)
    _check_samples(rng, drawn, found, groups)
    if found.plan.segments == 1 and "memory_limit" not in chosen:
        _check_marginals(drawn, found)


def _check_samples(rng: Rng, drawn: Case, found: tt.Distribution, groups: dict[Any, list[int]]) -> None:
    tally = sorted(groups)[int(rng.integers(len(groups)))]
    rows = [drawn.number(y) for y in found.sample(300, tally=list(tally), rng=int(rng.integers(1 << 30)))]
    expect(set(rows) <= set(groups[tally]), "a sample has another tally than", tally)
    shares = np.exp(drawn.scores[groups[tally]] - log_sum(drawn.scores[groups[tally]]))
    for row, share in zip(groups[tally], shares.tolist(), strict=True):
        spread = np.sqrt(300 * share * (1 - share)) + 1
        expect(abs(rows.count(row) - 300 * share) < 7 * spread, "samples of", row, rows.count(row), share)


def _check_marginals(drawn: Case, found: tt.Distribution) -> None:
    shares = np.exp(drawn.scores - log_sum(drawn.scores))
    for variable, marginal in enumerate(found.marginals()):
        right = [
            shares[drawn.labellings[:, variable] == s].sum() for s in range(drawn.cardinalities[variable])
        ]
        expect(np.allclose(marginal, right, rtol=1e-9, atol=1e-9), "marginal of", variable, marginal, right)


def relax(rng: Rng) -> None:
    """An upper bound, and perhaps the optimum."""
    drawn = case(rng, styles=USUAL, caps=False)
    model, statistics = model_of(drawn), statistics_of(drawn)
    if not statistics or drawn.scores.max() == -np.inf:
        return
    constraint = comparison(rng, statistics, drawn.tallies, (">=", "<=", "=="))
    if rng.random() < 0.5:
        other = comparison(rng, statistics, drawn.tallies, (">=", "<="))
        constraint = Where(constraint.given & other.given, constraint.holds & other.holds)
    best = float(values(None, drawn, constraint.holds).max())
    try:
        found = tt.relax(model, where=constraint.given, iterations=40, candidates=20)
    except tt.InfeasibleError:
        expect(best == -np.inf, "relax: infeasible, but there is", best)
        return
    expect(
        found.upper_bound >= best - drawn.slack,
        "relax: the bound is below the optimum",
        found.upper_bound,
        best,
    )
    if found.solution is not None:
        row = drawn.number(found.solution.assignment)
        expect(constraint.holds[row], "relax: a labelling that is not allowed", found.solution)
        expect(
            near(found.solution.score, float(drawn.scores[row]), drawn.slack), "relax: score", found.solution
        )
    if found.optimal:
        expect(
            near(found.solution.score, best, 10 * drawn.slack), "relax: optimal", found.solution.score, best
        )


def score_between(rng: Rng) -> None:
    """The best score in a range."""
    drawn = case(rng, styles=("ties", "decimals", "ties with gaps"), counts=0, most=400)
    possible = drawn.scores[drawn.scores > -np.inf]
    low, high = sorted(rng.choice(possible, 2).tolist() if len(possible) else (0.0, 1.0))
    low, high = low - rng.choice([0, 0.05, 1]), high + rng.choice([0, 0.05])
    inside = (drawn.scores >= low - 1e-9) & (drawn.scores <= high + 1e-9)
    right = np.where(inside, drawn.scores, -np.inf)
    try:
        found = tt.score_between(
            model_of(drawn), float(low), float(high), labellings=int(rng.choice([0, 5, 1000]))
        )
    except tt.InfeasibleError:
        expect(right.max() == -np.inf, "score_between: infeasible, but there is", right.max())
    except tt.BudgetError:
        pass
    else:
        row = drawn.number(found.assignment)
        expect(inside[row], "score_between: outside", found)
        expect(found.upper_bound >= right.max() - 1e-9, "score_between: bound", found, right.max())
        expect(found.gap > 0 or near(found.score, right.max(), 1e-9), "score_between", found, right.max())


def single(rng: Rng) -> None:
    """Single precision: valid bounds, and a labelling with the value that it claims."""
    instruction_set(rng)
    drawn = case(rng, styles=USUAL)
    model, statistics = model_of(drawn), statistics_of(drawn)
    keywords, holds = asked(rng, drawn, statistics)
    right = values(None, drawn, holds)
    try:
        layout = options(rng, model, statistics, tight=False)["layout"]
        found = tt.solve(model, **keywords, precision="single", layout=layout)
    except tt.InfeasibleError:
        expect(right.max() == -np.inf, "single: infeasible, but there is", right.max())
        return
    row, best = drawn.number(found.assignment), float(right.max())
    expect(right[row] > -np.inf, "single: a labelling that is not allowed", found)
    expect(near(found.value, float(right[row]), drawn.slack), "single: value", found, right[row])
    expect(
        found.value + found.gap >= best - drawn.slack, "single: the bound is below the optimum", found, best
    )
    expect(found.gap <= 1e-4 * (1 + abs(best)) + drawn.slack * 1e10, "single: gap", found.gap)


def same_bits(rng: Rng) -> None:
    """Threads, checkpoints and instruction sets change no bit; layouts no score."""
    drawn = case(rng)
    model, statistics = model_of(drawn), statistics_of(drawn)
    chosen = options(rng, model, statistics, tight=False)
    first = tt.profile(model, statistics, **{**chosen, "threads": 1})
    instruction_set(rng)
    other = tt.profile(model, statistics, **{**chosen, "threads": int(rng.integers(1, 4))})
    expect(first.scores.tobytes() == other.scores.tobytes(), "threads or instruction sets", chosen)
    try:
        plan = tt.plan(model, statistics, memory_limit=0.5 * first.plan.peak_bytes, **chosen_for_plan(chosen))
    except tt.BudgetError:
        return
    if plan.mode == first.plan.mode:
        again = tt.profile(model, statistics, plan=plan)
        expect(first.scores.tobytes() == again.scores.tobytes(), "checkpoints", chosen, plan.segments)
        rows = rng.permutation(len(first))[:2].tolist()
        same = all(np.array_equal(first.row(row).assignment, again.row(row).assignment) for row in rows)
        expect(same, "labellings from checkpoints", chosen, plan.segments)
