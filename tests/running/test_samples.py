"""Many samples from a plan with checkpoints: tables are recomputed once for all of them."""

import numpy as np
import pytest
from memory import little

import tallytree as tt
from tallytree.kernels import native

LENGTH = 60


@pytest.mark.parametrize("layout", ["rows", "cells"])
@pytest.mark.sanitize
def test_samples_are_drawn_segment_by_segment_all_at_once(layout):
    rng = np.random.default_rng(2)
    model = tt.Model.chain(rng.normal(size=(LENGTH, 24)), rng.normal(size=(24, 24)))
    statistics, options = [tt.count(model, state=1)], {"order": "natural", "layout": layout}
    whole = tt.plan(model, statistics, **options)
    plan = tt.plan(model, statistics, memory_limit=little(whole, 0.45), **options)
    tables = [block.tables for block in model.blocks]
    run, kept = (native.Run(p.layout, tables, native.LOG_SUM_EXP) for p in (plan, whole))
    assert plan.segments > 2
    cells = np.repeat(run.root()[0][::7], 30).astype(np.int64)
    uniforms = rng.random((len(cells), len(plan.tables)))
    one_by_one = [run.sample(cells[[i]], uniforms[[i]])[0] for i in range(0, len(cells), 20)]
    before = run.native_steps
    together = run.sample(cells, uniforms)
    assert run.native_steps - before <= len(plan.tables)
    np.testing.assert_array_equal(together[::20], one_by_one)
    np.testing.assert_array_equal(together, kept.sample(cells, uniforms))
