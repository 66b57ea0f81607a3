"""Hypothesis strategies for small problems.

Sizes and options are drawn by Hypothesis, so that a failure shrinks to few variables, few states and plain
options; what is left (scores, scopes, entries) is a function of a drawn seed.
"""

import numpy as np
from hypothesis import strategies as st

from tallytree.model.model import Model
from tallytree.statistics.statistic import Statistic
from tallytree.testing import SHAPES, random_model, random_statistics

PROBABILITIES = st.sampled_from([0.0, 0.2, 0.5])


def generators() -> st.SearchStrategy[np.random.Generator]:
    """Return a strategy for seeded random generators."""
    return st.integers(0, 2**32 - 1).map(np.random.default_rng)


@st.composite
def models(draw: st.DrawFn, *, largest: int = 6, states: int = 3, feasible: bool = True) -> Model:
    """Draw a model of up to `largest` variables, of any shape, with any of the generator's options."""
    return random_model(
        draw(generators()),
        draw(st.sampled_from(sorted(SHAPES))),
        variables=draw(st.integers(1, largest)),
        states=draw(st.integers(1, states)),
        single_state=draw(PROBABILITIES),
        forbidden=draw(PROBABILITIES),
        feasible=feasible,
        ties=draw(st.booleans()),
        constants=draw(st.integers(0, 2)),
        repeated=draw(st.integers(0, 2)),
    )


@st.composite
def statistics_of(
    draw: st.DrawFn, model: Model, *, most: int = 3, capped: bool = True, local: bool | None = None
) -> list[Statistic]:
    """Draw up to `most` statistics of a model; `local` None lets Hypothesis choose where their scopes lie."""
    return random_statistics(
        draw(generators()),
        model,
        draw(st.integers(0, most)),
        low=draw(st.integers(-2, 0)),
        high=draw(st.integers(0, 2)),
        arity=draw(st.integers(1, 3)),
        terms=draw(st.integers(0, len(model.cardinalities))),
        capped=draw(st.sampled_from([0.0, 0.5, 1.0])) if capped else 0.0,
        constants=draw(st.integers(0, 1)),
        local=draw(st.booleans()) if local is None else local,
    )


@st.composite
def problems(
    draw: st.DrawFn,
    *,
    largest: int = 6,
    states: int = 3,
    most: int = 3,
    capped: bool = True,
    feasible: bool = True,
    local: bool | None = None,
) -> tuple[Model, list[Statistic]]:
    """Draw a model and statistics of it."""
    model = draw(models(largest=largest, states=states, feasible=feasible))
    return model, draw(statistics_of(model, most=most, capped=capped, local=local))
