"""Objectives given as functions, solved by bounds: compared with full tables and with enumeration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import models

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.kernels import native
from tallytree.testing import brute_force, check_bounds, random_statistics

FUNCTIONS = [
    lambda score, k: score - 0.7 * np.abs(k - 2),
    lambda score, k: score * (1 + 0.1 * np.abs(k)),
    lambda score, k: np.where(k % 2 == 0, score, -np.inf),
    lambda score, k: np.floor(score) + 0.01 * k,
    lambda score, k: np.minimum(score, 1.0) - 0.001 * k,
    lambda score, k: np.where(score > 0.5 * k, score, -np.inf),
]


@pytest.mark.sanitize
@given(model=models(), number=st.integers(0, len(FUNCTIONS) - 1), seed=st.integers(0, 99))
def test_functions_against_enumeration(model, number, seed):
    (statistic,) = random_statistics(np.random.default_rng(seed), model, 1, local=True)
    every = brute_force(model, [statistic])
    real = every.scores > -np.inf
    scores = np.where(real, every.scores, 0.0)
    values = np.where(real, FUNCTIONS[number](scores, every.tallies[:, 0]), -np.inf)
    if values.max() == -np.inf:
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, [statistic], FUNCTIONS[number], strategy="bounds")
        return
    found = tt.solve(model, [statistic], FUNCTIONS[number], strategy="bounds")
    assert found.value == pytest.approx(values.max(), abs=1e-9)
    if isinstance(found.certificate, BoundsCertificate):
        check_bounds(found)


def chain(seed, variables, states=3):
    rng = np.random.default_rng(seed)
    return tt.Model.chain(rng.normal(size=(variables, states)), rng.normal(size=(states, states)))


def test_two_statistics_caps_and_constraints():
    model = chain(3, 40)
    ones, twos = tt.count(model, state=1, name="ones"), tt.count(model, state=2, name="twos")

    def objective(score, k, m):
        return score - 0.5 * np.abs(k - 2 * m)

    for read in ((ones, twos), (ones, twos.capped(9))):
        for where in (None, ones >= 20, (ones == 4) | (ones == 19), ones - twos <= 3):
            full, found = (
                tt.solve(model, read, objective, where=where, strategy=s) for s in ("full", "bounds")
            )
            assert isinstance(found.certificate, BoundsCertificate)
            assert found.value == pytest.approx(full.value) and found.tally == full.tally
            check_bounds(found)


def test_a_function_of_a_long_chain():
    model = chain(4, 3000, 5)
    ones = tt.count(model, state=1)
    found, full, default = (
        tt.solve(model, [ones], lambda score, k: score - 0.2 * np.abs(k - 900), strategy=s)
        for s in ("bounds", "full", "auto")
    )
    assert isinstance(found.certificate, BoundsCertificate)
    assert found.value == pytest.approx(full.value) and found.tally == full.tally
    assert not isinstance(
        default.certificate, BoundsCertificate
    )  # the table takes as long as the evaluations


def test_what_is_no_objective_is_refused_as_by_tables():
    model = chain(5, 8)
    ones = tt.count(model, state=1)
    for wrong in (
        lambda score, k: -score,
        lambda score, k: score - score.max(),
        lambda score, k: score * np.nan,
    ):
        with pytest.raises(tt.ObjectiveError):
            tt.solve(model, [ones], wrong, strategy="bounds")


def test_a_limit_of_operations_says_what_is_known():
    model = chain(6, 60)
    ones, twos = tt.count(model, state=1), tt.count(model, state=2)
    best = tt.solve(model, where=(ones == 20) & (twos == 31), strategy="full")
    for strategy in ("bounds", "auto", "full"):
        with pytest.raises(tt.BudgetError) as told:
            tt.solve(model, where=(ones == 20) & (twos == 31), strategy=strategy, operation_limit=2e4)
        if strategy == "full":
            assert told.value.bound is None and told.value.best is None
            continue
        assert told.value.bound >= best.value - 1e-9
        if told.value.best is not None:
            assert told.value.best.value <= best.value + 1e-9
            assert told.value.best.gap == pytest.approx(told.value.bound - told.value.best.value)


@pytest.mark.parametrize("limit", [3e4, 1e5, 3e5])
def test_the_gap_of_a_function_holds_the_best(limit):
    model = chain(7, 60)
    ones, twos = tt.count(model, state=1), tt.count(model, state=2)

    def objective(score, k, m):
        return score - np.abs(k - m) ** 1.5

    best = tt.solve(model, [ones, twos], objective, strategy="full").value
    try:
        found = tt.solve(model, [ones, twos], objective, strategy="bounds", operation_limit=limit)
        assert found.value == pytest.approx(best)
    except tt.BudgetError as told:
        assert told.bound >= best - 1e-9
        assert told.best is None or (told.best.value <= best + 1e-9 and not told.best.certificate.optimal)


def test_limits_are_checked():
    with pytest.raises(tt.ModelError, match="operation_limit must be"):
        tt.solve(chain(1, 4), operation_limit=-1)


def test_plans_tell_both_prices():
    model = chain(8, 400, 2)
    ones = tt.count(model, state=1)
    price = tt.plan(model, [ones]).search
    assert price.pass_operations == 400 * 4 and price.passes == 9
    assert f"single answer by bounds: {price}" in str(tt.plan(model, [ones]))
    assert tt.plan(model, []).search is None
    with pytest.raises(tt.BudgetError, match="A single answer by bounds"):
        tt.plan(chain(8, 400), [tt.count(state=1), tt.count(state=2)], memory_limit=2e6)


def test_of_sums_beyond_a_cap_the_best_score():
    """They are one tally; on a plateau of the objective its best labelling is the one of the table."""
    for seed in range(20):
        model = chain(seed, 8)
        capped = tt.count(model, state=1).capped(2)
        answers = [
            tt.solve(model, [capped], lambda score, k: np.minimum(score, 1.0) + k, strategy=strategy)
            for strategy in ("full", "bounds")
        ]
        assert answers[0].score == pytest.approx(answers[1].score) and answers[0].tally == answers[1].tally


def test_tables_of_tallies_count_towards_the_memory():
    model = chain(9, 300)
    read = [tt.count(model, state=1), tt.count(model, state=2)]

    def objective(score, k, m):
        return score - np.abs(k - m)

    assert isinstance(tt.solve(model, read, objective, strategy="bounds").certificate, BoundsCertificate)
    with pytest.raises(tt.BudgetError):
        tt.solve(model, read, objective, strategy="bounds", memory_limit=4e6)


@pytest.mark.parametrize("strategy", ["auto", "bounds"])
@pytest.mark.parametrize(
    "objective",
    [lambda score, k: np.sign(score) + 0.0 * k, lambda score, k: np.minimum(score, 5.0) - (k > 40)],
)
def test_plateaus_end_in_the_table(strategy, objective):
    """Where nearly all tallies have the best value, a search gives way to the table."""
    model = chain(4, 400, 5)
    ones = tt.count(model, state=1)
    full = tt.solve(model, [ones], objective, strategy="full")
    found = tt.solve(model, [ones], objective, strategy=strategy)
    assert (found.value, found.tally, found.score) == (full.value, full.tally, full.score)
    assert not isinstance(found.certificate, BoundsCertificate)


def f_measure_by_hand(score, right, wrong):
    return (1 - 2 * right / (300 + right + wrong)) * (400 + score)


@pytest.mark.parametrize(
    ("objective", "helped"),
    [(f_measure_by_hand, True), (lambda score, k, m: np.minimum(score, 5.0) - 0.01 * np.abs(k - m), False)],
)
def test_functions_of_two_counts_are_searched_unless_they_are_evaluated_too_often(objective, helped):
    model = chain(6, 300, 12)
    read = [tt.count(model, state=1), tt.count(model, state=2)]
    full = tt.solve(model, read, objective, strategy="full")
    found = tt.solve(model, read, objective)
    assert found.value == pytest.approx(full.value, rel=1e-12)
    assert isinstance(found.certificate, BoundsCertificate) == helped


@pytest.mark.parametrize("states", [2, 3, 5, 7, 8, 9])
@pytest.mark.parametrize("rounded", [False, True])
def test_every_instruction_set_searches_alike(states, rounded):
    """Also where several labellings are equally good: the first of them."""
    rng = np.random.default_rng(states)
    unary, pairs = rng.normal(size=(90, states)), rng.normal(size=(states, states))
    model = tt.Model.chain(*((np.round(x) if rounded else x) for x in (unary, pairs)))
    before, found = native.instruction_set(), []
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            best = tt.solve(model, where=tt.count(model, state=1) == 30, strategy="bounds")
            found.append((best.score, best.assignment.tolist(), best.certificate.passes))
    finally:
        native.use_instruction_set(before)
    assert all(one == found[0] for one in found)


def test_a_search_that_gave_way_goes_on_where_the_table_does_not_fit(monkeypatch):
    for name in ("_LEAST", "_TIMES"):
        monkeypatch.setattr(f"tallytree.bounding.strategy.{name}", 1e-9)
    model = chain(4, 3000, 5)
    ones = tt.count(model, state=1)

    def objective(score, k):
        return score - 0.2 * np.abs(k - 900)

    full = tt.solve(model, [ones], objective, strategy="bounds")
    assert not isinstance(full.certificate, BoundsCertificate)
    found = tt.solve(model, [ones], objective, strategy="bounds", memory_limit=5e6)
    assert found.tally == full.tally and found.value == pytest.approx(full.value, rel=1e-12)
    assert isinstance(found.certificate, BoundsCertificate)


@pytest.mark.parametrize("target", [30, 33, 47, 71, 90])
@pytest.mark.parametrize("several", [False, True])
def test_infinity_matters_only_at_tallies_that_a_labelling_has(target, several):
    """Tallies are even, but the search also evaluates the function at odd ones."""
    rng = np.random.default_rng(target)
    model = tt.Model.chain(rng.normal(size=(60, 3)), rng.normal(size=(3, 3)))
    pairs = [tt.node_statistic(np.tile(row, (60, 1)), name="k") for row in ([0, 2, 0], [0, 0, 2])]
    statistics = pairs if several else pairs[:1]

    def objective(score, k, *others):
        return score - 0.1 * np.abs(k - target) + 1 / np.abs(k - target)

    if target % 2:
        full, bounds = (tt.solve(model, statistics, objective, strategy=s) for s in ("full", "bounds"))
        assert full.tally == bounds.tally
        assert full.value == pytest.approx(bounds.value, rel=1e-12)
        return
    for strategy in ("auto", "full", "bounds"):
        with pytest.raises(tt.ObjectiveError, match=rf"^the objective is inf at tally \(k(_0)?={target}\b"):
            tt.solve(model, statistics, objective, strategy=strategy)
