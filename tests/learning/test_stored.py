"""Training from disk: the same result as in memory, in a quarter of the memory of the corpus."""

import json
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from learning_problems import LOSSES, sequences
from memory import needs_proc

import tallytree as tt
from tallytree.learning import (
    FrankWolfe,
    StoredSequences,
    Subgradient,
    check_problem,
    store_sequences,
    train,
)


def stored(problem, folder):
    ranges = [problem._range(example) for example in range(len(problem))]
    store_sequences(folder, ((problem._rows[own], problem._truths[own]) for own in ranges))
    return StoredSequences(folder, problem.labels, problem.loss)


@pytest.mark.parametrize("solver", [Subgradient(batch=2), FrankWolfe()])
@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_disk_and_memory_give_the_same_weights(solver, scaling, tmp_path):
    problem = sequences(1, LOSSES["f1"])
    on_disk = stored(problem, tmp_path / "corpus")
    check_problem(on_disk)
    assert on_disk.dimension == problem.dimension
    options = {"C": 0.3, "scaling": scaling, "tolerance": 0.0, "max_passes": 4}
    first, second = (train(one, solver, **options) for one in (problem, on_disk))
    assert first.weights.tobytes() == second.weights.tobytes()
    assert first.dual == second.dual


def test_folders_are_known_by_their_content(tmp_path):
    first, second = (stored(sequences(seed, LOSSES["f1"]), tmp_path / str(seed)) for seed in (1, 2))
    again = stored(sequences(1, LOSSES["f1"]), tmp_path / "again")
    assert first.fingerprint() == again.fingerprint() != second.fingerprint()


def test_what_is_not_whole_is_refused(tmp_path):
    with pytest.raises(tt.ModelError, match="has no complete set of sequences"):
        StoredSequences(tmp_path, 2, LOSSES["hamming"])
    problem = sequences(1, LOSSES["hamming"])
    on_disk = stored(problem, tmp_path / "corpus")
    values = tmp_path / "corpus" / "values"
    values.write_bytes(values.read_bytes()[:-8])
    with pytest.raises(tt.ModelError, match="is truncated"):
        on_disk.truth(len(on_disk) - 1)
    with pytest.raises(tt.ModelError, match="a sequence has 1 positions but 2 labels"):
        store_sequences(tmp_path / "bad", [(problem._rows[:1], [0, 1])])
    with pytest.raises(tt.ModelError, match="has no complete set of sequences"):
        StoredSequences(tmp_path / "bad", 2, LOSSES["hamming"])


PROGRAM = """
import json, sys
import numpy as np
import tallytree as tt
from scipy import sparse
from tallytree.learning import StoredSequences, Subgradient, store_sequences, train

folder, count = sys.argv[1], int(sys.argv[2])

def examples():
    rng = np.random.default_rng(0)
    rows = sparse.csr_matrix(rng.normal(size=(20, 4000)))
    for _ in range(count):
        yield rows, rng.integers(0, 3, 20)

store_sequences(folder, examples())
problem = StoredSequences(folder, 3, tt.losses.FBeta(background=0))
found = train(problem, Subgradient(batch=8), C=0.1, scaling="slack", tolerance=1.0, max_passes=1)
# not getrusage: what it tells begins with the memory of the process that started this one
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
peak = int(status["VmHWM"].split()[0]) * 1024
print(json.dumps({"peak": peak, "calls": found.history[-1].calls, "loss": found.history[-1].loss}))
"""


@needs_proc
def test_the_corpus_is_four_times_the_peak_memory(tmp_path):
    count = 830  # with room for what scikit-learn imports where pandas is installed
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(tmp_path / "corpus"), str(count)],
        capture_output=True,
        text=True,
        check=True,
    )
    report = json.loads(done.stdout)
    size = sum(file.stat().st_size for file in (tmp_path / "corpus").iterdir())
    assert report["calls"] == 2 * count  # a pass, and the certificate
    assert np.isfinite(report["loss"])
    assert size >= 4 * report["peak"], report
