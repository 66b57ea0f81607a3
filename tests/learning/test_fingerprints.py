"""Saved state is used only for the same problem, whatever the problem consists of."""

import json
import os
import subprocess
import sys
import threading
from functools import cached_property

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import LOSSES, graphs, sequences, trees
from scipy import sparse

import tallytree as tt
from tallytree.learning import (
    CuttingPlanes,
    FrankWolfe,
    SequenceProblem,
    SequenceSVM,
    StoredSequences,
    TrainingProblem,
    store_sequences,
    train,
)
from tallytree.learning.files import read_arrays, write_arrays
from tallytree.learning.fingerprints import fingerprint_of
from tallytree.learning.former import former_fingerprint


class Spins(TrainingProblem):
    """The problem of the documentation, with inputs of its own."""

    dimension = 2
    loss = LOSSES["hamming"]

    def __init__(self, seen, truths, **more):
        self.seen, self.truths = seen, truths
        vars(self).update(more)

    def __len__(self):
        return len(self.seen)

    def truth(self, example):
        return self.truths[example]

    def model(self, example, weights):
        evidence = np.eye(2)[self.seen[example]]
        return tt.Model.chain(weights[0] * evidence, weights[1] * np.eye(2))

    def features(self, example, labelling):
        agree = np.sum(labelling == self.seen[example])
        return [0, 1], [agree, np.sum(labelling[1:] == labelling[:-1])]


SEEN = np.array([[0, 1, 0, 0], [1, 1, 0, 1]])
TRUTHS = np.array([[0, 0, 0, 0], [1, 1, 1, 1]])


def cut(*lengths, loss=LOSSES["hamming"], states=None):
    """The same positions and labels, cut into sequences of some lengths."""
    rows, truths = np.eye(3)[[0, 1, 2, 1, 0, 2]], np.array([0, 1, 1, 0, 1, 0])
    ends = np.cumsum(lengths)[:-1]
    parts = [sparse.csr_matrix(part) for part in np.split(rows, ends)]
    return SequenceProblem(parts, np.split(truths, ends), 2, loss, states)


def test_other_inputs_of_a_problem_of_ones_own_are_another_problem(tmp_path):
    file = tmp_path / "state.npz"
    train(Spins(SEEN, TRUTHS), C=10.0, checkpoint=file)
    with pytest.raises(tt.ModelError, match="is from another run: its examples, labels or features are"):
        train(Spins(1 - SEEN, TRUTHS), C=10.0, checkpoint=file)
    resumed = train(Spins(SEEN.copy(), TRUTHS.copy()), C=10.0, checkpoint=file)
    assert resumed.primal == pytest.approx(4.0)


def test_sequences_that_are_cut_elsewhere_are_another_problem(tmp_path):
    file = tmp_path / "state.npz"
    first = train(cut(2, 4), C=1.0, checkpoint=file)
    with pytest.raises(tt.ModelError, match="is from another run"):
        train(cut(3, 3), C=1.0, checkpoint=file)
    with pytest.raises(tt.ModelError, match="the last result is for other examples"):
        train(cut(3, 3), C=1.0, start=first)
    train(cut(2, 4), C=2.0, start=first)


def test_a_warm_start_knows_where_sentences_are_cut():
    words, labels = [["a"], ["b"], ["c"], ["a"]], ["x", "y", "x", "x"]
    svm = SequenceSVM(warm_start=True, C=1.0).fit([words[:1], words[1:]], [labels[:1], labels[1:]])
    with pytest.raises(tt.ModelError, match="warm_start continues from the planes of the last fit"):
        svm.fit([words[:2], words[2:]], [labels[:2], labels[2:]])


def test_folders_know_where_sequences_are_cut(tmp_path):
    rows, labels = sparse.csr_matrix((4, 3)), np.array([0, 0, 0, 0])
    prints = []
    for name, at in (("one", 1), ("two", 2), ("again", 1)):
        store_sequences(tmp_path / name, [(rows[:at], labels[:at]), (rows[at:], labels[at:])])
        prints.append(StoredSequences(tmp_path / name, 2, LOSSES["hamming"]).fingerprint())
    assert prints[0] == prints[2] != prints[1]


def test_a_folder_that_was_read_is_the_same(tmp_path):
    problem = sequences(1, LOSSES["hamming"])
    pairs = [(problem._rows[problem._range(e)], problem.truth(e)) for e in range(len(problem))]
    store_sequences(tmp_path / "one", pairs)
    stored = StoredSequences(tmp_path / "one", 3, LOSSES["hamming"])
    before = stored.fingerprint()
    train(stored, max_passes=2)
    assert stored.fingerprint() == before


def test_all_that_a_problem_consists_of_counts():
    f1 = tt.losses.FBeta(background="x")
    problems = [
        cut(2, 4),
        cut(3, 3),
        cut(2, 2, 2),
        cut(2, 4, loss=LOSSES["f1"]),
        cut(2, 4, states=("x", "y")),
        cut(2, 4, loss=f1, states=("x", "y")),
        cut(2, 4, loss=f1, states=("y", "x")),
        graphs(1, LOSSES["f1"]),
        graphs(2, LOSSES["f1"]),
        trees(1, LOSSES["f1"]),
        trees(1, LOSSES["f1"], prior=0.5),
        Spins(SEEN, TRUTHS),
        Spins(SEEN.astype(np.int32), TRUTHS),
        Spins(SEEN, TRUTHS, weights=[1.0, 2.0]),
    ]
    assert len({problem.fingerprint() for problem in problems}) == len(problems)
    assert cut(2, 4, states=("x", "y")).fingerprint() == cut(2, 4, states=["x", "y"]).fingerprint()


@pytest.mark.parametrize("make", [sequences, graphs, trees])
def test_training_does_not_change_what_a_problem_is(make):
    problem = make(1, LOSSES["f1"])
    before = problem.fingerprint()
    train(problem, max_passes=2, tolerance=0.0)
    assert problem.fingerprint() == before == make(1, LOSSES["f1"]).fingerprint()


class Scaled(SequenceProblem):
    """Examples that count differently."""

    factor = 1.0

    def loss_of(self, example):
        return tt.losses.WeightedHamming(self.factor * (1 - np.eye(2))).against(self.truth(example))


def test_attributes_of_subclasses_count():
    prints = set()
    for factor in (1.0, 2.0):
        problem = cut(2, 4)
        problem.__class__, problem.factor = Scaled, factor
        prints.add(problem.fingerprint())
    assert len(prints) == 2


def test_what_has_no_content_needs_a_fingerprint_of_its_own(tmp_path):
    problem = Spins(SEEN, TRUTHS, lock=threading.Lock())
    train(problem, max_passes=1)
    with pytest.raises(tt.ModelError, match=r"of the class lock has no content .* a method fingerprint\(\)"):
        train(problem, max_passes=1, checkpoint=tmp_path / "state.npz")
    problem.__class__ = type("Named", (Spins,), {"fingerprint": lambda self: "mine"})
    train(problem, max_passes=1, checkpoint=tmp_path / "state.npz")


def test_a_problem_that_changes_is_told_what_to_do(tmp_path):
    file, problem = tmp_path / "state.npz", Spins(SEEN, TRUTHS, seen_so_far=0)
    train(problem, max_passes=1, checkpoint=file)
    problem.seen_so_far += 1
    with pytest.raises(tt.ModelError, match=r"the problem changes during training, for example by a cache"):
        train(problem, max_passes=1, checkpoint=file)


def test_a_start_of_another_kind_is_refused():
    problem = cut(2, 4)
    first = train(problem, C=1.0)
    with pytest.raises(tt.ModelError, match="the last result is from FrankWolfe, not CuttingPlanes"):
        train(problem, CuttingPlanes("one"), start=first)
    with pytest.raises(tt.ModelError, match="the last result is for 'margin' scaling"):
        train(problem, FrankWolfe(), scaling="slack", start=first)


def rewritten(file):
    """Make a checkpoint of one that release 0.1.0 could have written."""
    header, arrays = read_arrays(file, "checkpoint")
    assert header.pop("fingerprints") == 2
    return header, arrays


def test_checkpoints_of_the_first_release_without_inputs_are_refused(tmp_path):
    file, problem = tmp_path / "state.npz", Spins(SEEN, TRUTHS)
    train(problem, max_passes=1, checkpoint=file)
    write_arrays(file, *rewritten(file))
    with pytest.raises(
        tt.ModelError, match="another version of tallytree, which did not record the content of a Spins"
    ):
        train(problem, max_passes=1, checkpoint=file)


@pytest.mark.parametrize("make", [sequences, graphs, trees])
def test_checkpoints_of_the_first_release_are_known_by_their_digest(make, tmp_path):
    file, problem = tmp_path / "state.npz", make(1, LOSSES["f1"])
    train(problem, max_passes=1, tolerance=0.0, checkpoint=file)
    header, arrays = rewritten(file)
    header["settings"]["problem"] = former_fingerprint(problem)
    del header["about"]
    write_arrays(file, header, arrays)
    with pytest.raises(tt.ModelError, match="is from another run: its examples, labels or features are"):
        train(make(2, LOSSES["f1"]), max_passes=2, tolerance=0.0, checkpoint=file)
    resumed = train(problem, max_passes=2, tolerance=0.0, checkpoint=file)
    assert list(resumed.history[0]) == header["history"][0]


class Cached:
    """An object with something that follows from the rest."""

    def __init__(self, number):
        self.number = number

    @cached_property
    def double(self):
        return 2 * self.number


def test_content_counts_and_nothing_else():
    one, other = Cached(1), Cached(1)
    assert one.double == 2
    assert fingerprint_of(one) == fingerprint_of(other) != fingerprint_of(Cached(2))
    assert fingerprint_of({"a": 1, "b": 2}) == fingerprint_of({"b": 2, "a": 1})
    shared = [1]
    assert fingerprint_of([shared, shared]) == fingerprint_of([[1], [1]])
    values = [
        [1, 2],
        [[1, 2]],
        [1, [2]],
        ["1", 2],
        [1.0, 2],
        [True, 2],
        b"12",
        "12",
        {1, 2},
        {1: 2},
        None,
        12,
        (),
        np.array([1, 2]),
        np.array([1.0, 2.0]),
        np.array([[1, 2]]),
        np.array([[1], [2]]),
        np.array(["1", 2]),
        sparse.csr_matrix([[1, 2]]),
        sparse.csr_matrix([[0, 1, 2]]),
        range(2),
        lambda x: x + 1,
        lambda x: x + 2,
        np.array([1, 2], dtype=object),
        Cached,
        np.add,
        np.subtract,
        tt.Model([2], [((0,), [1, 2])]),
        slice(1, 2),
        tt.Model([2], [((0,), [1, 3])]),
        tt.count(state=1),
        tt.count(state=2),
        float("nan"),
        tt.losses.FBeta(),
    ]
    prints = [fingerprint_of(value) for value in values]
    assert len(set(prints)) == len(prints)
    assert [fingerprint_of(value) for value in values] == prints


def test_digests_do_not_depend_on_depth_or_on_loops():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert fingerprint_of(deep) != fingerprint_of(deep[0])
    loop = [1]
    loop.append(loop)
    assert fingerprint_of(loop) == fingerprint_of(loop)


def test_digests_are_the_same_in_every_process():
    text = """
import json
from tallytree.learning.fingerprints import fingerprint_of
from tallytree.learning.former import former_fingerprint
print(json.dumps([fingerprint_of({"a", "b", "c", ("d", 1)}), fingerprint_of({"x": {"p", "q"}, "y": 1.5})]))
"""
    found = {
        subprocess.run(
            [sys.executable, "-c", text],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "2")
    }
    assert len(found) == 1 and len(set(json.loads(found.pop()))) == 2
