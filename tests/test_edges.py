"""Unusual arguments give an answer or a clear error, and are never misinterpreted."""

import pickle
import sys
import time

import numpy as np
import pytest
from treebanks import toy

import tallytree as tt
from tallytree import losses, parsing

FREE = np.zeros((2, 2))
MASK = np.ma.masked_equal(np.array([[0.0, 1.0], [1.0, 9.0]]), 9.0)


def chain(size: int = 3) -> tt.Model:
    return tt.Model.chain(np.arange(2.0 * size).reshape(size, 2), FREE, states=["a", "b"])


# --- tallies and caps ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("tally", [2**64 - 1, np.uint64(2**64 - 1), 2**63, -(2**63) - 1, 2**200, -(2**63)])
def test_no_labelling_has_a_tally_beyond_64_bits(tally: int) -> None:
    falls = tt.Statistic([((0,), [0, -1])], name="falls")
    for found in (tt.profile(chain(), [falls]), tt.distribution(chain(), [falls])):
        with pytest.raises(tt.InfeasibleError, match="no labelling has the"):
            found.at(tally) if isinstance(found, tt.Profile) else found.sample(tally=[tally])
    assert tt.profile(chain(), [falls]).at(np.int8(-1)).tally.falls == -1
    for wrong in (1.5, "1", None, True):
        with pytest.raises(tt.ModelError, match="consist of integers"):
            tt.profile(chain(), [falls]).at(wrong)


@pytest.mark.parametrize("cap", [1 - 2**62, 2**62 - 1, -5, 0])
def test_caps_at_the_ends_of_their_range(cap: int) -> None:
    ones = tt.count(chain(), state="b").capped(cap)
    expected = sorted({min(cap, k) for k in range(4)})
    assert tt.profile(chain(), [ones]).tallies.ravel().tolist() == expected
    for bound in (cap - 2, cap - 1, cap, cap + 1, -(2**62), 2**62, -(2**63), 2**63, 0, 3):
        for where, holds in (
            (ones <= bound, lambda k, b=bound: k <= b),
            (ones >= bound, lambda k, b=bound: k >= b),
            (ones == bound, lambda k, b=bound: k == b),
            (ones != bound, lambda k, b=bound: k != b),
        ):
            if any(holds(k) for k in expected):
                assert holds(tt.solve(chain(), where=where).tally[0])
            else:
                with pytest.raises(tt.InfeasibleError):
                    tt.solve(chain(), where=where)


# --- arrays with a mask -------------------------------------------------------------------------------------


def test_masked_entries_are_refused() -> None:
    model = tt.Model.chain(FREE, FREE)
    grammar = parsing.Grammar({("N", "N", "N"): 0.0}, {}, {"N": {"a": 0.0}}, root="N")
    labelling = np.ma.array([0, 1], mask=[False, True])
    doors = [
        lambda: tt.Model.chain(MASK, FREE),
        lambda: tt.Model.chain(FREE, MASK),
        lambda: tt.Model([2, 2], [((0, 1), MASK)]),
        lambda: tt.Model(np.ma.array([2, 3], mask=[False, True])),
        lambda: tt.Model.tree(np.ma.array([-1, 0], mask=[False, True]), FREE, FREE),
        lambda: tt.Statistic([((0, 1), MASK)]),
        lambda: model.score(labelling),
        lambda: tt.count(model, state=1).tally(labelling),
        lambda: tt.mismatches(model, labelling),
        lambda: parsing.Forest(grammar, "a a", word_scores=np.ma.array([[0.0], [1.0]], mask=[[0], [1]])),
    ]
    for door in doors:
        with pytest.raises(tt.ModelError):
            door()
    assert tt.Model.chain(np.ma.array(FREE), FREE).score([0, 0]) == 0.0, "nothing is masked here"


# --- machines and patterns ----------------------------------------------------------------------------------


class Odd(tt.Machine):
    """Returns the given value."""

    def __init__(self, start: object, step: object, stop: object) -> None:
        self.given = start, step, stop

    @property
    def start(self) -> object:
        return self.given[0]

    def step(self, state: object, label: object, at: object) -> object:
        return self.given[1]

    def stop(self, state: object) -> object:
        return self.given[2]


@pytest.mark.parametrize(
    ("start", "step", "stop", "message"),
    [
        (0, 3, (), r"Odd.step returned 3; it must return the next state and a tuple"),
        (0, (1, (), 2), (), r"Odd.step returned \(1, \(\), 2\)"),
        (0, ([1], ()), (), r"\[1\] is a state of Odd, but states must be hashable"),
        ([0], (1, ()), (), r"\[0\] is a state of Odd"),
        (0, (1, 7), (), r"Odd returned 7"),
        (0, (1, ()), 5, r"Odd returned 5"),
    ],
)
def test_what_machines_may_not_give(start: object, step: object, stop: object, message: str) -> None:
    with pytest.raises(tt.ModelError, match=message):
        tt.solve(chain(), where=tt.regular(Odd(start, step, stop)))


def test_a_list_of_outputs_will_do() -> None:
    assert tt.solve(chain(), where=tt.regular(Odd(0, [0, []], []))).score == 9.0


@pytest.mark.parametrize("pattern", ["a*", "b?", "()", "(a | b)*", "c*"])
def test_patterns_on_a_chain_without_variables(pattern: str) -> None:
    empty = tt.Model.chain(np.zeros((0, 2)), FREE, states=["a", "b"])
    assert tt.solve(empty, where=tt.regular(pattern)).labels.tolist() == []
    with pytest.raises(tt.InfeasibleError):
        tt.solve(empty, where=tt.regular("a"))


@pytest.mark.parametrize("count", ["9" * 5000, "1," + "9" * 5000, "9" * 19])
def test_counts_of_many_digits_are_refused(count: str) -> None:
    with pytest.raises(
        tt.BudgetError, match="the pattern needs more than 100,000 states; use smaller counts"
    ):
        tt.regular(f"a{{{count}}}")


@pytest.mark.parametrize("pattern", ["{{{}", "a{{{}", "a{{{}}}", "a{{1{}}}", "a{{1,{}}}", "[{}", "'{}"])
@pytest.mark.parametrize("sign", [",", "9", "("])
def test_long_patterns_that_are_no_patterns_are_refused_at_once(pattern: str, sign: str) -> None:
    began = time.monotonic()
    with pytest.raises((tt.ModelError, tt.BudgetError)) as caught:
        tt.regular(pattern.format(sign * 100_000))
    assert len(str(caught.value)) < 1000 and time.monotonic() - began < 5


# --- constraints, grammars, paths ---------------------------------------------------------------------------


def test_constraints_are_nested_a_hundred_deep() -> None:
    a, b = (tt.count(state=state, name=state) >= 0 for state in "ab")
    nested = a
    for _ in range(50):
        nested = (nested & b) | a
    assert tt.solve(chain(), where=nested).score == 9.0
    assert tt.solve(chain(), where=~~nested).score == 9.0
    assert pickle.loads(pickle.dumps(nested)).depth == 100
    with pytest.raises(tt.ModelError, match="nested more than 100 levels deep"):
        for _ in range(sys.getrecursionlimit()):
            nested = (nested & b) | a
    row = a
    for _ in range(300):
        row = row & b
    assert row.depth == 1


def test_tags_without_a_label_are_refused() -> None:
    with pytest.raises(tt.ModelError, match="the tag '@A' has no label"):
        parsing.Grammar({("S", "@A", "@A"): 0.0}, {}, {"@A": {"x": 0.0}}, root="S")
    with pytest.raises(tt.ModelError, match="the tag '@A' has no label"):
        parsing.Grammar({("S", "B", "B"): 0.0}, {}, {"B": {"x": 0.0}}, root="S", unknown={"@A": 0.0})


@pytest.mark.parametrize("loss", [losses.HammingDistance([0, 1, 1]), losses.FBeta([0, 1, 1], background=0)])
def test_paths_survive_pickling(loss: losses.Loss) -> None:
    path = tt.loss_augmented_path(chain(), loss, 0.0, 9.0)
    again = pickle.loads(pickle.dumps(path))
    assert again.breakpoints.tolist() == path.breakpoints.tolist()
    assert again.at(2.5).assignment.tolist() == path.at(2.5).assignment.tolist()
    assert [(low, high, s.value) for low, high, s in again] == [(low, high, s.value) for low, high, s in path]


@pytest.mark.parametrize("kind", [losses.FBeta, losses.ZeroOne, losses.CrossingBrackets])
def test_paths_of_trees_survive_pickling(kind: type[losses.Loss]) -> None:
    forest = toy()
    path = parsing.loss_augmented_path(forest, kind(forest.best().tree), 0.0, 5.0)
    again = pickle.loads(pickle.dumps(path))
    assert [s.tree for *_, s in again] == [s.tree for *_, s in path]
