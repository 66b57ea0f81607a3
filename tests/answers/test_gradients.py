"""Derivatives of functions of all log-partitions, compared with enumeration, for every shape and sign."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.testing import brute_force, random_model, random_statistics
from tallytree.testing.problems import SHAPES

pytestmark = pytest.mark.sanitize


@st.composite
def cases(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    model = random_model(
        rng,
        draw(st.sampled_from(sorted(SHAPES))),
        variables=draw(st.integers(1, 5)),
        single_state=draw(st.sampled_from([0.0, 0.3])),
        forbidden=draw(st.sampled_from([0.0, 0.3])),
        ties=draw(st.booleans()),
        constants=draw(st.integers(0, 2)),
        repeated=draw(st.integers(0, 2)),
    )
    statistics = random_statistics(rng, model, draw(st.integers(0, 3)), capped=0.4, constants=1)
    return model, statistics, rng


def by_definition(model, statistics, tallies, weights):
    """Each labelling takes its part of the weight of its tally to the entries that it looks at."""
    every = brute_force(model, statistics)
    rows = {tuple(tally): row for row, tally in enumerate(tallies.tolist())}
    place = np.array([rows.get(tuple(tally), -1) for tally in every.tallies.tolist()])
    scores = np.where(place < 0, -np.inf, every.scores)
    found = [np.zeros_like(block.tables) for block in model.blocks]
    for row, weight in enumerate(weights):
        mine = np.flatnonzero((place == row) & (scores > -np.inf))
        shares = np.exp(scores[mine] - scores[mine].max())
        for labelling, share in zip(every.labellings[mine], weight * shares / shares.sum(), strict=True):
            for table, block in zip(found, model.blocks, strict=True):
                for number, scope in enumerate(block.scopes):
                    table[(number if len(table) > 1 else 0, *labelling[scope])] += share
    return found


@settings(deadline=None)
@given(cases(), st.sampled_from(["auto", "rows", "cells"]))
def test_gradients_are_those_by_definition(case, layout):
    model, statistics, rng = case
    found = tt.distribution(model, statistics, layout=layout)
    weights = rng.normal(size=len(found.tallies))
    wanted = by_definition(model, statistics, found.tallies, weights)
    for one, other in zip(found.gradient(weights), wanted, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-11)


@settings(deadline=None, max_examples=25)
@given(cases())
def test_gradients_are_differences(case):
    model, statistics, rng = case
    at = tt.distribution(model, statistics)
    weights = rng.normal(size=len(at.tallies))
    gradient, step = at.gradient(weights), 1e-5
    for number, block in enumerate(model.blocks):
        if not np.isfinite(block.tables).all():
            continue
        direction = rng.normal(size=block.tables.shape)
        moved = []
        for sign in (step, -step):
            blocks = list(model.blocks)
            blocks[number] = block.with_tables(block.tables + sign * direction)
            other = tt.distribution(tt.Model.from_blocks(model.cardinalities, blocks), statistics)
            moved.append(weights @ other.log_partitions)
        slope = (moved[0] - moved[1]) / (2 * step)
        np.testing.assert_allclose((gradient[number] * direction).sum(), slope, rtol=1e-5, atol=1e-6)


def test_expected_entries_are_marginals():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(6, 3)), rng.normal(size=(3, 3)))
    found = tt.distribution(model, [tt.count(state=1)])
    np.testing.assert_allclose(found.gradient(found.probabilities)[0], found.marginals(), atol=1e-14)


def test_plans_with_checkpoints_have_the_same_gradients():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(400, 3)), rng.normal(size=(3, 3)))
    whole = tt.distribution(model, [tt.count(state=1)])
    weights = rng.normal(size=len(whole.tallies))
    cells = np.zeros(len(whole._messages.values))
    cells[whole._cells] = weights
    for part in (0.9, 0.7, 0.55):
        some = tt.distribution(model, [tt.count(state=1)], memory_limit=whole.plan.peak_bytes * part)
        assert some.plan.segments > 1
        for one, other in zip(some._messages.differentiate(cells), whole.gradient(weights), strict=True):
            np.testing.assert_array_equal(one, other)
    with pytest.raises(tt.BudgetError, match="derivatives need every table twice"):
        some.gradient(weights)


@pytest.mark.parametrize("weights", [[1.0], [np.nan] * 4, [[0.0] * 4]])
def test_weights_that_do_not_fit_are_refused(weights):
    found = tt.distribution(tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2))), [tt.count(state=1)])
    with pytest.raises(tt.ModelError, match="one finite number for each of the 4 tallies"):
        found.gradient(weights)


def test_the_reference_has_no_gradients():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    found = tt.distribution(model, [tt.count(state=1)], backend="reference")
    with pytest.raises(tt.ModelError, match="native"):
        found.gradient([0.0] * 4)
