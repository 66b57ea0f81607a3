"""Small random problems with difficult features: ties, gaps, single states, separate parts, distant caps."""

from __future__ import annotations

from typing import Any

import numpy as np
from oracle import Case, Count, Factors

import tallytree as tt
from tallytree.kernels import native

Rng = np.random.Generator
LABELLINGS = 1500  # the most that are enumerated


def cardinalities(rng: Rng, most: int = LABELLINGS, variables: int = 7) -> list[int]:
    """Draw numbers of states, sometimes with a single one."""
    sizes: list[int] = []
    for _ in range(int(rng.integers(1, variables + 1))):
        size = int(rng.choice([1, 2, 2, 2, 3, 3, 4]))
        if np.prod([*sizes, size], dtype=float) <= most:
            sizes.append(size)
    return sizes or [2]


def scopes(rng: Rng, variables: int, kind: str) -> list[tuple[int, ...]]:
    """Draw the scopes of factors: a chain, a tree, or any graph, with separate parts."""
    unary = [(v,) for v in range(variables) if rng.random() < 0.8]
    if kind == "chain":
        return [*unary, *((v, v + 1) for v in range(variables - 1))]
    if kind == "tree":
        pairs = [(int(rng.integers(0, v)), v) for v in range(1, variables) if rng.random() < 0.85]
        return [*unary, *(tuple(rng.permutation(pair).tolist()) for pair in pairs)]
    some = []
    for _ in range(int(rng.integers(0, variables + 2))):
        arity = int(rng.integers(0, min(3, variables) + 1))
        some.append(tuple(rng.permutation(variables)[:arity].tolist()))
    return [*unary, *some]


def scores(rng: Rng, shape: tuple[int, ...], style: str) -> np.ndarray:
    """Draw a table of scores."""
    plain = style.removesuffix(" with gaps")
    if plain == "ties":
        table = rng.integers(-2, 3, shape).astype(float)
    elif plain == "decimals":
        table = rng.integers(-40, 41, shape) / 10
    else:
        table = rng.normal(size=shape) * {"tiny": 1e-100, "huge": 1e12, "vast": 1e100}.get(plain, 1.0)
    if plain != style:
        table = np.where(rng.random(shape) < 0.25, -np.inf, table)
    return np.asarray(table, dtype=np.float64)


STYLES = ("normal", "ties", "decimals", "tiny", "huge", "vast", "normal with gaps", "ties with gaps")
USUAL = ("normal", "ties", "decimals", "normal with gaps", "ties with gaps")


def integers(rng: Rng, shape: tuple[int, ...], style: str) -> np.ndarray:
    """Draw a table of integers."""
    if style == "far":
        return rng.choice([0, 1, 10**5, -3], shape)
    if style == "vast":
        return rng.choice([0, 1, 2**37, -(2**37), 7], shape)
    low, high = {"bits": (0, 2), "signed": (-3, 4)}[style]
    return rng.integers(low, high, shape)


def count(rng: Rng, sizes: list[int], name: str, caps: bool = True) -> Count:
    """Draw a statistic: of single variables or of pairs that need not be neighbours."""
    style = str(rng.choice(["bits", "bits", "signed", "signed", "far", "vast"]))
    places = scopes(
        rng, len(sizes), "any" if rng.random() < 0.3 else "tree" if rng.random() < 0.3 else "none"
    )
    if rng.random() < 0.6:
        places = [place for place in places if len(place) == 1]
    factors: Factors = [(p, integers(rng, tuple(sizes[v] for v in p), style)) for p in places]
    made = Count(name, factors)
    if caps and rng.random() < 0.35:
        made.cap = cap(rng, sizes, made)
    return made


def cap(rng: Rng, sizes: list[int], of: Count) -> int:
    """Draw a cap: inside the range of the tallies, at its ends, or beyond them."""
    totals = of.tallies(Case(sizes, [], []).labellings)
    low, high = int(totals.min()), int(totals.max())
    return int(
        rng.choice([low - 1, low, low + 1, int(rng.integers(low, high + 1)), high, high + 1, high + 10**6])
    )


def case(
    rng: Rng, *, kind: str | None = None, styles: tuple[str, ...] = STYLES, counts: int = 2, **options: Any
) -> Case:
    """Draw a problem."""
    caps = options.pop("caps", True)
    sizes = cardinalities(rng, **options)
    if kind == "chain":
        sizes = chain_sizes(rng, sizes)
    style, places = (
        str(rng.choice(styles)),
        scopes(rng, len(sizes), kind or str(rng.choice(["chain", "tree", "any"]))),
    )
    factors: Factors = [(p, scores(rng, tuple(sizes[v] for v in p), style)) for p in places]
    names = [f"s{k}" for k in range(int(rng.integers(0, counts + 1)))]
    return Case(sizes, factors, [count(rng, sizes, name, caps) for name in names])


def chain_sizes(rng: Rng, sizes: list[int]) -> list[int]:
    """Give all variables the same states, like labels."""
    states = int(rng.choice([2, 3]))
    return [states] * max(1, min(len(sizes), int(np.log(LABELLINGS) / np.log(states))))


# --- for the library ----------------------------------------------------------------------------------------


def model_of(drawn: Case) -> tt.Model:
    """Return the problem's model."""
    return tt.Model(drawn.cardinalities, drawn.factors)


def statistics_of(drawn: Case) -> list[tt.Statistic]:
    """Return the problem's statistics."""
    return [tt.Statistic(c.factors, name=c.name, cap=c.cap) for c in drawn.counts]


def options(
    rng: Rng, model: tt.Model, statistics: list[tt.Statistic], *, tight: bool = True
) -> dict[str, Any]:
    """Draw layouts, threads, orders, and a memory limit that leaves room for checkpoints only."""
    far = any(s.largest_entry > 100 for s in statistics)  # rows have room for all that lies between
    chosen: dict[str, Any] = {
        "layout": str(rng.choice(["auto", "cells"] if far else ["auto", "rows", "cells"]))
    }
    if rng.random() < 0.2:
        chosen["threads"] = int(rng.integers(1, 4))
    if rng.random() < 0.3:
        chosen["order"] = str(rng.choice(["min-fill", "min-degree", "natural"]))
    if rng.random() < 0.3:
        chosen["order"] = rng.permutation(len(model)).tolist()
    if tight and rng.random() < 0.3:
        chosen["memory_limit"] = 0.6 * tt.plan(model, statistics, **chosen_for_plan(chosen)).peak_bytes
    return chosen


def chosen_for_plan(chosen: dict[str, Any]) -> dict[str, Any]:
    """Return the options that planning takes."""
    return {name: value for name, value in chosen.items() if name in ("layout", "order")}


def instruction_set(rng: Rng) -> None:
    """Choose the compiled kernels."""
    native.use_instruction_set(str(rng.choice(native.instruction_sets())))


def states_allowed(rng: Rng, sizes: list[int]) -> dict[int, list[int]]:
    """Draw states that some variables may take."""
    some = [v for v in range(len(sizes)) if rng.random() < 0.25]
    return {v: np.flatnonzero(rng.random(sizes[v]) < 0.6).tolist() or [0] for v in some}
