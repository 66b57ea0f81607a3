"""Reductions: statistics and constraints are translated to the other model, and labellings back."""

import pickle
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generators, models, statistics_of

import tallytree as tt
from tallytree.reductions.reduction import Reduction
from tallytree.testing import tally_of


def renamed(rng: np.random.Generator, model: tt.Model) -> Reduction:
    """Reduce a model to one of more variables, in another order, whose states are shuffled and repeated."""
    extra = int(rng.integers(0, 3))
    size = len(model) + extra
    sources = rng.permutation(size)[: len(model)]
    emissions = [
        rng.permutation(np.concatenate((np.arange(n), rng.integers(0, n, size=int(rng.integers(0, 2))))))
        for n in model.cardinalities.tolist()
    ]
    cardinalities = np.full(size, 2)
    cardinalities[sources] = [len(table) for table in emissions]
    return Reduction(model, tt.Model(cardinalities), [], sources, emissions)


@given(st.data(), generators())
def test_a_pulled_statistic_says_of_a_labelling_what_the_original_says_of_the_lifted_one(data, rng):
    model = data.draw(models(largest=4))
    statistics = data.draw(statistics_of(model))
    reduction = renamed(rng, model)
    everything = np.array(list(product(*map(range, reduction.model.cardinalities.tolist()))))
    lifted = np.array([reduction.lift(z) for z in everything])
    for statistic in statistics:
        pulled = reduction.pull(statistic)
        assert pulled.name == statistic.name
        assert np.array_equal(tally_of(pulled, everything), tally_of(statistic, lifted))


@given(st.data(), generators())
def test_the_identity_changes_nothing(data, rng):
    model = data.draw(models(largest=4))
    statistics = data.draw(statistics_of(model))
    reduction = Reduction.identity(model, statistics)
    y = [int(rng.integers(n)) for n in model.cardinalities]
    assert reduction.trivial
    assert reduction.lift(y).tolist() == y
    assert all(reduction.pull(s) is s for s in statistics)


def test_constraints_and_recipes_are_carried_over():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)), states=["O", "B"])
    other = tt.Model([2, 2])
    reduction = Reduction(model, other, [], [1, 0], [[1, 0], [0, 1]])
    constraint = reduction.pull((tt.count(state="B") >= 1) & ~(tt.count(state="O") == 2))
    values = {s: [s.tally([0, 0])] for s in constraint.statistics}  # the labelling O, O turned over: B, O
    assert repr(constraint) == "(count_B >= 1) & (count_O != 2)"
    assert constraint.holds(values).tolist() == [True]


def test_emissions_may_be_the_rows_of_one_array():
    # Rows of an array are objects that live only while they are looked at.
    emissions = np.array([[0, 1], [1, 2], [2, 0], [1, 0]])
    model = tt.Model([3] * 4, [])
    reduction = Reduction(model, tt.Model([2] * 4, []), [], range(4), emissions)
    for labelling in product(range(2), repeat=4):
        assert reduction.lift(labelling).tolist() == emissions[range(4), labelling].tolist()


def test_pickling_keeps_everything():
    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    reduction = Reduction(model, tt.Model([2, 2]), [tt.count(model, state=1)], [1, 0], [[1, 0], [0, 1]])
    for one in (reduction, Reduction.identity(model, [tt.count(state=1)])):
        back = pickle.loads(pickle.dumps(one))
        assert back.lift([0, 1]).tolist() == one.lift([0, 1]).tolist()
        assert back.statistics == one.statistics
        assert back.trivial == one.trivial


@pytest.mark.parametrize(
    ("sources", "emissions", "message"),
    [
        ([0], [[0, 1]], "2 original variables"),
        ([0, 0], [[0, 1], [0, 1]], "read from the same one"),
        ([0, 1], [[0, 1], [0, 1, 1]], "through a table of shape"),
        ([0, 1], [[0, 1], [0, 2]], "has states 0 to 1"),
    ],
)
def test_what_does_not_fit_is_refused(sources, emissions, message):
    model = tt.Model([2, 2])
    with pytest.raises(tt.ModelError, match=message):
        Reduction(model, model, [], sources, emissions)
