"""Every loss: by definition, by its tallies, and in inference, on every shape of graph."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators, models

import tallytree as tt
from tallytree.testing import brute_force, check_loss

BACKGROUNDS = st.sampled_from([None, 0])


def truths(model: tt.Model) -> st.SearchStrategy[list[int]]:
    """Draw a labelling that the model allows: any, the smallest or the largest of them."""
    everything = brute_force(model, [])
    possible = everything.labellings[everything.scores > -np.inf].tolist()
    return st.sampled_from([possible[0], possible[-1]]) | st.sampled_from(possible)


def node_losses(background: int | None) -> list[tt.losses.Loss]:
    return [
        tt.losses.FBeta(background=background),
        tt.losses.FBeta(beta=0.5, background=background),
        tt.losses.FBeta(beta=2.0, background=background),
        tt.losses.FBeta(beta=1e-6, background=background),
        tt.losses.FBeta(beta=1e6, background=background),
        tt.losses.Precision(background=background),
        tt.losses.Recall(background=background),
        tt.losses.FalsePositives(background=background),
        tt.losses.SymmetricDifference(background=background),
        tt.losses.IntersectionOverUnion(background=background),
    ]


LOSSES = [
    *node_losses(None),
    *node_losses(0),
    tt.losses.ZeroOne(),
    tt.losses.HammingDistance(),
    tt.losses.HammingLoss(),
    tt.losses.LabelCount(),
]


@pytest.mark.parametrize("loss", LOSSES, ids=repr)
@given(data=st.data())
@settings(max_examples=settings.default.max_examples // 2)  # a thousand in all
def test_every_loss_keeps_its_contract_on_every_shape(loss, data):
    model = data.draw(models(largest=5, states=3))
    check_loss(loss.against(data.draw(truths(model))), model)


@given(data=st.data(), rng=generators(), fine=st.booleans(), signed=st.booleans())
def test_weighted_hamming_keeps_its_contract(data, rng, fine, signed):
    size, states = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 3))
    model = tt.Model.chain(rng.integers(-2, 3, (size, states)), rng.normal(size=(states, states)))
    weight = rng.normal(size=(states, states)) if fine else rng.integers(-2, 9, (states, states)) / 4
    loss = tt.losses.WeightedHamming(weight=weight if signed else np.abs(weight))
    check_loss(loss.against(data.draw(truths(model))), model)


def test_weighted_hamming_takes_the_smaller_way_and_says_which():
    few = tt.losses.WeightedHamming([0, 1] * 5, weight=[[0, 1], [1, 0]])
    odd = tt.losses.WeightedHamming([0, 1] * 5, weight=[[0, 0.001], [np.pi, 0]])
    wide = tt.losses.WeightedHamming([0, 1], weight=[[0, 0.001], [1000.0, 0]])
    assert [loss.way for loss in (few, odd, wide)] == ["lattice", "counts", "counts"]
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    assert len(wide.reduce(model).statistics) == 2
    assert len(tt.profile(model, wide.reduce(model).statistics)) == 4


@given(data=st.data())
def test_a_constraint_narrows_loss_augmented_inference(data):
    model = data.draw(models(largest=5))
    truth = data.draw(truths(model))
    loss = tt.losses.FBeta(truth, background=0)
    zeros = tt.Statistic([((i,), np.arange(n) == 0) for i, n in enumerate(model.cardinalities)], name="zeros")
    bound = data.draw(st.integers(0, len(model)))
    everything = brute_force(model, [zeros])
    kept = (everything.scores > -np.inf) & (everything.tallies[:, 0] <= bound)
    for scaling in ("margin", "slack"):
        for recipe in (loss, tt.losses.HammingLoss(truth)):
            if not kept.any():
                with pytest.raises(tt.InfeasibleError):
                    tt.loss_augmented(model, recipe, scaling, where=zeros <= bound)
                continue
            found = tt.loss_augmented(model, recipe, scaling, where=zeros <= bound)
            costs = np.array([recipe(y) for y in everything.labellings[kept]])
            difference = everything.scores[kept] - model.score(truth)
            best = tt.losses.scaled(scaling, costs, difference).max()
            assert found.value == pytest.approx(best, abs=1e-9)
            assert zeros.tally(found.assignment) <= bound
            assert zeros.tally(found.assignment) in found.tally


def test_forced_states_are_forced_but_the_truth_keeps_its_score():
    model = tt.Model.chain([[0.0, 1], [0, 2], [0, 4]], np.zeros((2, 2)))
    loss = tt.losses.HammingDistance([1, 1, 1])
    for scaling in ("margin", "slack"):
        found = tt.loss_augmented(model, loss, scaling, fixed={0: 0}, allowed={1: [1]})
        assert found.truth_score == 7.0
        assert found.assignment.tolist()[:2] == [0, 1]


# --- names, terms and recipes -------------------------------------------------------------------------------


def named() -> tt.Model:
    return tt.Model.chain(np.zeros((3, 3)), np.zeros((3, 3)), states=["O", "B", "I"])


@pytest.mark.parametrize("recipe", LOSSES[:-1], ids=repr)
def test_names_and_numbers_say_the_same(recipe):
    model = named()
    by_number = recipe.against([1, 2, 0])
    background = getattr(recipe, "background", None)
    by_name = recipe.against(["B", "I", "O"])
    if background is not None:
        by_name = by_name.replace(background="O")
    for y in (["B", "B", "O"], ["O", "O", "O"], ["I", "I", "I"]):
        numbers = model.encode(y)
        assert by_name(y) == by_number(numbers) == by_name.on(model)(y) == by_name.on(model)(numbers)


def test_terms_that_do_not_fit_are_refused():
    loss = tt.losses.FBeta([1, 0], background="O")
    with pytest.raises(tt.ModelError, match="cannot be compared"):
        loss([1, 1])
    with pytest.raises(tt.ModelError, match="cannot be compared"):
        tt.losses.HammingLoss([1, 0])(["B", "O"])
    with pytest.raises(tt.ModelError, match="the truth has 2 variables"):
        tt.losses.HammingLoss([1, 0])([1, 0, 1])
    with pytest.raises(tt.ModelError, match=r"loss\.on\(model\)"):
        tt.losses.LabelCount(["B", "O"])(["B", "B"])
    with pytest.raises(tt.ModelError, match=r"loss\.on\(model\)"):
        tt.losses.WeightedHamming(["B", "O"], weight=np.eye(2))(["B", "B"])


def test_a_background_that_differs_by_variable_is_found_by_name():
    model = tt.Model([2, 3], states=[["O", "B"], ["B", "I", "O"]])
    loss = tt.losses.FBeta(["B", "O"], background="O")
    check_loss(loss, model)
    assert loss.on(model)(["B", "B"]) == loss(["B", "B"])


def test_recipes_know_their_parameters():
    recipe = tt.losses.FBeta(beta=2.0, background="O")
    assert not recipe.bound
    assert recipe.parameters() == {"beta": 2.0, "background": "O"}
    assert recipe.replace(beta=3.0) == tt.losses.FBeta(beta=3.0, background="O")
    assert recipe.against(["B"]) == tt.losses.FBeta(np.array(["B"]), 2.0, background="O")
    assert (
        pickle.loads(pickle.dumps(recipe.against(["B"]).on(tt.Model([2], states=["O", "B"]))))(["O"]) == 1.0
    )
    with pytest.raises(tt.ModelError, match="against"):
        recipe(["B"])


@pytest.mark.parametrize("weight", [None, [1.0, 2.0], [[0.0, np.nan], [0.0, 0.0]], [[0.0, 1.0]]])
def test_weights_are_a_square_table(weight):
    with pytest.raises(tt.ModelError, match="square array"):
        tt.losses.WeightedHamming(weight=weight)


# --- degenerate truths, by hand -----------------------------------------------------------------------------


def test_values_where_there_is_nothing():
    nothing, something = [0, 0], [1, 0]
    cases = {
        (tt.losses.FBeta, 0, 0): 0.0,
        (tt.losses.FBeta, 0, 1): 1.0,
        (tt.losses.FBeta, 1, 0): 1.0,
        (tt.losses.Precision, 0, 0): 0.0,
        (tt.losses.Precision, 1, 0): 1.0,
        (tt.losses.Precision, 0, 1): 1.0,
        (tt.losses.Recall, 0, 0): 0.0,
        (tt.losses.Recall, 0, 1): 0.0,
        (tt.losses.Recall, 1, 0): 1.0,
        (tt.losses.IntersectionOverUnion, 0, 0): 0.0,
        (tt.losses.IntersectionOverUnion, 0, 1): 1.0,
        (tt.losses.IntersectionOverUnion, 1, 0): 1.0,
    }
    for (kind, truth, y), value in cases.items():
        loss = kind((nothing, something)[truth], background=0)
        assert loss((nothing, something)[y]) == value, (kind, truth, y)


def test_without_a_background_f_precision_and_recall_are_the_hamming_loss():
    truth, y = [0, 1, 2, 0], [0, 2, 2, 1]
    for kind in (tt.losses.FBeta, tt.losses.Precision, tt.losses.Recall):
        assert kind(truth)(y) == tt.losses.HammingLoss(truth)(y) == 0.5
        model = tt.Model.chain(np.zeros((4, 3)), np.zeros((3, 3)))
        assert len(kind(truth).reduce(model).statistics) == 1


# --- refusals and pickles -----------------------------------------------------------------------------------


def test_what_cannot_be_augmented_is_refused():
    model = tt.Model.chain([[0.0, -np.inf], [0, 0]], np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match="truth scores -inf"):
        tt.loss_augmented(model, tt.losses.HammingLoss([1, 0]))
    with pytest.raises(tt.ModelError, match="must not be negative"):
        tt.loss_augmented(model, tt.losses.WeightedHamming([0, 0], weight=-np.eye(2)), "slack")
    with pytest.raises(tt.ModelError, match="'margin' or 'slack'"):
        tt.loss_augmented(model, tt.losses.HammingLoss([0, 0]), "both")
    with pytest.raises(tt.ModelError, match="against"):
        tt.loss_augmented(model, tt.losses.FBeta(background=0), "slack")
    with pytest.raises(tt.ModelError, match="a loss such as"):
        tt.loss_augmented(model, [0, 0])


@pytest.mark.parametrize("margin", [-1.0, np.nan, np.inf])
def test_a_margin_is_finite_and_not_negative(margin):
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    for loss in (tt.losses.FBeta([0, 1], background=0), tt.losses.HammingLoss([0, 1])):
        with pytest.raises(tt.ModelError, match="margin"):
            tt.loss_augmented(model, loss, margin=margin)


def test_an_answer_pickles():
    model = tt.Model.chain([[0.0, 1], [0, 2]], np.zeros((2, 2)))
    found = tt.loss_augmented(model, tt.losses.FBeta([0, 1], background=0), "slack")
    back = pickle.loads(pickle.dumps(found))
    assert (back.loss, back.truth_score, back.value, back.tally) == (
        found.loss,
        found.truth_score,
        found.value,
        found.tally,
    )
    assert repr(back) == repr(found)


def test_folding_keeps_the_shape_of_the_model():
    model = tt.Model.chain(np.zeros((4, 2)), np.zeros((2, 2)))
    found = tt.loss_augmented(model, tt.losses.HammingLoss([0, 1, 0, 1]))
    assert found.tally.mismatches == 4
    assert found.score == 0.0
    assert found.loss == 1.0


def test_labellings_of_a_grid_come_in_two_dimensions():
    rng = np.random.default_rng(3)
    model = tt.Model.grid(rng.normal(size=(2, 3, 2)), np.eye(2), np.eye(2))
    truth = [[0, 1, 1], [0, 0, 1]]
    loss = tt.losses.IntersectionOverUnion(np.array(truth), background=0)
    check_loss(loss, model)
    found = tt.loss_augmented(model, loss, "slack")
    assert found.labels.shape == (2, 3)
    assert loss(found.labels) == pytest.approx(found.loss)


@pytest.mark.parametrize("tallies", [(), (1, 1, 1)])
@pytest.mark.parametrize("recipe", LOSSES, ids=repr)
def test_a_value_takes_the_tallies_that_are_counted(recipe, tallies):
    with pytest.raises(tt.ModelError, match="takes one tally for each of"):
        recipe.against([1, 0]).value(*tallies)


def test_weights_and_margins_are_numbers():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match="square array"):
        tt.losses.WeightedHamming(weight=[["a"]])
    with pytest.raises(tt.ModelError, match="margin"):
        tt.loss_augmented(model, tt.losses.HammingLoss([0, 1]), margin="1")
    with pytest.raises(tt.ModelError, match="margins must satisfy"):
        tt.loss_augmented_path(model, tt.losses.HammingLoss([0, 1]), "a", 1)
