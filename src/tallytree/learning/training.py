"""Training: passes until the certified gap is small enough.

``train`` combines a problem, a solver and a stopping rule. If interrupted, it keeps the best
certified weights; if killed, it can resume from the last checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any, Unpack

import numpy as np

from tallytree.errors import ModelError
from tallytree.learning.checkpoints import Checkpoint
from tallytree.learning.frank_wolfe import FrankWolfe
from tallytree.learning.inference import Diverse, Scaling, TopTallies
from tallytree.learning.oracle import ExactOracle
from tallytree.learning.parameters import check_parameters
from tallytree.learning.planes import Floats
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.progress import Progress, RunChanges, RunOptions, time_left
from tallytree.learning.solver import Report, Run, Solver


@dataclass
class Trained:
    """The result of training.

    Attributes
    ----------
    weights : array
        The weights with the smallest certified objective; the last ones if there is no certificate.
    primal, dual : float
        Their objective, and the largest lower bound on the optimum.
    history : list of Progress
        One entry for each pass.
    converged : bool
        Whether the gap is within the tolerance.
    interrupted : bool
        Whether the user stopped the run.
    before : float
        The seconds in the history that earlier runs took, if this one resumed from a checkpoint.
    run : Run
        The state of the solver, from which training can continue.
    oracle : ExactOracle
        The oracle that was used.
    """

    oracle: ExactOracle
    run: Run
    weights: Floats
    primal: float = np.inf
    dual: float = -np.inf
    history: list[Progress] = field(default_factory=list)
    converged: bool = False
    interrupted: bool = False
    before: float = 0.0

    @property
    def gap(self) -> float:
        """An upper bound on the distance of the objective from the optimum."""
        return self.primal - self.dual

    def note(self, report: Report, progress: Progress) -> None:
        """Record the result of a pass."""
        self.history.append(progress)
        self.dual = max(self.dual, report.dual)
        if report.weights is not None and report.primal < self.primal:
            self.primal, self.weights = report.primal, report.weights
        elif self.primal == np.inf:
            self.weights = self.run.weights


def train(
    problem: TrainingProblem | ExactOracle,
    solver: Solver | None = None,
    *,
    C: float = 1.0,
    scaling: Scaling = "margin",
    extra: TopTallies | Diverse | None = None,
    n_jobs: int | None = None,
    start: Trained | None = None,
    options: RunOptions | None = None,
    **changes: Unpack[RunChanges],
) -> Trained:
    """Minimise ``½‖w‖² + C Σ_i ξ_i(w)`` to a certified gap.

    Parameters
    ----------
    problem : TrainingProblem
        The examples; or an oracle made from them, to be reused.
    solver : Solver, optional
        :class:`FrankWolfe` by default.
    C : float
        The weight of the hinge losses.
    scaling : {"margin", "slack"}
        How the loss enters the hinge.
    extra : TopTallies or Diverse, optional
        Additional planes from each oracle call.
    n_jobs : int, optional
        Processes for inference, as for :class:`ExactOracle`; the result does not depend on it.
    start : Trained, optional
        A previous result of the same solver on the same problem, possibly for another C, to start from.
        Results for other problems raise an error.
    options : RunOptions, optional
        When to stop and where to write checkpoints.
    **changes
        Fields of ``options``: ``tolerance``, ``max_passes``, ``max_seconds``, ``checkpoint`` and
        ``callback``; see :class:`RunOptions`.

    Notes
    -----
    Ctrl-C ends training with the best weights so far, and sets ``interrupted``.

    Examples
    --------
    See :class:`TrainingProblem`.
    """
    options = replace(options or RunOptions(), **changes)
    check_parameters({"C": C, "solver": solver, "extra": extra})
    if not hasattr(problem, "dimension"):
        fit = "; estimators are trained with .fit(X, y)" if hasattr(problem, "fit") else ""
        raise ModelError(
            f"problem must be a TrainingProblem, such as SequenceProblem; got {problem!r:.80}{fit}"
        )
    oracle = problem if isinstance(problem, ExactOracle) else ExactOracle(problem, scaling, extra, n_jobs)
    if not len(oracle):
        raise ModelError("there are no examples to learn from")
    solver = FrankWolfe() if solver is None else solver
    result = _started(solver, oracle, C, start)
    memory = _resumed(result, solver, options)
    options = options.resumed_at(result.before)
    try:
        for progress in _passes(result, oracle, options):
            if memory is not None:
                memory.write(result)
            if options.callback is not None:
                options.callback(progress)
    except KeyboardInterrupt:
        result.interrupted = True
        if result.primal == np.inf:
            result.weights = result.run.weights
    result.converged = options.reached(result.history)
    return result


def regularisation_path(
    problem: TrainingProblem | ExactOracle,
    values: Iterable[float],
    solver: Solver | None = None,
    **options: Any,
) -> Iterator[tuple[float, Trained]]:
    """Train for one value of C after another, each starting from the previous result.

    Parameters
    ----------
    problem, solver, options
        As for :func:`train`.
    values : iterable of float
        The values of C, preferably in ascending order.

    Yields
    ------
    (float, Trained)
        C and the result for it.
    """
    result: Trained | None = None
    for C in values:
        examples = problem if result is None else result.oracle  # it caches the losses of the examples
        result = train(examples, solver, C=C, start=result, **options)
        yield C, result


def _resumed(result: Trained, solver: Solver, options: RunOptions) -> Checkpoint | None:
    """Return the checkpoint of a run, if it has one, after restoring its state."""
    if options.checkpoint is None:
        return None
    settings = _settings(solver, result.oracle, result.run.C)
    memory = Checkpoint(options.checkpoint, settings, result.oracle.problem)
    memory.restore(result)
    result.before = result.history[-1].seconds if result.history else 0.0
    return memory


_REMEDY = "undo the change, or train without start= (warm_start=False)"


def _started(solver: Solver, oracle: ExactOracle, C: float, start: Trained | None) -> Trained:
    run = solver.start(oracle, C)
    if start is not None:
        _check_start(start, run, oracle)
        try:
            run.restore(start.run.arrays())
        except ValueError:
            name = type(solver).__name__
            raise ModelError(f"the last result is from a {name} with other settings; {_REMEDY}") from None
        run.C = start.run.C
        run.rescale(C)
    return Trained(oracle, run, run.weights)


def _check_start(start: Trained, run: Run, oracle: ExactOracle) -> None:
    """Raise an error for results of another solver or other examples, whose planes are not valid here."""
    before = start.oracle
    if type(start.run) is not type(run):
        names = (type(one).__name__.removesuffix("Run") for one in (start.run, run))
        raise ModelError(f"the last result is from {', not '.join(names)}; {_REMEDY}")
    if before.scaling != oracle.scaling:
        raise ModelError(
            f"the last result is for {before.scaling!r} scaling, not {oracle.scaling!r}; {_REMEDY}"
        )
    same = before.problem is oracle.problem
    if not same and before.problem.fingerprint() != oracle.problem.fingerprint():
        raise ModelError(f"the last result is for other examples or another loss; {_REMEDY}")


def _passes(result: Trained, oracle: ExactOracle, options: RunOptions) -> Iterator[Progress]:
    before = result.history[-1].seconds if result.history else 0.0
    calls = result.history[-1].calls if result.history else 0
    began, asked = perf_counter() - before, oracle.calls - calls
    while not options.reached(result.history) and not options.exhausted(result.history):
        number = len(result.history) + 1
        report = result.run.advance(number, options.certify(result.history))
        certified = report.weights is not None
        dual = max(result.dual, report.dual)
        progress = Progress(
            number,
            min(report.primal, result.primal) if certified else report.primal,
            dual,
            certified,
            report.hinge,
            oracle.calls - asked,
            perf_counter() - began,
            None,
        )
        progress = progress._replace(left=time_left([*result.history, progress], options))
        result.note(report, progress)
        yield progress


def _settings(solver: Solver, oracle: ExactOracle, C: float) -> dict[str, object]:
    return {
        "solver": repr(solver),
        "C": C,
        "scaling": oracle.scaling,
        "extra": repr(oracle.extra),
    }
