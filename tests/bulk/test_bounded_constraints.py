"""Batches with constraints by bounds, compared with full tables and with all labellings."""

import numpy as np
import pytest
from bounded_cases import KINDS, allowance, graph, scores_of
from constraint_cases import constraints
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.kernels import native
from tallytree.testing import brute_force, check_bounds, random_statistics
from tallytree.testing.problems import SHAPES

SEEDS = st.integers(0, 2**32 - 1)
ONES, TWOS = tt.count(state=1, name="ones"), tt.count(state=2, name="twos")


def chains(rng, kind, count, longest, states):
    """Return chains whose links are shared by all positions, or belong to each."""
    models = []
    for _ in range(count):
        length, own = int(rng.integers(1, longest + 1)), rng.random() < 0.3
        links = scores_of(rng, (length - 1, states, states) if own and length > 1 else (states, states), kind)
        models.append(tt.Model.chain(scores_of(rng, (length, states), kind), links))
    return models


def ask(models, strategy, **asked):
    return tt.solve_batch(models, strategy=strategy, errors="return", **asked)


def assert_as_good(full, found):
    """Compare an answer with that of the full table, up to rounding; errors must be equal."""
    if isinstance(full, tt.TallytreeError):
        assert str(full) == str(found)
        return
    assert abs(full.value - found.value) <= allowance(full)
    assert found.model.score(found.assignment) == pytest.approx(found.score, rel=1e-12, abs=1e-12)
    if isinstance(found.certificate, BoundsCertificate):
        check_bounds(found)


def assert_same_labelling(full, found):
    if isinstance(full, tt.TallytreeError):
        assert str(full) == str(found)
        return
    assert (full.score, full.tally) == (found.score, found.tally)
    assert abs(full.value - found.value) <= allowance(full)
    np.testing.assert_array_equal(full.assignment, found.assignment)


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
def test_constraints_that_compare_numbers_only(strategy):
    """Their terms cancel: nothing is counted, and all labellings are allowed, or none."""
    models = chains(np.random.default_rng(1), "normal", 3, 5, 3)
    for statistics, always, never in (
        ([], ONES - ONES == 0, ONES - ONES >= 1),
        ([ONES], "1 >= 0", "0 >= 1"),
        ([ONES], "ones - ones == 0", "ones - ones >= 1"),
    ):
        for one, found in zip(
            models, ask(models, strategy, statistics=statistics, where=always), strict=True
        ):
            assert_same_labelling(tt.solve(one, statistics), found)
        for one, found in zip(models, ask(models, strategy, statistics=statistics, where=never), strict=True):
            with pytest.raises(tt.InfeasibleError) as error:
                tt.solve(one, statistics, where=never)
            assert isinstance(found, tt.InfeasibleError) and str(found) == str(error.value)


@settings(max_examples=60, deadline=None)
@given(SEEDS, KINDS, st.sampled_from(sorted(SHAPES)), st.data())
def test_values_are_those_of_all_labellings(seed, kind, shape, data):
    """Statistics of any scopes, with negative entries, caps and constants; constraints of any form."""
    rng = np.random.default_rng(seed)
    model = graph(rng, shape, int(rng.integers(1, 6)), int(rng.integers(1, 4)), kind)
    made = random_statistics(rng, model, int(rng.integers(1, 4)), capped=0.2, constants=int(rng.integers(2)))
    where = data.draw(constraints(made))
    read = made[: int(rng.integers(len(made) + 1))]
    (found,) = ask([model], "bounds", statistics=read, where=where)
    try:
        value, *_ = brute_force(model, made).best(None, where)
    except tt.InfeasibleError:
        assert isinstance(found, tt.InfeasibleError)
        return
    assert abs(value - found.value) <= allowance(found)


@settings(max_examples=40, deadline=None)
@given(SEEDS, KINDS, st.data())
def test_values_are_those_of_full_tables(seed, kind, data):
    rng = np.random.default_rng(seed)
    states = int(rng.integers(3, 6))
    models = chains(rng, kind, 3, 9, states)
    models += [graph(rng, shape, int(rng.integers(1, 8)), states, kind) for shape in ("tree", "cycle")]
    where = data.draw(constraints([ONES, TWOS]))
    for full, found in zip(*(ask(models, way, where=where) for way in ("full", "bounds")), strict=True):
        assert_as_good(full, found)


WHERES = (
    ONES == 5,
    ONES <= 2,
    ONES >= 6,
    (ONES >= 4) & (ONES <= 6),
    (ONES == 3) & (TWOS == 4),
    (ONES == 2) | (TWOS == 3),
    (ONES <= 1) | (ONES >= 8),
    ONES != 3,
    ONES == 2 * TWOS,
    (ONES >= 4) & (ONES + TWOS <= 9),
)


@settings(max_examples=25, deadline=None)
@given(SEEDS, KINDS, st.sampled_from(WHERES), st.integers(1, 2))
def test_auto_gives_the_labelling_of_the_full_table(seed, kind, where, threads):
    rng = np.random.default_rng(seed)
    models = [*chains(rng, kind, 3, 30, 8), graph(rng, "tree", int(rng.integers(10, 40)), 6, kind)]
    full, found = (ask(models, way, where=where, threads=threads) for way in ("full", "auto"))
    for one, other in zip(full, found, strict=True):
        assert_same_labelling(one, other)


@pytest.mark.parametrize("where", WHERES, ids=str)
def test_auto_searches_sentences_and_trees(where):
    rng = np.random.default_rng(5)
    models = [tt.Model.chain(rng.normal(size=(100, 20)), rng.normal(size=(20, 20))) for _ in range(6)]
    models += [graph(rng, "tree", 100, 8) for _ in range(6)]
    full, found = (ask(models, way, where=where) for way in ("full", "auto"))
    for one, other in zip(full, found, strict=True):
        assert_same_labelling(one, other)
    assert sum(isinstance(one.certificate, BoundsCertificate) for one in found) >= 3
    assert not any(isinstance(one.certificate, BoundsCertificate) for one in full)


def test_small_tables_are_computed():
    models = [tt.Model.chain(np.eye(2), np.eye(2))] * 2
    for found in tt.solve_batch(models, where=ONES == 1):
        assert not isinstance(found.certificate, BoundsCertificate)


def test_certificates_are_those_of_a_search():
    rng = np.random.default_rng(2)
    models = [tt.Model.chain(rng.normal(size=(30, 10)), rng.normal(size=(10, 10))) for _ in range(3)]
    for where in WHERES[:5]:
        for found in tt.solve_batch(models, where=where, strategy="bounds"):
            check_bounds(found)
            assert "plain pass" in found.explain()


def test_the_table_tells_equals_apart():
    """Integer scores have many best labellings: "auto" finds that of the table."""
    rng = np.random.default_rng(4)
    models = [
        tt.Model.chain(rng.integers(0, 3, (25, 12)).astype(float), np.zeros((12, 12))) for _ in range(8)
    ]
    for full, found in zip(*(ask(models, way, where=ONES == 6) for way in ("full", "auto")), strict=True):
        assert_same_labelling(full, found)
        assert not isinstance(found.certificate, BoundsCertificate)


def test_objectives_given_as_functions_are_computed_from_tables():
    rng = np.random.default_rng(7)
    models = [tt.Model.chain(rng.normal(size=(25, 20)), rng.normal(size=(20, 20))) for _ in range(2)]
    for found in tt.solve_batch(models, [ONES], lambda score, k: score - (k - 4) ** 2):
        assert not isinstance(found.certificate, BoundsCertificate)


def test_statistics_without_a_constraint_need_a_plain_pass_alone():
    rng = np.random.default_rng(8)
    models = [tt.Model.chain(rng.normal(size=(25, 20)), rng.normal(size=(20, 20))) for _ in range(2)]
    for model, found in zip(models, tt.solve_batch(models, [ONES, TWOS]), strict=True):
        assert isinstance(found.certificate, BoundsCertificate)
        np.testing.assert_array_equal(found.assignment, tt.solve(model).assignment)


@pytest.mark.parametrize("factor", [1e-290, 1e-30, 1e30, 1e280])
def test_scores_of_any_size(factor):
    rng = np.random.default_rng(9)
    models = [
        tt.Model.chain(factor * rng.normal(size=(20, 12)), factor * rng.normal(size=(12, 12)))
        for _ in range(3)
    ]
    for full, found in zip(*(ask(models, way, where=ONES == 5) for way in ("full", "bounds")), strict=True):
        assert full.score == pytest.approx(found.score, rel=1e-9)


def test_fixed_variables_and_regions_go_together_with_bounds():
    rng = np.random.default_rng(10)
    models = [tt.Model.chain(rng.normal(size=(25, 20)), rng.normal(size=(20, 20))) for _ in range(3)]
    asked = {"where": ONES == 4, "fixed": {3: 1}, "allowed": {7: [0, 1, 2]}}
    for full, found in zip(*(ask(models, way, **asked) for way in ("full", "auto")), strict=True):
        assert_same_labelling(full, found)


def test_a_set_of_tallies_has_one_axis_per_statistic():
    model = tt.Model.chain(np.eye(3), np.eye(3))
    ones = ONES.on(model)
    batch, plan = native.Batch(native.TallyMode.AUTO, 1e9), tt.plan(model, [ones])
    with pytest.raises(ValueError, match="one axis per statistic"):
        native.TallySet(np.ones((2, 2), dtype=bool), [0])
    allowed = native.TallySet(np.ones((2, 2), dtype=bool), [0, 0])
    limits = [native.UNCAPPED], [-native.NO_LIMIT], [native.NO_LIMIT]
    shifts, scores = [b.tables for b in ones.blocks], [b.tables for b in model.blocks]
    with pytest.raises(ValueError, match="one axis per statistic"):
        batch.add(plan.skeleton, shifts, *limits, scores, [], [], False, native.Strategy.AUTO, allowed)


@pytest.mark.parametrize("strategy", ["full", "auto", "bounds"])
def test_statistics_that_are_equal_but_for_their_names(strategy):
    """Each has an axis in the list of allowed tallies."""
    models = chains(np.random.default_rng(0), "any", 6, 12, 3)
    again, where = tt.count(state=1, name="again"), (ONES != 1) & (ONES != 4)
    for read in ([again, ONES], [ONES, again], [again, TWOS, ONES]):
        for model, found in zip(models, ask(models, strategy, statistics=read, where=where), strict=True):
            wanted = tt.solve(model, read, where=where, strategy="full")
            assert (found.score, found.tally) == (wanted.score, wanted.tally)
