"""Answers of the paper's own objects: explicit models and clique trees."""

from __future__ import annotations

from typing import Any

import draws
from answering import asked
from draws import Rng, pick

import tallytree as tt


def augmented(rng: Rng) -> Any:
    model = draws.model(rng, largest=5)
    statistics, target = draws.statistics(rng, model, most=2), int(rng.integers(4))
    eta = pick(rng, (None, lambda k, *rest: -1.5 * (k - target) ** 2))

    def answers() -> list[Any]:
        explicit = tt.augment(model, statistics, eta)
        full = explicit.complete(draws.possible(rng, model))
        tally = explicit.tallies[rng.integers(len(explicit.tallies))].tolist()
        solved = explicit.solution(tt.solve(explicit.model).assignment)
        clamped = asked(lambda: explicit.solution(tt.solve(explicit.clamp(*tally)).assignment))
        return [explicit.model, explicit.tallies, explicit.hub, full, explicit.lift(full), solved, clamped]

    return asked(answers)


def clique_trees(rng: Rng) -> Any:
    model = draws.model(rng, largest=8)
    statistics = draws.statistics(rng, model, most=1, least=0)

    def answers(method: str) -> list[Any]:
        tree = tt.clique_tree(model, statistics, method=method)
        shape = [
            [t.cliques, t.parent, t.scopes, t.width, t.degree] for t in (tree, tree.cloned(), tree.reshaped())
        ]
        return [shape, tree.order(), tree.separators, asked(tree.profile, model, statistics)]

    return [asked(answers, method) for method in ("elimination", "triangulation")]
