"""Parts that only statistics connect are joined where the order says, if that is cheaper."""

from time import process_time

import numpy as np
import pytest

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning import linked_programs, plan
from tallytree.planning.orders import METHODS, Programs
from tallytree.planning.table_programs import table_programs
from tallytree.testing import check_distribution, check_profile
from tallytree.testing.problems import random_model, random_statistics


def roster(people, days, *, linked=False):
    """A chain of off, day and night for each person; one by day and one by night on each date."""
    rng = np.random.default_rng(1)
    scores = rng.integers(-3, 4, (people, days, 3)).astype(float)
    follows = np.array([[0.5, 0, 0], [0, 0.5, -2], [0, -np.inf, 0.5]])
    at = np.arange(people * days).reshape(people, days)
    factors = [((at[p, d],), scores[p, d]) for p in range(people) for d in range(days)]
    factors += [((at[p, d], at[p, d + 1]), follows) for p in range(people) for d in range(days - 1)]
    if linked:
        factors += [
            ((at[p, d], at[p + 1, d]), np.zeros((3, 3))) for p in range(people - 1) for d in range(days)
        ]
    model = tt.Model([3] * at.size, factors)
    counts = [
        tt.count(model, state=s, variables=at[:, d].tolist(), name=f"{'-dn'[s]}{d}") >= 1
        for d in range(days)
        for s in (1, 2)
    ]
    counts += [
        tt.count(model, state=[1, 2], variables=at[p].tolist(), name=f"work{p}") <= 5 * days // 7
        for p in range(people)
    ]
    where = counts[0]
    for other in counts[1:]:
        where = where & other
    return model, where, at


@pytest.mark.parametrize(("people", "days"), [(3, 7), (4, 7), (3, 14), (14, 2)])
def test_rosters_are_planned_across_people(people, days):
    """Day by day, or person by person if there are fewer days; apart, these take gigabytes and more."""
    model, where, _ = roster(people, days)
    found = tt.plan(model, where=where)
    assert found.operations < 1e7 and found.peak_bytes < 1e8
    connected, same, _ = roster(people, days, linked=True)
    expected = tt.solve(connected, where=same, order=found.order.tolist(), strategy="full")
    assert tt.solve(model, where=where).score == expected.score


def test_a_given_order_is_followed_across_parts():
    model, where, at = roster(3, 7)
    by_day = tt.plan(model, where=where, order=at.T.ravel().tolist())
    by_person = tt.plan(model, where=where, order=at.ravel().tolist())
    assert 20 * by_day.operations < by_person.operations
    assert by_day.width == 3 and by_person.width == 1
    assert [step.variable for step in by_day.steps if step.verb == "eliminate"] == at.T.ravel().tolist()


def test_rosters_that_do_not_fit_are_refused_soon():
    """From the size of the largest table: the lists of all parts would take as long as memory is large."""
    model, where, _ = roster(10, 28)
    began = process_time()
    with pytest.raises(tt.BudgetError, match="the plan needs up to about"):
        tt.plan(model, where=where, memory_limit=4e9)
    assert process_time() - began < 2


@pytest.mark.parametrize("seed", range(30))
def test_linked_programs_are_correct(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    model = random_model(rng, "disconnected" if seed % 2 else "tree", variables=7, forbidden=0.1)
    statistics = random_statistics(rng, model, 1 + seed % 3, capped=0.3, local=seed % 5 > 1)
    method = METHODS[("min-open", "natural", "sweep", "min-fill")[seed % 4]]

    def linked(model, statistics, *_):
        shape = Programs(model, statistics).shape
        return [shape.program(shape.order(method), native.Purpose.LINKED)]

    monkeypatch.setattr(plan, "table_programs", linked)
    check_profile(tt.profile(model, statistics), model, statistics)
    check_distribution(tt.distribution(model, statistics), model, statistics)


def test_no_two_tables_count_for_one_statistic():
    """So a statistic is complete when the last of its variables goes."""
    model, where, at = roster(3, 7)
    found = tt.plan(model, where=where, order=at.T.ravel().tolist())
    statistic_of = [k for k, s in enumerate(found.statistics) for _ in s.blocks]
    counted = {}  # by table: for which statistics
    for number, step in enumerate(found.steps):
        inputs = [counted.pop(table) for table in step.inputs]
        added = {statistic_of[block] for block, _ in step.shifts}
        counted[number] = added.union(*inputs)
        if step.verb == "eliminate":
            others = [table for key, table in counted.items() if key != number]
            assert not any(added & other for other in others)


def test_statistics_with_few_variables_are_finished_first():
    model, where, at = roster(3, 5)
    statistics = tt.plan(model, where=where).statistics
    shape = Programs(model, statistics).shape
    assert shape.order(native.OrderMethod.MIN_OPEN).tolist() == at.T.ravel().tolist()
    model, where, at = roster(5, 3)
    shape = Programs(model, tt.plan(model, where=where).statistics).shape
    assert shape.order(native.OrderMethod.MIN_OPEN).tolist() == at.ravel().tolist()


def test_ordinary_problems_have_no_linked_programs():
    """Counts over all variables of one part are never complete early; small problems are not worth a try."""
    short = tt.Model.chain(np.zeros((30, 2)), np.zeros((2, 2)))
    halves = [tt.count(short, state=1, variables=range(15)), tt.count(short, state=1)]
    assert len(table_programs(short, halves, {})) == 1
    chain = tt.Model.chain(np.zeros((200, 3)), np.zeros((3, 3)))
    both = [tt.count(chain, state=1), tt.count(chain, state=2)]
    parts = tt.Model([2] * 6)
    for model, counts in ((chain, both), (chain, both[:1]), (parts, [tt.count(parts, state=1)] * 2)):
        programs = Programs(model, counts)
        assert linked_programs.linked_programs(programs, programs.get(), None, lambda _: np.inf) == []
