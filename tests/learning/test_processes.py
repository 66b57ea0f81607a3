"""Training on several processes gives the same weights, bit for bit, even if a worker is lost."""

import os
import signal

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from joblib import parallel_config
from learning_problems import LOSSES, sequences
from memory import needs_proc

from tallytree.learning import FrankWolfe, Subgradient, TopTallies, oracle, train


@pytest.fixture
def at_once(monkeypatch):
    """Use processes from the beginning."""
    monkeypatch.setattr(oracle, "_WORTH_PROCESSES", 0.0)


def test_short_runs_and_small_batches_start_no_processes(monkeypatch):
    problem = sequences(1, LOSSES["f1"], examples=70)

    def parallel(**options):
        raise AssertionError("processes are started")

    monkeypatch.setattr(oracle, "Parallel", parallel)
    train(problem, FrankWolfe(), n_jobs=2, C=0.1, max_passes=2)
    monkeypatch.setattr(oracle, "_WORTH_PROCESSES", 0.0)
    everything = oracle.ExactOracle(problem, n_jobs=2)
    everything.planes(range(64), np.zeros(problem.dimension))
    with pytest.raises(AssertionError, match="processes are started"):
        everything.planes(range(65), np.zeros(problem.dimension))


@pytest.mark.parametrize(
    ("solver", "backend"),
    [
        pytest.param(FrankWolfe(batch=100), "loky", marks=needs_proc),  # psutil looks for workers there
        (Subgradient(batch=100), "threading"),
    ],
)
def test_threads_and_processes_give_the_same_weights(at_once, solver, backend):
    problem = sequences(1, LOSSES["f1"], examples=150)
    options = {"C": 0.1, "scaling": "slack", "extra": TopTallies(2), "tolerance": 0.0, "max_passes": 2}
    alone = train(problem, solver, **options).run.weights
    with parallel_config(backend=backend):
        assert train(problem, solver, n_jobs=2, **options).run.weights.tobytes() == alone.tobytes()


@needs_proc
def test_a_cluster_that_loses_a_worker_gives_the_same_weights(at_once):
    distributed = pytest.importorskip("distributed")
    problem = sequences(4, LOSSES["f1"], examples=2000)
    options = {"C": 0.01, "scaling": "slack", "tolerance": 0.0, "max_passes": 3}
    solver = FrankWolfe(batch=500)
    alone = train(problem, solver, **options)
    at_step = int(np.random.default_rng().integers(1, 10))  # two passes of four steps, and the certificate

    class Cursed(type(problem)):
        """Kills a worker while the task of some step is on its way."""

        steps = 0

        def task(self, examples, weights):
            Cursed.steps += 1
            if Cursed.steps == at_step:
                os.kill(victim, signal.SIGKILL)
            return super().task(examples, weights)

    settings = {"n_workers": 3, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with (
        distributed.LocalCluster(**settings) as cluster,
        distributed.Client(cluster) as client,
        parallel_config(backend="dask", wait_for_workers_timeout=60),
    ):
        victim = next(iter(client.run(os.getpid).values()))
        problem.__class__ = Cursed
        found = train(problem, solver, n_jobs=-1, **options)
    assert Cursed.steps == 9
    assert found.run.weights.tobytes() == alone.run.weights.tobytes(), f"killed at step {at_step}"
    assert found.history[-1].primal == alone.history[-1].primal
