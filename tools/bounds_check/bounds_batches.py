"""Batches by bounds and by whole tables: of models, and of chains as learning has them."""

from math import inf

import numpy as np
from bounds_single import constraint, loss_of, same, scores, verified

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.loss_batch import most_violated
from tallytree.bulk.truth_tables import Search
from tallytree.testing import random_statistics
from tallytree.testing.problems import SHAPES


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


def _compared(full, auto, bounds, tally, kind="", check=True):
    if isinstance(full, tt.TallytreeError):
        tally["refused"] += 1
        return "" if str(full) == str(auto) == str(bounds) else f"{full}, {auto} and {bounds}"
    apart = (
        4 * tt.testing.score_tolerance(full.model) if kind == "constrained" else 0
    )  # by the messages, or evaluated
    if abs(full.value - auto.value) > apart or (full.score, full.tally) != (auto.score, auto.tally):
        return f"auto has {auto}, the table {full}"
    if not np.array_equal(full.assignment, auto.assignment):
        return f"auto has the labelling {auto.assignment}, the table {full.assignment}"
    by_bounds = check and isinstance(bounds.certificate, BoundsCertificate)
    tally[kind or ("in a batch by bounds" if by_bounds else "in a batch in full")] += 1
    wrong = same(full, bounds, 1e-9 * (1 + abs(full.value)) + 4 * tt.testing.score_tolerance(full.model), 0)
    return wrong or (verified(bounds) if by_bounds else "")


GRAPHS = 12  # in one batch
ALONE = 0.3  # of the batches with constraints: every model is solved again, alone
VERIFIED = 0.05  # of the answers to questions about graphs: their certificates take long


def graph(rng, most, states):
    """Return a model of any shape, with factors of the same variables in any order."""
    shape = str(rng.choice(list(SHAPES)))
    variables = int(rng.integers(1, (most if shape in ("chain", "tree", "star") else min(most, 10)) + 1))
    scopes = [(v,) for v in range(variables) if rng.random() < 0.8] + SHAPES[shape](rng, variables)
    scopes += [scopes[rng.integers(len(scopes))] for _ in range(int(rng.integers(3)) if scopes else 0)]
    factors = [(tuple(rng.permutation(s).tolist()), rng.normal(size=[states] * len(s))) for s in scopes]
    return scores(rng, tt.Model([states] * variables, factors))


def check_graphs(rng, most, tally):
    """Check models of any shape and one number of states, from prices of any kind, on one or two threads."""
    states = int(rng.choice([1, 2, 2, 3, 3, 4, 5, 9]))
    models = [graph(rng, most, states) for _ in range(GRAPHS)]
    truths = [np.where(rng.random(len(m)) < 0.4, 0, rng.integers(0, states, len(m))) for m in models]
    pairs = [(m, t) for m, t in zip(models, truths, strict=True) if m.score(t) > -inf]
    if not pairs:
        tally["skipped"] += 1
        return ""
    models, truths = zip(*pairs, strict=True)
    recipe = loss_of(rng, models[0], truths[0]).replace(truth=None)
    scaling, margin = str(rng.choice(["margin", "slack"])), float(rng.choice([0.0, 0.1, 1.0, 10.0, 200.0]))
    common = {"truths": truths, "margin": margin, "threads": int(rng.integers(1, 3)), "errors": "return"}
    ways = [
        tt.loss_augmented_batch(models, recipe, scaling, strategy=way, **common)
        for way in ("full", "auto", "bounds")
    ]
    check = bool(rng.random() < VERIFIED)
    for full, auto, bounds in zip(*ways, strict=True):
        wrong = _compared(full, auto, bounds, tally, "graphs", check)
        if wrong:
            return f"{recipe} {scaling} {margin}: {wrong}"
    return _from_any_prices(rng, models, recipe, truths, scaling, tally)


def check_constrained(rng, most, tally):
    """Check models of any shape with constraints on up to three statistics, on one or two threads."""
    states = int(rng.choice([1, 2, 2, 3, 4, 9]))
    models = [_constrained_model(rng, most, states) for _ in range(GRAPHS)]
    asked = (_one_for_all if rng.random() < 0.5 else _one_for_each)(rng, models, states)
    threads = int(rng.integers(1, 3))
    ways = [
        tt.solve_batch(*asked[:2], where=asked[2], strategy=way, threads=threads, errors="return")
        for way in ("full", "auto", "bounds")
    ]
    check, alone = bool(rng.random() < VERIFIED), bool(rng.random() < ALONE)
    for number, (full, auto, bounds) in enumerate(zip(*ways, strict=True)):
        wrong = _compared(full, auto, bounds, tally, "constrained", check)
        wrong = wrong or (_as_if_alone(full, number, *asked) if alone else "")
        if wrong:
            return f"{asked[2]}, number {number}: {wrong}"
    return ""


def _as_if_alone(found, number, models, read, where):
    """Compare an answer of a batch with that of `solve`, which does not list the allowed tallies."""
    if isinstance(found, tt.TallytreeError):
        return ""
    where = where[number] if isinstance(where, list) else where
    its = read[number] if read and isinstance(read[0], list) else read
    one = tt.solve(models[number], its, where=where, strategy="full")
    return same(one, found, 4 * tt.testing.score_tolerance(one.model), 0)


def _one_for_all(rng, models, states):
    """Return models, what is read, and a constraint on counts of states."""
    made = [tt.count(state=int(rng.integers(states)), name=name) for name in ("one", "two", "three")]
    made = made[: int(rng.integers(1, 4))]
    known = tt.profile(models[0], made).tallies
    if not len(known) or rng.random() < 0.1:
        return models, made, None
    return models, made[: int(rng.integers(0, len(made) + 1))], constraint(rng, made, known)


def _one_for_each(rng, models, states):
    """Return the same with other statistics and another constraint for each model."""
    asked = []
    for model in models:
        count, constants = int(rng.integers(1, 4)), int(rng.integers(2))
        made = random_statistics(rng, model, count, local=True, capped=0.2, constants=constants)
        known = tt.profile(model, made).tallies
        where = constraint(rng, made, known) if len(known) else None
        asked.append((model, made[: int(rng.integers(0, len(made) + 1))], where))
    return tuple(map(list, zip(*asked, strict=True)))


def _constrained_model(rng, most, states):
    if rng.random() < 0.5:
        return graph(rng, most, states)
    length, own = int(rng.integers(1, 2 * most + 1)), rng.random() < 0.3
    links = rng.normal(size=(length - 1, states, states) if own and length > 1 else (states, states))
    return scores(rng, tt.Model.chain(2 * rng.normal(size=(length, states)), links))


def _from_any_prices(rng, models, recipe, truths, scaling, tally):
    if not getattr(recipe, "by_size", False):
        return ""
    counted = len(recipe.counted)
    prices = float(rng.choice([0.1, 1.0, 100.0])) * rng.normal(size=(len(models), counted))
    found = most_violated(models, recipe, truths, scaling, prices=prices)
    full = tt.loss_augmented_batch(models, recipe, scaling, truths=truths, strategy="full")
    for one, (other,) in zip(full, found, strict=True):
        tally["graphs from prices"] += 1
        if one.value != other.value or not np.array_equal(one.assignment, other.assignment):
            return f"{recipe} {scaling}: from other prices {other.assignment}, the table {one.assignment}"
    return ""


CHAINS = 24  # in one batch
TAGS = ("O", "B-X", "I-X", "B-Y", "I-Y", "B-Z", "I-Z")


def check_chains(rng, most, tally):
    """Check chains as learning has them, from prices of any kind."""
    names = TAGS[: int(rng.choice([3, 5, 7]))]
    lengths = rng.integers(1, most + 1, CHAINS).tolist()
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
    prices = float(rng.choice([0.1, 1.0, 100.0])) * rng.normal(size=(CHAINS, 2))
    found = {
        way: best_of_chains(chains, loss, truths, scaling, search=Search(kind, start))
        for way, kind, start in (
            ("full", "full", None),
            ("auto", "auto", prices),
            ("bounds", "bounds", np.full((CHAINS, 2), np.nan)),
        )
    }
    values = {}
    for way, each in found.items():
        ahead = chains.scores(np.concatenate([labels for ((labels, _),) in each])) - right
        costs = np.array([cost for ((_, cost),) in each])
        values[way] = costs * (1 + ahead) if scaling == "slack" else costs + ahead
    tally["chains"] += CHAINS
    words = f"{loss} {scaling} {names} lengths {lengths}"
    for ((one, _),), ((other, _),) in zip(found["full"], found["auto"], strict=True):
        if not np.array_equal(one, other):
            return f"{words}: auto has {other}, the table {one}"
    wrong = _several(chains, loss, truths, scaling, prices, tally)
    if wrong:
        return f"{words}: {wrong}"
    allowance = 1e-12 * (1 + np.abs(made[0]).sum() + len(made[0]) * np.abs(made[1]).max())
    if np.abs(values["bounds"] - values["full"]).max() > allowance:
        return f"{words}: values {values['bounds']} instead of {values['full']}"
    return ""


def _several(chains, loss, truths, scaling, prices, tally):
    """Compare the best labellings of three tallies."""
    full, *others = (
        best_of_chains(chains, loss, truths, scaling, 3, search=Search(kind, start))
        for kind, start in (("full", None), ("auto", prices.copy()), ("bounds", prices.copy()))
    )
    tally["several tallies"] += CHAINS
    for found in others:
        for one, other in zip(full, found, strict=True):
            same_labels = all(np.array_equal(a, b) for (a, _), (b, _) in zip(one, other, strict=True))
            if not same_labels:
                return f"several: {other} instead of {one}"
    return ""
