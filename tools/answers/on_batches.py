"""Answers for many models at once."""

from __future__ import annotations

from typing import Any

import draws
from answering import asked, plain
from draws import Rng, pick

import tallytree as tt


def solve_batches(rng: Rng) -> Any:
    models = [draws.model(rng, largest=6) for _ in range(rng.integers(1, 6))]
    ones = tt.count(state=1, name="ones")
    where, objective = draws.constraint(rng, [ones]), draws.objective(rng)
    each = [draws.statistics(rng, model, most=2) for model in models]
    options = {"errors": pick(rng, ("raise", "return")), "threads": int(rng.integers(1, 3))}
    return [
        asked(tt.solve_batch, models, **options),
        asked(tt.solve_batch, models, where=where, **options),
        asked(tt.solve_batch, models, each, objective, **options),
        asked(tt.solve_batch, models, where=[draws.constraint(rng, some) for some in each], **options),
        asked(tt.solve_batch, models, fixed=[draws.restriction(rng, m)["fixed"] for m in models], **options),
    ]


def profile_batches(rng: Rng) -> Any:
    models = [draws.model(rng, largest=6) for _ in range(rng.integers(1, 6))]
    each = [draws.statistics(rng, model, most=2) for model in models]
    options = {"tallies": pick(rng, ("auto", "rows", "cells")), "threads": int(rng.integers(1, 3))}
    found = tt.profile_batch(models, each, errors="return", **options)
    best = [one if isinstance(one, Exception) else asked(one.best) for one in found]
    return [plain(found), best, asked(tt.profile_batch, models, [tt.count(state=0)], **options)]
