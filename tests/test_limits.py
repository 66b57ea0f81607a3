"""Limits that make no sense are errors, and those that do are kept."""

import time

import numpy as np
import pytest

import tallytree as tt

MODEL = tt.Model.chain(np.zeros((6, 2)), np.zeros((2, 2)))
ONES = tt.count(MODEL, state=1, name="ones")


@pytest.mark.parametrize("limit", [-2, float("nan"), True, "1e9", None.__class__])
@pytest.mark.parametrize(
    "call",
    [
        lambda **limits: tt.solve(MODEL, **limits),
        lambda **limits: tt.plan(MODEL, [ONES], **limits),
        lambda **limits: tt.profile(MODEL, [ONES], **limits),
        lambda **limits: tt.distribution(MODEL, [ONES], **limits),
        lambda **limits: tt.k_best(MODEL, 2, **limits),
        lambda **limits: tt.relax(MODEL, where=ONES >= 2, **limits),
        lambda **limits: tt.solve_batch([MODEL], **limits),
        lambda **limits: tt.io.ProblemFile(MODEL, [ONES]).solve(**limits),
        lambda **limits: tt.io.ProblemFile(MODEL, [ONES]).profile(**limits),
        lambda **limits: tt.io.read_problem(
            tt.io.Source("a.json", b'{"tallytree": 1, "model": {"cardinalities": [2]}}'), **limits
        ),
    ],
)
def test_memory_limits(call, limit):
    with pytest.raises(tt.ModelError, match="memory_limit must be a number of bytes, such as 1e9; got"):
        call(memory_limit=limit)


@pytest.mark.parametrize(
    "make",
    [
        lambda cap: tt.count(state=1, cap=cap),
        lambda cap: tt.count(MODEL, state=1, cap=cap),
        lambda cap: tt.count(state=1).capped(cap),
        lambda cap: tt.matches(MODEL, [0] * 6, cap=cap),
        lambda cap: tt.mismatches(MODEL, [0] * 6, cap=cap),
    ],
)
def test_a_count_has_no_negative_cap(make):
    with pytest.raises(tt.ModelError, match="is -1, but a count is never negative; use 0 or more, or None"):
        make(-1)
    assert make(0).cap == 0
    assert tt.Statistic([((0,), [-3, 2])], cap=-1).tally([1, 0]) == -1  # sums may be negative


def test_a_list_is_limited_by_operations():
    assert len(tt.k_best(MODEL)) == 64
    plain = tt.plan(MODEL).operations
    with pytest.raises(
        tt.BudgetError, match="10 labellings found, but listing all takes more operations than"
    ):
        tt.k_best(MODEL, operation_limit=plain + 60)
    assert len(tt.k_best(MODEL, 10, operation_limit=plain + 60)) == 10
    with pytest.raises(tt.BudgetError, match="10 labellings found"):
        tt.io.ProblemFile(MODEL).k_best(20, operation_limit=plain + 60)


def test_no_long_pass_is_made_beyond_the_limit():
    model = tt.Model.grid(np.zeros((22, 22, 2)), np.eye(2), np.eye(2))
    start = time.process_time()
    for strategy in ("auto", "bounds"):
        with pytest.raises(tt.BudgetError) as error:
            tt.solve(model, where=tt.count(state=1) == 30, operation_limit=1e6, strategy=strategy)
        assert error.value.bound is None
    assert time.process_time() - start < 10  # a pass takes 4 G operations
