"""Cases on models: the best labelling, profiles, constraints, plans, sums, and answers in order."""

from __future__ import annotations

from itertools import islice
from typing import Any

import draws
import numpy as np
from answering import asked
from draws import Rng, coin, pick

import tallytree as tt
from tallytree import testing

# A plan as a string names its limit, so the default, which depends on the machine, is not used.
LIMIT = 2.0**30
SOME = 2.0**25


def best_labelling(rng: Rng) -> Any:
    model = draws.model(rng, largest=10)
    return [model, model.score(draws.labelling(rng, model)), asked(tt.solve, model)]


def profile(rng: Rng) -> Any:
    model = draws.model(rng)
    return asked(lambda: profile_answers(rng, tt.profile(model, draws.statistics(rng, model))))


def profile_answers(rng: Rng, found: tt.Profile) -> list[Any]:
    """Ask a profile for what it has."""
    if not len(found):
        return [found, asked(found.best)]
    row = int(rng.integers(len(found)))
    tally = found.tallies[row].tolist()
    missing = asked(found.at, *(k + 40 for k in tally))
    best = [asked(found.best), asked(found.row, row), asked(found.at, *tally), asked(found.top, 3)]
    return [found, best, missing, asked(found.max_marginals, *tally)]


def with_objective(rng: Rng) -> Any:
    model = draws.model(rng)
    statistics, objective = draws.statistics(rng, model), draws.objective(rng)
    found = asked(tt.solve, model, statistics, objective)
    ranked = asked(lambda: islice(tt.profile(model, statistics).ranked(objective), 3))
    return [found, asked(lambda: tt.profile(model, statistics).top(3, objective)), ranked]


def with_constraint(rng: Rng) -> Any:
    model = draws.model(rng)
    statistics = draws.statistics(rng, model)
    where = draws.constraint(rng, statistics)
    return [
        asked(tt.plan, model, where=where, memory_limit=LIMIT),
        asked(tt.solve, model, where=where),
        asked(tt.solve, model, statistics[:1], where=where),
        asked(tt.solve, model, statistics[:1], draws.objective(rng), where=where),
        asked(lambda: tt.profile(model, statistics).best(where=where)),
    ]


def with_pattern(rng: Rng) -> Any:
    model = draws.chain(rng)
    nouns = tt.count(state=["B-NP", "I-NP"], name="nouns")
    pattern = pick(rng, (tt.valid_bio(), *map(tt.regular, draws.PATTERNS)))
    where = ~pattern if coin(rng, 0.3) else pattern
    where = where & draws.constraint(rng, [nouns]) if coin(rng) else where
    where = where & tt.valid_bio() if coin(rng, 0.2) else where
    return [
        asked(tt.plan, model, where=where, memory_limit=LIMIT),
        asked(tt.solve, model, where=where),
        asked(tt.k_best, model, 3, [nouns], where=where),
        asked(tt.solve, draws.chain(rng, draws.BIOES), where=tt.valid_bioes()),
    ]


def restricted(rng: Rng) -> Any:
    model = draws.model(rng)
    statistics, limits = draws.statistics(rng, model, most=2), draws.restriction(rng, model)
    where = draws.constraint(rng, statistics)
    return [
        asked(model.restricted, **limits),
        asked(tt.solve, model, **limits),
        asked(tt.solve, model, where=where, **limits),
        asked(tt.profile, model, statistics, **limits),
        asked(lambda: tt.distribution(model, statistics, **limits).counts),
        asked(tt.k_best, model, 3, **limits),
        asked(lambda: islice(tt.iter_best(model, where=where, **limits), 3)),
        asked(tt.exclude, model, [draws.labelling(rng, model)], **limits),
    ]


def plans(rng: Rng) -> Any:
    model = draws.long_model(rng) if coin(rng, 0.3) else draws.model(rng, largest=14)
    statistics = draws.statistics(rng, model, most=2, least=0)
    own = rng.permutation(len(model.cardinalities)).tolist()
    order = pick(rng, (None, "min-fill", "natural", "sweep", "min-tally", own))
    options = {
        "order": order,
        "memory_limit": pick(rng, (LIMIT, 1e6)),
        "precision": pick(rng, ("double", "single")),
    }

    def followed() -> Any:
        plan = tt.plan(model, statistics, **options)
        return [plan, tt.profile(model, statistics, plan=plan)] if plan.peak_bytes < SOME else plan

    return [asked(followed), asked(tt.solve, model, statistics, memory_limit=SOME)]


def storage(rng: Rng) -> Any:
    model = draws.model(rng)
    statistics = draws.statistics(rng, model)
    where = draws.constraint(rng, statistics)
    return [
        [
            asked(tt.plan, model, statistics, tallies=mode, memory_limit=LIMIT),
            asked(lambda mode=mode: profile_answers(rng, tt.profile(model, statistics, tallies=mode))),
            asked(tt.solve, model, where=where, tallies=mode),
            asked(tt.distribution, model, statistics, tallies=mode),
            asked(tt.k_best, model, 2, statistics, tallies=mode),
        ]
        for mode in ("auto", "rows", "cells")
    ]


def single_precision(rng: Rng) -> Any:
    model = draws.model(rng)
    statistics = draws.statistics(rng, model)
    where = draws.constraint(rng, statistics)
    return [
        asked(tt.solve, model, precision="single"),
        asked(tt.solve, model, statistics, draws.objective(rng), precision="single"),
        asked(tt.solve, model, where=where, precision="single"),
        asked(lambda: profile_answers(rng, tt.profile(model, statistics, precision="single"))),
    ]


def threads(rng: Rng) -> Any:
    model = draws.long_model(rng)
    ones = tt.count(state=1, name="ones")
    changes = tt.mismatches(model, draws.labelling(rng, model), cap=pick(rng, (None, 4)))
    found = tt.profile(model, [ones], threads=2)
    return [
        found,
        found.top(3),
        asked(tt.solve, model, where=(ones == 7) & (changes >= 3), threads=2),
        asked(tt.profile, model, [ones], threads=2, precision="single"),
        asked(tt.distribution, model, [ones], threads=2),
    ]


def segments(rng: Rng) -> Any:
    """Ask with less memory than all tables take, so that some are computed again."""
    n, states = int(rng.integers(60, 250)), int(rng.integers(2, 5))
    model = tt.Model.chain(rng.normal(size=(n, states)), rng.normal(size=(states, states)))
    statistics = [tt.count(state=1, name="ones")]
    limit = tt.plan(model, statistics).peak_bytes * pick(rng, (0.2, 0.4, 0.6, 0.8, 0.9))
    options: dict[str, Any] = {"memory_limit": limit}
    return [
        asked(tt.plan, model, statistics, **options),
        asked(lambda: tt.profile(model, statistics, **options).top(2)),
        asked(tt.solve, model, where=statistics[0] == 9, **options),
        asked(lambda: tt.distribution(model, statistics, **options).marginals()),
        asked(lambda: tt.distribution(model, statistics, **options).sample(3, rng=1)),
        asked(lambda: tt.profile(model, statistics, precision="single", **options).top(2)),
        asked(tt.k_best, model, 2, **options),
    ]


def reference(rng: Rng) -> Any:
    model = draws.model(rng, largest=5)
    statistics = draws.statistics(rng, model, most=2)
    options = {"backend": "reference"}
    return [
        asked(tt.solve, model, where=draws.constraint(rng, statistics), **options),
        asked(lambda: profile_answers(rng, tt.profile(model, statistics, **options))),
        asked(lambda: sums(rng, tt.distribution(model, statistics, **options))),
    ]


def distribution(rng: Rng) -> Any:
    model = draws.model(rng)
    return asked(lambda: sums(rng, tt.distribution(model, draws.statistics(rng, model, most=2, least=0))))


def sums(rng: Rng, found: tt.Distribution) -> list[Any]:
    """Ask a distribution for what it has."""
    drawn = draws.seed(rng)
    plainly = [found, found.counts, asked(found.marginals), asked(found.sample, 4, rng=drawn)]
    if not len(found.tallies):
        return plainly
    tally = found.tallies[rng.integers(len(found.tallies))].tolist()
    given = [asked(found.marginals, tally=tally), asked(found.sample, 4, tally=tally, rng=drawn)]
    return [plainly, given, asked(found.sample, rng=np.random.default_rng(drawn))]


def k_best(rng: Rng) -> Any:
    model = draws.model(rng)
    statistics = draws.statistics(rng, model, most=2)
    where, objective = draws.constraint(rng, statistics), draws.objective(rng)
    return [
        asked(tt.k_best, model, int(rng.integers(1, 12))),
        asked(tt.k_best, model, 4, where=where),
        asked(tt.k_best, model, 4, statistics, objective, where=where if coin(rng) else None),
        asked(lambda: islice(tt.iter_best(model, statistics, objective, where=where), 3)),
    ]


def diverse(rng: Rng) -> Any:
    model = draws.model(rng)
    distance = pick(rng, (1, 2, 3, [3, 1]))
    return asked(tt.diverse_k_best, model, 3, distance)


def excluded(rng: Rng) -> Any:
    model = draws.model(rng)
    outputs = [draws.labelling(rng, model) for _ in range(2)]
    outputs += [y.assignment for y in tt.k_best(model, 2)]
    statistics = draws.statistics(rng, model, most=1)
    return [
        [
            asked(tt.exclude, model, outputs, method=method),
            asked(tt.exclude, model, outputs, where=draws.constraint(rng, statistics), method=method),
            asked(tt.exclude, model, outputs, statistics, draws.objective(rng), method=method),
        ]
        for method in ("ranking", "statistics")
    ]


def relaxed(rng: Rng) -> Any:
    model = draws.model(rng, largest=9)
    statistics = draws.statistics(rng, model, most=2, capped=0.05)
    where = draws.constraint(rng, statistics, forms=6)
    candidates = pick(rng, (0, 5, 200))
    return asked(tt.relax, model, where=where, candidates=candidates, iterations=40)


def score_range(rng: Rng) -> Any:
    model = draws.model(rng)
    low = model.score(draws.possible(rng, model)) - pick(rng, (0.0, 0.25, float(rng.random())))
    options = {"labellings": pick(rng, (0, 3, 1000)), "resolution": pick(rng, (None, None, 0.25))}
    return asked(tt.score_between, model, low, low + pick(rng, (0.25, 0.5, 2.0)), **options)


def sufficient(rng: Rng) -> Any:
    symbols, states = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    ties = coin(rng)
    emissions, transitions = (
        draws.scores(rng, (symbols, states), ties),
        draws.scores(rng, (states, states), ties),
    )
    places = rng.integers(symbols, size=rng.integers(1, 7)).tolist()
    chain = tt.sufficient_statistics(places, emissions, transitions)
    found = tt.profile(chain.model, chain.statistics)
    return [chain.model, chain.weights, found, chain.score(*found.tallies.T), found.best()]


def enumerated(rng: Rng) -> Any:
    """Ask the library's own generators and its enumeration of all labellings."""
    drawn, shape = draws.seed(rng), pick(rng, sorted(testing.SHAPES))
    options = {"forbidden": pick(rng, (0.0, 0.2)), "ties": coin(rng), "constants": 1, "repeated": 1}
    model = testing.random_model(drawn, shape, variables=4, **options)
    statistics = testing.random_statistics(drawn, model, 2, capped=0.5)
    everything = testing.brute_force(model, statistics)
    return [model, shape, everything.labellings, everything.scores, everything.tallies]


def refused(rng: Rng) -> Any:
    """Ask for what cannot be: too little memory, nothing that satisfies, statistics of another model."""
    model, wide = draws.model(rng), tt.Model.grid(np.zeros((30, 30, 2)), np.zeros((2, 2)), np.zeros((2, 2)))
    statistics = draws.statistics(rng, model)
    ones = tt.count(state=1, name="ones")
    limit = int(rng.integers(1, 3000))
    return [
        asked(tt.profile, model, statistics, memory_limit=limit),
        asked(tt.solve, model, where=ones >= int(rng.integers(3, 40)), memory_limit=limit),
        asked(tt.solve, model, where=(ones == 40) & draws.constraint(rng, statistics)),
        asked(tt.plan, wide, [ones], memory_limit=LIMIT),
        asked(tt.profile, draws.model(rng), statistics),
        asked(tt.distribution, model, statistics, memory_limit=limit),
        asked(model.score, [5] * len(model.cardinalities)),
        asked(tt.solve, model, fixed={int(rng.integers(9)): "wett"}),
        asked(tt.Model, [2, 2], [((0, int(rng.integers(4))), np.zeros((2, int(rng.integers(1, 4)))))]),
        asked(tt.Statistic, [((0,), [0.5, float(rng.integers(3))])]),
    ]


def large(rng: Rng) -> Any:
    model = draws.long_model(rng)
    ones, pairs = tt.count(state=1, name="ones"), draws.statistics(rng, model, most=1)
    found = tt.profile(model, [ones])
    row = int(rng.integers(len(found)))
    spread = tt.distribution(model, [ones])
    return [
        tt.plan(model, [ones], memory_limit=LIMIT),
        profile_answers(rng, found),
        found.max_marginals(*found.tallies[row].tolist()),
        [spread, spread.marginals(), spread.sample(2, rng=row)],
        asked(tt.profile, model, pairs, memory_limit=SOME),
        asked(tt.solve, model, pairs, draws.objective(rng), memory_limit=SOME),
        asked(tt.solve, model, where=draws.constraint(rng, [ones, *pairs]), memory_limit=SOME),
        tt.k_best(model, 5, where=ones <= 6),
    ]


def wide(rng: Rng) -> Any:
    """Ask with several statistics whose tables are long: matches, mismatches and a free one."""
    n, states = int(rng.integers(12, 40)), int(rng.integers(2, 5))
    ties = coin(rng, 0.2)
    model = tt.Model.chain(draws.scores(rng, (n, states), ties), draws.scores(rng, (states, states), ties))
    truth = draws.labelling(rng, model)
    right, wrong = tt.matches(model, truth, 0, name="right"), tt.mismatches(model, truth, 0, name="wrong")
    changes = [((v, v + 1), 1 - np.eye(states, dtype=int)) for v in range(n - 1)]
    turns = tt.Statistic(changes, name="turns", cap=pick(rng, (None, 3)))
    found = tt.profile(model, [right, wrong], tallies=pick(rng, ("auto", "rows", "cells")))
    where = (turns >= 2) & (right - wrong <= int(rng.integers(4)))
    return [
        profile_answers(rng, found),
        asked(tt.profile, model, [right, wrong, turns]),
        asked(tt.solve, model, where=where),
        asked(tt.solve, model, where=where, precision="single"),
        asked(tt.distribution, model, [right, turns]),
        asked(tt.loss_augmented, model, tt.losses.FBeta(truth, background=0), pick(rng, ("margin", "slack"))),
    ]
