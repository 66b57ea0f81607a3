"""Distributions of statistics of trees, compared with the enumeration of all derivations."""

import pickle
from collections import Counter, defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from treebanks import Sentence, random_sentence, sentences, some_statistics, toy

import tallytree as tt
from tallytree import parsing
from tallytree.parsing import Grammar, Tree, TreeStatistic, count

close = {"rtol": 1e-9, "atol": 1e-9}
few = settings(max_examples=30)
chosen = st.lists(st.integers(0, 12), max_size=2, unique=True)


def by_tally(sentence: Sentence, statistics: list[TreeStatistic]) -> dict[tuple[int, ...], dict[Tree, float]]:
    """The weight of every tree, by its tally: the sum over its derivations."""
    weights: dict[tuple[int, ...], dict[Tree, float]] = defaultdict(lambda: defaultdict(float))
    for tree, score in sentence.trees:
        weights[tuple(s.tally(tree) for s in statistics)][tree] += np.exp(score)
    return weights


@given(sentences(), chosen, st.integers(0, 99))
@few
def test_probabilities(sentence: Sentence, numbers: list[int], seed: int) -> None:
    statistics = [some_statistics(sentence, seed)[i] for i in numbers]
    weights = by_tally(sentence, statistics)
    sums = {tally: sum(trees.values()) for tally, trees in weights.items()}
    total = sum(sums.values())
    found = parsing.distribution(sentence.forest, statistics)
    assert list(map(tuple, found.tallies.tolist())) == sorted(sums)
    np.testing.assert_allclose(found.log_partitions, [np.log(sums[t]) for t in sorted(sums)], **close)
    np.testing.assert_allclose(found.probabilities, [sums[t] / total for t in sorted(sums)], **close)
    np.testing.assert_allclose(found.log_partition, sentence.forest.log_partition(), **close)
    means = [sum(p * t[i] for t, p in sums.items()) / total for i in range(len(statistics))]
    np.testing.assert_allclose(found.mean(), means, **close)
    for i, name in enumerate(s.name for s in statistics):
        marginal = found.marginal(name)
        assert found.marginal(i) == marginal and list(marginal) == sorted({t[i] for t in sums})
        for value, share in marginal.items():
            assert share == pytest.approx(sum(p for t, p in sums.items() if t[i] == value) / total)


@given(sentences(), chosen, st.integers(0, 99))
@few
def test_expectations_given_a_tally(sentence: Sentence, numbers: list[int], seed: int) -> None:
    statistics = [some_statistics(sentence, seed)[i] for i in numbers]
    found = parsing.distribution(sentence.forest, statistics)
    weights = by_tally(sentence, statistics)
    tally = tuple(found.tallies[seed % len(found.tallies)].tolist())
    got, labels = found.expectations(tally), sentence.forest.grammar.labels
    total = sum(weights[tally].values())
    expected: dict[tuple[str, int, int], float] = defaultdict(float)
    tags: Counter[tuple[int, str]] = Counter()
    for tree, weight in weights[tally].items():
        for constituent, often in tree.constituents().items():
            expected[constituent] += weight / total * often
        for i, tag in enumerate(tree.tags):
            tags[i, tag] += weight / total
    for (start, end, label), value in np.ndenumerate(got.constituents):
        assert value == pytest.approx(expected.get((labels[label], start, end), 0.0), abs=1e-9)
    for (i, symbol), value in np.ndenumerate(got.tags):
        assert value == pytest.approx(tags[i, sentence.forest.grammar.symbols[symbol]], abs=1e-9)


@given(sentences(), chosen, st.integers(0, 99))
@few
def test_expectations_add_up_to_those_of_all_trees(sentence: Sentence, numbers: list[int], seed: int) -> None:
    """Two ways to the same: the chart's own pass down, and conditioned on each tally in turn."""
    statistics = [some_statistics(sentence, seed)[i] for i in numbers]
    found, plain = parsing.distribution(sentence.forest, statistics), sentence.forest.expectations()
    every = found.expectations()
    for name in ("constituents", "binary", "unary", "tags"):
        parts = [getattr(found.expectations(tally), name) for tally in found.tallies.tolist()]
        mixed = sum(p * part for p, part in zip(found.probabilities, parts, strict=True))
        np.testing.assert_allclose(getattr(every, name), getattr(plain, name), **close)
        np.testing.assert_allclose(mixed, getattr(plain, name), **close)


@pytest.mark.sanitize
def test_samples_have_the_right_frequencies() -> None:
    draws = 3000
    for seed in (1, 4):
        sentence = random_sentence(np.random.default_rng(seed), trees=8)
        size = count(name="size")
        found, weights = parsing.distribution(sentence.forest, [size]), by_tally(sentence, [size])
        for tally in (None, found.tallies[int(found.probabilities.argmax())].tolist()):
            trees: Counter[Tree] = Counter()
            for part in weights.values() if tally is None else [weights[tuple(tally)]]:
                trees.update(part)
            total = sum(trees.values())
            drawn = Counter(found.sample(draws, tally=tally, rng=7))
            assert set(drawn) <= set(trees)
            for tree, weight in trees.items():
                p = weight / total
                assert abs(drawn[tree] - draws * p) <= 5 * np.sqrt(draws * p * (1 - p)) + 1


def test_samples_have_the_tally_that_was_given() -> None:
    forest = toy(8)
    ms, deep = count("M", name="ms"), count(min_depth=3, name="deep")
    found = parsing.distribution(forest, [ms, deep])
    for tally in found.tallies[:: len(found.tallies) // 9].tolist():
        for tree in found.sample(3, tally=tally, rng=0):
            assert [ms.tally(tree), deep.tally(tree)] == tally
            assert forest.score(tree) > -np.inf
    assert found.sample(rng=3) == found.sample(1, rng=3)[0]
    assert found.sample(0) == []


def test_distribution_pickles_without_its_chart() -> None:
    found = parsing.distribution(toy(9), [count("M", max_depth=2, name="m")])
    text = pickle.dumps(found)
    assert len(text) < found.plan.peak_bytes / 5
    back = pickle.loads(text)
    assert back.probabilities.tolist() == found.probabilities.tolist()
    assert back.sample(5, rng=1) == found.sample(5, rng=1)


def test_what_a_distribution_refuses() -> None:
    forest = toy()
    found = parsing.distribution(forest, [count("M", name="ms")])
    assert repr(found) == f"TreeDistribution({len(found.tallies)} tallies of (ms))"
    with pytest.raises(
        tt.InfeasibleError, match=r"no tree has the tally \(ms=40\); the nearest attainable tallies are \(ms="
    ):
        found.sample(tally=[40])
    with pytest.raises(tt.ModelError, match=r"one integer for each of \(ms\)"):
        found.expectations([1, 2])
    with pytest.raises(tt.ModelError, match="unknown statistic 'deep'; expected one of"):
        found.marginal("deep")
    with pytest.raises(
        tt.ModelError, match=r"rng must be a numpy.random.Generator, a non-negative integer seed .* got 'x'"
    ):
        found.sample(rng="x")
    with pytest.raises(tt.ModelError, match="size must be a non-negative integer"):
        found.sample(-1)
    none = Grammar({("S", "n", "v"): 0.0}, {}, {"n": {"a": 0.0}, "v": {"b": 0.0}}, root="S")
    with pytest.raises(tt.InfeasibleError, match="the distribution is not defined"):
        parsing.distribution(parsing.Forest(none, "b a"), [count()])
    plan = parsing.plan(forest, [count("M")])
    tight = parsing.distribution(forest, [count("M")], memory_limit=plan.peak_bytes + 8)
    with pytest.raises(tt.BudgetError, match=r"expectations need another .* raise memory_limit="):
        tight.expectations()


@given(sentences(), st.integers(0, 12), st.integers(0, 12), st.integers(0, 4), st.integers(0, 99))
@few
def test_given_a_constraint(sentence: Sentence, seen: int, hidden: int, bound: int, seed: int) -> None:
    every = some_statistics(sentence, seed)
    read, other = every[seen], every[hidden]
    where = (other >= bound) & (other != bound + 1)
    weights = by_tally(sentence, [read, other])
    kept = {t: trees for t, trees in weights.items() if t[1] >= bound and t[1] != bound + 1}
    if not kept:
        with pytest.raises(tt.InfeasibleError, match="no tree satisfies"):
            tt.distribution(sentence.forest, [read], where=where)
        return
    found = tt.distribution(sentence.forest, [read], where=where)
    sums: dict[int, float] = defaultdict(float)
    for tally, trees in kept.items():
        sums[tally[0]] += sum(trees.values())
    assert found.tallies.ravel().tolist() == sorted(sums)
    np.testing.assert_allclose(found.log_partitions, [np.log(sums[t]) for t in sorted(sums)], **close)
    allowed = {tree for trees in kept.values() for tree in trees}
    assert {*found.sample(6, rng=seed)} <= allowed
    tally = int(found.tallies[seed % len(found)][0])
    assert all(read.tally(tree) == tally for tree in found.sample(3, tally=tally, rng=seed))
    expected: dict[tuple[str, int, int], float] = defaultdict(float)
    for trees in kept.values():
        for tree, weight in trees.items():
            for constituent, often in tree.constituents().items():
                expected[constituent] += weight / sum(sums.values()) * often
    labels = sentence.forest.grammar.labels
    for (start, end, label), value in np.ndenumerate(found.expectations().constituents):
        assert value == pytest.approx(expected.get((labels[label], start, end), 0.0), abs=1e-9)
