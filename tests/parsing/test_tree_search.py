"""The best tree under a constraint by bounds: that of enumeration, and of whole charts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from treebanks import Sentence, best_scores, holds, sentences, some_constraints, toy

import tallytree as tt
from tallytree import parsing
from tallytree.bounding import Question, bounded
from tallytree.parsing import count
from tallytree.planning.options import Options
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
