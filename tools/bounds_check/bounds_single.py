"""Single questions by bounds and by whole tables: constraints, losses, functions."""

from math import isclose

import numpy as np

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.testing import random_model, random_statistics

SHAPES = ("chain", "chain", "tree", "star", "cycle", "grid", "triples", "disconnected")


def scores(rng, model):
    """Return the model with other scores: ties, forbidden entries, strong coupling, huge or tiny ones."""
    kind = rng.choice(
        ["as is", "ties", "forbidden", "coupled", "scaled", "zero"], p=[0.35, 0.25, 0.1, 0.15, 0.1, 0.05]
    )
    factor = float(rng.choice([1e-6, 0.01, 30.0, 1e6])) if kind == "scaled" else 1.0
    blocks = []
    for block in model.blocks:
        tables = np.array(block.tables) * factor
        if kind == "ties":
            tables = np.round(tables * 2) / 2
        elif kind == "zero":
            tables = np.zeros_like(tables)
        elif kind == "coupled" and tables.ndim > 2:
            tables = tables * 6
        elif kind == "forbidden":
            tables = np.where(rng.random(tables.shape) < 0.1, -np.inf, tables)
        blocks.append(block.with_tables(tables))
    return tt.Model.from_blocks(model.cardinalities, blocks)


def constraint(rng, statistics, profile_like):
    """Return a constraint on some statistics: windows, combinations, alternatives."""
    one = statistics[0]
    at = [int(x) for x in profile_like[rng.integers(len(profile_like))]]
    kind = rng.integers(7)
    if kind == 0:
        where = one == at[0]
    elif kind == 1:
        where = one <= at[0]
    elif kind == 2:
        where = one >= at[0]
    elif kind == 3:
        where = (one >= at[0]) & (one <= at[0] + int(rng.integers(3)))
    elif kind == 4:
        where = (one == at[0]) | (one >= at[0] + 2)
    elif kind == 5:
        where = one != at[0]
    else:
        where = 2 * one - (statistics[1] if len(statistics) > 1 else one) <= at[0]
    for k, statistic in enumerate(statistics[1:], 1):
        if rng.random() < 0.7:
            where = where & (statistic == at[k] if rng.random() < 0.6 else statistic >= at[k])
    return where


def loss_of(rng, model, truth):
    """Return one of the losses that reduce to statistics."""
    names = tt.losses
    background = int(rng.integers(int(model.cardinalities.min()))) if rng.random() < 0.8 else None
    kind = rng.integers(9)
    if kind < 3:
        return names.FBeta(truth, background=background, beta=float(rng.choice([0.5, 1.0, 2.0])))
    if kind == 3:
        return names.IntersectionOverUnion(truth, background=background)
    if kind == 4:
        return names.Precision(truth, background=background)
    if kind == 5:
        return names.Recall(truth, background=background)
    if kind == 6:
        return names.SymmetricDifference(truth, background=background)
    if kind == 7:
        return names.HammingLoss(truth) if rng.random() < 0.5 else names.ZeroOne(truth)
    return names.LabelCount(truth)


def same(a, b, allowance, read):
    """Say whether two answers agree, up to rounding; in the tallies that the objective reads."""
    if not isclose(a.value, b.value, rel_tol=1e-12, abs_tol=allowance):
        return f"value {b.value!r} instead of {a.value!r}"
    if a.tally == b.tally and abs(a.score - b.score) > allowance:
        return f"score {b.score!r} instead of {a.score!r}"
    exact = a.value == b.value and a.score == b.score == round(a.score * 4) / 4
    if a.tally[:read] != b.tally[:read] and exact:
        return f"tally {b.tally} instead of {a.tally} at equal values"
    return ""


EACH = 4  # questions about one model


def model_of(rng, most):
    """Return the name of a shape, and a model of it."""
    variables = int(rng.integers(1, most + 1))
    shape = str(rng.choice(SHAPES))
    if shape in ("grid", "triples", "cycle"):
        variables = min(variables, 9)
    model = random_model(rng, shape, variables=variables, states=int(rng.integers(1, 5)))
    return shape, scores(rng, model)


def constrained(rng, most):
    """Return a shape, a model, statistics, and all their tallies."""
    local = bool(rng.random() < 0.9)
    shape, model = model_of(rng, most if local else min(most, 7))  # statistics of anything make it dense
    statistics = random_statistics(rng, model, int(rng.integers(1, 4)), local=local)
    return shape, model, statistics, tt.profile(model, statistics).tallies


def solve_problems(rng, most):
    shape, model, statistics, tallies = constrained(rng, most)
    for _ in range(EACH if len(tallies) else 0):
        where = constraint(rng, statistics, tallies)
        read = statistics[: int(rng.integers(0, len(statistics) + 1))]

        def ask(strategy, read=read, where=where):
            return tt.solve(model, read, where=where, strategy=strategy)

        yield shape, model, ask, f"solve {where}", len(read)


def loss_problems(rng, most):
    shape, model = model_of(rng, most)
    for _ in range(EACH):
        truth = [int(rng.integers(n)) for n in model.cardinalities]
        if model.score(truth) == -np.inf:
            continue
        loss = loss_of(rng, model, truth)
        scaling = str(rng.choice(["margin", "slack"]))
        margin = float(rng.choice([0.0, 0.1, 1.0, 10.0, float(len(model)), 10.0 * len(model)]))
        some = rng.random() < 0.2
        where = tt.count(model, state=0) >= int(rng.integers(len(model) + 1)) if some else None

        def ask(strategy, loss=loss, where=where, scaling=scaling, margin=margin):
            return tt.loss_augmented(model, loss, scaling, margin=margin, where=where, strategy=strategy)

        folds = scaling == "margin" and loss.on(model).linear() is not None  # its tallies are not carried
        yield shape, model, ask, f"{loss} {scaling} {margin} where {where}", 0 if folds else 1


def function_of(rng, at):
    """Return an objective as a function: smooth, stepped, with plateaus, or with tallies that it refuses."""
    weight = float(rng.choice([0.1, 1.0, 7.0]))
    shape = rng.normal(size=8)

    def distance(tallies):
        return sum((np.abs(t - a) for t, a in zip(tallies, at, strict=True)), np.zeros(()))

    def table(tallies):
        return shape[sum(tallies, np.zeros((), np.int64)) % 8]

    kinds = [
        lambda score, *tallies: score - weight * distance(tallies),
        lambda score, *tallies: score - 0.1 * weight * distance(tallies) ** 2,
        lambda score, *tallies: score + weight * table(tallies),
        lambda score, *tallies: score * np.exp(table(tallies)),
        lambda score, *tallies: np.where(distance(tallies) <= 1, score, -np.inf),
        lambda score, *tallies: np.floor(score / weight) - 0.01 * distance(tallies),
        lambda score, *tallies: np.minimum(score, weight) + table(tallies),
        lambda score, *tallies: np.arctan(score) * (2 + np.tanh(table(tallies))),
        lambda score, *tallies: np.where(score > weight * distance(tallies), score, -np.inf),
    ]
    number = int(rng.integers(len(kinds)))
    return kinds[number], f"function {number}, {weight}, {at}"


def function_problems(rng, most):
    shape, model = model_of(rng, most)
    statistics = random_statistics(rng, model, int(rng.integers(1, 4)), local=True)
    if rng.random() < 0.2:
        statistics = (statistics[0].capped(int(rng.integers(1, 4))), *statistics[1:])
    tallies = tt.profile(model, statistics).tallies
    uncapped = [s for s in statistics if s.cap is None]
    for _ in range(EACH if len(tallies) else 0):
        at = [int(x) for x in tallies[rng.integers(len(tallies))]]
        some = uncapped and rng.random() < 0.3
        where = uncapped[0] <= at[statistics.index(uncapped[0])] if some else None
        read = len(statistics) if rng.random() < 0.7 else 1
        objective, words = function_of(rng, at[:read])

        def ask(strategy, read=read, objective=objective, where=where):
            return tt.solve(model, statistics[:read], objective, where=where, strategy=strategy)

        yield shape, model, ask, f"{words} where {where}", read


def answer(ask, strategy):
    try:
        return ask(strategy)
    except (tt.InfeasibleError, tt.ModelError) as error:
        return type(error).__name__


def verified(solution):
    """Return what is wrong with a certificate."""
    try:
        tt.testing.check_bounds(solution)
    except AssertionError as error:
        return str(error)
    return ""


def check_single(rng, problems, most, tally):
    """Check the questions about one model."""
    asked = 0
    for shape, model, ask, words, read in problems(rng, most):
        asked += 1
        wrong = _compared(model, ask, read, tally)
        tally[shape] += 1
        if wrong:
            return f"{words}: {wrong}"
    tally["skipped"] += not asked
    return ""


def _compared(model, ask, read, tally):
    full, bounds = answer(ask, "full"), answer(ask, "bounds")
    if isinstance(full, str) or isinstance(bounds, str):
        tally["refused"] += 1
        return "" if full == bounds else f"{full} and {bounds}"
    by_bounds = isinstance(bounds.certificate, BoundsCertificate)
    tally["by bounds" if by_bounds else "in full"] += 1
    wrong = same(full, bounds, 1e-9 * (1 + abs(full.value)) + 4 * tt.testing.score_tolerance(model), read)
    return wrong or (verified(bounds) if by_bounds else "")
