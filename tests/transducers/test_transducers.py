"""Machines, their reductions and queries on them, compared with enumeration."""

import pickle
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import PROBABILITIES, generators, models

import tallytree as tt
from tallytree.reductions.reduction import as_reduction, meet
from tallytree.testing import (
    accepted,
    brute_force,
    check_machine,
    check_reduction,
    random_statistics,
    tally_of,
)
from tallytree.testing.problems import random_model
from tallytree.transducers import Complement, Nfa, dfa, trellis
from tallytree.transducers.encodings import transduced

NAMES = ("a", "b", "c")


@dataclass(frozen=True, eq=False)
class Tabled(tt.Machine):
    """A machine of arbitrary tables, which change with the position."""

    moves: np.ndarray  # (phases, states, labels), -1: forbidden
    given_out: np.ndarray  # (phases, states, labels, outputs)
    last: np.ndarray  # (states, outputs)
    accepting: np.ndarray

    start = 0

    @property
    def outputs(self):
        return tuple(f"o{p}" for p in range(self.last.shape[1]))

    def at(self, position):
        return position % len(self.moves)

    def step(self, state, label, at):
        a = NAMES.index(label) if isinstance(label, str) else label
        after = int(self.moves[at, state, a])
        return None if after < 0 else (after, tuple(self.given_out[at, state, a].tolist()))

    def stop(self, state):
        return tuple(self.last[state].tolist()) if self.accepting[state] else None


@st.composite
def machines(draw, outputs=None):
    rng = draw(generators())
    states, phases = draw(st.integers(1, 4)), draw(st.integers(1, 3))
    count = draw(st.integers(0, 2)) if outputs is None else outputs
    moves = rng.integers(0, states, size=(phases, states, 3))
    moves[rng.random(moves.shape) < draw(PROBABILITIES)] = -1
    return Tabled(
        moves,
        rng.integers(-1, 3, size=(*moves.shape, count)),
        rng.integers(-1, 2, size=(states, count)),
        rng.random(states) < draw(st.sampled_from([0.4, 0.8, 1.0])),
    )


@st.composite
def chains(draw, largest=4, feasible=True):
    """Draw a chain: any number of variables, ties, -inf, constants, names that differ, missing edges."""
    rng = draw(generators())
    size = draw(st.integers(0, largest))
    drawn = random_model(
        rng,
        "chain",
        variables=max(size, 1),
        states=draw(st.integers(1, 3)),
        single_state=draw(PROBABILITIES),
        forbidden=draw(PROBABILITIES),
        feasible=feasible,
        ties=draw(st.booleans()),
        constants=draw(st.integers(0, 1)),
        repeated=draw(st.integers(0, 1)),
    )
    names = [rng.permutation(NAMES)[:n].tolist() for n in drawn.cardinalities]
    named = draw(st.booleans())
    if not size:
        return tt.Model([], [((), 1.5)])
    return tt.Model.from_blocks(drawn.cardinalities, drawn.blocks, states=names if named else None)


@given(machines(), chains())
@settings(max_examples=60, deadline=None)
def test_every_accepted_labelling_is_there_once(machine, model):
    check_machine(machine, model)


@given(machines(), machines(), chains(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_products_and_one_after_the_other(first, second, model, reverse):
    both = accepted(first & second, model)
    check_machine(first & second, model)
    if not len(both.labellings):
        return
    for encodings in (("pairs", "pairs"), ("split", "pairs"), ("pairs", "split"), ("split", "split")):
        reduction = as_reduction(model)
        for machine, encoding in zip((first, second), encodings, strict=True):
            name = encoding if encoding == "split" or len(reduction.model) == len(model) else "split"
            reduction = transduced(reduction, machine, encoding=name)
        check_reduction(reduction, both)


@given(machines(outputs=0), chains())
@settings(max_examples=30, deadline=None)
def test_a_complement_accepts_the_rest(machine, model):
    check_machine(Complement(machine), model)
    some, rest = accepted(machine, model), accepted(Complement(machine), model)
    assert len(some.labellings) + len(rest.labellings) == len(brute_force(model).labellings)


@given(machines(outputs=1), chains(), st.integers(0, 2**32 - 1))
@settings(max_examples=40, deadline=None)
def test_statistics_of_the_original_go_through(machine, model, seed):
    """Objectives, constraints and states that are fixed read both kinds of statistics."""
    everything = accepted(machine, model)
    if not (everything.scores > -np.inf).any() or not len(model):
        return
    rng = np.random.default_rng(seed)
    (own,) = random_statistics(rng, model, 1, arity=2, capped=0.3)
    reduction = tt.transduce(model, machine)
    (given_out,) = reduction.statistics
    mine = tally_of(own, everything.labellings)
    variable = int(rng.integers(len(model)))
    state = int(rng.integers(model.cardinalities[variable]))

    def value(score, out, own):
        return score + 2 * np.cos(out) - own

    for fixed in ({}, {variable: state}):
        keep = everything.scores > -np.inf
        if fixed:
            keep &= everything.labellings[:, variable] == state
        bound = int(rng.integers(-2, 3))
        keep &= everything.tallies[:, 0] + mine >= bound
        constraint = given_out + own >= bound
        if not keep.any():
            with pytest.raises(tt.InfeasibleError):
                tt.solve(reduction, [given_out, own], value, where=constraint, fixed=fixed)
            continue
        best = value(everything.scores, everything.tallies[:, 0], mine)[keep].max()
        found = tt.solve(reduction, [given_out, own], value, where=constraint, fixed=fixed)
        assert found.value == pytest.approx(best, abs=1e-9)
        assert found.model.score(found.assignment) == found.score
        row = np.flatnonzero((everything.labellings == found.assignment).all(axis=1))[0]
        assert keep[row] and tuple(found.tally) == (everything.tallies[row, 0], mine[row])
        every = tt.k_best(reduction, None, [given_out, own], value, where=constraint, fixed=fixed)
        assert len({tuple(s.assignment) for s in every}) == len(every) == keep.sum()


@given(chains(feasible=True), machines(outputs=1), st.data())
@settings(max_examples=25, deadline=None)
def test_exclude_through_a_reduction(model, machine, data):
    everything = accepted(machine, model)
    possible = np.flatnonzero(everything.scores > -np.inf)
    if not len(possible):
        return
    reduction = tt.transduce(model, machine)
    count = data.draw(st.integers(0, len(possible) - 1))
    order = possible[np.argsort(-everything.scores[possible], kind="stable")]
    outputs = everything.labellings[order[:count]]
    best = everything.scores[order[count]]
    for method in ("ranking", "statistics"):
        found = tt.exclude(reduction, outputs, reduction.statistics, method=method)
        assert found.score == pytest.approx(best, abs=1e-9)
        assert not (outputs == found.assignment).all(axis=1).any()


def test_samples_are_labellings_of_the_original():
    model = tt.Model.chain(np.zeros((5, 3)), np.zeros((3, 3)), states=["O", "B-x", "I-x"])
    valid = tt.valid_bio()
    found = tt.distribution(tt.transduce(model, valid), [tt.count(state="O")])
    samples = found.sample(50, rng=0)
    assert samples.shape == (50, 5)
    assert all(valid.satisfied(model, y) for y in samples)
    one = found.sample(tally=[2], rng=0)
    assert valid.satisfied(model, one) and (one == 0).sum() == 2


def test_a_profile_of_a_reduction_survives_pickling():
    model = tt.Model.chain(np.eye(4, 3), np.eye(3), states=["O", "B-x", "I-x"])
    ones = tt.count(state="O", name="ones")
    found = tt.profile(tt.transduce(model, tt.valid_bio()), [ones])
    again = pickle.loads(pickle.dumps(found))
    assert again.at(2).labels.tolist() == found.at(2).labels.tolist()
    assert again.best(where=ones >= 3).tally == found.best(where=ones >= 3).tally


def test_states_that_no_future_tells_apart_are_merged():
    """The machine remembers the whole past, of which only the parity matters."""

    class Remembers(tt.Machine):
        outputs = ("parity",)
        start = ()

        def step(self, state, label, at):
            return (*state, label), (0,)

        def stop(self, state):
            return (sum(state) % 2,)

    unrolled = Remembers().trellis(((0, 1),) * 8)
    assert unrolled.states == [1] + [2] * 7
    check_machine(Remembers(), tt.Model.chain(np.eye(4, 2), np.eye(2)))


def test_dead_ends_are_left_out():
    """Two labels later only one state of three can still accept."""
    machine = dfa(
        {("s", "a"): "good", ("s", "b"): "bad", ("good", "a"): "good", ("bad", "b"): "bad"}, "s", ["good"]
    )
    assert machine.trellis((("a", "b"),) * 4).states == [1, 1, 1, 1]


def test_the_cheaper_encoding_is_taken():
    class Sum(tt.Machine):
        """The sum modulo five: any state goes with any label."""

        start = 0

        def step(self, state, label, at):
            return (state + label) % 5, ()

        def stop(self, state):
            return () if state else None

    class Last(Sum):
        def step(self, state, label, at):
            return label, ()

    model = tt.Model.chain(np.zeros((6, 4)), np.zeros((4, 4)))
    assert len(tt.transduce(model, Last()).model) == 6
    assert len(tt.transduce(model, Sum()).model) == 11


@pytest.mark.parametrize(
    ("model", "text"),
    [
        (tt.Model([2, 2, 2], [((0, 2), np.zeros((2, 2)))]), r"this model has a factor over \(0, 2\)"),
        (tt.Model([2, 2, 2], [((0, 1, 2), np.zeros((2, 2, 2)))]), r"a factor over \(0, 1, 2\)"),
        (
            tt.Model.grid(np.zeros((2, 2, 2)), np.eye(2), np.eye(2)),
            r"a machine needs a chain: variables 0 to 3",
        ),
    ],
)
def test_what_is_no_chain_is_refused(model, text):
    with pytest.raises(tt.ModelError, match=text):
        tt.solve(model, where=tt.regular("0*"))


def test_too_many_states_are_refused_early(monkeypatch):
    class Everything(tt.Machine):
        start = ()

        def step(self, state, label, at):
            return (*state, label), ()

        def stop(self, state):
            return () if sum(state) % 7 else None

    model = tt.Model.chain(np.zeros((12, 4)), np.zeros((4, 4)))
    monkeypatch.setattr(trellis, "MOST_MOVES", 10_000)
    with pytest.raises(
        tt.BudgetError, match="Everything reaches 4,096 states at position 6, with 4 labels each"
    ):
        tt.transduce(model, Everything())
    monkeypatch.undo()
    with pytest.raises(tt.BudgetError, match=r"need tables of .* MiB, but the limit is 0 MiB"):
        tt.transduce(model, tt.regular("0 1 2 (0|1)*"), memory_limit=64)


def test_what_is_wrong_with_a_machine_is_said():
    class Short(tt.Machine):
        outputs = ("one", "two")
        start = 0

        def step(self, state, label, at):
            return 0, (1,)

        def stop(self, state):
            return (0, 0)

    model = tt.Model.chain(np.zeros((2, 2)), np.zeros((2, 2)))
    with pytest.raises(tt.ModelError, match=r"Short returned \(1,\), but its outputs are"):
        tt.transduce(model, Short())
    with pytest.raises(tt.ModelError, match="takes machines and regular constraints, got 'x'"):
        tt.transduce(model, "x")
    with pytest.raises(tt.ModelError, match="only machines without outputs have a complement"):
        Complement(Short())
    with pytest.raises(tt.ModelError, match="a constraint cannot use outputs"):
        tt.regular(Short())
    with pytest.raises(tt.ModelError, match="encoding must be 'split' or 'pairs' here, got 'triples'"):
        tt.transduce(model, tt.regular("0*"), encoding="triples")


def test_automata_that_are_not_deterministic():
    from tallytree.transducers.automata import ANY, Labels

    b = Labels(frozenset("b"))
    third_last = Nfa([(0, ANY, 0), (0, b, 1), (1, ANY, 2), (2, ANY, 3)], 0, {3}).determinised()
    assert len(third_last.moves) == 8  # the least there is
    model = tt.Model.chain(np.zeros((5, 3)), np.zeros((3, 3)), states=list("abc"))
    found = tt.k_best(model, where=tt.regular(third_last))
    assert len(found) == 3**4 and all(s.labels[2] == "b" for s in found)


@given(models(largest=4))
@settings(max_examples=20, deadline=None)
def test_meet_of_nothing_changes_nothing(model):
    reduction, rest = meet(as_reduction(model), None)
    assert reduction.model is model and rest is None
