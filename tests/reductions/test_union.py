"""Models side by side: scores, tallies and best labellings agree with those of the parts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generators, models

import tallytree as tt
from tallytree.reductions.union import union
from tallytree.testing import random_statistics


@given(parts=st.lists(models(largest=4), min_size=1, max_size=4), rng=generators())
def test_scores_and_tallies_add_up(parts, rng):
    counted = [random_statistics(rng, model, 1)[0] for model in parts]
    whole = union(parts, counted)
    statistic = whole.statistic(counted)
    labellings = [np.array([rng.integers(n) for n in model.cardinalities], dtype=np.int64) for model in parts]
    every = np.concatenate(labellings)
    scores = [model.score(y) for model, y in zip(parts, labellings, strict=True)]
    assert whole.model.score(every) == pytest.approx(sum(scores))
    assert statistic.tally(every) == sum(s.tally(y) for s, y in zip(counted, labellings, strict=True))
    split = whole.split(every)
    assert all(np.array_equal(a, b) for a, b in zip(split, labellings, strict=True))
    best = [tt.solve(model).score for model in parts]
    assert tt.solve(whole.model).score == pytest.approx(sum(best))


def test_chains_become_one_chain():
    rng = np.random.default_rng(0)
    chains = [tt.Model.chain(rng.normal(size=(m, 3)), np.ones((3, 3))) for m in (4, 1, 5)]
    whole = union(chains)
    assert whole.linked and tt.plan(whole.model).steps[-1].scope == ()
    assert len(tt.plan(whole.model, order="natural").steps) == 11
    shared = [block for block in whole.model.blocks if block.arity == 2 and block.tables.any()]
    assert len(shared) == 1 and len(shared[0].tables) == 1
    assert not union([tt.Model([2, 2, 2], [((0, 2), np.zeros((2, 2)))])]).linked
