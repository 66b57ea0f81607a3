"""Loss-augmented batches: each answer is identical, bit for bit, to that of loss_augmented."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from batch_cases import alone, assert_same
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators, models

import tallytree as tt
from tallytree import losses
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.loss_batch import most_violated
from tallytree.kernels import native
from tallytree.testing import brute_force

KINDS = [
    losses.FBeta,
    losses.Precision,
    losses.Recall,
    losses.FalsePositives,
    losses.SymmetricDifference,
    losses.IntersectionOverUnion,
]

OTHERS = [losses.HammingLoss, losses.HammingDistance, losses.ZeroOne]


def assert_same_answer(one, other):
    assert_same(one, other)
    if isinstance(one, losses.AugmentedSolution):
        assert (one.loss, one.truth_score) == (other.loss, other.truth_score)


@st.composite
def chains(draw, states=3):
    """Draw a chain whose states may have names, and a truth in names or numbers."""
    rng = draw(generators())
    length, n = draw(st.integers(1, 6)), draw(st.integers(1, states))
    names = [f"s{i}" for i in range(n)] if draw(st.booleans()) else None
    unary, pair = rng.normal(size=(length, n)), rng.normal(size=(n, n))
    if draw(st.booleans()):
        unary, pair = np.round(unary), np.round(pair)
    unary[rng.random(unary.shape) < draw(st.sampled_from([0.0, 0.1]))] = -np.inf
    truth = rng.integers(0, n, length)
    if names is not None and draw(st.booleans()):
        truth = [names[i] for i in truth]
    elif draw(st.booleans()):
        truth = truth.tolist()
    return tt.Model.chain(unary, pair, states=names), truth


def check(pairs, recipes, scaling, **options):
    batch = [model for model, _ in pairs]
    truths = [truth for _, truth in pairs]
    found = tt.loss_augmented_batch(batch, recipes, scaling, truths=truths, errors="return", **options)
    for name in ("threads", "strategy"):
        options.pop(name, None)
    each = recipes if isinstance(recipes, list) else [recipes] * len(pairs)
    for answer, (model, truth), recipe in zip(found, pairs, each, strict=True):
        expected = alone(lambda m=model, r=recipe, t=truth: r.against(t))
        if isinstance(expected, losses.Loss):
            expected = alone(tt.loss_augmented, model, expected, scaling, strategy="full", **options)
        assert_same_answer(answer, expected)
    return found


@given(
    pairs=st.lists(chains(), max_size=6),
    kind=st.sampled_from([*KINDS, *OTHERS]),
    background=st.sampled_from([None, 0, 1]),
    scaling=st.sampled_from(["margin", "slack"]),
    margin=st.sampled_from([1.0, 0.0, 2.5]),
    threads=st.integers(1, 3),
)
@settings(max_examples=250, deadline=None)
def test_one_recipe_for_many_truths(pairs, kind, background, scaling, margin, threads):
    recipe = kind() if kind in OTHERS else kind(background=background)
    found = check(pairs, recipe, scaling, margin=margin, threads=threads)
    for answer, (model, truth) in zip(found, pairs, strict=True):
        if isinstance(answer, losses.AugmentedSolution):
            loss = recipe.against(truth).on(model)
            every = brute_force(model, ())
            possible = every.labellings[every.scores > -np.inf]
            difference = every.scores[every.scores > -np.inf] - model.score(truth)
            values = losses.scaled(scaling, np.array([loss(y) for y in possible]), difference, margin)
            assert answer.value == pytest.approx(values.max(), abs=1e-9)


@given(
    some=st.lists(st.tuples(models(largest=5), st.sampled_from(KINDS), generators()), max_size=5),
    scaling=st.sampled_from(["margin", "slack"]),
    constrained=st.booleans(),
)
@settings(max_examples=100, deadline=None)
def test_models_of_any_shape_with_a_loss_each(some, scaling, constrained):
    pairs = [(model, rng.integers(0, model.cardinalities)) for model, _, rng in some]
    recipes = [kind(background=0) for _, kind, _ in some]
    zeros = tt.count(state=0, name="zeros")
    options = {"where": zeros <= 1, "fixed": {0: 0}} if constrained else {}
    check(pairs, recipes, scaling, **options)
    bound = [recipe.against(truth) for recipe, (_, truth) in zip(recipes, pairs, strict=True)]
    found = tt.loss_augmented_batch([m for m, _ in pairs], bound, scaling, errors="return", **options)
    for answer, (model, _), loss in zip(found, pairs, bound, strict=True):
        expected = alone(tt.loss_augmented, model, loss, scaling, strategy="full", **options)
        assert_same_answer(answer, expected)


def test_what_is_wrong_is_said_as_for_one():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)), states=["O", "B"])
    forbidden = tt.Model.chain(np.array([[0.0, -np.inf]] * 2), np.zeros((2, 2)), states=["O", "B"])
    recipe = losses.FBeta(background="O")
    truths = [["B", "B"], ["B"], ["B", "X"], ["B", "B"], None]
    batch = [model, model, model, forbidden, model]
    found = tt.loss_augmented_batch(batch, recipe, "slack", truths=truths, errors="return")
    assert found[0].loss == 1.0
    for answer, text in zip(
        found[1:],
        ["shape", "'X', which is not a state", "the truth scores -inf", "has no truth yet"],
        strict=True,
    ):
        assert isinstance(answer, tt.ModelError) and text in str(answer)
    with pytest.raises(tt.ModelError, match="scaling must be 'margin' or 'slack', got 'wide'"):
        tt.loss_augmented_batch([model], recipe, "wide", truths=truths[:1])
    with pytest.raises(tt.ModelError, match="truths has 1 entry for 2 models"):
        tt.loss_augmented_batch([model, model], recipe, truths=truths[:1])
    with pytest.raises(tt.ModelError, match="loss must be one for all models or a list"):
        tt.loss_augmented_batch([model], "hamming", truths=truths[:1])
    with pytest.raises(tt.ModelError, match="a loss such as"):
        tt.loss_augmented_batch([model], ["hamming"])
    with pytest.raises(tt.ModelError, match="margin must be"):
        tt.loss_augmented_batch([model], recipe, truths=truths[:1], margin=-1.0)
    with pytest.raises(tt.ModelError, match="no variable of this model has the state 'Z'"):
        tt.loss_augmented_batch([model], losses.FBeta(background="Z"), truths=truths[:1])


def test_what_is_counted_natively_must_fit():
    model = tt.Model([2, 2], [((0,), [0.0, 1.0])])
    tables = truth_tables(losses.HammingDistance(), 2, None).compiled
    costs = native.LossTable(np.zeros(2), [0], False, 1.0)
    unary = tt.plan(model, [tt.count(model, state=1)]).skeleton

    def batch_of(skeleton=unary, truth=(0, 1), table=costs, scores=1):
        batch, right = native.Batch(native.TallyMode.AUTO, 1e9), np.array(truth, dtype=np.int64)
        truths = native.Truths(tables, right, right, [table], np.zeros((0, 0)), 1)
        batch.add_models([skeleton], [b.tables for b in model.blocks] * scores, truths)
        return batch

    def refused(text, **changes):
        with pytest.raises(ValueError, match=text):
            batch_of(**changes)

    refused("one kind per variable", truth=(0,))
    refused("one kind per variable", truth=(0, 1, 1))
    refused("out of range", truth=(0, 2))
    refused("one axis per statistic", table=native.LossTable(np.zeros((2, 2)), [0, 0], False, 1.0))
    refused("one array of tables", scores=0)
    refused("one array of tables", scores=2)
    for statistics in (
        [tt.count(model, state=1)] * 2,
        [tt.Statistic([((1,), [0, 1]), ((0,), [0, 1])])],
        [tt.Statistic([((0, 1), np.eye(2, dtype=int))])],
    ):
        refused("do not look at variables", skeleton=tt.plan(model, statistics).skeleton)
    uneven = tt.Model([2, 3], [((0,), [0.0, 1.0])])
    refused("other states than the tables", skeleton=tt.plan(uneven, [tt.count(uneven, state=1)]).skeleton)
    with pytest.raises(ValueError, match="one axis per statistic"):
        native.LossTable(np.zeros((2, 2)), [0], False, 1.0)
    with pytest.raises(ValueError, match="outside the table"):
        batch_of(table=native.LossTable(np.zeros(1), [0], False, 1.0)).run(1)


def test_steps_are_known_again_whatever_comes_between():
    """Layouts in one memory: a problem of another kind now and then, and some too large to be kept."""
    rng = np.random.default_rng(3)
    pairs, recipes = [], []
    for number in range(60):
        length = int(rng.integers(1, 13)) if number % 20 else 300
        unary, pair = rng.normal(size=(length, 3)), rng.normal(size=(3, 3))
        pairs.append((tt.Model.chain(unary, pair), rng.integers(0, 3, length)))
        one_tally, other = losses.HammingLoss(), losses.Precision(background=2)
        recipes.append([losses.FBeta(background=0), one_tally, other][(number % 7 == 3) + (number % 9 == 5)])
    check(pairs, recipes, "slack", threads=1, strategy="full")


@dataclass(frozen=True)
class _Listed(losses.FBeta):
    weights: Any = field(default_factory=lambda: [1.0, 2.0])  # cannot be a key


@dataclass(frozen=True)
class _Doubled(losses.FBeta):
    def value(self, *tallies):
        return 2 * super().value(*tallies)

    def __call__(self, y):
        return 2 * super().__call__(y)


@dataclass(frozen=True)
class _Anchored(losses.FBeta):
    def anchor(self, model):
        return [0] * len(model)


@dataclass(frozen=True)
class _Counted(losses.FBeta):
    def of_counts(self, tp, fp, size):
        return fp + (size - tp)  # integers


@dataclass(frozen=True)
class _Undefined(losses.FBeta):
    def of_counts(self, tp, fp, size):
        return np.where(fp > 1, np.nan, super().of_counts(tp, fp, size))


@pytest.mark.parametrize("kind", [_Listed, _Doubled, _Anchored, _Counted, _Undefined])
@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_losses_of_your_own_may_redefine_anything(kind, scaling):
    rng = np.random.default_rng(5)
    models = [tt.Model.chain(rng.normal(size=(n, 3)), rng.normal(size=(3, 3))) for n in (1, 4, 2, 4)]
    check([(model, rng.integers(0, 3, len(model))) for model in models], kind(background=0), scaling)


def test_truths_may_change_once_the_answers_are_there():
    rng = np.random.default_rng(6)
    models = [tt.Model.chain(rng.normal(size=(n, 3)), rng.normal(size=(3, 3))) for n in (3, 5, 4)]
    truths = [[1, 2, 0], np.array([1, 0, 2, 1, 1]), [2, 0, 1, 1]]
    loss = losses.FBeta(background=0)
    expected = [
        tt.loss_augmented(m, loss.against(t), "slack").explain() for m, t in zip(models, truths, strict=True)
    ]
    found = tt.loss_augmented_batch(models, loss, "slack", truths=truths)
    truths[0].clear()
    truths[1][:] = 0
    truths[2][:] = [0, 0, 0, 0]
    assert [one.explain() for one in found] == expected


@given(
    some=st.lists(st.tuples(models(largest=5), generators()), max_size=4),
    kind=st.sampled_from([*KINDS, *OTHERS]),
    scaling=st.sampled_from(["margin", "slack"]),
    threads=st.integers(1, 3),
)
@settings(max_examples=100, deadline=None)
def test_several_tallies_are_those_of_a_profile(some, kind, scaling, threads):
    recipe = kind() if kind in OTHERS else kind(background=0)
    batch, truths = [], []
    for model, rng in some:
        truth = rng.integers(0, model.cardinalities)
        if model.score(truth) > -np.inf:
            batch.append(model)
            truths.append(truth)
    found = most_violated(batch, recipe, truths, scaling, 3, threads)
    for answers, model, truth in zip(found, batch, truths, strict=True):
        expected = losses.LossProfile(model, recipe.against(truth)).top(3, scaling)
        assert len(answers) == len(expected)
        for answer, other in zip(answers, expected, strict=True):
            assert_same_answer(answer, other)


def test_tables_of_losses_are_shared_by_truths_of_one_size():
    tables = truth_tables(losses.FBeta(background=0), 3, None)
    truths = [np.array(t) for t in ([0, 1, 2], [1, 1, 0, 0, 0], [0, 0, 1], [1] * 17, [1, 2] + [0] * 15)]
    labels, lengths = np.concatenate(truths), [len(t) for t in truths]
    sizes = tables.kinds(labels, lengths)[1]
    assert sizes == [2, 2, 1, 17, 2]
    one, same, smaller, _, longer = tables.losses.each(labels, lengths, sizes, "slack")
    assert one is same and one is not smaller and one is not longer
    assert tables.losses.each(labels, lengths[:1], sizes[:1], "slack")[0] is one
    assert tables.losses.each(labels, lengths[:1], sizes[:1], "margin")[0] is not one
    long = np.ones(1000, dtype=np.int64)  # too large to be kept
    first, second = tables.losses.each(long, [500, 500], [500, 500], "slack")
    assert first is second and tables.losses.each(long, [500], [500], "slack")[0] is not first


def test_shapes_of_models_are_kept():
    tables = truth_tables(losses.FBeta(background=0), 3, None)
    one, same, other = (tt.Model.chain(np.zeros((n, 3)), np.zeros((3, 3))) for n in (4, 4, 5))
    assert tables.shapes(one) is tables.shapes(same)
    assert tables.shapes(one) is not tables.shapes(other)


def test_with_very_many_states_statistics_are_made_for_each_truth():
    rng = np.random.default_rng(7)
    models = [tt.Model.chain(rng.normal(size=(3, 600)), rng.normal(size=(600, 600)))]
    check([(models[0], [0, 599, 1])], losses.FBeta(background=0), "slack")


def test_a_subclass_says_itself_whether_sizes_are_enough():
    class Mine(losses.FBeta, by_size=True):
        pass

    class Other(Mine):
        pass

    assert losses.FBeta.by_size and Mine.by_size and not Other.by_size and not losses.NodeLoss.by_size
    assert truth_tables(Mine(background=0), 2, None) is not None
    assert truth_tables(Other(background=0), 2, None) is None
