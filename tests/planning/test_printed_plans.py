"""Printed plans, and invalid options."""

import numpy as np
import pytest
from memory import little

import tallytree as tt
from tallytree.testing import random_model

# ---------------------------------------------------------------- printing and refusals


def test_printing_shows_the_price():
    model = random_model(np.random.default_rng(0), "grid", variables=25, states=3)
    plan = tt.plan(model, [tt.count(model, state=1, name="ones")])
    text = str(plan)
    for part in (
        "25 variables and 1 statistic (ones)",
        f"τ = {plan.width}",
        f"ν = {plan.degree}",
        f"R = {plan.tallies}",
        "add-max operations",
        "iB at the peak",
        "decoding keeps all tables",
        "costliest step: ",
        "% of the operations",
    ):
        assert part in text
    assert "eliminate variable" in text or "join on" in text
    assert repr(plan).startswith(f"Plan(width={plan.width}, degree={plan.degree}, tallies={plan.tallies}")
    assert "0 variables and no statistics\n" in str(tt.plan(tt.Model([], [])))


def test_printing_shows_what_decoding_keeps():
    model = tt.Model.chain(np.zeros((200, 6)), np.zeros((6, 6)))
    whole = tt.plan(model, [tt.count(state=1)])
    cut = tt.plan(model, [tt.count(state=1)], memory_limit=little(whole, 1 / 3))
    assert cut.segments > 1
    assert "decoding keeps all tables" in str(whole)
    assert f"decoding keeps checkpoints of {cut.segments} segments" in str(cut)


def test_a_statistic_of_many_tallies_is_not_joined():
    """On a chain, halves are joined for a count; for weights that would cost the square of their range."""
    model = tt.Model.chain(np.zeros((60, 3)), np.zeros((3, 3)))
    weights = tt.Statistic([((i,), [0, 700 + i, 1400 - i]) for i in range(60)], name="weights")
    assert [tt.count(model, state=1).scale, weights.scale] == [1, 1024]
    assert "join" in {step.verb for step in tt.plan(model, [tt.count(state=1)]).steps}
    plan = tt.plan(model, [weights])
    assert "join" not in {step.verb for step in plan.steps}
    assert plan.operations <= 9 * 60 * plan.tallies / 2  # N² times the sum of ranges; one join takes 5e9


def test_a_plan_looks_at_no_score():
    rng = np.random.default_rng(0)
    one, other = (tt.Model.chain(rng.normal(size=(30, 3)), rng.normal(size=(3, 3))) for _ in range(2))
    assert str(tt.plan(one, [tt.count(state=1)])) == str(tt.plan(other, [tt.count(state=1)]))


@pytest.mark.parametrize("order", [[0, 1], [0, 1, 1, 2], [1, 2, 3, 4], [0, 1, 2, 3, 4], [[0, 1], [2, 3]], 3])
def test_orders_that_are_none_are_refused(order):
    model = tt.Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match=r"must list each of the 4 variables once.*clique tree"):
        tt.plan(model, order=order)


def test_unknown_names_are_refused():
    model = tt.Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match=r"unknown elimination heuristic 'best'.*min-fill"):
        tt.plan(model, order="best")
    with pytest.raises(tt.ModelError, match="'auto', 'rows' or 'cells'"):
        tt.plan(model, layout="columns")
    with pytest.raises(tt.ModelError, match="'native' or 'reference'"):
        tt.profile(model, backend="gpu")
    with pytest.raises(tt.ModelError, match="Statistic objects or recipes"):
        tt.plan(model, ["ones"])


def test_what_is_no_model_is_refused():
    with pytest.raises(tt.ModelError, match="must be a Model, got str"):
        tt.plan("model")


def test_singular_and_plural():
    one = tt.Model([1])
    assert repr(tt.profile(one)) == "Profile(1 tally of ())"
    assert repr(tt.distribution(tt.Model([2]), [tt.count(state=1)])) == "Distribution(2 tallies of (count_1))"
    text = str(tt.plan(one, [tt.count(state=0)]))
    assert text.startswith("plan for 1 variable and 1 statistic (count_0)\n")
    assert "1 state x 1 tally, " in text


def test_a_small_share_of_the_operations_is_not_zero():
    model = tt.Model.chain([[0.0, 1.0]] * 1000, [[0.0, 1.0], [1.0, 0.0]])
    assert ", less than 1% of the operations" in str(tt.plan(model))
