"""Compare answers by bounds with those of whole tables, on random problems of every shape.

python tools/bounds_check.py --seed 1 --count 10000

Each problem is solved both ways; value, tally and score must agree. Values that differ by rounding alone are
equal: then either tally will do. `--max-variables` makes them larger. `--kinds batch chains` checks batches
alone: of models, and of chains for learning, which start from any prices. There `"auto"` must give the very
labelling of the whole table. A batch counts as one problem, and has eight.
"""

import argparse
import sys
from collections import Counter
from math import isclose
from time import perf_counter

import numpy as np

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.truth_tables import Search
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


def model_of(rng, most):
    variables = int(rng.integers(1, most + 1))
    shape = str(rng.choice(SHAPES))
    if shape in ("grid", "triples", "cycle"):
        variables = min(variables, 9)
    model = random_model(rng, shape, variables=variables, states=int(rng.integers(1, 5)))
    return scores(rng, model)


def solve_problem(rng, most):
    local = bool(rng.random() < 0.9)
    model = model_of(rng, most if local else min(most, 7))  # statistics of anything make a dense graph
    statistics = random_statistics(rng, model, int(rng.integers(1, 4)), local=local)
    profile = tt.profile(model, statistics)
    if not len(profile):
        return None
    where = constraint(rng, statistics, profile.tallies)
    read = statistics[: int(rng.integers(0, len(statistics) + 1))]

    def ask(strategy):
        return tt.solve(model, read, where=where, strategy=strategy)

    return model, ask, f"solve {where}", len(read)


def loss_problem(rng, most):
    model = model_of(rng, most)
    truth = [int(rng.integers(n)) for n in model.cardinalities]
    if model.score(truth) == -np.inf:
        return None
    loss = loss_of(rng, model, truth)
    scaling = str(rng.choice(["margin", "slack"]))
    margin = float(rng.choice([0.0, 0.1, 1.0, 10.0, float(len(model)), 10.0 * len(model)]))
    where = tt.count(model, state=0) >= int(rng.integers(len(model) + 1)) if rng.random() < 0.2 else None

    def ask(strategy):
        return tt.loss_augmented(model, loss, scaling, margin=margin, where=where, strategy=strategy)

    folds = scaling == "margin" and loss.on(model).linear() is not None  # then its tallies are not carried
    return model, ask, f"{loss} {scaling} {margin} where {where}", 0 if folds else 1


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


def function_problem(rng, most):
    model = model_of(rng, most)
    statistics = random_statistics(rng, model, int(rng.integers(1, 4)), local=True)
    if rng.random() < 0.2:
        statistics = (statistics[0].capped(int(rng.integers(1, 4))), *statistics[1:])
    profile = tt.profile(model, statistics)
    if not len(profile):
        return None
    at = [int(x) for x in profile.tallies[rng.integers(len(profile.tallies))]]
    uncapped = [s for s in statistics if s.cap is None]
    where = uncapped[0] <= at[statistics.index(uncapped[0])] if uncapped and rng.random() < 0.3 else None
    read = len(statistics) if rng.random() < 0.7 else 1
    objective, words = function_of(rng, at[:read])

    def ask(strategy):
        return tt.solve(model, statistics[:read], objective, where=where, strategy=strategy)

    return model, ask, f"{words} where {where}", read


def answer(ask, strategy):
    try:
        return ask(strategy)
    except (tt.InfeasibleError, tt.ModelError) as error:
        return type(error).__name__


def check_single(rng, make, most, tally):
    problem = make(rng, most)
    if problem is None:
        tally["skipped"] += 1
        return ""
    model, ask, words, read = problem
    full, bounds = answer(ask, "full"), answer(ask, "bounds")
    if isinstance(full, str) or isinstance(bounds, str):
        tally["refused"] += 1
        return "" if full == bounds else f"{words}: {full} and {bounds}"
    by_bounds = isinstance(bounds.certificate, BoundsCertificate)
    tally["by bounds" if by_bounds else "in full"] += 1
    wrong = same(full, bounds, 1e-9 * (1 + abs(full.value)) + 4 * tt.testing.score_tolerance(model), read)
    if not wrong and by_bounds:
        try:
            tt.testing.check_bounds(bounds)
        except AssertionError as error:
            wrong = str(error)
    return f"{words}: {wrong}" if wrong else ""


# --- batches ------------------------------------------------------------------------------------------------


def check_batch(rng, most, tally):
    """Check models of one number of states, with a loss for all of them."""
    states, pairs = int(rng.integers(2, 7)), []
    for _ in range(8):
        length, own = int(rng.integers(1, most + 1)), rng.random() < 0.3
        links = rng.normal(size=(length - 1, states, states) if own and length > 1 else (states, states))
        model = scores(rng, tt.Model.chain(2 * rng.normal(size=(length, states)), links))
        truth = np.where(rng.random(length) < 0.4, 0, rng.integers(0, states, length))
        if rng.random() < 0.3 and model.score(truth) > -np.inf:  # a model that has been trained
            truth = tt.solve(model, strategy="full").assignment
        if model.score(truth) > -np.inf:
            pairs.append((model, truth))
    if not pairs:
        tally["skipped"] += 1
        return ""
    models, truths = zip(*pairs, strict=True)
    recipe = loss_of(rng, models[0], truths[0]).replace(truth=None)
    scaling = str(rng.choice(["margin", "slack"]))
    margin = float(rng.choice([0.0, 0.1, 1.0, 10.0, float(most), 10.0 * most]))

    def ask(strategy):
        return tt.loss_augmented_batch(
            models, recipe, scaling, truths=truths, margin=margin, strategy=strategy, errors="return"
        )

    words = f"{recipe} {scaling} {margin}"
    for full, auto, bounds in zip(*map(ask, ("full", "auto", "bounds")), strict=True):
        wrong = _compared(full, auto, bounds, tally)
        if wrong:
            return f"{words}: {wrong}"
    return ""


def _compared(full, auto, bounds, tally):
    if isinstance(full, tt.TallytreeError):
        tally["refused"] += 1
        return "" if str(full) == str(auto) == str(bounds) else f"{full}, {auto} and {bounds}"
    if (full.value, full.score, full.tally) != (auto.value, auto.score, auto.tally):
        return f"auto has {auto}, the table {full}"
    if not np.array_equal(full.assignment, auto.assignment):
        return f"auto has the labelling {auto.assignment}, the table {full.assignment}"
    by_bounds = isinstance(bounds.certificate, BoundsCertificate)
    tally["in a batch by bounds" if by_bounds else "in a batch in full"] += 1
    wrong = same(full, bounds, 1e-9 * (1 + abs(full.value)) + 4 * tt.testing.score_tolerance(full.model), 0)
    if not wrong and by_bounds:
        try:
            tt.testing.check_bounds(bounds)
        except AssertionError as error:
            wrong = str(error)
    return wrong


TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y", "B-Z", "I-Z")


def check_chains(rng, most, tally):
    """Check chains as learning has them, from prices of any kind."""
    names = TAGS[: int(rng.choice([3, 5, 7]))]
    lengths = rng.integers(1, most + 1, 8).tolist()
    factor = float(rng.choice([0.0, 0.05, 0.3, 1.0, 1.0, 5.0, 1e6]))
    made = factor * rng.normal(size=(sum(lengths), len(names))), factor * rng.normal(size=(len(names),) * 2)
    if rng.random() < 0.3:
        made = tuple(np.round(2 * one) / 2 for one in made)
    chains = Chains(*made, lengths, names)
    truths = [rng.integers(0, len(names), n) for n in lengths]
    if rng.random() < 0.5:
        truths = [labels for ((labels, _),) in best_of_chains(chains)]
    chunks = tt.losses.ChunkFBeta(beta=float(rng.choice([0.5, 1.0, 2.0])))
    loss = chunks if rng.random() < 0.7 else tt.losses.FBeta(background="O")
    scaling, right = str(rng.choice(["margin", "slack"])), chains.scores(np.concatenate(truths))
    prices = float(rng.choice([0.1, 1.0, 100.0])) * rng.normal(size=(8, 2))
    found = {
        way: best_of_chains(chains, loss, truths, scaling, search=Search(kind, start))
        for way, kind, start in (
            ("full", "full", None),
            ("auto", "auto", prices),
            ("bounds", "bounds", np.full((8, 2), np.nan)),
        )
    }
    values = {}
    for way, each in found.items():
        ahead = chains.scores(np.concatenate([labels for ((labels, _),) in each])) - right
        costs = np.array([cost for ((_, cost),) in each])
        values[way] = costs * (1 + ahead) if scaling == "slack" else costs + ahead
    tally["chains"] += 8
    words = f"{loss} {scaling} {names} lengths {lengths}"
    for ((one, _),), ((other, _),) in zip(found["full"], found["auto"], strict=True):
        if not np.array_equal(one, other):
            return f"{words}: auto has {other}, the table {one}"
    allowance = 1e-12 * (1 + np.abs(made[0]).sum() + len(made[0]) * np.abs(made[1]).max())
    if np.abs(values["bounds"] - values["full"]).max() > allowance:
        return f"{words}: values {values['bounds']} instead of {values['full']}"
    return ""


def check(seed, most, tally, kinds):
    rng = np.random.default_rng(seed)
    kind = str(rng.choice(kinds))
    if kind == "batch":
        return check_batch(rng, most, tally)
    if kind == "chains":
        return check_chains(rng, most, tally)
    return check_single(rng, _SINGLE[kind], most, tally)


_SINGLE = {"solve": solve_problem, "loss": loss_problem, "function": function_problem}
KINDS = (*_SINGLE, "batch", "chains")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--max-variables", type=int, default=14)
    parser.add_argument("--kinds", nargs="+", choices=KINDS, default=KINDS)
    options = parser.parse_args()
    tally, bad = Counter(), 0
    for number in range(options.count):
        seed = options.seed * 1_000_000_007 + number
        began = perf_counter()
        wrong = check(seed, options.max_variables, tally, options.kinds)
        if perf_counter() - began > 2:
            print(f"problem {seed} took {perf_counter() - began:.1f} s", flush=True)
        if wrong:
            bad += 1
            print(f"problem {seed}: {wrong}", flush=True)
    print(f"{options.count} problems: {dict(tally)}, {bad} wrong")
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main())
