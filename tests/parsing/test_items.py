"""Items of charts, and plans, which depend on items but not on scores."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treebanks import Sentence, by_tally, sentences, some_statistics, toy

import tallytree as tt
from tallytree import parsing
from tallytree.parsing.items import ChartShape, live_items, max_marginals
from tallytree.parsing.plan import TreePlan, outline_of
from tallytree.parsing.profile import TreeProfile
from tallytree.planning.options import RunOptions
from tallytree.running.charts import Scores
from tallytree.solving import ask

few = settings(max_examples=40)
seeds = st.integers(0, 10**6)


def shaped(sentence: Sentence, numbers: tuple[int, ...], seed: int) -> tuple[ChartShape, Scores]:
    forest, every = sentence.forest, some_statistics(sentence, seed)
    shape = ChartShape.of(forest.grammar, len(forest.words), [every[number] for number in numbers])
    return shape, shape.compiled.levelled(forest.scores)


@given(sentences(), seeds, st.floats(0, 1))
@few
def test_items_above_a_floor_keep_all_trees_above_it(sentence: Sentence, seed: int, part: float) -> None:
    shape, scores = shaped(sentence, (0, 7), seed)
    expected = by_tally(sentence, list(shape.statistics))
    floor = float(np.quantile(list(expected.values()), part)) - 1e-9
    every, items = live_items(shape, scores, np.inf), max_marginals(shape, scores, np.inf).above(floor)
    assert not np.any(items.live & ~every.live) and items.live.sum() <= every.live.sum()
    found = TreeProfile(ask(sentence.forest, shape.statistics), TreePlan(shape, items), RunOptions())
    scored = dict(zip(map(tuple, found.tallies.tolist()), found.scores.tolist(), strict=True))
    for tally, score in expected.items():
        if score >= floor:
            assert scored[tally] == pytest.approx(score, abs=1e-9)


@given(sentences(), seeds)
@few
def test_items_are_those_with_a_max_marginal(sentence: Sentence, seed: int) -> None:
    shape, scores = shaped(sentence, (0,), seed)
    assert np.array_equal(
        live_items(shape, scores, np.inf).live, max_marginals(shape, scores, np.inf).above().live
    )


@pytest.mark.parametrize("words", [63, 64, 65, 130])
def test_items_of_long_sentences(words: int) -> None:
    forest = toy(words)
    shape = ChartShape.of(forest.grammar, words, (parsing.count("M"),))
    rng = np.random.default_rng(words)
    spans = words * (words + 1) // 2
    rules = np.broadcast_to(forest.scores.rules, (len(forest.scores.rules), spans))
    some = np.where(rng.random(rules.shape) < 0.3, -np.inf, rules)
    some[:, -1] = rules[:, -1]
    for scores in (forest.scores, Scores(forest.scores.words, some, forest.scores.chains)):
        items = live_items(shape, scores, np.inf)
        assert np.array_equal(items.live, max_marginals(shape, scores, np.inf).above().live)
        assert 0 < items.live.sum() < items.live.size


@given(sentences(), seeds)
@few
def test_an_outline_knows_fewer_convolutions_than_the_chart(sentence: Sentence, seed: int) -> None:
    shape, scores = shaped(sentence, (0, 7), seed)
    items = live_items(shape, scores, np.inf)
    for window in ({}, {0: (1, 2)}, {1: (None, 1)}):
        outline = outline_of(shape, items, window)
        least, plan = outline.least_groups, TreePlan(shape, items, window=window, outline=outline)
        assert plan.layout.operations == TreePlan(shape, items, window=window).layout.operations
        assert plan.layout.joined >= least if not window else least >= 0
        with pytest.raises(RuntimeError, match="has been used"):
            outline.layout(np.inf)


@given(sentences(), seeds)
@few
def test_prices_are_taken_off_the_scores(sentence: Sentence, seed: int) -> None:
    shape, scores = shaped(sentence, (0, 8), seed)
    prices = (0.5, -1.25)
    marginals = max_marginals(shape, scores, np.inf, prices)
    best = max(
        score - np.dot(prices, [s.tally(tree) for s in shape.statistics]) for tree, score in sentence.trees
    )
    assert marginals.best.max() == pytest.approx(best, abs=1e-9)
    assert marginals.best[1, -1, shape.compiled.rules.root] == pytest.approx(best, abs=1e-9)


@given(sentences(), seeds)
@few
def test_a_plan_serves_other_scores_with_the_same_items(sentence: Sentence, seed: int) -> None:
    shape, scores = shaped(sentence, (0, 6), seed)
    plan = TreePlan(shape, live_items(shape, scores, np.inf))
    rng, old = np.random.default_rng(seed), sentence.forest.scores
    other = sentence.forest.rescored(
        Scores(*(a + rng.normal(size=a.shape) for a in (old.words, old.rules, old.chains)))
    )
    found = tt.profile(other, shape.statistics, plan=plan)
    fresh = tt.profile(other, shape.statistics)
    assert np.array_equal(found.tallies, fresh.tallies) and np.array_equal(found.scores, fresh.scores)
    assert found.best() == fresh.best()
    assert found.plan.peak_bytes == fresh.plan.peak_bytes


def test_plans_pickle_without_scores_and_tables() -> None:
    plan = parsing.plan(toy(9), [parsing.count(), parsing.count("M", max_depth=2, name="m")])
    back = pickle.loads(pickle.dumps(plan))
    assert str(back) == str(plan) and back.steps == plan.steps
    assert np.array_equal(back.root_tallies, plan.root_tallies)


def test_items_are_looked_for_within_the_limit() -> None:
    forest = toy(9)
    shape = ChartShape.of(forest.grammar, 9, ())
    items = live_items(shape, forest.scores, np.inf)
    assert live_items(shape, forest.scores, items.peak_bytes).peak_bytes == items.peak_bytes
    with pytest.raises(tt.BudgetError, match=r"chart of 9 words needs .* the limit is .*memory_limit="):
        live_items(shape, forest.scores, items.peak_bytes - 1)
    with pytest.raises(ValueError, match="read-only"):
        items.live[0, 0, 0] = 0


def test_a_plan_is_refused_for_other_trees() -> None:
    forest, ms = toy(5), parsing.count("M", name="ms")
    plan = tt.plan(forest, [ms])
    with pytest.raises(tt.ModelError, match="made for a sentence of 5 words and 1 statistic"):
        tt.profile(toy(6), [ms], plan=plan)
    with pytest.raises(tt.ModelError, match="made for a sentence of 5 words"):
        tt.profile(forest, [], plan=plan)
    with pytest.raises(tt.ModelError, match="leaves out tallies that a constraint rules out"):
        tt.profile(forest, [ms], plan=tt.plan(forest, [ms], where=ms <= 1))
    fewer = forest.rescored(Scores(forest.scores.words, forest.scores.rules, forest.scores.chains.copy()))
    fewer.scores.chains[0] = -np.inf
    with pytest.raises(tt.ModelError, match="has trees that this plan leaves out"):
        tt.profile(forest, [ms], plan=tt.plan(fewer, [ms]))
