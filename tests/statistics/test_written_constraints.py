"""Constraints given as strings: the same answers as the constraints they describe."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import generators, models
from treebanks import random_sentence

import tallytree as tt
from tallytree import losses, parsing

MODEL = tt.Model.chain(np.random.default_rng(0).normal(size=(6, 3)), np.eye(3), states=["O", "B-NP", "I"])
A, B = tt.count(state="B-NP", name="a"), tt.count(state="I", name="b")
TEXT, CONSTRAINT = "a == 2 and (b >= 1 or a > 7)", (A == 2) & ((B >= 1) | (A > 7))

QUESTIONS = {
    "solve": lambda where: tt.solve(MODEL, [A, B], where=where).explain(),
    "solve, of an iterator": lambda where: tt.solve(MODEL, iter([A, B]), where=where).explain(),
    "plan": lambda where: str(tt.plan(MODEL, [A, B], where=where)),
    "k_best": lambda where: [s.explain() for s in tt.k_best(MODEL, 3, [A, B], where=where)],
    "iter_best": lambda where: [s.labels.tolist() for s in tt.iter_best(MODEL, [A, B], where=where)],
    "profile": lambda where: tt.profile(MODEL, [A, B]).best(where=where).explain(),
    "top": lambda where: [s.tally for s in tt.profile(MODEL, [A, B]).top(3, where=where)],
    "rows_where": lambda where: tt.profile(MODEL, [A, B]).rows_where(where).tolist(),
    "exclude": lambda where: tt.exclude(MODEL, [[0] * 6], [A, B], where=where).explain(),
    "exclude by statistics": lambda where: tt.exclude(
        MODEL, [[0] * 6], iter([A, B]), where=where, method="statistics"
    ).explain(),
    "solve_batch": lambda where: [s.tally for s in tt.solve_batch([MODEL] * 2, [A, B], where=where)],
    "solve_batch, one each": lambda where: [
        s.tally for s in tt.solve_batch([MODEL] * 2, [A, B], where=[where, where])
    ],
}


@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_a_text_asks_what_the_constraint_asks(question):
    assert question(TEXT) == question(CONSTRAINT)


def test_relax_takes_a_text():
    assert tt.relax(MODEL, [A], where="a <= 1").upper_bound == tt.relax(MODEL, where=A <= 1).upper_bound


def test_a_loss_is_asked_by_the_names_of_what_it_counts():
    loss = losses.FBeta([0, 1, 1, 0, 2, 0])
    name = loss.on(MODEL).reduce(MODEL).statistics[0].name
    found = tt.loss_augmented(MODEL, loss, where=f"{name} == 1")
    assert getattr(found.tally, name) == 1
    assert tt.loss_augmented_batch([MODEL], [loss], where=f"{name} == 1")[0].value == found.value


def test_trees_are_asked_by_text():
    forest = random_sentence(np.random.default_rng(3)).forest
    nodes = parsing.count(name="nodes")
    few = parsing.profile(forest, [nodes]).best().tally[0]
    text = parsing.solve(forest, [nodes], where=f"nodes <= {few}")
    assert text.tree == parsing.solve(forest, [nodes], where=nodes <= few).tree


@given(models(), generators(), st.sampled_from(["<=", ">=", "==", "!="]), st.integers(-3, 6))
def test_texts_agree_with_all_labellings(model, rng, relation, bound):
    (one,) = tt.testing.random_statistics(rng, model, count=1)
    one = one.named("one")
    where = {"<=": one <= bound, ">=": one >= bound, "==": one == bound, "!=": one != bound}[relation]
    table = tt.testing.brute_force(model, [one])
    try:
        wanted = table.best(where=where).value
    except tt.InfeasibleError:
        wanted = None
    if wanted is None or wanted == -np.inf:
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, [one], where=f"one {relation} {bound}")
    else:
        assert np.isclose(tt.solve(model, [one], where=f"one {relation} {bound}").score, wanted)


REFUSED = [
    ([], "a == 2", r"where='a == 2' uses statistics by name, but none are given; pass statistics="),
    ([A], "a = 2", r"'=' has no meaning in a formula; write =="),
    ([A], "a", "where must be a condition, such as ones >= 2; got 'a'"),
    (
        [A],
        "aa > 1",
        "where uses 'aa', which is neither a statistic nor a parameter; did you mean 'a'|available are a",
    ),
    ([A], "B-NP >= 2", "In a formula, - means minus; quote the name B-NP: 'B-NP'"),
    ([A, B.named("b")], "a-b >= 1 and c >= 2", "where uses 'c', which is neither .*; available are a, b$"),
    ([A, B.named("a")], "a > 1", "uses 'a', but two statistics have this name; rename one"),
    ([A], "__import__('os')", "'__import__' is not a function"),
    ([A], "", "expected a number, a name or '\\(', got the end"),
]


@pytest.mark.parametrize(("statistics", "text", "message"), REFUSED, ids=[text for _, text, _ in REFUSED])
def test_what_is_no_condition_on_these_statistics_is_refused(statistics, text, message):
    with pytest.raises(tt.ModelError, match=message):
        tt.solve(MODEL, statistics, where=text)


def test_a_text_beside_a_constraint_is_told_why_it_is_refused():
    with pytest.raises(tt.ModelError, match="A string is accepted only as where=, with the statistics"):
        (A >= 2) & "b > 1"


@pytest.mark.parametrize("method", ["ranking", "statistics"])
@pytest.mark.parametrize("where", ["a == 2", A == 2])
def test_exclude_takes_one_statistic_by_itself_as_solve_does(method, where):
    found = tt.exclude(MODEL, [[0] * 6], A, where=where, method=method)
    assert found.tally == (2,)
    assert found.score == tt.solve(MODEL, A, where=where).score


def test_names_in_quotes_are_statistics():
    first, infinite = tt.count(state="B-NP", name="B-NP"), tt.count(state="I", name="inf")
    wanted = tt.solve(MODEL, where=(first >= 2) & (infinite == 1))
    for text in ("'B-NP' >= 2 and 'inf' == 1", '"B-NP" >= 2 and "inf" == 1', "`B-NP` >= 2 and `inf` == 1"):
        assert tt.solve(MODEL, [first, infinite], where=text).score == wanted.score
    with pytest.raises(tt.ModelError, match=r"uses 'B-VP', which is neither .* did you mean 'B-NP'\?$"):
        tt.solve(MODEL, [first], where="'B-VP' >= 2")


def test_a_statistic_named_inf_is_not_read_as_infinity():
    with pytest.raises(tt.ModelError, match="'inf', the name of a statistic"):
        tt.solve(MODEL, [tt.count(state="I", name="inf")], where="inf >= 9")
    assert tt.solve(MODEL, [tt.count(state="I", name="inf"), A], where="a >= 2").tally.a >= 2


def test_constraints_in_messages_can_be_used_as_text():
    names = [tt.count(state=number, name=name) for number, name in enumerate(("B-NP", "wet days", "plain"))]
    a, b, c = names
    model = tt.Model.chain(np.zeros((3, 3)), np.zeros((3, 3)))
    for where in (a >= 9, (a >= 9) & (b + 2 * c <= 1), ((a - b >= 9) | (c != 0)) & (a >= 9)):
        with pytest.raises(tt.InfeasibleError) as error:
            tt.solve(model, where=where)
        text = str(error.value).split("satisfies '")[1].split("';")[0]
        with pytest.raises(tt.InfeasibleError) as again:
            tt.solve(model, names, where=text)
        assert str(again.value).split("';")[0] == str(error.value).split("';")[0]
