"""Loss-augmented parsing, compared with the enumeration of all trees: every loss, scaling and constraint."""

from collections.abc import Callable, Iterator
from functools import cache

import numpy as np
import pytest
from treebanks import Sentence, best_scores, holds, random_sentence, some_constraints, some_truth, toy

import tallytree as tt
from tallytree import losses, parsing
from tallytree.parsing import Forest, Tree, count, parse_tree
from tallytree.planning.budget import readable_count
from tallytree.statistics.constraints import Constraint

close = {"rtol": 1e-9, "atol": 1e-9}
SENTENCES = 12

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


@cache
def drawn(number: int) -> tuple[Sentence, dict[Tree, float], Tree]:
    sentence = random_sentence(np.random.default_rng([17, number]), trees=6)
    return sentence, best_scores(sentence), some_truth(sentence, number)


def questions(number: int, each: int) -> Iterator[Constraint | None]:
    """No constraint, and as many of the nine as wanted, others for each sentence."""
    every = some_constraints(drawn(number)[0], number)
    yield from (None, *(every[(each * number + i) % len(every)] for i in range(each)))


def test_sentences_are_worth_it() -> None:
    """What grammars are to be compared on: unary chains, several labels, ambiguous sentences, ties."""
    trees = [list(drawn(number)[1]) for number in range(SENTENCES)]
    every = [tree.constituents() for found in trees for tree in found]
    spans = [[(start, end) for _, start, end in found.elements()] for found in every]
    assert min(map(len, trees)) >= 3 and max(map(len, trees)) >= 50
    assert sum(len(set(s)) < len(s) for s in spans) > 50  # unary chains
    assert sum(max(found.values()) > 1 for found in every if found) > 10  # a label twice over the same words
    assert sum(len({label for label, *_ in found}) >= 3 for found in every) > 20
    assert any(len(sentence.trees) > len(scores) for sentence, scores, _ in map(drawn, range(SENTENCES)))
    assert sum(len(set(scores.values())) < len(scores) for _, scores, _ in map(drawn, range(SENTENCES))) > 2


def values(
    loss: losses.Loss, scores: dict[Tree, float], scaling: str, margin: float, where: Constraint | None
) -> dict[Tree, float]:
    """The objective of every tree that is allowed, by its definition."""
    result = {}
    for tree, score in scores.items():
        if where is None or holds(where, tree):
            difference = score - scores[loss.truth]
            margined, slack = margin * loss(tree) + difference, loss(tree) * (margin + difference)
            result[tree] = margined if scaling == "margin" else slack
    return result


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("name", LOSSES)
def test_loss_augmented(name: str, scaling: str) -> None:
    for number in range(SENTENCES):
        sentence, scores, truth = drawn(number)
        loss = LOSSES[name](truth)
        for where in questions(number, 3):
            margin = (1.0, 0.3, 2.5)[number % 3]
            expected = values(loss, scores, scaling, margin, where)
            for strategy in ("bounds", "full", "auto")[: 3 if number % 3 == 0 else 1]:
                options = {"margin": margin, "where": where, "strategy": strategy}
                if expected:
                    found = parsing.loss_augmented(sentence.forest, loss, scaling, **options)
                    check(found, loss, scores, expected)
                else:
                    with pytest.raises(tt.InfeasibleError, match=r"no tree satisfies .* nearest attainable"):
                        parsing.loss_augmented(sentence.forest, loss, scaling, **options)


def check(
    found: parsing.AugmentedParse,
    loss: losses.Loss,
    scores: dict[Tree, float],
    expected: dict[Tree, float],
) -> None:
    np.testing.assert_allclose(found.value, max(expected.values()), **close)
    np.testing.assert_allclose(expected[found.tree], found.value, **close)
    np.testing.assert_allclose(found.loss, loss(found.tree), **close)
    np.testing.assert_allclose(found.score, scores[found.tree], **close)
    np.testing.assert_allclose(found.truth_score, scores[loss.truth], **close)
    assert "has a higher value" in found.explain()
    counted = parsing.counted_loss(loss).statistics
    assert list(found.tally[: len(counted)]) == [s.tally(found.tree) for s in counted]


@pytest.mark.parametrize("scaling", ["margin", "slack"])
@pytest.mark.parametrize("name", LOSSES)
def test_path(name: str, scaling: str) -> None:
    for number in range(0, SENTENCES, 3):
        sentence, scores, truth = drawn(number)
        loss = LOSSES[name](truth)
        low, high = ((0.0, np.inf), (0.5, 2.0), (0.0, 1.0))[number // 3 % 3]
        for where in questions(number, 1):
            if not values(loss, scores, scaling, low, where):
                with pytest.raises(tt.InfeasibleError, match="no tree satisfies"):
                    parsing.loss_augmented_path(sentence.forest, loss, low, high, scaling, where=where)
                continue
            way = ("auto", "bounds")[number % 2]
            path = parsing.loss_augmented_path(
                sentence.forest, loss, low, high, scaling, where=where, strategy=way
            )
            for margin in (low, 0.7, min(high, 3.0), *path.breakpoints):
                expected = values(loss, scores, scaling, margin, where)
                np.testing.assert_allclose(path.value(margin), max(expected.values()), **close)
                found = path.at(margin)
                np.testing.assert_allclose(found.value, path.value(margin), **close)
                np.testing.assert_allclose(expected[found.tree], found.value, **close)


def uneven(words: int = 7) -> Forest:
    """Return a sentence with scores of its own for labels over spans."""
    scores = 2 * np.random.default_rng(1).normal(size=(words + 1, words + 1, 2))
    return Forest(toy().grammar, ["a"] * words, span_scores=scores)


def test_bounds_prove_the_value_of_the_chart() -> None:
    forest = uneven()
    truth = parsing.k_best(forest, 3)[2].tree
    for where, margin in ((None, 1.0), (count("M") == 0, 9.0), (count("M") >= 3, 9.0)):
        loss, options = losses.FBeta(truth), {"where": where, "margin": margin}
        full = parsing.loss_augmented(forest, loss, "slack", prune=False, **options)
        fast = parsing.loss_augmented(forest, loss, "slack", strategy="bounds", **options)
        assert fast.value == full.value and fast.tree == full.tree
        assert isinstance(full.certificate, parsing.TreeCertificate)
        proof = fast.certificate
        assert isinstance(proof, parsing.TreeBoundsCertificate) and proof.optimal and proof.parts
        assert proof.counted[:2] == ("tp", "fp") and len(proof.parts[0].prices) == len(proof.counted)
        assert "no tree has score" in str(proof) and "all such trees were examined" in str(proof)
        assert f"over the chart of 7 words, of {readable_count(forest.price.operations)}" in str(proof)
    wide = parsing.loss_augmented_path(forest, losses.FBeta(truth), 0, 1, "slack", strategy="bounds").at(0.5)
    endless = parsing.loss_augmented_path(forest, losses.FBeta(truth), 0, scaling="slack").at(0.5)
    assert endless.value == pytest.approx(wide.value) and "with this tally" in wide.explain()
    assert isinstance(wide.certificate, parsing.TreeBoundsCertificate)
    assert isinstance(endless.certificate, parsing.TreeCertificate)


def test_a_limit_tells_what_is_known() -> None:
    forest = uneven(24)
    loss = losses.FBeta(parsing.k_best(forest, 40)[39].tree)
    best = parsing.loss_augmented(forest, loss, "slack", strategy="full")
    limit = 1.5 * forest.price.operations
    for strategy in ("bounds", "auto"):
        with pytest.raises(tt.BudgetError, match="no tree has a value above") as raised:
            parsing.loss_augmented(forest, loss, "slack", strategy=strategy, operation_limit=limit)
        assert raised.value.bound >= best.value >= raised.value.best.value
        known = raised.value.best
        assert known.certificate.gap == pytest.approx(raised.value.bound - known.value)
        assert forest.score(known.tree) == pytest.approx(known.score)


def test_a_limit_with_the_loss_in_the_score() -> None:
    """Bound and best tree are about values, not about scores that contain the loss."""
    forest, where = uneven(12), (count("M") >= 1) & (count("M") <= 3)
    truth, seen = parsing.k_best(forest, 5)[4].tree, 0
    for loss in (losses.Recall(truth), losses.FalsePositives(truth)):
        best = parsing.loss_augmented(forest, loss, margin=9.0, where=where, strategy="full")
        for passes in (1, 2, 3, 4, 5):
            options = {"strategy": "bounds", "operation_limit": passes * forest.price.operations}
            try:
                parsing.loss_augmented(forest, loss, margin=9.0, where=where, **options)
            except tt.BudgetError as error:
                assert error.bound >= best.value - 1e-9 and f"above {error.bound:.10g}" in str(error)
                if error.best is not None:
                    check_known(error.best, error.bound, loss, best)
                    seen += 1
    assert seen


def check_known(
    found: parsing.AugmentedParse, bound: float, loss: losses.Loss, best: parsing.AugmentedParse
) -> None:
    assert found.loss == loss(found.tree) and found.truth_score == best.truth_score
    assert found.value == pytest.approx(9 * found.loss + found.score - found.truth_score)
    assert found.value <= best.value + 1e-9 and not found.certificate.optimal
    assert found.certificate.gap == pytest.approx(bound - found.value)


def test_folded_losses_cost_no_tally() -> None:
    forest = toy(6)
    truth = forest.best().tree
    for loss in (losses.Recall(truth), losses.FalsePositives(truth), losses.CrossingBrackets(truth)):
        assert parsing.loss_augmented(forest, loss).certificate.price.tallies == 1
        bounded = parsing.loss_augmented(forest, loss, where=count("M") <= 1, strategy="full")
        assert bounded.certificate.price.tallies == 2 and bounded.tally[-1] <= 1
        assert bounded.certificate.claim == "no tree that satisfies 'count_M <= 1' has a higher value"
        assert bounded.certificate.tally == bounded.tally._asdict()


def test_losses_follow_their_definition() -> None:
    truth = parse_tree("(S (X (X (a a) (b b))) (c c))")  # X twice over the same words
    other = parse_tree("(S (a a) (X (b b) (c c)))")
    same = parse_tree("(S (X (a a) (b b)) (c c))")
    assert losses.FBeta(truth)(other) == pytest.approx(1 - 2 * 1 / (3 + 2))
    assert losses.FBeta(truth)(same) == pytest.approx(1 - 2 * 2 / (3 + 2))
    assert losses.Precision(truth)(other) == pytest.approx(1 / 2)
    assert losses.Recall(truth)(other) == pytest.approx(2 / 3)
    assert losses.FalsePositives(truth)(other) == 1.0
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


def test_what_is_no_loss_of_trees() -> None:
    forest = toy()
    with pytest.raises(tt.ModelError, match="expected a loss bound to a tree"):
        parsing.loss_augmented(forest, losses.FBeta([1, 0]))
    with pytest.raises(tt.ModelError, match="loss of trees such as"):
        parsing.loss_augmented(forest, losses.HammingDistance(forest.best().tree))
    with pytest.raises(tt.ModelError, match="the truth scores -inf"):
        truth = parse_tree("(N (a a) (a a) (a a) (a a) (a a))")
        parsing.loss_augmented(forest, losses.FBeta(truth))
    with pytest.raises(tt.ModelError, match="margins must satisfy"):
        parsing.loss_augmented_path(forest, losses.FBeta(forest.best().tree), 2, 1)
