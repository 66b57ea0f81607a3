"""Shared by all training commands: the learning options, the fit, and its report."""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from math import inf
from typing import Any

from tallytree.cli import reports
from tallytree.cli.arguments import Suggested
from tallytree.cli.exits import Exit, UsageError, end_workers, stop_code
from tallytree.cli.inputs import learning
from tallytree.cli.options import (
    filled,
    least,
    loss_name,
    natural,
    number,
    positive,
    refuse,
    shown,
)
from tallytree.cli.text import in_options, visible, visible_lines
from tallytree.losses.base import Loss
from tallytree.losses.names import LOSS_NAMES, as_loss, base_name

_USUAL: dict[str, Any] = {
    "beta": 1.0,
    "background": "O",
    "scaling": "margin",
    "C": 1.0,
    "tolerance": 0.01,
    "passes": 100,
    "seconds": float("inf"),
    "solver": "frank-wolfe",
    "seed": 0,
}
_OF_LEARNING = (*_USUAL, "c1", "c2", "averaging", "jobs", "checkpoint", "hashed", "min_count")
_OF_TREES = ("f1", "iou", "symmetric-difference", "crossing-brackets", "zero-one")
_OF_LABELS = ("hamming", "f1", "chunk-f1", "iou", "zero-one")
_SOLVERS: dict[str, Callable[[Namespace], Any]] = {
    "frank-wolfe": lambda o: learning().FrankWolfe(averaging=o.averaging, seed=o.seed),
    "cutting-planes": lambda o: learning().CuttingPlanes(),
    "subgradient": lambda o: learning().Subgradient(averaging=o.averaging, seed=o.seed),
}


def learning_options(command: ArgumentParser) -> None:
    """Add the options of learning."""
    add = command.add_argument_group("learning").add_argument
    add(
        "--loss",
        type=loss_name,
        choices=Suggested(LOSS_NAMES),
        metavar="LOSS",
        help=f"the loss to train for: {', '.join(LOSS_NAMES)}; any number after f is its beta, as in f2 and "
        "chunk-f0.5 (default hamming; for parse: none, count rules only)",
    )
    add("--beta", type=positive, help="the weight of recall relative to precision in F (default 1)")
    add("--background", metavar="LABEL", help="the negative label for f1 and iou (default O)")
    add(
        "--objective",
        choices=("likelihood", "softmax-margin", "risk"),
        help="train a conditional random field with this objective (default: train an SVM)",
    )
    add("--c1", type=least, help="with --objective: the L1 penalty (default 0)")
    add("--c2", type=least, help="with --objective: the L2 penalty (default 1; try 0.01 for risk)")
    add("--scaling", choices=("margin", "slack"), help="how the loss enters the margin (default margin)")
    add(
        "--C",
        type=positive,
        help="inverse regularisation strength (default 1; try 0.1 for large corpora)",
    )
    add(
        "--tolerance",
        type=positive,
        help="stop at this relative gap, or for risk at this relative gradient norm (default 0.01)",
    )
    add("--passes", type=number, help="the maximum number of passes (default 100; with --objective: 500)")
    add("--seconds", type=positive, help="the time limit of this run; the current pass is finished first")
    add("--solver", choices=tuple(_SOLVERS), help="the training algorithm (default frank-wolfe)")
    add("--averaging", action="store_true", help="average the weights; better after few passes")
    add("--seed", type=natural, help="random seed for the order of the examples (default 0)")
    add("--jobs", type=number, metavar="N", help="the number of processes (default: threads of one process)")
    add(
        "--checkpoint", metavar="FILE", help="save the state to this file after each pass, and resume from it"
    )
    _feature_options(add)


def _feature_options(add: Callable[..., object]) -> None:
    add(
        "--min-count",
        type=natural,
        metavar="N",
        help="ignore features that occur fewer than N times (default 1; not with --hashed)",
    )
    add(
        "--hashed",
        type=number,
        metavar="N",
        help="hash features to N columns instead of building a vocabulary",
    )


def refuse_learning(options: Namespace) -> None:
    """Raise an error for learning options if rules are only counted."""
    refuse(options, _OF_LEARNING, "if rules are only counted (add --loss or --objective to learn weights)")


def settings(given: Namespace) -> dict[str, Any]:
    """Return the parameters of an estimator."""
    fitting = _OF_TREES if given.task == "parse" else _OF_LABELS
    kind = None if given.loss is None else base_name(given.loss)
    if kind not in (None, *fitting):
        raise UsageError(f"--loss {given.loss} does not work for {given.task}; use {', '.join(fitting)}")
    if given.loss not in ("f1", "chunk-f1"):
        refuse(given, ["beta"], "except with --loss f1 and chunk-f1")
    if kind not in ("f1", "iou") or given.task == "parse":
        refuse(given, ["background"], "except with --loss f1 and iou of tag and chunk")
    if given.objective is not None:
        return _probabilities(given)
    refuse(given, ["c1", "c2"], "without --objective", "add --objective likelihood, or use --C for an SVM")
    if given.solver == "cutting-planes":
        refuse(given, ["averaging", "seed"], "with --solver cutting-planes")
    options = filled(given, _USUAL)
    return {
        "loss": _loss(options),
        "scaling": options.scaling,
        "C": options.C,
        "solver": _SOLVERS[options.solver](options),
        **_run_settings(options),
    }


def _probabilities(given: Namespace) -> dict[str, Any]:
    """Return the parameters of a CRF."""
    refuse(given, ["scaling", "C", "solver", "averaging", "seed"], "with --objective")
    if given.objective == "likelihood" and given.task != "parse":
        refuse(given, ["loss"], "with --objective likelihood, which has no loss")
    options = filled(given, {**_USUAL, "passes": 500, "c1": 0.0, "c2": 1.0})
    return {
        "loss": None if options.objective == "likelihood" else _loss(options),
        "objective": options.objective,
        "c1": options.c1,
        "c2": options.c2,
        **_run_settings(options),
    }


def _run_settings(options: Namespace) -> dict[str, Any]:
    return {
        "tolerance": options.tolerance,
        "max_passes": options.passes,
        "max_seconds": options.seconds,
        "n_jobs": options.jobs,
        "checkpoint": options.checkpoint,
        "verbose": shown(options),
    }


def _loss(options: Namespace) -> Loss:
    parameters = {"beta": options.beta} if options.loss in ("f1", "chunk-f1") else {}
    background = None if options.task == "parse" else options.background
    return as_loss(options.loss or "hamming", background, **parameters)


def fitted(estimator: Any, X: list[Any], y: list[Any]) -> Any:
    """Fit an estimator; warnings about convergence and interrupts are printed as lines for the user."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            estimator.fit(X, y)
        except KeyboardInterrupt:
            if not hasattr(estimator, "weights_"):  # the estimator has kept nothing
                raise
            sys.stderr.write(f"tallytree: {visible_lines(_interruption(estimator))}\n")
    for one in caught:
        sys.stderr.write(f"tallytree: {visible_lines(in_options(str(one.message)))}\n")
    return estimator


def _interruption(estimator: Any) -> str:
    event = "training was interrupted; the best weights so far are kept"
    if estimator.checkpoint is None:
        return f"{event}. Use --checkpoint FILE to be able to resume"
    return f"{event}. Run the same command again to resume from {estimator.checkpoint}"


def learned(estimator: Any, output: str) -> dict[str, Any]:
    """Return the report on a fit."""
    last = estimator.history_[-1] if estimator.history_ else None
    return {
        "output": output,
        "labels": len(estimator.classes_),
        "weights": len(estimator.weights_),
        "passes": len(estimator.history_),
        "converged": estimator.converged_,
        **({"interrupted": True} if estimator.interrupted_ else {}),
        **({"objective": estimator.primal_, **_distance(estimator)} if estimator.primal_ < inf else {}),
        "seconds": last.seconds if last is not None else 0.0,
    }


def _distance(estimator: Any) -> dict[str, float]:
    """Return what is compared with --tolerance: the relative gap, or the gradient if there is no bound."""
    gradient = estimator.history_[-1].gradient if estimator.history_ else None
    if gradient is not None:
        return {"gradient": gradient}
    return {"relative gap": estimator.relative_gap_}


def ended(report: dict[str, Any]) -> int:
    """Return the exit code of a fit; a stopped one has kept its best weights, and its workers are ended."""
    if not report.get("interrupted"):
        return Exit.OK
    end_workers()
    return stop_code()


def print_report(report: dict[str, Any], options: Namespace) -> None:
    """Print what was learned, and the scores on held-out examples."""
    if options.json:
        print(reports.as_json(report))
        return
    test = report.pop("test", None)
    reports.print_values(report, machine=False)
    if test is not None:
        print(f"\non {visible(options.test)}:")
        reports.print_values(test, machine=False)
