"""Beyond enumeration: the score of a tally is that of an integer program solved by HiGHS.

The program is the local polytope with integer variables: an indicator for each state of each variable and for
each joint state of each scope, sums that tie the two together, and one row per statistic that fixes its tally
(at least the cap, where the tally is the cap).
"""

import numpy as np
import pytest

import tallytree as tt
from tallytree.testing import check_solution, factors_of, random_model

optimize = pytest.importorskip("scipy.optimize")
sparse = pytest.importorskip("scipy.sparse")


class IntegerProgram:
    def __init__(self, model, statistics):
        self.model, self.statistics = model, statistics
        self.columns, self.upper, self.score = {}, [], []
        self.rows = []  # (coefficients by column, lowest, highest)
        for v, n in enumerate(model.cardinalities.tolist()):
            self._indicators((v,), (n,))
        self._add(model.blocks, self._score)
        self.shifts = [self._add(s.blocks, self._shift, {"constant": 0}) for s in statistics]

    def _indicators(self, scope, shape):
        if scope in self.columns:
            return self.columns[scope]
        at = len(self.upper) + np.arange(int(np.prod(shape))).reshape(shape)
        self.columns[scope] = at
        self.upper += [1.0] * at.size
        self.score += [0.0] * at.size
        if len(scope) == 1:
            self.rows.append((dict.fromkeys(at.tolist(), 1.0), 1.0, 1.0))
        for axis, v in enumerate(scope if len(scope) > 1 else ()):
            for state, single in enumerate(self.columns[(v,)].tolist()):
                joint = np.take(at, state, axis=axis).ravel().tolist()
                self.rows.append(({**dict.fromkeys(joint, 1.0), single: -1.0}, 0.0, 0.0))
        return at

    def _add(self, blocks, use, into=None):
        for scope, table in factors_of(blocks):
            at = self._indicators(scope, table.shape) if scope else None
            use(at, table, into)
        return into

    def _score(self, at, table, into):
        for column, f in zip(at.ravel().tolist(), table.ravel().tolist(), strict=True):
            if f == -np.inf:
                self.upper[column] = 0.0
            else:
                self.score[column] += f

    def _shift(self, at, table, into):
        if at is None:
            into["constant"] += int(table)
        else:
            for column, g in zip(at.ravel().tolist(), table.ravel().tolist(), strict=True):
                into[column] = into.get(column, 0) + g

    def solve(self, tally):
        """Return the best score with this tally, evaluated on the labelling found; -inf if there is none."""
        rows = list(self.rows)
        for statistic, shift, wanted in zip(self.statistics, self.shifts, tally, strict=True):
            coefficients = {column: float(g) for column, g in shift.items() if column != "constant" and g}
            low = wanted - shift["constant"]
            rows.append((coefficients, low, np.inf if wanted == statistic.cap else low))
        entries = [(r, c, x) for r, (coefficients, _, _) in enumerate(rows) for c, x in coefficients.items()]
        i, j, x = zip(*entries, strict=True)
        matrix = sparse.coo_array((x, (i, j)), shape=(len(rows), len(self.upper))).tocsr()
        found = optimize.milp(
            -np.array(self.score),
            integrality=np.ones(len(self.upper)),
            bounds=optimize.Bounds(0, np.array(self.upper)),
            constraints=optimize.LinearConstraint(matrix, [r[1] for r in rows], [r[2] for r in rows]),
            options={"mip_rel_gap": 0.0},
        )
        if found.status == 2:
            return -np.inf
        assert found.status == 0, found.message
        y = [int(found.x[self.columns[(v,)]].argmax()) for v in range(len(self.model))]
        assert [s.tally(y) for s in self.statistics] == list(tally)
        return self.model.score(y)


def chain_with_counts():
    model = random_model(np.random.default_rng(1), "chain", variables=50, states=3, forbidden=0.05)
    flips = [((v, v + 1), 1 - np.eye(*model.cardinalities[v : v + 2], dtype=int)) for v in range(49)]
    return model, [tt.count(model, state=1), tt.Statistic(flips, name="flips")]


def tree_with_a_signed_and_a_capped_statistic():
    rng = np.random.default_rng(2)
    model = random_model(rng, "tree", variables=60, states=2)
    signed = tt.Statistic([((v,), rng.integers(-2, 3, size=model.cardinalities[v])) for v in range(60)])
    return model, [signed, tt.count(model, state=1, cap=12)]


def grid_with_a_count():
    model = random_model(np.random.default_rng(3), "grid", variables=25, states=2)
    return model, [tt.count(model, state=1)]


def cycle_with_a_long_range_statistic():
    """The statistic has scopes that no factor has: it adds to the width."""
    rng = np.random.default_rng(4)
    model = random_model(rng, "cycle", variables=24, states=3)
    pairs = [((v, v + 2), rng.integers(0, 2, size=model.cardinalities[[v, v + 2]])) for v in range(0, 22, 2)]
    return model, [tt.Statistic(pairs, name="skips"), tt.count(model, state=0, variables=range(12))]


PROBLEMS = [
    chain_with_counts,
    tree_with_a_signed_and_a_capped_statistic,
    grid_with_a_count,
    cycle_with_a_long_range_statistic,
]


@pytest.mark.parametrize("problem", PROBLEMS, ids=lambda f: f.__name__)
def test_scores_of_tallies_are_those_of_an_integer_program(problem):
    model, statistics = problem()
    profile = tt.profile(model, statistics)
    program = IntegerProgram(model, statistics)
    rows = [
        *np.unique(np.linspace(0, len(profile) - 1, 9).astype(int)).tolist(),
        int(profile.scores.argmax()),
    ]
    for row in rows:
        tally = profile.tallies[row].tolist()
        solution = profile.at(*tally)
        check_solution(solution, model, statistics)
        assert solution.score == pytest.approx(program.solve(tally), abs=1e-6)


def test_tallies_that_are_not_listed_are_infeasible():
    model, statistics = chain_with_counts()
    profile = tt.profile(model, statistics)
    program = IntegerProgram(model, statistics)
    listed = set(map(tuple, profile.tallies.tolist()))
    missing = [(k, f) for k in (0, 30, 48) for f in (0, 1, 49) if (k, f) not in listed][:3]
    assert missing
    for tally in missing:
        assert program.solve(tally) == -np.inf


@pytest.mark.parametrize("tallies", ["rows", "cells"])
@pytest.mark.parametrize("size", [20, 60, 400])
def test_independent_variables_take_the_largest_gains(size, tallies):
    """A closed form at any length: ``μ(k)`` is the sum of the k largest gains, on a chain and on a star."""
    gains = np.random.default_rng(size).normal(size=size)
    unary = np.stack([np.zeros(size), gains], axis=1)
    wanted = np.concatenate([[0.0], np.cumsum(np.sort(gains)[::-1])])
    for model in (
        tt.Model.chain(unary, np.zeros((2, 2))),
        tt.Model.tree([-1] + [0] * (size - 1), unary, np.zeros((2, 2))),
        tt.Model([2] * size, [((v,), unary[v]) for v in range(size)]),
    ):
        profile = tt.profile(model, [tt.count(state=1)], tallies=tallies)
        np.testing.assert_allclose(profile.scores, wanted, atol=1e-10)
        for k in (0, 7, size):
            assert profile.at(k).assignment.sum() == k
