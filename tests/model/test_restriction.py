"""Fixed and allowed states: compared with filtered enumeration of the whole model."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.testing import brute_force, check_solution, score_tolerance


@st.composite
def restrictions(draw, model):
    """Draw states to leave for some of the variables, as fixed and as allowed."""
    variables = st.lists(st.sampled_from(range(len(model))), unique=True)
    fixed = {v: draw(st.integers(0, int(model.cardinalities[v]) - 1)) for v in draw(variables)}
    allowed = {}
    for v in draw(variables):
        states = st.sampled_from(range(int(model.cardinalities[v])))
        allowed[v] = draw(st.lists(states, min_size=1)) + ([fixed[v]] if v in fixed else [])
    return fixed, allowed


def rows_left(labellings, fixed, allowed):
    left = np.ones(len(labellings), dtype=bool)
    for v, state in fixed.items():
        left &= labellings[:, v] == state
    for v, states in allowed.items():
        left &= np.isin(labellings[:, v], states)
    return left


def expected_profile(model, statistics, fixed, allowed):
    """Return the best score of each tally among the labellings that are left, tallies in order."""
    every = brute_force(model, statistics)
    left = rows_left(every.labellings, fixed, allowed) & (every.scores > -np.inf)
    best = {}
    for tally, score in zip(
        map(tuple, every.tallies[left].tolist()), every.scores[left].tolist(), strict=True
    ):
        best[tally] = max(score, best.get(tally, -np.inf))
    return sorted(best.items())


@given(problem=problems(), data=st.data())
@settings(max_examples=200)
def test_a_restricted_profile_equals_filtered_enumeration(problem, data):
    model, statistics = problem
    fixed, allowed = data.draw(restrictions(model))
    profile = tt.profile(model, statistics, fixed=fixed, allowed=allowed)
    wanted = expected_profile(model, statistics, fixed, allowed)
    assert [tuple(t) for t in profile.tallies.tolist()] == [tally for tally, _ in wanted]
    assert np.allclose(profile.scores, [score for _, score in wanted], rtol=0, atol=score_tolerance(model))
    for tally, _ in wanted:
        solution = profile.at(*tally)
        assert rows_left(solution.assignment[None], fixed, allowed).all()
        check_solution(solution, model, statistics)  # the score of the whole model


@given(problem=problems(largest=5, most=2), data=st.data())
@settings(max_examples=120)
def test_every_function_takes_them(problem, data):
    model, statistics = problem
    fixed, allowed = data.draw(restrictions(model))
    every = brute_force(model, statistics)
    left = rows_left(every.labellings, fixed, allowed) & (every.scores > -np.inf)
    choice = {"fixed": fixed, "allowed": allowed}
    ranked = tt.k_best(model, statistics=statistics, **choice)
    assert sorted(s.assignment.tolist() for s in ranked) == sorted(every.labellings[left].tolist())
    assert [s.score for s in tt.iter_best(model, **choice)] == pytest.approx(sorted(every.scores[left])[::-1])
    if not left.any():
        for function in (tt.solve, tt.distribution, lambda *a, **k: tt.profile(*a, **k).best()):
            with pytest.raises(tt.InfeasibleError, match="fixed= or allowed="):
                function(model, statistics, **choice)
        return
    best = tt.solve(model, statistics, **choice)
    assert best.score == pytest.approx(every.scores[left].max(), abs=score_tolerance(model))
    assert sum(tt.distribution(model, statistics, **choice).counts) == left.sum()
    if left.sum() > 1:
        for method in ("ranking", "statistics"):
            second = tt.exclude(model, [best], method=method, **choice)
            assert second.score == pytest.approx(ranked[1].score, abs=score_tolerance(model))
    assert all(
        rows_left(s.assignment[None], fixed, allowed).all() for s in tt.diverse_k_best(model, 3, 1, **choice)
    )


def named():
    return tt.Model(
        [2, 3],
        [((0, 1), np.arange(6.0).reshape(2, 3))],
        variables=["sky", "road"],
        states=[["dry", "wet"], ["free", "slow", "shut"]],
    )


def test_names_and_numbers():
    model = named()
    for fixed, allowed in (
        ({"sky": "dry"}, {"road": ["free", "slow"]}),
        ({0: 0}, {1: (0, 1)}),
        ({"sky": np.int64(0)}, {1: np.array([1, 0])}),
        (None, {"sky": "dry", 1: {"slow", 0}}),
        ({0: "dry", 1: 1}, {}),
    ):
        assert tt.solve(model, fixed=fixed, allowed=allowed).labels.tolist() == ["dry", "slow"]
    assert model.restricted() is model
    assert model.restricted({}, {}) is model
    restricted = model.restricted({"sky": "wet"})
    assert restricted.score(["wet", "shut"]) == model.score(["wet", "shut"])
    assert restricted.score(["dry", "shut"]) == -np.inf
    assert pickle.loads(pickle.dumps(restricted)).variables == model.variables


@pytest.mark.parametrize(
    ("fixed", "allowed", "text"),
    [
        ({"ski": "dry"}, None, r"no variable 'ski'; the variables are 'sky', 'road' .* Did you mean 'sky'\?"),
        ({2: 0}, None, "no variable 2"),
        (None, {"boat": [0]}, "no variable 'boat'"),
        (
            {"sky": "we"},
            None,
            r"^fixed\['sky'\] is 'we', which is not a state of variable 0 \('sky'\); its states",
        ),
        ({0: 2}, None, r"^fixed\[0\] is 2, which is not a state of variable 0"),
        (None, {"road": ["free", "wet"]}, r"^allowed\['road'\] is 'wet', which is not a state of variable 1"),
        (None, {"road": []}, r"^allowed\['road'\] is empty, so no state would be left; give at least one"),
        (None, {"road": None}, r"^allowed\['road'\] is None; give a list of states"),
        ({"road": 0}, {1: ["slow", "shut"]}, r"^fixed\['road'\] is 0, which allowed= does not list"),
        ({"sky": 0, 0: 0}, None, "variable 0 is given twice"),
        ([0, 1], None, "^fixed must map variables to states"),
        (None, "dry", "^allowed must map variables to states"),
    ],
)
def test_errors_say_what_is_wrong(fixed, allowed, text):
    with pytest.raises(tt.ModelError, match=text):
        named().restricted(fixed, allowed)


def test_nothing_left_is_infeasible():
    model = tt.Model([2, 2], [((0, 1), [[0.0, -np.inf], [-np.inf, 1.0]])])
    with pytest.raises(tt.InfeasibleError, match="every labelling is forbidden by a -inf factor"):
        tt.solve(model, fixed={0: 0, 1: 1})
    assert tt.k_best(model, fixed={0: 0, 1: 1}) == []


def test_a_restricted_chain_keeps_its_shape_and_its_plans():
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(8, 3)), rng.normal(size=(3, 3)), states=["O", "B", "I"])
    begins = tt.count(model, state="B")
    plan = tt.plan(model, [begins])
    profile = tt.profile(model, [begins], plan=plan, fixed={3: "B"}, allowed={4: ["B", "I"]})
    assert profile.plan is plan
    assert profile.best().labels[3] == "B"
    shared = tt.Model([2] * 4, [((0,), [0.0, 1.0])])  # three variables have no factor of their own
    assert tt.solve(shared, fixed={0: 0, 2: 1}).assignment[[0, 2]].tolist() == [0, 1]


def test_a_cell_outside_of_a_grid():
    grid = tt.Model.grid(np.zeros((3, 5, 2)), np.eye(2), np.eye(2))
    with pytest.raises(tt.ModelError, match=r"variable \(9, 0\); its rows are 0 to 2 and its columns 0 to 4"):
        tt.solve(grid, fixed={(9, 0): 0})


def test_grids_and_constraints():
    stay = np.eye(2)
    model = tt.Model.grid(np.tile([0.0, 0.3], (3, 3, 1)), stay, stay)
    ones = tt.count(model, state=1)
    corner = tt.solve(model, where=ones == 4, fixed={0: 1, 8: 0})
    assert corner.labels[0, 0] == 1
    assert corner.labels[2, 2] == 0
    assert corner.assignment.sum() == 4
    assert tt.solve(model, where=ones == 4, fixed={(0, 0): 1, (2, 2): 0}).score == corner.score
    assert tt.solve(model, fixed={(0, 1): 0}).labels[0, 1] == 0
    for place in ((3, 0), (0, -1), (0, "a"), (1, 1, 1)):
        with pytest.raises(tt.ModelError, match="this model has no variable"):
            model.restricted({place: 0})


def test_what_is_no_model_is_refused_first():
    for function in (tt.solve, tt.profile, tt.distribution, tt.k_best, tt.iter_best):
        with pytest.raises(tt.ModelError, match="the first argument must be a Model, got list"):
            function([[0.0, 1.0]], fixed={0: 1})
    for function in (tt.exclude, lambda model, outputs: tt.diverse_k_best(model, 2, 1)):
        with pytest.raises(tt.ModelError, match="the first argument must be a Model, got list"):
            function([[0.0, 1.0]], [])


@pytest.mark.parametrize("given", [np.zeros(2), [0, 1], 5])
def test_solve_takes_no_arrays_of_fixed_states(given):
    with pytest.raises(tt.ModelError, match=r"^fixed must map variables to states"):
        tt.solve(named(), fixed=given)
