"""The reference kernels: single verbs by hand, whole problems by enumeration, in every algebra."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import problems

from tallytree.algebra import Counting, LogSumExp, MaxPlus
from tallytree.algebra.tallies import cap_array, move_minima_out, put_minima_back
from tallytree.kernels.reference import (
    Table,
    absorb,
    eliminate,
    join,
    marginal,
    project,
    pull_absorb,
    pull_eliminate,
    pull_join,
    pull_project,
    unit,
)
from tallytree.kernels.sweeps import Problem, sweep_down, sweep_up
from tallytree.testing import brute_force, factors_of

ALGEBRAS = [MaxPlus(), LogSumExp(), Counting()]
FREE = cap_array([None])

# ---------------------------------------------------------------- single verbs


def test_join_keeps_the_better_pair():
    a = Table((0,), np.array([[0], [1]]), np.array([[1.0, 2.0], [3.0, -np.inf]]))
    b = Table((1,), np.array([[0], [2]]), np.array([[10.0, 20.0]]))
    c = join(a, b, MaxPlus(), cap_array([2]))
    assert c.scope == (0, 1)
    assert c.tallies.tolist() == [[0], [1], [2]]
    # 2 is 0 + 2, or 1 + 2 cut down to the cap
    assert c.values.tolist() == [[[11.0, 12.0, 22.0]], [[13.0, -np.inf, 23.0]]]


def test_join_of_unsorted_scopes_lays_axes_in_order():
    a = Table((1, 3), np.array([[0]]), np.arange(6.0).reshape(2, 3, 1))
    b = Table((0, 3), np.array([[0]]), np.arange(12.0).reshape(4, 3, 1))
    c = join(a, b, MaxPlus(), FREE)
    assert c.scope == (0, 1, 3)
    assert c.cardinalities == {0: 4, 1: 2, 3: 3}
    assert c.values[3, 1, 2, 0] == a.values[1, 2, 0] + b.values[3, 2, 0]


def test_absorb_reads_a_scope_in_the_users_order():
    table = absorb(
        unit(0, 2, 0, MaxPlus()),
        [((2, 0), [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])],
        [],
        MaxPlus(),
        cap_array([]),
    )
    assert table.scope == (0, 2)
    assert table.values[..., 0].tolist() == [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]


def test_absorb_shifts_each_state_by_its_own_entry():
    algebra = Counting()
    table = absorb(
        unit(0, 3, 1, algebra), [], [[((0,), [0, 2, 2]), ((0,), [0, 0, 5])]], algebra, cap_array([4])
    )
    assert table.tallies.tolist() == [[0], [2], [4]]
    assert table.values.tolist() == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]


def test_absorb_adds_what_a_cap_brings_together():
    algebra = Counting()
    start = Table((), np.array([[0], [1]]), np.array([5, 7], dtype=object))
    table = absorb(start, [((), 0.0)], [[((), 3)]], algebra, cap_array([2]))
    assert table.tallies.tolist() == [[2]]
    assert table.values.tolist() == [12]


def test_project_and_eliminate():
    table = Table((1, 4), np.array([[0]]), np.arange(6.0).reshape(2, 3, 1))
    assert project(table, 4, MaxPlus()).values.tolist() == [[2.0], [5.0]]
    assert project(table, 1, MaxPlus()).scope == (4,)
    factors, shifts = [((1,), [0.0, -10.0])], [[((1,), [1, 0])]]
    by_parts = project(absorb(table, factors, shifts, MaxPlus(), FREE), 1, MaxPlus())
    at_once = eliminate(table, 1, factors, shifts, MaxPlus(), FREE)
    assert np.array_equal(by_parts.values, at_once.values)
    assert at_once.values.tolist() == [[-7.0, 0.0], [-6.0, 1.0], [-5.0, 2.0]]


def test_without_statistics_there_is_one_tally():
    algebra, caps = MaxPlus(), cap_array([])
    table = join(unit(0, 2, 0, algebra), unit(1, 3, 0, algebra), algebra, caps)
    assert table.tallies.shape == (1, 0)
    assert table.values.shape == (2, 3, 1)


# ---------------------------------------------------------------- transposed verbs


def total(inside: Table, outside: Table, algebra) -> object:
    cells = algebra.times(inside.values, outside.values)
    return algebra.reduce(cells, tuple(range(cells.ndim))).item()


def random_table(rng, scope, tallies, algebra) -> Table:
    shape = (*(2 + v % 2 for v in scope), len(tallies))
    values = rng.integers(0, 5, size=shape)
    return Table(scope, np.array(tallies), algebra.as_elements(values.astype(object)))


@pytest.mark.parametrize("algebra", ALGEBRAS, ids=repr)
@pytest.mark.parametrize("seed", range(5))
def test_a_pulled_weighting_gives_the_same_total(algebra, seed):
    """The transposed verb: <verb(a), outside> = <a, pull(outside)>."""
    rng = np.random.default_rng(seed)
    caps = cap_array([3])
    a = random_table(rng, (0, 1), [[0], [1], [3]], algebra)
    b = random_table(rng, (1, 2), [[0], [2]], algebra)
    factors, shifts = [((2, 0), rng.integers(0, 3, size=(2, 2)))], [[((3,), [0, 1, 1]), ((0,), [1, 0])]]

    joined = join(a, b, algebra, caps)
    outside = random_table(rng, joined.scope, joined.tallies, algebra)
    for inside, pulled in zip((a, b), pull_join(a, b, outside, algebra, caps), strict=True):
        assert pulled.scope == inside.scope and pulled.values.shape == inside.values.shape
        assert total(inside, pulled, algebra) == pytest.approx(total(joined, outside, algebra))

    absorbed = absorb(a, factors, shifts, algebra, caps)
    outside = random_table(rng, absorbed.scope, absorbed.tallies, algebra)
    pulled = pull_absorb(a, factors, shifts, outside, algebra, caps)
    assert total(a, pulled, algebra) == pytest.approx(total(absorbed, outside, algebra))

    projected = project(a, 1, algebra)
    outside = random_table(rng, projected.scope, projected.tallies, algebra)
    assert total(a, pull_project(a, 1, outside), algebra) == pytest.approx(total(projected, outside, algebra))

    eliminated = eliminate(a, 0, factors, shifts, algebra, caps)
    outside = random_table(rng, eliminated.scope, eliminated.tallies, algebra)
    pulled = pull_eliminate(a, 0, factors, shifts, outside, algebra, caps)
    assert total(a, pulled, algebra) == pytest.approx(total(eliminated, outside, algebra))


def test_marginal_by_hand():
    inside = Table((0, 1), np.array([[0], [1]]), np.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]], dtype=object))
    outside = inside.with_values(np.array([[[1, 0]] * 2] * 2, dtype=object))
    assert marginal(inside, outside, 0, Counting()).tolist() == [4, 12]
    assert marginal(inside, outside, 1, Counting()).tolist() == [6, 10]


# ---------------------------------------------------------------- whole problems


def lowered(model, statistics) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Return the problem with all minima moved out, the offsets, and the caps as they were."""
    shifts, offsets, rooms = [], [], []
    for statistic in statistics:
        scopes, tables = zip(*factors_of(statistic.blocks), strict=True) if statistic.blocks else ((), ())
        tables, offset, room = move_minima_out(tables, statistic.cap)
        shifts.append(list(zip(scopes, tables, strict=True)))
        offsets.append(offset)
        rooms.append(room)
    problem = Problem(model.cardinalities.tolist(), list(factors_of(model.blocks)), shifts, cap_array(rooms))
    return problem, np.array(offsets, dtype=np.int64), cap_array([statistic.cap for statistic in statistics])


@st.composite
def problems_with_orders(draw, **options):
    model, statistics = draw(problems(**options))
    return model, statistics, draw(st.permutations(range(len(model.cardinalities))))


@given(problems_with_orders())
def test_profiles_of_all_algebras_agree_with_enumeration(case):
    model, statistics, order = case
    problem, offsets, caps = lowered(model, statistics)
    expected = brute_force(model, statistics)
    tallies, scores = expected.profile()
    wanted = {MaxPlus(): scores, LogSumExp(): expected.log_partitions(), Counting(): expected.counts()}
    for algebra in ALGEBRAS:
        root = sweep_up(problem, order, algebra)[-1].output
        attainable = root.values != algebra.zero
        assert np.array_equal(put_minima_back(root.tallies[attainable], offsets, caps), tallies)
        if algebra == Counting():
            assert root.values[attainable].tolist() == list(wanted[algebra])
        else:
            np.testing.assert_allclose(root.values[attainable], wanted[algebra], atol=1e-9)


@given(problems_with_orders(largest=5, most=2), st.data())
def test_marginals_given_a_tally_agree_with_enumeration(case, data):
    model, statistics, order = case
    problem, offsets, caps = lowered(model, statistics)
    expected = brute_force(model, statistics)
    for algebra in (LogSumExp(), Counting()):
        steps = sweep_up(problem, order, algebra)
        root = steps[-1].output
        row = data.draw(st.sampled_from(np.flatnonzero(root.values != algebra.zero).tolist()))
        tally = put_minima_back(root.tallies[[row]], offsets, caps)[0]
        weights = algebra.full(root.values.shape, algebra.zero)
        weights[row] = algebra.one
        marginals = sweep_down(steps, weights, algebra)
        here = np.all(expected.tallies == tally, axis=1) & (expected.scores > -np.inf)
        for variable, cardinality in enumerate(problem.cardinalities):
            if algebra == Counting():
                states = expected.labellings[here, variable]
                assert marginals[variable].tolist() == np.bincount(states, minlength=cardinality).tolist()
            else:
                got = np.exp(marginals[variable] - root.values[row])
                np.testing.assert_allclose(got, expected.marginals(tally)[variable], atol=1e-9)


@given(problems_with_orders(largest=5, most=1))
def test_max_marginals_agree_with_enumeration(case):
    model, statistics, order = case
    expected = brute_force(model, statistics)
    steps = sweep_up(lowered(model, statistics)[0], order, MaxPlus())
    marginals = sweep_down(steps, np.zeros(len(steps[-1].output.tallies)), MaxPlus())
    for variable, cardinality in enumerate(model.cardinalities):
        for state in range(cardinality):
            best = expected.scores[expected.labellings[:, variable] == state].max()
            assert marginals[variable][state] == pytest.approx(best, abs=1e-9)


def test_a_count_beyond_64_bits():
    free = [((v, v + 1), np.zeros((3, 3))) for v in range(44)]
    problem = Problem([3] * 45, free, [], cap_array([]))
    assert sweep_up(problem, range(45), Counting())[-1].output.values.tolist() == [3**45]
