"""BLEU, ROUGE-N and ROUGE-L: definitions, other implementations, inference."""

import math
import warnings
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import generators

import tallytree as tt
from tallytree.losses.sequences import ngrams_of
from tallytree.testing import brute_force, check_loss, check_machine
from tallytree.transducers import trellis
from tallytree.transducers.ngrams import Ngrams
from tallytree.transducers.subsequences import Subsequences

WORDS = ("a", "b", "c")
END = "$"

sentences = st.lists(st.sampled_from(WORDS), max_size=7)
some_words = st.lists(st.sampled_from(WORDS), min_size=1, max_size=8)
several = st.lists(sentences, min_size=1, max_size=3)


# --- the definitions ----------------------------------------------------------------------------------------


def occurrences(gram, sentence):
    """How often a gram stands somewhere in a sentence."""
    return sum(sentence[i : i + len(gram)] == gram for i in range(len(sentence)))


@given(sentences, several, st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_rouge_n_is_the_papers(sentence, references, n):
    """The sums over all references and their n-grams, each n-gram looked for in the text."""
    above = below = loose = 0
    for reference in references:
        for gram in {tuple(reference[i : i + n]) for i in range(len(reference) - n + 1)}:
            count = occurrences(list(gram), reference)
            below += count
            above += min(count, occurrences(list(gram), sentence))
            loose += occurrences(list(gram), sentence)
    loss = tt.losses.RougeN(references, n)
    assert loss(sentence) == pytest.approx(1 - above / below if below else 0.0, abs=1e-12)
    assert loss.replace(clip=False)(sentence) == pytest.approx(max(0, 1 - loose / below) if below else 0.0)


@given(st.lists(st.sampled_from(WORDS), max_size=5), st.lists(sentences, min_size=1, max_size=2))
@settings(max_examples=100, deadline=None)
def test_rouge_l_is_the_papers(sentence, references):
    """The longest of all subsequences that the two have in common."""

    def parts(one):
        return {
            tuple(one[i] for i in chosen)
            for n in range(len(one) + 1)
            for chosen in combinations(range(len(one)), n)
        }

    for beta in (0.5, 1.0, 3.0):
        total = 0.0
        for reference in references:
            common = max(map(len, parts(sentence) & parts(reference)))
            if common:
                p, r = common / len(sentence), common / len(reference)
                total += (1 + beta**2) * p * r / (beta**2 * p + r)
            else:
                total += not sentence and not reference
        assert tt.losses.RougeL(references, beta)(sentence) == pytest.approx(
            1 - total / len(references), abs=1e-12
        )


@given(sentences, several, st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_bleu_without_clipping_is_the_papers(sentence, references, order):
    """TP_k and FP_k: k-grams that some reference has, and those that none has."""
    closest = min(map(len, references), key=lambda n: (abs(n - len(sentence)), n))
    precisions = []
    for k in range(1, order + 1):
        grams = [sentence[i : i + k] for i in range(len(sentence) - k + 1)]
        tp = sum(any(occurrences(gram, reference) for reference in references) for gram in grams)
        precisions.append(tp / len(grams) if grams else 0.0)
    if not sentence:
        expected = 0.0 if closest == 0 else 1.0
    elif min(precisions) == 0:
        expected = 1.0
    else:
        brevity = 1.0 if len(sentence) >= closest else math.exp(1 - closest / len(sentence))
        expected = 1 - brevity * math.prod(precisions) ** (1 / order)
    assert tt.losses.Bleu(references, order, clip=False)(sentence) == pytest.approx(expected, abs=1e-12)


# --- the well-known implementations -------------------------------------------------------------------------


@given(some_words, st.lists(some_words, min_size=1, max_size=3), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_bleu_agrees_with_sacrebleu(sentence, references, order):
    metrics = pytest.importorskip("sacrebleu.metrics")
    bleu = metrics.BLEU(smooth_method="none", tokenize="none", max_ngram_order=order, effective_order=False)
    score = bleu.sentence_score(" ".join(sentence), list(map(" ".join, references))).score / 100
    assert 1 - tt.losses.Bleu(references, order)(sentence) == pytest.approx(score, abs=1e-9)


@given(some_words, st.lists(some_words, min_size=1, max_size=3), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_bleu_agrees_with_nltk(sentence, references, order):
    bleu_score = pytest.importorskip("nltk.translate.bleu_score")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns where a precision is 0
        score = bleu_score.sentence_bleu(references, sentence, weights=(1 / order,) * order)
    assert 1 - tt.losses.Bleu(references, order)(sentence) == pytest.approx(score, abs=1e-9)


@given(some_words, some_words, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_rouge_agrees_with_rouge_score(sentence, reference, n):
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")

    class Words:
        def tokenize(self, text):
            return text.split()

    scorer = rouge_scorer.RougeScorer([f"rouge{n}", "rougeL"], tokenizer=Words())
    scores = scorer.score(" ".join(reference), " ".join(sentence))
    assert 1 - tt.losses.RougeL(reference)(sentence) == pytest.approx(scores["rougeL"].fmeasure, abs=1e-12)
    if len(reference) >= n:  # with nothing to recall, our loss is 0 and their recall is 0
        assert 1 - tt.losses.RougeN(reference, n)(sentence) == pytest.approx(
            scores[f"rouge{n}"].recall, abs=1e-12
        )


# --- inference ----------------------------------------------------------------------------------------------

LOSSES = [
    lambda refs, end: tt.losses.Bleu(refs, 2, end=end),
    lambda refs, end: tt.losses.Bleu(refs, 3, clip=False, end=end),
    lambda refs, end: tt.losses.RougeN(refs, 1, end=end),
    lambda refs, end: tt.losses.RougeN(refs, 2, end=end),
    lambda refs, end: tt.losses.RougeN(refs, 2, clip=False, end=end),
    lambda refs, end: tt.losses.RougeL(refs, 2.0, end=end),
]
KINDS = ["bleu", "bleu-loose", "rouge1", "rouge2", "rouge2-loose", "rougeL"]


def chain(rng, size, ties, end, forbid):
    labels = [*WORDS[:2], END] if end else list(WORDS)
    unary, pairwise = rng.normal(size=(size, 3)), rng.normal(size=(3, 3))
    if ties:
        unary, pairwise = np.rint(unary), np.rint(pairwise)
    if end and forbid:
        pairwise[2, :2] = -np.inf
    return tt.Model.chain(unary, pairwise, states=labels)


@pytest.mark.parametrize("make", LOSSES, ids=KINDS)
@given(rng=generators(), size=st.integers(1, 4), ties=st.booleans(), end=st.booleans(), data=st.data())
@settings(max_examples=12, deadline=None)
def test_the_contract_of_losses(make, rng, size, ties, end, data):
    """All labellings; with an end label, where the model itself lets only end labels follow it."""
    model = chain(rng, size, ties, end, forbid=True)
    first = st.lists(st.sampled_from(WORDS[:2]), min_size=0 if end else size, max_size=size)
    references = [data.draw(first), *data.draw(st.lists(sentences, max_size=1))]
    check_loss(make(references, END if end else None), model, margins=(0.5, 1.0))


@pytest.mark.parametrize("references", [["aaba"], ["ab", "aabb"], ["", "bbbb"]], ids=str)
@pytest.mark.parametrize("make", LOSSES, ids=KINDS)
def test_sentences_shorter_than_their_references(make, references):
    """All sentences of up to four words: brevity, clipping and the closest reference all matter."""
    model = chain(np.random.default_rng(0), 4, False, end=True, forbid=True)
    check_loss(make(list(map(list, references)), END), model, margins=(1.0,))


@pytest.mark.parametrize("make", LOSSES, ids=KINDS)
@given(rng=generators(), size=st.integers(1, 4), data=st.data())
@settings(max_examples=8, deadline=None)
def test_after_the_end_there_is_nothing_else(make, rng, size, data):
    model = chain(rng, size, False, end=True, forbid=False)
    loss = make([data.draw(st.lists(st.sampled_from(WORDS[:2]), max_size=size))], END)
    everything = brute_force(model)
    labels = ["".join(model.labels(y)) for y in everything.labellings]
    keep = np.array([END not in one.rstrip(END) for one in labels])
    bound = loss.on(model)
    costs = np.array([bound(y) for y in everything.labellings[keep]])
    difference = everything.scores[keep] - model.score(bound.anchor(model))
    for scaling, values in (("margin", costs + difference), ("slack", costs * (1 + difference))):
        found = tt.loss_augmented(model, loss, scaling)
        assert found.value == pytest.approx(values.max(), abs=1e-9)
        assert END not in "".join(found.labels).rstrip(END)
    reduction = bound.reduce(model)
    ranked = tt.k_best(reduction)
    assert len({tuple(s.assignment) for s in ranked}) == len(ranked) == keep.sum()


@given(generators(), st.integers(1, 3), st.booleans())
@settings(max_examples=20, deadline=None)
def test_the_machines_keep_the_contract(rng, size, end):
    model = chain(rng, size, True, end, forbid=False)
    labels = [model.states[i] for i in range(2)]
    grams = {tuple(rng.choice(labels, size=int(rng.integers(1, 4))).tolist()) for _ in range(3)}
    worth = tuple((gram, tuple(rng.integers(-1, 3, size=2).tolist())) for gram in sorted(grams))
    check_machine(Ngrams(worth, ("g", "h"), END if end else None), model)
    references = tuple(tuple(rng.choice(labels, size=int(rng.integers(0, 5))).tolist()) for _ in range(2))
    check_machine(Subsequences(references, END if end else None), model)


@given(st.lists(st.sampled_from(WORDS), max_size=9), sentences, st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_ngrams_are_found_where_they_are(sentence, reference, n):
    grams = ngrams_of(tuple(reference), n)
    machine = Ngrams(tuple((gram, (1,)) for gram in grams), ("found",))
    assert machine.run(sentence) == (sum(occurrences(list(gram), sentence) for gram in grams),)


def test_degenerate_sentences():
    empty = tt.losses.Bleu([], end=END)
    assert empty([END, END]) == 0.0 and empty(["a", END]) == 1.0
    assert tt.losses.Bleu([["a"], []], 1, end=END)([END]) == 0.0  # the closest reference is empty, too
    assert tt.losses.Bleu(["a", "b"], 2, end=END)([END, END]) == 1.0
    assert tt.losses.Bleu(["a", "b"], 2)(["a"]) == 1.0  # 0/0 bigrams
    assert tt.losses.RougeN(["a"], 2)(["a", "b"]) == 0.0  # nothing to recall
    assert tt.losses.RougeL([[], ["a"]], end=END)([END]) == 0.5
    for loss in (empty, tt.losses.RougeN([], 2, end=END), tt.losses.RougeL([], end=END)):
        model = tt.Model.chain(np.eye(3, 2), np.array([[0, 0], [-np.inf, 0]]), states=["a", END])
        check_loss(loss, model)


def test_words_that_the_model_does_not_have():
    model = tt.Model.chain(np.eye(3), np.eye(3), states=list(WORDS))
    loss = tt.losses.RougeN([["a", "zebra", "b"], ["a", "b", "c"]], 1)
    with pytest.raises(
        tt.ModelError, match="the first reference is not a labelling of this model; pass one as truth="
    ):
        tt.loss_augmented(model, loss)
    found = tt.loss_augmented(model, loss, truth=["a", "b", "c"])
    everything = brute_force(model)
    values = [loss(model.labels(y)) + model.score(y) for y in everything.labellings]
    assert found.value == pytest.approx(max(values) - model.score(["a", "b", "c"]))
    with pytest.raises(
        tt.ModelError, match="the first reference has 1 labels, but the model has 3 variables"
    ):
        tt.loss_augmented(model, tt.losses.Bleu(["a"]))
    with pytest.raises(tt.ModelError, match="the state 'x'"):
        tt.loss_augmented(model, tt.losses.Bleu(["a"], end="x"))


def test_numbers_and_names_are_the_same_words():
    model = tt.Model.chain(np.eye(3), np.eye(3), states=list(WORDS))
    for make in LOSSES:
        named, numbered = make([list("abc")], None), make([[0, 1, 2]], None)
        assert tt.loss_augmented(model, named).value == tt.loss_augmented(model, numbered).value
        plain = tt.Model.chain(np.eye(3), np.eye(3))
        assert tt.loss_augmented(plain, numbered).value == tt.loss_augmented(model, named).value


def test_what_is_wrong_is_said():
    with pytest.raises(tt.ModelError, match=r"sequences of labels, such as text.split\(\); got 'the cat'"):
        tt.losses.Bleu("the cat")(["a"])
    with pytest.raises(tt.ModelError, match="one sequence of labels or several"):
        tt.losses.RougeL([["a"], "b"])(["a"])
    with pytest.raises(tt.ModelError, match="cannot be compared: one has names where the other has numbers"):
        tt.losses.Bleu(["a"])([0])
    with pytest.raises(tt.ModelError, match="max_order must be an integer of at least 1, got 0"):
        tt.losses.Bleu(["a"], max_order=0)
    with pytest.raises(tt.ModelError, match=r"n must be an integer of at least 1, got 1\.5"):
        tt.losses.RougeN(["a"], 1.5)
    with pytest.raises(tt.ModelError, match=r"beta must be a number from 1e-06 to 1e\+06, got 0"):
        tt.losses.RougeL(["a"], 0)
    with pytest.raises(tt.ModelError, match="has no truth yet"):
        tt.losses.Bleu()(["a"])


def test_clipping_beyond_the_budget_says_what_to_do():
    words = [f"w{i}" for i in range(12)]
    model = tt.Model.chain(np.zeros((12, 12)), np.zeros((12, 12)), states=words)
    for loss, text in (
        (tt.losses.Bleu(words), "clip=False counts all n-grams of one length together"),
        (tt.losses.RougeN(words, 1), "clip=False counts all n-grams together"),
    ):
        with pytest.raises(tt.BudgetError, match=text):
            tt.loss_augmented(model, loss, memory_limit=1e5, strategy="full")
        tt.loss_augmented(model, loss.replace(clip=False), memory_limit=1e8)


def test_a_large_vocabulary_needs_few_more_states():
    """One state for each n-gram that may just have been completed, and no clique of n words."""
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(20, 150)), rng.normal(size=(150, 150)))
    loss = tt.losses.Bleu(rng.permutation(150)[:20].tolist(), 3, clip=False)
    reduction = loss.on(model).reduce(model)
    assert reduction.model.cardinalities.max() <= 150 + 19 + 18
    best = tt.profile(reduction, reduction.statistics[:1]).best()
    assert best.score == pytest.approx(tt.solve(model).score)
    assert best.tally[0] == sum(word in loss.truth for word in best.assignment.tolist())


def test_too_many_states_say_what_to_do(monkeypatch):
    monkeypatch.setattr(trellis, "MOST_MOVES", 2_000)
    model = tt.Model.chain(np.zeros((9, 9)), np.zeros((9, 9)))
    with pytest.raises(
        tt.BudgetError, match=r"Subsequences reaches .* use shorter ones, or RougeN\(clip=False\)"
    ):
        tt.loss_augmented(model, tt.losses.RougeL([*range(9)]), strategy="full")
    tt.loss_augmented(model, tt.losses.RougeN([*range(9)], clip=False))


def test_references_of_several_lengths():
    """Every length and every order, with two references of different lengths."""
    references = [list("ab"), list("abab")]
    for order, clip in product((1, 2), (True, False)):
        loss = tt.losses.Bleu(references, order, clip=clip)
        for size in range(5):
            for y in product("ab", repeat=size):
                assert 0.0 <= loss(y) <= 1.0
                assert (loss(y) == 0.0) >= (list(y) in references)
