"""Checkpoints: files with the state of a training run, and how two runs differ."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tallytree.errors import ModelError
from tallytree.io.files import check_writable
from tallytree.learning.files import DAMAGE, read_arrays, write_arrays
from tallytree.learning.former import former_fingerprint
from tallytree.learning.graphs import GraphProblem
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.progress import history_of
from tallytree.learning.recipes import recipe_parameters
from tallytree.learning.sequences import SequenceProblem
from tallytree.learning.solver import taken
from tallytree.learning.trees import TreeProblem

if TYPE_CHECKING:
    from tallytree.learning.training import Trained

_FINGERPRINTS = 2
"""Version of the fingerprints; release 0.1.0, which did not write this number, computed them differently."""

_DIGESTS = {
    "problem": (
        "its examples, labels or features are different (or the problem changes during training, for example "
        "by a cache; then it needs its own fingerprint())"
    ),
    "weights of examples": "its examples have other weights (class_weight, sample_weight)",
    "counted examples": "its examples with counts are different",
}
"""What it means if a digest in the settings differs."""


class Checkpoint:
    """A file with the state of a run after its last pass."""

    def __init__(
        self, path: str | os.PathLike[str], settings: dict[str, object], problem: TrainingProblem
    ) -> None:
        check_writable(path)
        self.path, self.problem = Path(path), problem
        self.settings = {**settings, "problem": problem.fingerprint()}
        self.writer = _writer(problem, settings)

    def write(self, result: Trained) -> None:
        """Write the state, atomically."""
        header = {
            "kind": "checkpoint",
            "fingerprints": _FINGERPRINTS,
            "writer": self.writer,
            "settings": self.settings,
            "about": _about(self.problem),
            "history": [list(entry) for entry in result.history],
            "primal": result.primal,
            "dual": result.dual,
        }
        state = {f"run_{name}": array for name, array in result.run.arrays().items()}
        write_arrays(self.path, header, {"best": result.weights, **state})

    def restore(self, result: Trained) -> None:
        """Restore the state, if there is one."""
        if not self.path.exists():
            return
        header, arrays = read_arrays(self.path, "checkpoint")
        self._check(header)
        try:
            result.weights = taken(arrays, "best", result.weights)
            result.run.restore({name.removeprefix("run_"): array for name, array in arrays.items()})
            result.history = history_of(header["history"])
            result.primal, result.dual = float(header["primal"]), float(header["dual"])
        except DAMAGE as error:
            raise ModelError(
                f"the checkpoint {str(self.path)!r} is damaged ({error}); delete it to start over"
            ) from error

    def _check(self, header: dict[str, Any]) -> None:
        """Raise an error for the state of another run."""
        settings, about = (_dictionary(header.get(name)) for name in ("settings", "about"))
        self._check_writer(header, settings)
        wanted = self._wanted(header)
        apart = {name: value for name, value in wanted.items() if settings.get(name) != value}
        if not apart:
            return
        changes = [text for name in apart if name != "problem" for text in _changes(name, settings, apart)]
        if "problem" in apart:  # in words, as far as they are known
            now = {name: value for name, value in _about(self.problem).items() if name in about}
            known = [text for name in now if about[name] != now[name] for text in _changes(name, about, now)]
            changes += known or _changes("problem", settings, apart)
        raise ModelError(
            f"the checkpoint {str(self.path)!r} is from another run: {'; '.join(changes)}. Delete the file "
            "or use another one"
        )

    def _check_writer(self, header: dict[str, Any], settings: Mapping[str, object]) -> None:
        """Raise an error for the state of another estimator; earlier releases did not write its name."""
        known = {"objective": "a CRF", "solver": "an SVM"}
        kind = next((kind for name, kind in known.items() if name in settings), None)
        own = next(kind for name, kind in known.items() if name in self.settings)
        writer = header.get("writer", self.writer if kind in (None, own) else kind)
        if writer != self.writer:
            raise ModelError(
                f"the checkpoint {str(self.path)!r} was written by {writer}, so {self.writer} cannot resume "
                "from it; delete the file or use another one"
            )

    def _wanted(self, header: dict[str, Any]) -> dict[str, object]:
        """Return the settings that a checkpoint of this run has, by the release that wrote it."""
        if header.get("fingerprints") == _FINGERPRINTS:
            return self.settings
        former = former_fingerprint(self.problem)
        if former is None:
            raise ModelError(
                f"the checkpoint {str(self.path)!r} is from another version of tallytree, which did not "
                f"record the content of a {type(self.problem).__name__}; delete it to start over"
            )
        return {**self.settings, "problem": former}


def _writer(problem: TrainingProblem, settings: Mapping[str, object]) -> str:
    """Return the name of the estimator that trains on a problem with these settings."""
    name = type(problem).__name__
    if type(problem) not in (SequenceProblem, GraphProblem, TreeProblem):
        return f"train() on {name}"
    return name.removesuffix("Problem") + ("CRF" if "objective" in settings else "SVM")


def _about(problem: TrainingProblem) -> dict[str, object]:
    """Return what can be said about a problem in words."""
    given = (f"{name}={value!r}" for name, value in recipe_parameters(problem.loss).items())
    loss = f"{type(problem.loss).__name__}({', '.join(given)})"
    return {"loss": loss, "number of examples": len(problem), "number of weights": problem.dimension}


def _dictionary(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _changes(name: str, before: Mapping[str, object], now: Mapping[str, object]) -> list[str]:
    """Return how a setting differs: in some parameters, or as a whole."""
    if name in _DIGESTS:
        return [_DIGESTS[name]]
    old, new = _parameters(before.get(name)), _parameters(now[name])
    if not new or old.keys() != new.keys():
        old, new = {name: before.get(name)}, {name: now[name]}
    return [f"its {one} is {old[one]}, not {new[one]}" for one in new if old[one] != new[one]]


def _parameters(text: object) -> dict[str, object]:
    """Return the parameters of a value such as ``"FrankWolfe(seed=0, batch=None)"``, and its class.

    Examples
    --------
    >>> _parameters("FrankWolfe(seed=0, batch=None)")
    {'FrankWolfe': None, 'seed': '0', 'batch': 'None'}
    >>> _parameters("Weighted(costs=[1, 2], beta=1.0)")
    {'Weighted': None, 'costs': '[1, 2]', 'beta': '1.0'}
    """
    match = re.fullmatch(r"(\w+)\((.*)\)", str(text))
    if match is None:
        return {}
    pairs = (part.partition("=") for part in re.split(r", (?=\w+=)", match[2]))
    return {match[1]: None, **{name: value for name, _, value in pairs}}
