"""A run that is killed or interrupted loses at most its last pass."""

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import LOSSES, sequences
from sklearn.exceptions import ConvergenceWarning

import tallytree as tt
from tallytree.learning import (
    CuttingPlanes,
    FrankWolfe,
    Graph,
    GraphCRF,
    GraphSVM,
    SequenceCRF,
    SequenceSVM,
    Subgradient,
    TopTallies,
    TreeCRF,
    TreeSVM,
    structured_crf,
    train,
)
from tallytree.learning.descent import fit_weights
from tallytree.learning.files import read_arrays, write_arrays
from tallytree.parsing import parse_tree

SOLVERS = [
    FrankWolfe(batch=2, room=3),
    FrankWolfe(averaging=True),
    CuttingPlanes("one"),
    CuttingPlanes("each"),
    Subgradient(batch=2),
    Subgradient(averaging=False),
]
OPTIONS = {"C": 0.4, "tolerance": 0.0, "max_passes": 14}


class Killed(BaseException):
    """Stands for a machine that goes away."""


def killed_after(number):
    def callback(progress):
        if progress.number == number:
            raise Killed

    return callback


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_a_killed_run_goes_on_bit_for_bit(solver, scaling, tmp_path):
    problem = sequences(1, LOSSES["f1"])
    whole = train(problem, solver, scaling=scaling, **OPTIONS)
    file = tmp_path / "state.npz"
    for number in (3, 4, 11):
        with pytest.raises(Killed):
            train(problem, solver, scaling=scaling, checkpoint=file, callback=killed_after(number), **OPTIONS)
    resumed = train(problem, solver, scaling=scaling, checkpoint=file, **OPTIONS)
    assert resumed.weights.tobytes() == whole.weights.tobytes()
    assert resumed.run.weights.tobytes() == whole.run.weights.tobytes()
    assert (resumed.primal, resumed.dual) == (whole.primal, whole.dual)
    timeless = [entry._replace(seconds=0, left=None) for entry in resumed.history]
    assert timeless == [entry._replace(seconds=0, left=None) for entry in whole.history]


PROGRAM = """
import sys
import time
sys.path.insert(0, {tests!r})
from learning_problems import LOSSES, sequences
from sklearn.exceptions import ConvergenceWarning
from tallytree.learning import FrankWolfe, train
problem = sequences(6, LOSSES["hamming"], examples=30)
def report(progress):
    print(progress.number, flush=True)
train(problem, FrankWolfe(), C=0.4, tolerance=0.0, max_passes=100000, checkpoint={file!r}, callback=report)
"""


def test_a_process_killed_at_any_moment_leaves_a_state_to_go_on_from(tmp_path):
    file = tmp_path / "state.npz"
    text = PROGRAM.format(tests=str(Path(__file__).parents[1]), file=str(file))
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            if int(line) >= 4:
                process.send_signal(signal.SIGKILL)
                break
    done = len(read_arrays(file, "checkpoint")[0]["history"])
    assert done >= 4
    problem = sequences(6, LOSSES["hamming"], examples=30)
    options = {"C": 0.4, "tolerance": 0.0, "max_passes": done + 3}
    resumed = train(problem, FrankWolfe(), checkpoint=file, **options)
    assert len(resumed.history) == done + 3
    assert resumed.run.weights.tobytes() == train(problem, FrankWolfe(), **options).run.weights.tobytes()


def test_control_c_keeps_the_best_so_far():
    problem = sequences(2, LOSSES["hamming"])

    def stop(progress):
        if progress.number == 12:
            raise KeyboardInterrupt

    found = train(problem, C=0.5, tolerance=0.0, callback=stop)
    assert found.interrupted and not found.converged
    assert len(found.history) == 12
    assert found.primal == min(entry.primal for entry in found.history if entry.certified)


def test_control_c_in_the_first_pass_leaves_weights():
    problem = sequences(2, LOSSES["hamming"])

    class Impatient(type(problem)):
        calls = 0

        def task(self, examples, weights):
            Impatient.calls += 1
            if Impatient.calls == 3:
                raise KeyboardInterrupt
            return super().task(examples, weights)

    problem.__class__ = Impatient
    found = train(problem, FrankWolfe(batch=1), C=0.5)
    assert found.interrupted and not found.history
    assert np.isfinite(found.weights).all() and found.weights.any()


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"C": 0.5}, "its C is 0.4, not 0.5"),
        ({"solver": FrankWolfe(seed=1)}, "another run: its seed is 0, not 1. Delete"),
        ({"solver": CuttingPlanes()}, r"its solver is FrankWolfe\(.*\), not CuttingPlanes"),
        ({"C": 0.5, "scaling": "slack"}, "its C is 0.4, not 0.5; its scaling is margin, not slack. Delete"),
        ({"scaling": "slack"}, "its scaling is margin, not slack"),
        ({"extra": TopTallies(2)}, "its extra is None"),
        (
            {"problem": sequences(9, LOSSES["hamming"])},
            "another run: its examples, labels or features are different",
        ),
        ({"problem": sequences(1, LOSSES["f1"])}, "another run: its loss is Hamming"),
    ],
)
def test_a_checkpoint_of_another_run_is_refused(change, text, tmp_path):
    given = {"problem": sequences(1, LOSSES["hamming"]), "solver": FrankWolfe(), "C": 0.4, "max_passes": 2}
    file = tmp_path / "state.npz"
    train(**given, checkpoint=file)
    with pytest.raises(tt.ModelError, match=text):
        train(**{**given, **change}, checkpoint=file)


def test_other_features_are_another_problem(tmp_path):
    problem, file = sequences(1, LOSSES["hamming"]), tmp_path / "state.npz"
    train(problem, max_passes=2, checkpoint=file)
    problem._rows.data[0] += 1.0
    with pytest.raises(
        tt.ModelError, match="is from another run: its examples, labels or features are"
    ) as caught:
        train(problem, max_passes=2, checkpoint=file)
    assert not re.search("[0-9a-f]{16}", str(caught.value)), "no digests"


def fail(*_):
    raise OSError("no space left")


def test_damaged_files_are_refused_and_half_written_ones_never_seen(tmp_path, monkeypatch):
    file = tmp_path / "state.npz"
    file.write_bytes(b"PK nonsense")
    with pytest.raises(tt.ModelError, match="is not a tallytree checkpoint, or it is damaged"):
        train(sequences(1, LOSSES["hamming"]), checkpoint=file)
    write_arrays(file, {"kind": "estimator"}, {})
    with pytest.raises(tt.ModelError, match="is not a tallytree checkpoint: it holds an estimator"):
        train(sequences(1, LOSSES["hamming"]), checkpoint=file)
    with pytest.raises(tt.ModelError, match=r"\['bad'\] hold something else"):
        write_arrays(file, {"kind": "estimator"}, {"bad": np.array([object()])})
    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(OSError, match="no space left"):
        write_arrays(file, {"kind": "checkpoint"}, {})
    assert read_arrays(file, "estimator")[0] == {"kind": "estimator"}
    assert [path.name for path in tmp_path.iterdir()] == ["state.npz"]


CHUNKS = [["a"], ["b"], ["a"]], [["b"], ["a"]]
"""Of words."""


def tallied(**changes):
    """A CRF whose objective needs tables of tallies: it starts from the likelihood."""
    return SequenceCRF(tt.losses.FBeta(background="O"), objective="softmax-margin", c2=0.01, **changes)


def test_a_fit_that_goes_on_from_a_file_does_not_start_from_the_likelihood_again(tmp_path, monkeypatch):
    y, options = [["x", "O", "x"], ["O", "O"]], {"tolerance": 1e-6, "checkpoint": tmp_path / "run"}
    with pytest.warns(ConvergenceWarning):
        tallied(max_passes=2, **options).fit(CHUNKS, y)
    whole = tallied(tolerance=1e-6).fit(CHUNKS, y)

    def again(self, problem, importance):
        raise AssertionError("the weights are in the file")

    monkeypatch.setattr(SequenceCRF, "_first_objective", again)
    resumed = tallied(**options).fit(CHUNKS, y)
    assert resumed.converged_
    assert resumed.primal_ == pytest.approx(whole.primal_, rel=2e-6)
    assert [entry.number for entry in resumed.history_] == list(range(1, len(resumed.history_) + 1))


def test_the_likelihood_at_the_start_is_part_of_the_time_limit(monkeypatch):
    def slowly(objective, penalty, start, options, memory=None, spent=0.0):
        time.sleep(0.05)
        return fit_weights(objective, penalty, start, options, memory, spent)

    monkeypatch.setattr(structured_crf, "fit_weights", slowly)
    crf = tallied(max_seconds=100.0).fit(CHUNKS, [["x", "O", "x"], ["O", "O"]])
    assert crf.history_[0].seconds >= 0.05
    with pytest.warns(ConvergenceWarning, match="To go further, raise max_seconds, "):
        crf = tallied(max_seconds=0.05, tolerance=1e-12).fit(CHUNKS, [["x", "O", "x"], ["O", "O"]])
    assert len(crf.history_) == 1


def test_an_interrupt_before_the_first_checkpoint_does_not_promise_one(tmp_path, monkeypatch):
    def interrupted(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr("tallytree.learning.progress.show_line", interrupted)
    crf = tallied(checkpoint=tmp_path / "run", verbose=True)
    with pytest.raises(KeyboardInterrupt, match=r"set warm_start=True and fit again to resume$"):
        crf.fit(CHUNKS, [["x", "O", "x"], ["O", "O"]])
    assert not (tmp_path / "run").exists()


TAGS = [["x", "O", "x"], ["O", "O"]]
GRAPHS = [Graph(np.eye(2)[[0, 1, 0]], [[0, 1], [1, 2]]), Graph(np.eye(2)[[1, 0]], [[0, 1]])]
TREES = [parse_tree("(S (A a) (B b))"), parse_tree("(S (A b) (B a))")]
WRITERS = {
    SequenceSVM: (CHUNKS, TAGS),
    SequenceCRF: (CHUNKS, TAGS),
    GraphSVM: (GRAPHS, TAGS),
    GraphCRF: (GRAPHS, TAGS),
    TreeSVM: (["a b", "b a"], TREES),
    TreeCRF: (["a b", "b a"], TREES),
}


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("reader", WRITERS)
def test_a_checkpoint_of_another_estimator_says_whose_it_is(writer, reader, tmp_path):
    file = tmp_path / "run.npz"
    writer(checkpoint=file).fit(*WRITERS[writer])
    before = file.read_bytes()
    if reader is writer:
        assert reader(checkpoint=file).fit(*WRITERS[reader]).converged_
        return
    with pytest.raises(tt.ModelError) as caught:
        reader(checkpoint=file).fit(*WRITERS[reader])
    assert str(caught.value) == (
        f"the checkpoint '{file}' was written by {writer.__name__}, so {reader.__name__} cannot resume from "
        "it; delete the file or use another one"
    )
    assert file.read_bytes() == before


def test_checkpoints_without_the_name_of_their_writer(tmp_path):
    """As an earlier release wrote them."""
    file = tmp_path / "run.npz"
    SequenceSVM(checkpoint=file).fit(CHUNKS, TAGS)
    header, arrays = read_arrays(file, "checkpoint")
    assert header.pop("writer") == "SequenceSVM"
    write_arrays(file, header, arrays)
    assert SequenceSVM(checkpoint=file).fit(CHUNKS, TAGS).converged_
    write_arrays(file, header, arrays)
    with pytest.raises(tt.ModelError, match="was written by an SVM, so SequenceCRF cannot resume from it"):
        SequenceCRF(checkpoint=file).fit(CHUNKS, TAGS)
    write_arrays(file, {**header, "settings": 3}, arrays)
    with pytest.raises(tt.ModelError, match="is from another run"):
        SequenceSVM(checkpoint=file).fit(CHUNKS, TAGS)


def test_a_checkpoint_of_a_problem_of_ones_own(tmp_path):
    class Own(type(sequences(1, LOSSES["hamming"]))):
        pass

    problem = sequences(1, LOSSES["hamming"])
    problem.__class__ = Own
    train(problem, checkpoint=tmp_path / "run.npz")
    text = r"was written by train\(\) on Own, so SequenceSVM cannot"
    with pytest.raises(tt.ModelError, match=text):
        SequenceSVM(checkpoint=tmp_path / "run.npz").fit(CHUNKS, TAGS)
