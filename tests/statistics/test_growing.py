"""Sums and constraints with very many parts are built in linear time."""

import copy
import pickle
from functools import reduce
from operator import add, and_, or_, sub
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.statistics.constraints import And, Or
from tallytree.statistics.joining import Joined
from tallytree.statistics.linear import Linear

MODEL = tt.Model.chain(np.arange(12.0).reshape(4, 3), np.zeros((3, 3)))
ONES = tt.count(MODEL, state=1, name="ones")
MANY = 20_000


def within(seconds, function):
    """Run something that took minutes when it was quadratic; the limit leaves room for slow machines."""
    began = perf_counter()
    result = function()
    assert perf_counter() - began < seconds
    return result


def statistics(number):
    """Return statistics that differ in the entries of their tables alone."""
    return [tt.Statistic([((i % 4,), [0, 1, i])], name=f"s{i}") for i in range(number)]


@pytest.mark.parametrize(("join", "kind"), [(or_, Or), (and_, And)])
def test_constraints_of_many_parts(join, kind):
    parts = [i == ONES for i in range(MANY)]
    whole = within(10, lambda: reduce(join, parts))
    assert type(whole) is kind and whole.parts == tuple(parts)
    backwards = within(10, lambda: reduce(lambda right, left: join(left, right), parts[::-1]))
    assert backwards.parts == whole.parts
    assert whole.statistics == (ONES,)
    assert (~(~whole)).parts == whole.parts


def test_a_question_with_many_alternatives():
    where = reduce(or_, [i == ONES for i in range(3, MANY)])
    assert within(20, lambda: tt.solve(MODEL, where=where)).tally == (3,)


@pytest.mark.parametrize("backwards", [False, True])
def test_sums_of_many_statistics(backwards):
    some = statistics(5000)
    if backwards:
        whole = within(20, lambda: reduce(lambda right, left: left + right, some[::-1]))
    else:
        whole = within(10, lambda: sum(some))
    assert [term for term, _ in whole.terms] == some
    less = within(10, lambda: reduce(sub, some))
    assert [c for _, c in less.terms] == [1] + 4999 * [-1]
    assert tt.Statistic.combination(whole).tally([2, 2, 2, 2]) == sum(range(5000))


def test_what_is_added_to_itself_does_not_grow():
    doubled, left, right = ONES.linear(), ONES.linear(), 2 * ONES
    for _ in range(60):
        doubled = doubled + doubled
        left, right = left + right, left
    assert doubled.terms == ((ONES, 2**60),)
    assert len(left.terms) == 1


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-2, 2)), max_size=40))
def test_terms_stand_where_they_would_if_added_one_by_one(steps):
    some = statistics(4)
    listed, eager = Linear(()), []
    for number, factor in steps:
        listed = listed + factor * some[number]
        known = dict(eager)
        known[number] = known.get(number, 0) + factor
        eager = [(n, c) for n, c in known.items() if c]
    assert listed.terms == tuple((some[n], c) for n, c in eager)


def test_joined_constraints_are_values():
    whole = (ONES >= 1) & (ONES <= 3) & (ONES != 2)
    for other in (pickle.loads(pickle.dumps(whole)), copy.deepcopy(whole)):
        assert type(other) is And and repr(other) == repr(whole) and other == whole
        assert hash(other) == hash(whole)
    assert whole != (ONES >= 1) | (ONES <= 3) | (ONES != 2)
    with pytest.raises(AttributeError, match="immutable"):
        whole.parts = ()
    with pytest.raises(tt.ModelError, match="can only be joined with &"):
        (ONES >= 1) | (ONES <= 3) | tt.regular(".*")
    with pytest.raises(tt.ModelError, match="can only be joined with &"):
        (tt.regular(".*") & (ONES >= 1)) | (ONES <= 3)


def test_a_long_chain_of_joins_goes_away_quietly():
    joined = reduce(lambda left, right: left.with_(right), [Joined((i,)) for i in range(300_000)])
    assert len(joined.items) == 300_000
    del joined
    reduce(add, [ONES] * 100_000)


def test_statistics_on_the_same_scopes_have_hashes_of_their_own():
    some = statistics(2000)
    assert len({hash(s) for s in some}) == 2000
    again = within(5, lambda: {s: i for i, s in enumerate(some)})
    assert [again[s] for s in statistics(2000)] == list(range(2000))


def test_equal_statistics_hash_alike_however_their_tables_came():
    one_by_one = tt.Statistic([((v,), [0, 1, 2]) for v in range(4)])
    shared = tt.Statistic.from_blocks([b.with_tables(b.tables[:1]) for b in one_by_one.blocks])
    assert len(shared.blocks[0].tables) < len(one_by_one.blocks[0].scopes)
    assert (one_by_one == shared) is True and hash(one_by_one) == hash(shared)


def test_a_question_about_many_statistics():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(41, 2)), rng.normal(size=(2, 2)))
    some = [
        tt.Statistic([((i % 40, i % 40 + 1), rng.integers(0, 1000, (2, 2)))], name=f"s{i}")
        for i in range(3000)
    ]
    found = within(15, lambda: tt.solve(model, where=sum(some) >= 1_300_000))
    assert sum(s.tally(found.assignment) for s in some) >= 1_300_000


def test_a_long_constraint_is_cut_short_in_a_message():
    some = statistics(3000)
    whole = sum(some) >= 10**9
    assert repr(whole).count("+") == 2999 and len(str(whole)) < 700
    with pytest.raises(tt.InfeasibleError) as caught:
        tt.solve(MODEL, where=whole)
    assert len(str(caught.value)) < 3000 and str(caught.value).startswith(
        "no labelling satisfies 's0 + s1 + "
    )
