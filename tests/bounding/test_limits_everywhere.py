"""An operation limit applies to every method, and the error reports what the search had found."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.io import ProblemFile
from tallytree.running.bounds import ModelSearcher, Search, Wanted


def chain(length, seed=0, states=3):
    rng = np.random.default_rng(seed)
    return tt.Model.chain(rng.normal(size=(length, states)), rng.normal(size=(states, states)))


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
def test_k_best(strategy):
    model = chain(60)
    with pytest.raises(tt.BudgetError):
        tt.k_best(model, 3, where=tt.count(state=1) == 30, strategy=strategy, operation_limit=1)


@pytest.mark.parametrize("strategy", ["auto", "full", "bounds"])
def test_paths_of_margins(strategy):
    model, truth = chain(60), np.zeros(60, dtype=int)
    loss = tt.losses.FBeta(truth, background=1)
    with pytest.raises(tt.BudgetError):
        tt.loss_augmented_path(model, loss, high=50.0, strategy=strategy, operation_limit=1)


@pytest.mark.parametrize("margin", [0.1, 30.0])
def test_a_loss_in_the_score(margin):
    """The bound and the best labelling are about values, not about scores that contain the loss."""
    seen = 0
    for seed in range(20):
        model, truth = chain(12, seed), np.random.default_rng(seed).integers(0, 3, 12)
        loss, where = tt.losses.HammingDistance(truth), tt.count(state=1) <= seed % 6
        asked = {"margin": margin, "where": where}
        best = tt.loss_augmented(model, loss, **asked, strategy="full")
        with pytest.raises(tt.BudgetError, match="no labelling has a value above") as raised:
            tt.loss_augmented(model, loss, **asked, strategy="bounds", operation_limit=20)
        bound, known = raised.value.bound, raised.value.best
        assert bound >= best.value - 1e-9 and f"above {bound:.10g}" in str(raised.value)
        if known is not None:
            seen += 1
            assert known.score == pytest.approx(model.score(known.assignment))
            assert known.value == pytest.approx(margin * known.loss + known.score - known.truth_score)
            assert known.value <= best.value + 1e-9 and known.gap == pytest.approx(bound - known.value)
    assert seen


def test_batches_have_no_such_limit():
    with pytest.raises(TypeError, match="has no operation_limit"):
        tt.loss_augmented_batch(
            [chain(3)], tt.losses.FBeta(background=0), truths=[[0, 1, 2]], operation_limit=1
        )


def test_a_box_out_of_reach_does_not_spoil_the_answer():
    """Twice a count is never odd: that alternative has no labelling, and the other has the answer."""
    model = chain(2100)
    twice = 2 * tt.count(model, state=1)
    other = tt.count(model, state=2)
    odd, even = (twice == 3) & (other == 2090), (twice == 4190) & (other == 3)
    found = tt.solve(model, where=odd | even, memory_limit=1e9)
    labels = found.assignment
    assert (labels == 1).sum() == 2095 and (labels == 2).sum() == 3


def test_what_a_search_for_a_loss_knew_is_told():
    model, truth = chain(400), np.zeros(400, dtype=int)
    with pytest.raises(tt.BudgetError, match="gap") as caught:
        tt.loss_augmented(
            model, tt.losses.FBeta(truth, background=1), strategy="bounds", operation_limit=3000
        )
    assert caught.value.bound is not None


def test_a_problem_file_checks_its_options():
    model = chain(4)
    problem = ProblemFile(model, [tt.count(model, state=1)], "score")
    with pytest.raises(tt.ModelError, match="strategy"):
        problem.solve(strategy="bogus")
    with pytest.raises(tt.ModelError, match="operation_limit"):
        problem.solve(operation_limit=-1)


def test_tables_of_counts_that_depend_on_each_other_are_small():
    """Of two states, one count is the number of variables minus the other: tallies lie on a line."""
    rng = np.random.default_rng(0)
    star = tt.Model.tree([-1] + [0] * 400, rng.normal(size=(401, 2)), rng.normal(size=(2, 2)))
    zeros, ones = (tt.count(star, state=state) for state in (0, 1))
    even = tt.count(star, state=1, variables=range(0, 401, 2), name="even")
    odd = tt.count(star, state=1, variables=range(1, 401, 2), name="odd")
    price = {len(some): tt.plan(star, some).search.table_work for some in ([ones], [zeros, ones])}
    independent = tt.plan(star, [even, odd]).search.table_work
    assert price[1] < price[2] < independent / 5
    assert independent > 10 * price[1]


@pytest.mark.sanitize
@pytest.mark.parametrize("limit", [4e5, 8e5, 1.6e6, 3.2e6])
def test_work_is_counted_before_it_is_done(limit):
    """A join may have most of the pairs of a band: it is not begun if they are too many."""
    rng = np.random.default_rng(0)
    parents = [-1, *(int(rng.integers(0, v)) for v in range(1, 400))]
    tree = tt.Model.tree(parents, rng.normal(size=(400, 3)), 10 * np.eye(3))
    counts = [tt.count(tree, state=state, name=f"s{state}").on(tree) for state in (0, 1)]
    found = ModelSearcher(tree, counts)(Search(Wanted([133, 133], [133, 133]), most_work=limit))
    assert found.ended and not found.finished
    assert found.work <= limit


def test_scans_of_losses_end_with_the_work():
    """Each bound on a table of losses looks at all of its tallies."""
    rng = np.random.default_rng(0)
    parents = [-1, *(int(rng.integers(0, v)) for v in range(1, 190))]
    tree = tt.Model.tree(parents, rng.normal(size=(190, 3)), rng.normal(size=(3, 3)))
    counts = [tt.count(tree, state=state, name=f"s{state}").on(tree) for state in (0, 1)]
    losses = rng.random(191 * 191)
    wanted = Wanted([0, 0], [190, 190], "slack", 1000.0, losses=losses)
    limit = 2e6
    found = ModelSearcher(tree, counts)(Search(wanted, most_work=limit))
    assert found.ended
    assert found.work <= limit + 2 * 10 * losses.size  # the scan that is under way, and one more


def test_an_error_does_not_recommend_what_failed():
    """A function of two counts with too many tallies: `solve` has no search, and says so."""
    model = chain(3000, states=3)
    counts = [tt.count(model, state=s, name=name) for s, name in ((1, "a"), (2, "b"))]
    with pytest.raises(tt.BudgetError, match=r"Bounds do not help here: .* up to a million") as raised:
        tt.solve(model, counts, lambda score, a, b: score - abs(a - b), memory_limit=50e6)
    assert "as in solve" not in str(raised.value) and "solve(model, where" not in str(raised.value)
    with pytest.raises(tt.BudgetError, match="A single answer by bounds, as in solve"):
        tt.profile(model, counts, memory_limit=50e6)
    with pytest.raises(tt.BudgetError) as raised:
        tt.distribution(model, counts, memory_limit=50e6)
    assert "solve" not in str(raised.value) and "relax" not in str(raised.value)


def test_an_error_says_why_bounds_do_not_help():
    rng = np.random.default_rng(0)
    items = tt.Model([2] * 40, [((v,), [0.0, 1.0]) for v in range(40)])
    weight = tt.Statistic([((v,), [0, int(rng.integers(2**34, 2**35))]) for v in range(40)], name="weight")
    with pytest.raises(tt.BudgetError, match=r"tallytree\.relax.* Bounds .*weights below 2\*\*30"):
        tt.solve(items, where=weight <= 2**38, memory_limit=1e8)
    model = chain(60)
    four = [tt.count(model, state=1).named(f"s{i}") + i * tt.count(model, state=2) for i in range(4)]
    some = [tt.Statistic.combination(one) for one in four]
    with pytest.raises(tt.BudgetError, match="up to 3 statistics, and this question has 4"):
        tt.solve(model, some, lambda score, *_: score, memory_limit=1e6)


def test_tables_have_an_operation_limit():
    model = chain(30)
    for ask in (tt.profile, tt.distribution):
        ask(model, [tt.count(state=1)], operation_limit=1e5)
        with pytest.raises(tt.BudgetError, match="operation_limit is 1e"):
            ask(model, [tt.count(state=1)], operation_limit=1e3)
