"""Block steps: the same as a Python version, and the dual never decreases."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from tallytree.kernels.native import block_inner, grow_block, improve_block, merge_slopes, take_slopes
from tallytree.learning.planes import Plane, combined
from tallytree.learning.working_sets import _RULES, WorkingSet
from tallytree.running import dual_steps

DIMENSION = 7


def planes_of(rng, count):
    """Sparse planes, some without a slope, some twice."""
    made = []
    for _ in range(count):
        indices = np.sort(rng.choice(DIMENSION, rng.integers(0, 5), replace=False))
        made.append(Plane(indices, rng.normal(size=len(indices)).round(1), float(rng.integers(0, 4))))
    return [*made, *made[: rng.integers(0, 2)]]


def dense(planes):
    slopes = np.zeros((len(planes), DIMENSION))
    for slope, plane in zip(slopes, planes, strict=True):
        slope[plane.indices] = plane.values
    return slopes


def is_clear(slopes, values, chosen):
    """Whether rounding cannot make another plane the highest, or the lowest."""
    alike = np.abs(values - values[chosen]) < 1e-9
    return bool((slopes[alike] == slopes[chosen]).all())


def improved(planes, alpha, weights):
    """The same in plain Python: return the gap before, and the weights of planes after."""
    slopes, alpha = dense(planes), alpha.copy()
    gram = slopes @ slopes.T
    values = np.array([plane.offset for plane in planes]) - slopes @ weights
    gap = float(alpha @ (values.max() - values))
    least = _RULES.rounding * (1 + max(plane.offset for plane in planes))
    for _ in range(_RULES.steps):
        up, used = int(values.argmax()), np.flatnonzero(alpha > 0)
        down = int(used[values[used].argmin()])
        slope = values[up] - values[down]
        if slope <= least:
            break
        assume(is_clear(slopes, values, up) and is_clear(slopes[used], values[used], list(used).index(down)))
        least = max(least, _RULES.enough * slope)
        curvature = gram[up, up] - 2 * gram[up, down] + gram[down, down]
        step = min(alpha[down], slope / curvature) if curvature > 0 else alpha[down]
        alpha[up] += step
        alpha[down] -= step
        values -= step * (gram[up] - gram[down])
    return gap, alpha


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 6))
def test_steps_are_those_of_the_definition(seed, count):
    rng = np.random.default_rng(seed)
    planes = planes_of(rng, count)
    alpha = rng.dirichlet(np.ones(len(planes))) * rng.integers(0, 2, len(planes))
    alpha[0] += 1.0 - alpha.sum()
    others, lag = rng.normal(size=DIMENSION), rng.normal(size=DIMENSION)
    slopes, offsets = dense(planes), np.array([plane.offset for plane in planes])
    one = WorkingSet(planes, alpha)
    weights, lagging = others + alpha @ slopes, lag.copy()
    np.testing.assert_allclose(one.gradients(weights), offsets - slopes @ weights, atol=1e-12)
    gap, after = improved(planes, alpha, weights)
    before = weights.copy()
    assert one.improve(weights, lagging, 3.0) == pytest.approx(gap, abs=1e-12)
    np.testing.assert_allclose(one.alpha, after, atol=1e-9)
    np.testing.assert_allclose(weights, others + one.alpha @ slopes, atol=1e-12)
    np.testing.assert_allclose(lagging - lag, 3.0 * (weights - before), atol=1e-12)
    duals = [a @ offsets - 0.5 * w @ w for a, w in ((alpha, before), (one.alpha, weights))]
    assert one.alpha.sum() == pytest.approx(1.0) and (one.alpha >= 0).all()
    assert duals[1] >= duals[0] - 1e-12


@settings(max_examples=30)
@given(st.integers(0, 2**32))
def test_planes_come_once_and_go_without_a_trace_in_the_weights(seed):
    rng = np.random.default_rng(seed)
    first, *others = planes_of(rng, 6)
    one, workspace = WorkingSet([first], np.ones(1)), np.zeros(DIMENSION)
    for plane in (*others, first):
        one.add(plane, workspace)
    kept = one.planes
    assert not workspace.any() and len(kept) == len({(p.offset, *p.indices, *p.values) for p in kept})
    np.testing.assert_allclose(one.gram, dense(kept) @ dense(kept).T, atol=1e-12)
    one.alpha = rng.dirichlet(np.ones(len(kept)))
    before, after = np.zeros(DIMENSION), np.zeros(DIMENSION)
    one.add_to(before)
    np.testing.assert_allclose(before, one.alpha @ dense(kept), atol=1e-12)
    one.trim(2, one.gradients(before))
    one.add_to(after)
    assert len(one) <= 2
    np.testing.assert_allclose(after, before, atol=1e-12)
    np.testing.assert_allclose(one.gram, dense(one.planes) @ dense(one.planes).T, atol=1e-12)


@pytest.mark.parametrize(
    "changes",
    [
        {"indices": np.array([0, 9])},
        {"indices": np.array([-1, 0])},
        {"values": np.ones(1)},
        {"ends": np.array([3])},
        {"ends": np.array([2, 1])},
        {"offsets": np.ones(2)},
        {"gram": np.ones((1, 2))},
        {"alpha": np.ones(2)},
        {"lag": np.ones(2)},
    ],
)
def test_arrays_that_do_not_fit_are_refused(changes):
    fine = {
        "indices": np.array([0, 2]),
        "values": np.ones(2),
        "ends": np.array([2]),
        "offsets": np.ones(1),
        "gram": np.ones((1, 1)),
        "alpha": np.ones(1),
        "weights": np.zeros(3),
        "lag": np.zeros(0),
    }
    rules = {"lag_factor": 0.0, "steps": 20, "enough": 0.1, "rounding": 1e-12}
    assert improve_block(**fine, **rules) == 0.0
    with pytest.raises(ValueError, match="do not fit each other or the weights"):
        improve_block(**{**fine, **changes}, **rules)
    assert block_inner(fine["indices"], fine["values"], fine["ends"], np.arange(3.0)).tolist() == [2.0]


def merged(planes, alpha, gradients, room):
    """The same in plain Python: drop idle planes, then merge the two lightest; return planes and weights."""
    idle = [k for k in np.argsort(gradients, kind="stable") if alpha[k] == 0.0]
    dropped = idle[: max(len(planes) - room, 0)]
    left = [k for k in range(len(planes)) if k not in dropped]
    planes, alpha = [planes[k] for k in left], alpha[left]
    while len(planes) > room:
        first, second = np.sort(np.argsort(alpha, kind="stable")[:2]).tolist()
        total = alpha[first] + alpha[second]
        planes[first] = combined([planes[first], planes[second]], alpha[[first, second]] / total)
        alpha[first] = total
        del planes[second]
        alpha = np.delete(alpha, second)
    return planes, alpha


@settings(max_examples=60)
@given(st.integers(0, 2**32), st.integers(1, 8), st.integers(1, 8))
def test_trimming_is_that_of_the_definition(seed, count, room):
    rng = np.random.default_rng(seed)
    planes = planes_of(rng, count)
    alpha = rng.integers(0, 4, len(planes)) / 4.0  # some are 0, some are equal
    gradients = rng.integers(0, 3, len(planes)).astype(float)
    one = WorkingSet(planes, alpha)
    one.trim(room, gradients)
    wanted, weights = merged(planes, alpha, gradients, room)
    assert len(one) == len(wanted) and one.alpha.tolist() == weights.tolist()
    for found, plane in zip(one.planes, wanted, strict=True):
        assert found.indices.tolist() == plane.indices.tolist()
        assert found.values.tolist() == plane.values.tolist() and found.offset == plane.offset
    np.testing.assert_allclose(one.gram, dense(wanted) @ dense(wanted).T, atol=1e-12)


BLOCK = {"indices": np.array([0, 2]), "values": np.ones(2), "ends": np.array([1, 2])}
CALLS = {
    grow_block: {
        "offsets": np.ones(2),
        "more_indices": np.array([1]),
        "more_values": np.ones(1),
        "more_offset": 1.0,
        "workspace": np.zeros(3),
    },
    take_slopes: {"kept": np.array([1])},
    merge_slopes: {"first": 0, "second": 1, "of_first": 0.5, "of_second": 0.5},
}


@pytest.mark.parametrize(
    ("call", "changes"),
    [
        (grow_block, {"more_indices": np.array([3])}),
        (grow_block, {"more_values": np.ones(2)}),
        (grow_block, {"workspace": np.zeros(2)}),
        (grow_block, {"offsets": np.ones(1)}),
        (take_slopes, {"kept": np.array([2])}),
        (take_slopes, {"kept": np.array([-1])}),
        (take_slopes, {"ends": np.array([2, 1])}),
        (merge_slopes, {"first": 1}),
        (merge_slopes, {"second": 2}),
        (merge_slopes, {"first": -1}),
        (merge_slopes, {"indices": np.array([0])}),
        (merge_slopes, {"indices": np.array([0, -(2**63)])}),
    ],
)
def test_arrays_that_do_not_fit_are_refused_when_planes_come_and_go(call, changes):
    fine = {**BLOCK, **CALLS[call]}
    assert call(**fine) is not None
    with pytest.raises(ValueError, match="do not fit each other or the weights"):
        call(**{**fine, **changes})


def test_an_interrupt_leaves_a_set_that_fits_together(monkeypatch):
    def interrupted(*parts):
        raise KeyboardInterrupt

    rng = np.random.default_rng(2)
    *some, last = planes_of(rng, 4)
    one = WorkingSet(some, np.ones(3))
    monkeypatch.setattr(dual_steps, "Slopes", interrupted)
    with pytest.raises(KeyboardInterrupt):
        one.add(last, np.zeros(1000))
    with pytest.raises(KeyboardInterrupt):
        one.trim(1, np.zeros(3))
    assert one.alpha.sum() == 3
    assert len(one.planes) == len(one.alpha) == len(one.offsets) == len(one.gram) == 3
