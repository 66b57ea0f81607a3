"""Patterns as constraints."""

import re
from itertools import product
from time import perf_counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from patterns import LABELS, PATTERNS
from strategies import generators

import tallytree as tt
from tallytree.testing import brute_force, random_statistics, score_tolerance
from tallytree.transducers.automata import Labels, Nfa
from tallytree.transducers.patterns import compiled

# --- constraints --------------------------------------------------------------------------------------------


@st.composite
def small_chains(draw):
    rng = draw(generators())
    size, n = draw(st.integers(1, 4)), 3
    unary, pairwise = rng.normal(size=(size, n)), rng.normal(size=(n, n))
    if draw(st.booleans()):
        unary, pairwise = np.rint(unary), np.rint(pairwise)
    pairwise[rng.random((n, n)) < draw(st.sampled_from([0.0, 0.3]))] = -np.inf
    return tt.Model.chain(unary, pairwise, states=list(LABELS))


@given(small_chains(), PATTERNS, PATTERNS, st.sampled_from(["alone", "not", "and", "and not"]), generators())
@settings(max_examples=60, deadline=None)
def test_constraints_against_filtering(model, first, second, kind, rng):
    """All labellings are filtered by Python's own expressions; all kinds of questions agree with that."""
    everything = brute_force(model)
    texts = ["".join(model.labels(y)) for y in everything.labellings]
    one, two = (np.array([bool(re.fullmatch(p[1], text)) for text in texts]) for p in (first, second))
    a, b = tt.regular(first[0]), tt.regular(second[0])
    (own,) = random_statistics(rng, model, 1, arity=2, capped=0.5)
    bound = int(rng.integers(-1, 2))
    tallies = np.array([own.tally(y) for y in everything.labellings])
    mask, where = {
        "alone": (one, a),
        "not": (~one, ~a),
        "and": (one & two & (tallies >= bound), a & (own >= bound) & b),
        "and not": (one & ~two & (tallies <= bound), (own <= bound) & (a & ~b)),
    }[kind]
    keep = mask & (everything.scores > -np.inf)
    tolerance = score_tolerance(model)
    found = tt.k_best(model, where=where)
    got = {tuple(s.assignment.tolist()): s.score for s in found}
    wanted = {
        tuple(y): s
        for y, s in zip(everything.labellings[keep].tolist(), everything.scores[keep], strict=True)
    }
    assert len(got) == len(found) and got.keys() == wanted.keys()
    assert all(abs(got[y] - wanted[y]) <= tolerance for y in wanted)
    if not keep.any():
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, where=where)
        return
    best = tt.solve(model, where=where)
    assert abs(best.score - everything.scores[keep].max()) <= tolerance
    assert everything.best(where=where).score == everything.scores[keep].max()
    assert best.model is model
    tt.plan(model, where=where)
    assert tt.exclude(model, [], where=where).score == best.score


@given(small_chains(), PATTERNS, generators())
@settings(max_examples=25, deadline=None)
def test_losses_with_a_regular_constraint(model, pattern, rng):
    """Losses that fold, that count on the model itself and that have a machine of their own."""
    named = tt.Model.from_blocks(model.cardinalities, model.blocks, states=["O", "B-x", "I-x"])
    names = dict(zip(LABELS, ["O", "B-x", "I-x"], strict=True))
    where = tt.regular("".join(names.get(sign, sign) if sign in LABELS else sign for sign in pattern[0]))
    everything = brute_force(named)
    possible = everything.scores > -np.inf
    if not possible.any():
        return
    truth = everything.labellings[possible][int(rng.integers(possible.sum()))]
    keep = possible & [where.satisfied(named, y) for y in everything.labellings]
    count = tt.count(state="O", name="outside")
    for loss in (
        tt.losses.HammingLoss(truth),
        tt.losses.FBeta(truth, background="O"),
        tt.losses.ChunkFBeta(truth),
    ):
        bound = loss.on(named)
        costs = np.array([bound(y) for y in everything.labellings[keep]])
        difference = everything.scores[keep] - named.score(truth)
        for scaling, values in (("margin", costs + difference), ("slack", costs * (1 + difference))):
            if not keep.any():
                with pytest.raises(tt.InfeasibleError):
                    tt.loss_augmented(named, loss, scaling, where=where)
                continue
            for further in (where, where & (count >= 0)):
                found = tt.loss_augmented(named, loss, scaling, where=further)
                assert found.value == pytest.approx(values.max(), abs=1e-9)
                assert where.satisfied(named, found.assignment)
                assert found.loss == pytest.approx(bound(found.assignment), abs=1e-12)


def test_constraints_join_by_and_only():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    ones, some = tt.count(model, state=1, name="ones"), tt.regular("0* 1 .*")
    for wrong in (
        lambda: some | (ones >= 1),
        lambda: (ones >= 1) | some,
        lambda: ~(some & (ones >= 1)),
        lambda: (ones >= 5) | ((ones >= 1) & some),
    ):
        with pytest.raises(tt.ModelError, match=r"can only be joined with & .* inside a single pattern"):
            wrong()
    with pytest.raises(tt.ModelError, match=r"cannot be decided from tallies\. Pass it to solve"):
        tt.profile(model, [ones]).best(where=some)
    with pytest.raises(tt.ModelError, match="has no truth value"):
        bool(some)
    assert repr(~some & (ones >= 1)) == "(~regular('0* 1 .*')) & (ones >= 1)"
    assert ~~some == some


def test_when_nothing_is_accepted():
    model = tt.Model.chain(np.zeros((3, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.InfeasibleError, match="no labelling of 3 variables satisfies 'regular"):
        tt.solve(model, where=tt.regular("0 1"))
    ones = tt.count(model, state=1, name="ones")
    with pytest.raises(tt.InfeasibleError) as caught:
        tt.solve(model, where=tt.regular("0 .*") & (ones == 3))
    text = "satisfies '(regular('0 .*')) and (ones == 3)'; the nearest attainable tallies are (ones=2)"
    assert text in str(caught.value)
    assert tt.k_best(model, where=tt.regular("0 1")) == []
    with pytest.raises(tt.ModelError, match="relax only supports comparisons of statistics"):
        tt.relax(model, where=tt.regular("0*") & (ones >= 1))


BIO = ["O", "B-x", "I-x", "B-y", "I-y"]

BIOES = ["O", "B-x", "I-x", "E-x", "S-x"]


@pytest.mark.parametrize(
    ("labels", "ready", "pattern"),
    [
        (BIO, tt.valid_bio(), "(O | B-x I-x* | B-y I-y*)*"),
        (BIOES, tt.valid_bioes(), "(O | S-x | B-x I-x* E-x)*"),
    ],
)
def test_valid_labellings(labels, ready, pattern):
    same = tt.regular(pattern)
    for length in range(5):
        for y in product(labels, repeat=length):
            assert ready.accepts(y) == same.accepts(y)
    model = tt.Model.chain(np.random.default_rng(0).normal(size=(5, 5)), np.zeros((5, 5)), states=labels)
    assert [s.labels.tolist() for s in tt.k_best(model, 20, where=ready)] == [
        s.labels.tolist() for s in tt.k_best(model, 20, where=same)
    ]


def test_labels_of_another_scheme():
    model = tt.Model.chain(np.zeros((2, 3)), np.zeros((3, 3)), states=["O", "B-x", "S-x"])
    with pytest.raises(
        tt.ModelError, match="'S-x' is not a label of the BIO scheme: expected 'O', or a label that"
    ):
        tt.solve(model, where=tt.valid_bio())
    with pytest.raises(tt.ModelError, match=r"0 is not a label of the BIO scheme: .* give the labels names"):
        tt.solve(tt.Model.chain(np.zeros((2, 3)), np.zeros((3, 3))), where=tt.valid_bio())


def test_plans_and_explanations():
    model = tt.Model.chain(np.eye(4, 3), np.eye(3), states=["O", "B-x", "I-x"])
    valid, outside = tt.valid_bio(), tt.count(state="O", name="outside")
    found = tt.solve(model, where=valid & (outside >= 1))
    assert "no labelling that satisfies '(valid_bio()) and (outside >= 1)' has a higher" in found.explain()
    assert found.certificate.score == found.score == model.score(found.assignment)
    reduction = tt.transduce(model, valid)
    plan = tt.plan(reduction, [outside])
    again = tt.profile(reduction, [outside], plan=plan)
    assert again.scores.tolist() == tt.profile(reduction, [outside]).scores.tolist()
    assert tt.plan(model, [outside], where=valid).operations <= plan.operations


@pytest.mark.parametrize(
    "pattern",
    [
        "a{" + 20_000 * " ",
        "a{" + 5_000 * ", ",
        "a{" + 20_000 * "1",
        20_000 * " " + "{",
        "a " + 20_001 * "'",
        "'" + 20_000 * "\\a",
    ],
    ids=["spaces", "commas", "digits", "before", "quotes", "escapes"],
)
def test_invalid_patterns_are_refused_at_once(pattern):
    began = perf_counter()
    with pytest.raises(tt.ModelError, match="is invalid") as caught:
        compiled(pattern)
    assert perf_counter() - began < 2.0
    assert len(str(caught.value)) < 1000


@pytest.mark.parametrize("count", ["{" + 5_000 * "1" + "}", "{2," + 5_000 * "9" + "}", "{1000000000}"])
def test_counts_beyond_all_limits_are_refused(count):
    with pytest.raises(tt.BudgetError, match="use smaller counts in"):
        compiled("a" + count)
    assert compiled("a{" + 5_000 * "0" + "2}").run("aa") == ()


def test_many_labels_are_read_or_refused_in_time():
    began = perf_counter()
    names = [f"l{i}" for i in range(1_000)]
    either = compiled(" | ".join(f"{name} x" for name in names))
    assert either.run(["l7", "x"]) == () and either.run(["x", "l7"]) is None
    assert len(either.moves) == 4
    with pytest.raises(tt.BudgetError, match="once it is deterministic, with moves for 20,001 labels"):
        compiled(" ".join(f"l{i}" for i in range(20_000)))
    assert perf_counter() - began < 60.0


def test_a_minimisation_that_takes_too_long_is_refused(monkeypatch):
    monkeypatch.setattr("tallytree.transducers.automata._MOST_LOOKS", 100)
    with pytest.raises(tt.BudgetError, match="minimising the automaton takes too long: it has 12 states"):
        compiled("a b c d e f g h i j").run("ab")


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(
            st.integers(0, 4),
            st.none() | st.builds(Labels, st.frozensets(st.sampled_from("abc")), st.booleans()),
            st.integers(0, 4),
        ),
        max_size=12,
    ),
    st.sets(st.integers(0, 4)),
    st.lists(st.sampled_from("abcd"), max_size=6),
)
def test_determinised_automata_accept_the_same(moves, accepting, word):
    free = {s: {t for a, labels, t in moves if a == s and labels is None} for s in range(5)}

    def closed(states):
        for _ in range(5):
            states = states.union(*(free[s] for s in states))
        return states

    states = closed({0})
    for label in word:
        states = closed(
            {t for s, labels, t in moves if s in states and labels is not None and labels.has(label)}
        )
    wanted = None if states.isdisjoint(accepting) else ()
    assert Nfa(moves, 0, accepting).determinised().run(word) == wanted


def test_long_patterns_and_wide_ones_are_answered():
    """Splitting class by class took as many rounds as a pattern has labels, and one state for each branch."""
    names = [f"w{i}" for i in range(10_000)]
    began = perf_counter()
    every = compiled(f"({' | '.join(names)} | x y)*")
    assert every.run(["w3", "x", "y", "w9999"]) is not None and every.run(["x", "w1"]) is None
    counted = compiled("a{9000}")
    assert counted.run(["a"] * 9000) is not None and counted.run(["a"] * 8999) is None
    listed = compiled(" ".join(names[:900]))
    assert listed.run(names[:900]) is not None and listed.run([*names[:899], "w0"]) is None
    assert perf_counter() - began < 60, "it was refused, or took minutes"


def test_an_automaton_that_is_not_deterministic_is_a_constraint():
    automaton = Nfa([(0, Labels(frozenset("ab")), 0), (0, Labels(frozenset("b")), 1)], 0, {1})
    model = tt.Model.chain(np.array([[0.0, 1], [3, 0], [2, 1]]), np.zeros((2, 2)), states=["a", "b"])
    assert tt.solve(model, where=tt.regular(automaton)).labels.tolist() == ["b", "a", "b"]
