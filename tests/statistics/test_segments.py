"""Segments and changes, compared with their definitions."""

import pickle
from itertools import groupby, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tallytree as tt
from tallytree.testing import check_profile

STATES = ["O", "B", "I"]


def runs(labels, wanted=None):
    """The number of runs of equal labels, or of labels among those wanted."""
    keys = [key for key, _ in groupby(labels, key=lambda label: label if wanted is None else label in wanted)]
    return len(keys) if wanted is None else sum(keys)


def chain(size, states=STATES):
    rng = np.random.default_rng(size)
    n = len(states)
    return tt.Model.chain(rng.normal(size=(size, n)), rng.normal(size=(n, n)), states=states)


@given(labels=st.lists(st.sampled_from(STATES), min_size=1, max_size=8))
def test_definitions(labels):
    model = chain(len(labels))
    y = model.encode(labels)
    assert tt.segments(model).tally(y) == runs(labels)
    assert tt.changes(model).tally(y) == runs(labels) - 1
    assert tt.segments(model, state="B").tally(y) == runs(labels, {"B"})
    assert tt.segments(model, state=["B", 2]).tally(y) == runs(labels, {"B", "I"})
    assert tt.segments(model, cap=1).tally(y) == 1


@pytest.mark.parametrize("size", [0, 1, 2, 5])
def test_profiles(size):
    model = chain(size)
    statistics = [recipe.on(model) for recipe in (tt.segments(), tt.segments(state="B"), tt.changes())]
    check_profile(tt.profile(model, statistics), model, statistics)


def test_variables_with_different_states():
    each = [["a", "b"], ["b", "c", "a"], ["c", "b"]]
    model = tt.Model([2, 3, 2], [((0, 1), np.zeros((2, 3))), ((2, 1), np.zeros((2, 3)))], states=each)
    for labels in product(*each):
        assert tt.segments(model, state="b").tally(model.encode(labels)) == runs(labels, {"b"})
    for recipe in (tt.segments(), tt.changes()):
        with pytest.raises(tt.ModelError, match=r"the same states; .* use segments\(state=…\)"):
            recipe.on(model)
    with pytest.raises(tt.ModelError, match="no variable of this model has the state 'd'"):
        tt.segments(model, state="d")


def test_other_models():
    grid = tt.Model.grid(np.zeros((2, 3, 2)), np.eye(2), np.eye(2))
    tree = tt.Model.tree([-1, 0, 0, 1], np.zeros((4, 2)), np.eye(2))
    assert tt.changes(grid).tally([[0, 1, 0], [0, 1, 1]]) == 4
    assert tt.changes(tree).tally([0, 1, 0, 0]) == 2
    with pytest.raises(
        tt.ModelError, match=r"not a chain: a factor joins variables 0, 3; changes\(\) counts"
    ):
        tt.segments(grid)
    with pytest.raises(tt.ModelError, match="not a chain: a factor joins variables 0, 2"):
        tt.solve(tree, where=tt.segments() == 2)
    triples = tt.Model([2] * 4, [((0, 1, 2), np.zeros((2, 2, 2))), ((3, 2, 1), np.zeros((2, 2, 2)))])
    assert tt.segments(triples).tally([0, 1, 1, 0]) == 3
    assert tt.segments(tt.Model([2] * 4)).tally([0, 1, 1, 0]) == 3


def test_recipes_are_values():
    talk = tt.segments(state="talk")
    assert (talk.name, tt.segments().name, tt.segments(state=["B-NP", 1]).name) == (
        "segments_talk",
        "segments",
        "segments_B_NP_1",
    )
    assert talk == tt.segments(state=["talk"], name="other")
    assert talk != tt.segments()
    assert tt.segments() != tt.changes()
    assert pickle.loads(pickle.dumps(talk)) == talk
    assert repr(talk.capped(2)) == "segments(state='talk', name='segments_talk', cap=2)"
    assert repr(tt.changes().named("flips")) == "changes(name='flips')"
    assert tt.changes().named("flips").capped(1).on(chain(4)).tally([0, 1, 0, 1]) == 1
    with pytest.raises(tt.ModelError, match="a count is never negative"):
        tt.segments(cap=-1)
