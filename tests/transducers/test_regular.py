"""Regular expressions over labels as constraints, compared with enumeration and Python's ``re``."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from patterns import LABELS, PATTERNS

import tallytree as tt
from tallytree.transducers.automata import MOST_STATES
from tallytree.transducers.patterns import compiled

"""The same pattern in our signs and in Python's."""


@given(PATTERNS)
@settings(max_examples=150, deadline=None)
def test_patterns_mean_what_they_mean_elsewhere(both):
    ours, theirs = both
    automaton, expression = compiled(ours), re.compile(theirs)
    for length in range(5):
        for labels in product(LABELS, repeat=length):
            assert (automaton.run(labels) is not None) == bool(expression.fullmatch("".join(labels)))


@given(PATTERNS)
@settings(max_examples=60, deadline=None)
def test_automata_are_minimal(both):
    """Any two states are told apart by some continuation, and all are reached."""
    moves, accepting = (lambda a: (a.moves, a.accepting))(compiled(both[0]))
    count = len(moves)
    apart = accepting[:, np.newaxis] != accepting
    for _ in range(count):
        for column in moves.T:
            apart |= apart[np.ix_(column, column)]
    assert (apart | np.eye(count, dtype=bool)).all()
    reached = {0}
    for _ in range(count):
        reached |= {int(q) for state in reached for q in moves[state]}
    assert len(reached) == count


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        ("(O | B-NP I-NP*)*", ["O B-NP I-NP I-NP O", ""], ["I-NP", "O I-NP"]),
        ("'a b' \"|\" \"it's\" 'it\\'s'", [("a b", "|", "it's", "it's")], [("a", "b")]),
        ("PRP$ , : `` <s>", [("PRP$", ",", ":", "``", "<s>")], []),
        ("a{2,3}b", ["a a b", "a a a b"], ["a b", "a a a a b"]),
        ("[^ 'x y' ]", ["z"], [("x y",)]),
        ("", [""], ["a"]),
        ("a||b", ["a", "", "b"], ["a b"]),
    ],
)
def test_signs(pattern, yes, no):
    wanted = tt.regular(pattern)
    for labels in yes:
        assert wanted.accepts(labels.split() if isinstance(labels, str) else labels)
    for labels in no:
        assert not wanted.accepts(labels.split() if isinstance(labels, str) else labels)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a | b", r"'\(a \| b' is invalid at its end: expected '\)'"),
        ("a)", r"before '\)': unmatched"),
        ("* a", r"before '\* a': expected a label, '.', '\(' or '\['"),
        ("a{3,2}", r"before '\{3,2\}': 3 is more than 2"),
        ("a{}", r"before '\{\}': expected a number, as in \{2\}, "),
        ("a{x}", "is invalid before '{x}'"),
        ("[]", r"before '\]': expected a label"),
        ("[a b", r"at its end: expected '\]'"),
        ("a 'b", 'before "\'b"'),
    ],
)
def test_invalid_patterns(pattern, text):
    with pytest.raises(tt.ModelError, match=text):
        tt.regular(pattern)


def test_patterns_that_remember_too_much():
    with pytest.raises(tt.BudgetError, match=f"more than {MOST_STATES:,} states once it is deterministic"):
        tt.regular(".* a .{20}")
    with pytest.raises(tt.BudgetError, match=r"use smaller counts in \{m,n\}"):
        tt.regular("((a{99}){99}){99}")
    with pytest.raises(tt.BudgetError, match="the pattern needs more than 100,000 states"):
        tt.regular("((){9999}){9999}")
    with pytest.raises(tt.ModelError, match="nested too deeply"):
        tt.regular("(" * 5000 + "a" + ")" * 5000)
    with pytest.raises(tt.ModelError, match=r"a pattern must be a string such as .* got 3"):
        tt.regular(3)


def test_labels_that_no_variable_has():
    named = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)), states=["O", "B-NP"])
    with pytest.raises(tt.ModelError, match=r"has the label 'B-N' of the pattern; .* Did you mean 'B-NP'"):
        tt.solve(named, where=tt.regular("O* B-N"))
    numbered = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match="has the label '2' of the pattern; its labels are 0, 1"):
        tt.solve(numbered, where=tt.regular("0* 2"))
