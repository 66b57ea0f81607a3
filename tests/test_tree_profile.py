"""Statistics, losses, constraints and ranked trees, compared with the enumeration of all trees."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treebanks import Sentence, random_sentence, sentences

import tallytree as tt
from tallytree import losses, parsing
from tallytree.core.expressions import Constraint
from tallytree.kernels import native
from tallytree.parsing import Forest, Grammar, Tree, TreeStatistic, count, parse_tree

close = {"rtol": 1e-9, "atol": 1e-9}
few = settings(max_examples=40)


def best_scores(sentence: Sentence) -> dict[Tree, float]:
    best: dict[Tree, float] = {}
    for tree, score in sentence.trees:
        best[tree] = max(score, best.get(tree, -np.inf))
    return best


def some_truth(sentence: Sentence, seed: int) -> Tree:
    trees = sorted(best_scores(sentence), key=str)
    return trees[seed % len(trees)]


def some_statistics(sentence: Sentence, seed: int) -> list[TreeStatistic]:
    truth = some_truth(sentence, seed)
    return [
        count(),
        count("S"),
        count(("A", "B"), min_length=2),
        count(max_length=2, name="short"),
        count(max_depth=1, name="shallow"),
        count("A", min_depth=1, max_depth=2, name="middle"),
        count(min_depth=2, cap=2, name="deep"),
        parsing.true_positives(truth),
        parsing.false_positives(truth),
        parsing.false_positives(truth, cap=1, name="any_wrong"),
        parsing.crossing_brackets(truth),
        parsing.wrong_nodes(truth),
        parsing.wrong_nodes(truth, cap=1, name="wrong_once"),
    ]


def by_tally(sentence: Sentence, statistics: list[TreeStatistic]) -> dict[tuple[int, ...], float]:
    best: dict[tuple[int, ...], float] = {}
    for tree, score in best_scores(sentence).items():
        tally = tuple(s.tally(tree) for s in statistics)
        best[tally] = max(score, best.get(tally, -np.inf))
    return best


seeds = st.integers(0, 2**16)


@pytest.mark.sanitize
@pytest.mark.parametrize("number", range(13))
def test_profile_of_each_statistic(number: int) -> None:
    for seed in range(8):
        sentence = random_sentence(np.random.default_rng(100 * number + seed))
        check_profile(sentence, [some_statistics(sentence, seed)[number]])


@given(sentences(), st.lists(st.integers(0, 12), max_size=3, unique=True), seeds)
def test_profile_of_several_statistics(sentence: Sentence, numbers: list[int], seed: int) -> None:
    every = some_statistics(sentence, seed)
    check_profile(sentence, [every[i] for i in numbers])


def check_profile(sentence: Sentence, statistics: list[TreeStatistic]) -> None:
    expected = by_tally(sentence, statistics)
    profile = parsing.profile(sentence.forest, statistics)
    assert list(map(tuple, profile.tallies.tolist())) == sorted(expected)
    np.testing.assert_allclose(profile.scores, [expected[t] for t in sorted(expected)], **close)
    trees = best_scores(sentence)
    for row, tally in enumerate(profile.tallies.tolist()):
        found = profile.row(row)
        assert [s.tally(found.tree) for s in statistics] == tally == list(found.tally)
        np.testing.assert_allclose(trees[found.tree], expected[tuple(tally)], **close)
        np.testing.assert_allclose(found.score, expected[tuple(tally)], **close)


def test_ties_and_forbidden_tallies_in_every_instruction_set() -> None:
    sentence = random_sentence(np.random.default_rng(5), 5, 40)
    truth = some_truth(sentence, 3)
    statistics = [parsing.true_positives(truth), parsing.false_positives(truth)]
    answers = []
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            profile = parsing.profile(sentence.forest, statistics)
            answers.append((profile.scores.tolist(), [str(profile.row(i).tree) for i in range(len(profile))]))
    finally:
        native.use_instruction_set("")
    assert all(answer == answers[0] for answer in answers)


@given(sentences(), st.lists(st.integers(0, 12), max_size=2, unique=True), seeds)
@few
def test_sums_by_tally(sentence: Sentence, numbers: list[int], seed: int) -> None:
    """The same chart over log-sum-exp adds up all derivations of each tally."""
    statistics = [some_statistics(sentence, seed)[i] for i in numbers]
    plan = parsing.plan(sentence.forest, statistics)
    _, tallies, values = plan.root(plan.run(native.LOG_SUM_EXP))
    sums: dict[tuple[int, ...], float] = {}
    for tree, score in sentence.trees:
        tally = tuple(s.tally(tree) for s in statistics)
        sums[tally] = np.logaddexp(score, sums.get(tally, -np.inf))
    assert list(map(tuple, tallies.tolist())) == sorted(sums)
    np.testing.assert_allclose(values, [sums[t] for t in sorted(sums)], **close)


# --- objectives and constraints -----------------------------------------------------------------------------


def some_constraints(sentence: Sentence, seed: int) -> list[Constraint]:
    rng = np.random.default_rng(seed)
    every = some_statistics(sentence, seed)
    size, s_count, tp, fp = every[0], every[1], every[7], every[8]
    shallow, deep = every[4], every[6]
    b = int(rng.integers(0, 6))
    return [
        size <= b,
        count("A") == b % 3,
        (size >= b) & (s_count <= 2),
        (tp >= 1) | (fp == 0),
        ~(size == b),
        fp - tp >= b - 3,
        2 * size - 3 * s_count <= b + 2,
        (shallow >= 1) & (shallow <= b) & (deep <= 1),
        (tp + fp >= 1) & (tp - fp <= b),
    ]


def holds(constraint: Constraint, tree: Tree) -> bool:
    return bool(constraint.holds({s: s.tally(tree) for s in constraint.statistics}))


@given(sentences(), st.integers(0, 8), seeds)
def test_constraints(sentence: Sentence, number: int, seed: int) -> None:
    where = some_constraints(sentence, seed)[number]
    allowed = {tree: score for tree, score in best_scores(sentence).items() if holds(where, tree)}
    if not allowed:
        with pytest.raises(tt.InfeasibleError, match=r"no tree satisfies .* nearest attainable"):
            parsing.solve(sentence.forest, where=where)
        return
    found = parsing.solve(sentence.forest, where=where)
    np.testing.assert_allclose(found.score, max(allowed.values()), **close)
    assert found.tree in allowed
    assert [s.tally(found.tree) for s in where.statistics] == list(found.tally)


@given(sentences(), st.integers(0, 8), seeds)
@few
def test_objective_with_constraint(sentence: Sentence, number: int, seed: int) -> None:
    where = some_constraints(sentence, seed)[number]
    size, tp = some_statistics(sentence, seed)[0], some_statistics(sentence, seed)[7]

    def objective(score: np.ndarray, k: np.ndarray, right: np.ndarray) -> np.ndarray:
        return score - np.abs(k - 3) + right**2

    values = {
        tree: objective(score, size.tally(tree), tp.tally(tree))
        for tree, score in best_scores(sentence).items()
        if holds(where, tree)
    }
    if not values:
        return
    found = parsing.solve(sentence.forest, [size, tp], objective, where=where)
    np.testing.assert_allclose(found.value, max(values.values()), **close)
    np.testing.assert_allclose(values[found.tree], found.value, **close)


# --- losses -------------------------------------------------------------------------------------------------

LOSSES: dict[str, Callable[[Tree], losses.Loss]] = {
    "f1": losses.FBeta,
    "f2": lambda truth: losses.FBeta(truth, beta=2.0),
    "precision": losses.Precision,
    "recall": losses.Recall,
    "false positives": losses.FalsePositives,
    "symmetric difference": losses.SymmetricDifference,
    "intersection over union": losses.IntersectionOverUnion,
    "crossing": losses.CrossingBrackets,
    "crossing rate": losses.CrossingBracketsRate,
    "zero one": losses.ZeroOne,
}


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_augmented(name: str, scaling: str) -> None:
    for seed in range(12):
        sentence = random_sentence(np.random.default_rng([seed, *name.encode()]))
        check_loss(sentence, LOSSES[name](some_truth(sentence, seed)), scaling, seed)


def check_loss(sentence: Sentence, loss: losses.Loss, scaling: str, seed: int) -> None:
    scores = best_scores(sentence)
    truth_score = scores[loss.truth]

    def value(tree: Tree, margin: float) -> float:
        difference = scores[tree] - truth_score
        return margin * loss(tree) + difference if scaling == "margin" else loss(tree) * (margin + difference)

    for where in (None, some_constraints(sentence, seed)[seed % 9]):
        allowed = [tree for tree in scores if where is None or holds(where, tree)]
        for margin in (1.0, 0.3):
            for prune in (True, False):
                if not allowed:
                    continue
                found = parsing.loss_augmented(
                    sentence.forest, loss, scaling, margin=margin, where=where, prune=prune
                )
                best = max(value(tree, margin) for tree in allowed)
                np.testing.assert_allclose(found.value, best, **close)
                np.testing.assert_allclose(value(found.tree, margin), best, **close)
                np.testing.assert_allclose(found.loss, loss(found.tree), **close)
                np.testing.assert_allclose(found.score, scores[found.tree], **close)
                np.testing.assert_allclose(found.truth_score, truth_score, **close)


def test_losses_follow_their_definition() -> None:
    truth = parse_tree("(S (X (X (a a) (b b))) (c c))")  # X twice over the same words
    other = parse_tree("(S (a a) (X (b b) (c c)))")
    same = parse_tree("(S (X (a a) (b b)) (c c))")
    assert losses.FBeta(truth)(other) == pytest.approx(1 - 2 * 1 / (3 + 2))
    assert losses.FBeta(truth)(same) == pytest.approx(1 - 2 * 2 / (3 + 2))
    assert losses.CrossingBrackets(truth)(other) == 1.0
    assert losses.CrossingBracketsRate(truth)(other) == 0.5
    assert losses.CrossingBracketsRate(truth)(Tree("", [parse_tree("(a a)"), parse_tree("(b b)")])) == 0.0
    assert [losses.ZeroOne(truth)(tree) for tree in (truth, other, same)] == [0.0, 1.0, 1.0]
    with pytest.raises(tt.ModelError, match="loss of parse trees"):
        losses.CrossingBrackets(truth).reduce(tt.Model([2]))


def test_own_loss_is_registered() -> None:
    class Size(losses.CrossingBracketsRate):
        def __call__(self, y: Tree) -> float:
            return y.constituents().total() / 100

    forest = toy()
    truth = forest.best().tree
    parsing.counted_loss.register(Size, lambda loss: parsing.CountedLoss((count(),), lambda n: n / 100))
    sizes = [parse.tree.constituents().total() for parse in parsing.iter_best(forest)]
    found = parsing.loss_augmented(forest, Size(truth), "slack", margin=100.0)
    assert found.loss == max(sizes) / 100


# --- ranked trees -------------------------------------------------------------------------------------------


@given(sentences(trees=4), seeds)
def test_k_best(sentence: Sentence, seed: int) -> None:
    scores = best_scores(sentence)
    found = parsing.k_best(sentence.forest, 20)
    expected = sorted(scores.values(), reverse=True)[:20]
    np.testing.assert_allclose([parse.score for parse in found], expected, **close)
    assert len({parse.tree for parse in found}) == len(found)
    for parse in found:
        np.testing.assert_allclose(parse.score, scores[parse.tree], **close)
    assert len(list(parsing.iter_best(sentence.forest))) == len(scores)


@given(sentences(trees=4), st.integers(0, 8), seeds)
@few
def test_k_best_with_objective_and_constraint(sentence: Sentence, number: int, seed: int) -> None:
    where = some_constraints(sentence, seed)[number]
    size = count()
    values = sorted(
        (
            score - size.tally(tree) ** 2
            for tree, score in best_scores(sentence).items()
            if holds(where, tree)
        ),
        reverse=True,
    )
    found = parsing.k_best(sentence.forest, 10, [size], lambda score, k: score - k**2, where=where)
    np.testing.assert_allclose([parse.value for parse in found], values[:10], **close)
    assert all(holds(where, parse.tree) for parse in found)


@given(sentences(trees=4), st.integers(1, 4))
@few
def test_diverse_k_best(sentence: Sentence, distance: int) -> None:
    scores = best_scores(sentence)
    chosen: list[Tree] = []

    def apart(a: Tree, b: Tree) -> int:
        x, y = a.constituents(), b.constituents()
        return ((x - y) + (y - x)).total()

    found = parsing.diverse_k_best(sentence.forest, 4, distance)
    for parse in found:
        far = [s for tree, s in scores.items() if all(apart(tree, other) >= distance for other in chosen)]
        np.testing.assert_allclose(parse.score, max(far), **close)
        assert all(apart(parse.tree, other) >= distance for other in chosen)
        chosen.append(parse.tree)
    if len(found) < 4:
        assert not [t for t in scores if all(apart(t, other) >= distance for other in chosen)]


# --- plans and errors ---------------------------------------------------------------------------------------


def toy(words: int = 5) -> Forest:
    rules = {("N", "N", "N"): -1.0, ("M", "N", "N"): -2.0, ("N", "M", "N"): -1.5}
    return Forest(Grammar(rules, {("M", "N"): -1.0}, {"N": {"a": 0.0}}, root="N"), ["a"] * words)


def test_plan_prints_its_price() -> None:
    forest = toy()
    truth = forest.best().tree
    plan = parsing.plan(forest, [parsing.true_positives(truth), parsing.false_positives(truth)])
    lines = str(plan).splitlines()
    assert lines[0] == "plan for 5 words and 2 statistics (tp, fp)"
    assert f"{plan.items} items over 15 spans, tallies R = {plan.tallies}" in lines[1]
    assert "add-max operations" in lines[2] and "costliest span: words 0 to" in lines[3]
    assert repr(plan).startswith(f"TreePlan(items={plan.items}, tallies={plan.tallies}")
    bounded = parsing.plan(forest, where=count() <= 2)
    assert bounded.operations < parsing.plan(forest, [count()]).operations
    assert "the constraint rules out" in str(bounded)


def test_ranges_are_tight() -> None:
    """True positives at most the gold constituents inside a span, predicted ones what it can hold."""
    forest = toy(6)
    truth = forest.best().tree
    plan = parsing.plan(forest, [parsing.true_positives(truth)])
    gold = truth.constituents()
    for span, (start, end) in enumerate(zip(forest.starts, forest.ends, strict=True)):
        inside = sum(n for (_, s, e), n in gold.items() if start <= s and e <= end)
        assert plan.layout.cells[span, 1] <= inside + 1
    sizes = parsing.plan(forest, [count()])
    assert sizes.tallies <= 1 + 2 * (2 * len(forest.words) - 1)


def test_budget_is_kept_before_the_chart_is_built() -> None:
    forest = toy(12)
    with pytest.raises(tt.BudgetError, match=r"chart of 12 words needs .* the limit is .*memory_limit="):
        parsing.plan(forest, [count(), count("M"), count("N", max_length=3)], memory_limit=60_000)
    with pytest.raises(tt.BudgetError, match="chart of 12 words"):
        parsing.plan(forest, memory_limit=1000)


def test_profile_pickles_without_its_chart() -> None:
    profile = parsing.profile(toy(9), [count(), count("M", max_depth=2, name="m")])
    text = pickle.dumps(profile)
    assert len(text) < profile.plan.peak_bytes / 5
    back = pickle.loads(text)
    assert back.scores.tolist() == profile.scores.tolist()
    assert [back.row(i) for i in range(3)] == [profile.row(i) for i in range(3)]
    assert back.plan.operations == profile.plan.operations
    assert back.model.best() == toy(9).best()


def test_wrong_arguments() -> None:
    forest = toy()
    model = tt.Model([2, 2])
    with pytest.raises(tt.ModelError, match=r"statistics of trees are made by tallytree\.parsing"):
        parsing.profile(forest, [tt.count(model, state=1)])
    with pytest.raises(tt.ModelError, match="trees are those of a"):
        parsing.profile(model)
    with pytest.raises(tt.ModelError, match="loss bound to a tree is needed"):
        parsing.loss_augmented(forest, losses.FBeta([1, 0]))
    with pytest.raises(tt.ModelError, match="loss of trees such as"):
        parsing.loss_augmented(forest, losses.HammingDistance(forest.best().tree))
    with pytest.raises(tt.ModelError, match="the truth scores -inf"):
        truth = parse_tree("(N (a a) (a a) (a a) (a a) (a a))")
        parsing.loss_augmented(forest, losses.FBeta(truth))
    with pytest.raises(tt.ModelError, match="is a Tree"):
        parsing.true_positives("(N a)")  # type: ignore[arg-type]
    with pytest.raises(tt.ModelError, match="cannot be counted"):
        count(min_length=3, max_length=2)
    with pytest.raises(tt.ModelError, match="cap is an integer"):
        count(cap=-1)
    with pytest.raises(tt.ModelError, match="k must be"):
        parsing.k_best(forest, -1)
    with pytest.raises(tt.ModelError, match="distance at least 1"):
        parsing.diverse_k_best(forest, 2, 0)
    with pytest.raises(tt.ModelError, match="up to 100"):
        count(max_depth=1000)


def test_statistics_are_known_by_content() -> None:
    truth = toy().best().tree
    assert count("N") == count("N", name="other") and count("N") != count("M")
    assert parsing.true_positives(truth) == parsing.true_positives(parse_tree(str(truth)))
    assert parsing.true_positives(truth) != parsing.false_positives(truth)
    assert pickle.loads(pickle.dumps(count("N", cap=2))) == count("N", cap=2)
    assert repr(count("N", cap=2)) == "count_N (at most 2)"
