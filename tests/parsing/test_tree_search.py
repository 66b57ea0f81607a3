"""The best tree under a constraint by bounds, compared with enumeration and with full charts."""

import pickle
from copy import copy
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from interrupts import interrupt_often
from treebanks import Sentence, best_scores, holds, sentences, some_constraints, toy

import tallytree as tt
from tallytree import parsing
from tallytree.bounding import Question, bounded
from tallytree.parsing import count
from tallytree.parsing.bounded import chart_searcher
from tallytree.planning.options import Options, PlanOptions
from tallytree.running.bounds import Search, Wanted
from tallytree.running.chart_bounds import ChartSearcher, labelling_of, steps_of
from tallytree.solving import ask


@pytest.mark.sanitize
@given(sentence=sentences(), number=st.integers(0, 8), seed=st.integers(0, 2**16))
def test_the_best_tree_of_enumeration(sentence: Sentence, number: int, seed: int) -> None:
    where = some_constraints(sentence, seed)[number]
    scores = [score for tree, score in best_scores(sentence).items() if holds(where, tree)]
    if not scores or max(scores) == -np.inf:
        with pytest.raises(tt.InfeasibleError):
            tt.solve(sentence.forest, where=where, strategy="bounds")
        return
    found = tt.solve(sentence.forest, where=where, strategy="bounds")
    assert found.score == pytest.approx(max(scores), abs=1e-9) and holds(where, found.tree)
    if isinstance(found.certificate, parsing.TreeBoundsCertificate):
        tt.testing.check_bounds(found)


def forest(words: int, seed: int) -> parsing.Forest:
    """Return a sentence of a toy grammar with scores of its own for every rule over every span."""
    plain = toy(words)
    rng = np.random.default_rng(seed)
    rules = rng.normal(size=(words + 1, words + 1, len(plain.grammar.binary)))
    return parsing.Forest(plain.grammar, plain.words, binary_scores=rules)


@pytest.mark.parametrize("seed", range(4))
def test_longer_sentences(seed: int) -> None:
    trees = forest(14, seed)
    for where in (count("M") == 3, count("M") <= 1, (count("M") == 4) & (count("N") <= 24)):
        full, found = (tt.solve(trees, where=where, strategy=s) for s in ("full", "bounds"))
        assert found.score == pytest.approx(full.score) and found.tally == full.tally
        assert isinstance(found.certificate, parsing.TreeBoundsCertificate)
        assert "all such trees were examined" in found.explain()


def test_fewer_operations() -> None:
    trees = forest(24, 1)
    where = count("M") == 6
    whole = tt.plan(trees, where=where)
    table = bounded(ask(trees, (), where), Question(), Options(strategy="bounds"))
    assert table.finished and table.found.work < whole.operations / 2
    found = tt.solve(trees, where=where, strategy="bounds")
    assert found.score == pytest.approx(tt.solve(trees, where=count("M") == 6, strategy="full").score)


def test_where_the_chart_does_not_fit() -> None:
    trees = forest(40, 2)
    where = count("M") == 8
    limit = 0.5 * tt.plan(trees, where=where).peak_bytes
    with pytest.raises(tt.BudgetError):
        tt.solve(trees, where=where, strategy="full", memory_limit=limit)
    found = tt.solve(trees, where=where, memory_limit=limit)
    assert found.score == pytest.approx(tt.solve(trees, where=where, strategy="full").score)


def test_a_limit_of_operations() -> None:
    trees = forest(20, 3)
    where = count("M") == 5
    best = tt.solve(trees, where=where, strategy="full")
    with pytest.raises(tt.BudgetError, match="the search by bounds reached its limit: no tree") as raised:
        tt.solve(trees, where=where, strategy="bounds", operation_limit=1.5 * trees.price.operations)
    assert raised.value.bound >= best.score
    known = raised.value.best
    assert known is None or (known.score <= best.score and not known.certificate.optimal)


def searcher(trees: parsing.Forest) -> ChartSearcher:
    return chart_searcher(ask(trees, [count("M")]), PlanOptions())


def best_of_five(search: ChartSearcher) -> tuple[float, list[int]]:
    found = search(Search(Wanted([5], [5])))
    assert found is not None and found.finished
    return found.value, found.labelling(0).tolist()


def test_a_search_is_interrupted_and_asked_again() -> None:
    search = searcher(forest(16, 4))
    expected = best_of_five(search)
    interrupt_often(lambda: search, best_of_five, lambda one: best_of_five(one) == expected)


def test_the_rules_that_a_band_keeps_are_part_of_its_work() -> None:
    """All trees tie and have few tallies: most of the work is to find the rules, not to combine tallies."""
    words = 24
    rules = {("S", "X", "X"): 0.0, ("S", "B", "X"): -1.0, ("B", "X", "X"): 0.0, ("X", "X", "X"): 0.0}
    trees = parsing.Forest(parsing.Grammar(rules, {}, {"X": {"a": 0.0}}, root="S"), ["a"] * words)
    search = chart_searcher(ask(trees, [count("B")]), PlanOptions())
    found = search(Search(Wanted([1], [1])))
    assert found is not None and found.finished and found.value == -1
    band = found.work - len(found.passes) * trees.price.operations
    kept = sum((words - width + 1) * (width - 1) for width in range(2, words))
    assert band > 4 * kept * search.evaluation_work


def test_a_search_starts_from_derivations_alone() -> None:
    trees = forest(6, 5)
    search, wanted = searcher(trees), Wanted([1], [1])
    score, steps = trees.derived(tt.solve(trees, where=count("M") == 1, strategy="full").tree)
    start = labelling_of(steps, 6)
    found = search(Search(wanted, [start]))
    assert found.value == pytest.approx(score) and steps_of(start).tolist() == steps.tolist()
    wrong = [start[:-5], np.where(start == 1, 0, start), np.roll(start, 5), np.full_like(start, 10**9)]
    changed = start.copy()
    changed[1] += 1  # another rule
    for one in (*wrong, changed):
        with pytest.raises(ValueError, match="no derivation of a tree"):
            search(Search(wanted, [one]))


def test_a_certificate_that_is_wrong_is_found_out() -> None:
    trees = forest(9, 6)
    found = tt.solve(trees, where=count("M") == 3, strategy="bounds")
    tt.testing.check_bounds(found)
    back = pickle.loads(pickle.dumps(found))
    assert back == found and back.certificate == found.certificate
    with pytest.raises(AssertionError, match="not found by bounds, or was read from a file"):
        tt.testing.check_bounds(back)
    evidence = copy(found.certificate.evidence)
    evidence.parts = tuple(part._replace(most=part.most - 1) for part in evidence.parts)
    evidence.passes = ()
    with pytest.raises(AssertionError, match="the certificate says"):
        tt.testing.check_bounds(replace(found, certificate=replace(found.certificate, evidence=evidence)))
