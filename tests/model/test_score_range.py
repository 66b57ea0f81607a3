"""Scores of every supported size are exact; larger ones raise an error on input."""

from itertools import product

import numpy as np
import pytest

import tallytree as tt
from tallytree import losses, parsing
from tallytree.model.blocks import Block
from tallytree.model.pairs import LARGEST_SCORE

MOST = LARGEST_SCORE
TOO_LARGE = [np.nextafter(MOST, np.inf), 4e299, 1e308, -1e308, np.nextafter(-MOST, -np.inf)]
ZEROS = np.zeros((2, 2))


def chain(scale: float, seed: int = 0, size: int = 5) -> tt.Model:
    rng = np.random.default_rng(seed)
    unary = scale * rng.uniform(-1, 1, (size, 2))
    unary[0] = scale, -scale
    return tt.Model.chain(unary, scale * rng.uniform(-1, 1, (2, 2)))


@pytest.mark.parametrize("score", TOO_LARGE)
def test_larger_scores_are_refused_at_every_door(score: float) -> None:
    table = np.array([[0.0, score], [-np.inf, 0.0]])
    grammar = parsing.Grammar({("N", "N", "N"): 0.0}, {}, {"N": {"a": 0.0}}, root="N")
    doors = [
        lambda: tt.Model([2, 2], [((0, 1), table)]),
        lambda: tt.Model.chain(table, ZEROS),
        lambda: tt.Model.chain(ZEROS, table),
        lambda: tt.Model.tree([-1, 0], table, ZEROS),
        lambda: tt.Model.grid(table[None], ZEROS, ZEROS),
        lambda: tt.Model.from_blocks([2, 2], [Block(np.array([[0, 1]]), table[None])]),
        lambda: parsing.Grammar({("N", "N", "N"): score}, {}, {"N": {"a": 0.0}}, root="N"),
        lambda: parsing.Forest(grammar, "a a", span_scores=np.full((3, 3, 1), score)),
        lambda: parsing.Forest(grammar, "a a", word_scores=np.full((2, 1), score)),
    ]
    for door in doors:
        with pytest.raises(tt.ModelError, match=r"1e\+290"):
            door()


def test_multiples_of_statistics_are_checked_too() -> None:
    model = chain(1.0)
    loss = losses.HammingDistance(model.encode([0] * 5))
    assert np.isfinite(tt.loss_augmented(model, loss, margin=1e280).value)
    with pytest.raises(tt.ModelError, match=r"1e\+290"):
        tt.loss_augmented(model, loss, margin=1e300)


@pytest.mark.parametrize("scale", [MOST, 1e200, 1e16, 1e-300])
@pytest.mark.parametrize("seed", range(4))
def test_answers_of_extreme_scores(scale: float, seed: int) -> None:
    model = chain(scale, seed)
    ones = tt.count(model, state=1)
    labellings = np.array(list(product(range(2), repeat=5)))
    scores, counts = np.array([model.score(y) for y in labellings]), labellings.sum(axis=1)
    expected = [scores[counts == k].max() for k in range(6)]
    profile = tt.profile(model, [ones])
    np.testing.assert_allclose(profile.scores, expected, rtol=1e-12)
    assert tt.solve(model, where=ones == 2).score == pytest.approx(expected[2], rel=1e-12)
    ranked = [found.score for found in tt.k_best(model, 40)]
    np.testing.assert_allclose(ranked, np.sort(scores)[::-1], rtol=1e-12)
    if scale < MOST:  # prices are added to the scores
        relaxed = tt.relax(model, where=(ones >= 2) & (ones <= 3))
        best = max(expected[2], expected[3])
        assert relaxed.upper_bound >= best - 1e-12 * scale
        assert relaxed.solution is None or relaxed.solution.score <= best + 1e-12 * scale
    fixed = model.restricted(fixed={1: 0})
    assert tt.solve(fixed).score == pytest.approx(scores[labellings[:, 1] == 0].max(), rel=1e-12)
    assert tt.solve(model, [ones], lambda s, k: s / (1 + k)).value == pytest.approx(
        max(s / (1 + k) for k, s in enumerate(expected)), rel=1e-12
    )


@pytest.mark.parametrize("shift", [0.0, 1e3, 1e7, 1e12, 1e16, 1e100, -1e16, MOST])
def test_probabilities_do_not_depend_on_what_all_scores_share(shift: float) -> None:
    """Differences that the scores can hold count, however large the scores are."""
    step = max(1.0, float(np.spacing(abs(shift))))
    unary = np.array([[0.0, -step], [-step, 0.0], [0.0, 0.0]])
    plain = tt.Model.chain(unary, ZEROS)
    moved = tt.Model.chain(unary + shift, ZEROS)
    ones = tt.count(state=1)
    expected, found = tt.distribution(plain, [ones]), tt.distribution(moved, [ones])
    np.testing.assert_allclose(found.probabilities, expected.probabilities, rtol=1e-9, atol=1e-300)
    assert found.probabilities.sum() == pytest.approx(1.0, rel=1e-12)
    for a, b in zip(found.marginals(), expected.marginals(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-300)
    assert found.log_partition == pytest.approx(expected.log_partition + 3 * shift, rel=1e-12)
    drawn, wanted = (d.sample(20, rng=1) for d in (found, expected))
    assert drawn.tolist() == wanted.tolist()
