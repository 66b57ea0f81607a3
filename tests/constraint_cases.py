"""Random constraints and objectives, and a comparison of a solution with enumeration."""

import numpy as np
import pytest
from hypothesis import strategies as st

import tallytree as tt
from tallytree.testing import brute_force, check_solution, factors_of, score_tolerance

RELATIONS = {
    "<=": lambda a, b: a <= b,
    "<": lambda a, b: a < b,
    ">=": lambda a, b: a >= b,
    ">": lambda a, b: a > b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}

OBJECTIVES = {
    "score": None,
    "sum": lambda score, *tally: 2 * score + sum(t * (i + 1) for i, t in enumerate(tally)),
    "distance": lambda score, *tally: score - 3 * sum(abs(t - 1) for t in tally),
    "tally only": lambda score, *tally: 0 * score - sum((t - i) ** 2 for i, t in enumerate(tally)),
    "step": lambda score, *tally: np.floor(score / 2) * (1 + sum((t > 0) * 1 for t in tally)),
}


@st.composite
def comparisons(draw, statistics):
    """Compare a combination of one to three statistics with a number; coefficients may be 0 or negative."""
    left = draw(st.integers(-1, 1)) + 0 * statistics[0]
    for statistic in draw(st.lists(st.sampled_from(statistics), min_size=1, max_size=3)):
        left = left + draw(st.sampled_from([1, 1, 1, 2, -1, -3, 0])) * statistic
    return RELATIONS[draw(st.sampled_from(sorted(RELATIONS)))](left, draw(st.integers(-5, 6)))


def constraints(statistics):
    return st.recursive(
        comparisons(statistics),
        lambda parts: st.one_of(
            st.tuples(parts, parts).map(lambda pair: pair[0] & pair[1]),
            st.tuples(parts, parts).map(lambda pair: pair[0] | pair[1]),
            parts.map(lambda part: ~part),
        ),
        max_leaves=4,
    )


def integral(model):
    return all(
        np.array_equal(f[np.isfinite(f)], np.round(f[np.isfinite(f)])) for _, f in factors_of(model.blocks)
    )


def check_against_enumeration(model, seen, objective, where, **options):
    """Value, constraint, certificate; and the first tally among equals where scores are whole numbers."""
    try:
        wanted = brute_force(model, seen).best(objective, where)
    except tt.InfeasibleError:
        with pytest.raises(tt.InfeasibleError, match="satisfies"):
            tt.solve(model, seen, objective, where=where, **options)
        return
    got = tt.solve(model, seen, objective, where=where, **options)
    assert abs(got.value - wanted.value) <= 8 * score_tolerance(model)
    hidden = [s for s in where.statistics if s not in seen]
    check_solution(got, model, [*seen, *hidden])
    assert where.holds({s: s.tally(got.assignment) for s in where.statistics})
    if integral(model):
        assert tuple(got.tally)[: len(seen)] == wanted.tally
