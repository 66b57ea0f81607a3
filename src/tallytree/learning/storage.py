"""Fitted estimators in files: arrays and JSON, nothing executable.

Frozen values (losses, solvers, encoders) are stored as the name of their class and their parameters; on
reading, the name is looked up among those of this library, and anything else is rejected.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import is_dataclass
from math import ceil, isfinite
from typing import Any

import numpy as np

import tallytree.losses
from tallytree.errors import ModelError
from tallytree.learning.attributes import Columns, Hashed, Vocabulary
from tallytree.learning.cutting_planes import CuttingPlanes
from tallytree.learning.files import DAMAGE, read_arrays, write_arrays
from tallytree.learning.frank_wolfe import FrankWolfe
from tallytree.learning.graph_crf import GraphCRF
from tallytree.learning.graph_svm import GraphSVM
from tallytree.learning.inference import Diverse, TopTallies
from tallytree.learning.labels import Labels
from tallytree.learning.parameters import check_parameters
from tallytree.learning.progress import history_of
from tallytree.learning.recipes import recipe_parameters
from tallytree.learning.sequence_crf import SequenceCRF
from tallytree.learning.sequence_svm import SequenceSVM
from tallytree.learning.structured_estimator import StructuredEstimator
from tallytree.learning.subgradient import Subgradient
from tallytree.learning.templates import WindowFeatures
from tallytree.learning.tree_crf import TreeCRF
from tallytree.learning.tree_features import TreeFeatures
from tallytree.learning.tree_grammar import Binarisation, TreebankGrammar
from tallytree.learning.tree_model import TreeModel
from tallytree.learning.tree_svm import TreeSVM
from tallytree.losses.base import LEAST_BETA, MOST_BETA

_ESTIMATORS: dict[str, type[StructuredEstimator]] = {
    kind.__name__: kind for kind in (GraphCRF, GraphSVM, SequenceCRF, SequenceSVM, TreeCRF, TreeSVM)
}
_VALUES: dict[str, type] = {
    kind.__name__: kind
    for kind in (
        Binarisation,
        Columns,
        CuttingPlanes,
        Diverse,
        FrankWolfe,
        Hashed,
        Labels,
        Subgradient,
        TopTallies,
        TreeFeatures,
        TreeModel,
        TreebankGrammar,
        Vocabulary,
        WindowFeatures,
    )
}
_VALUES |= {
    name: kind
    for name, kind in vars(tallytree.losses).items()
    if isinstance(kind, type) and issubclass(kind, tallytree.losses.Loss)
}

_FEATURES: dict[str, tuple[str, ...]] = {
    "GraphCRF": ("widths_", "gradient_norm_"),
    "GraphSVM": ("widths_",),
    "SequenceCRF": ("encoder_", "gradient_norm_"),
    "SequenceSVM": ("encoder_",),
    "TreeCRF": ("model_", "gradient_norm_"),
    "TreeSVM": ("model_",),
}
_RESULTS = ("primal_", "dual_", "converged_", "interrupted_")


def save(
    estimator: StructuredEstimator, path: str | os.PathLike[str], *, notes: Mapping[str, Any] | None = None
) -> None:
    """Write a fitted estimator to a file, atomically.

    Parameters
    ----------
    estimator : SVM or CRF of this package
        The fitted estimator to save.
    path : path
        The file to write.
    notes : mapping of str to plain values, optional
        Additional information to store; restored as ``notes_``.

    Examples
    --------
    >>> import tempfile
    >>> from tallytree.learning import SequenceSVM
    >>> svm = SequenceSVM(C=10.0).fit([[["a"], ["b"]]], [["x", "y"]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(svm, f"{folder}/model.npz")
    ...     load(f"{folder}/model.npz").predict([[["b"]]])
    [array(['y'], dtype=object)]
    """
    kind = type(estimator).__name__
    if _ESTIMATORS.get(kind) is not type(estimator):
        raise ModelError(f"only {', '.join(_ESTIMATORS)} can be saved, got {kind}")
    if not hasattr(estimator, "weights_"):
        raise ModelError(f"this {kind} is not fitted yet, so there is nothing to save; call fit first")
    _check_parameters(estimator)  # as when it is read
    attributes = ("labels_", *_FEATURES[kind], *_RESULTS)
    header = {
        "kind": "estimator",
        "class": kind,
        "parameters": {k: _plain(v, k) for k, v in estimator.get_params(deep=False).items()},
        "attributes": {name: _plain(getattr(estimator, name), name) for name in attributes},
        "history": [list(entry) for entry in estimator.history_],
        "notes": dict(notes or {}),
    }
    write_arrays(path, header, {"weights": estimator.weights_})


def load(path: str | os.PathLike[str]) -> StructuredEstimator:
    """Read an estimator written by :func:`save`.

    Raises
    ------
    ModelError
        The file is damaged or does not contain an estimator.
    """
    header, arrays = read_arrays(path, "estimator")
    try:
        return _rebuilt(header, arrays)
    except DAMAGE as error:
        raise ModelError(
            f"{os.fspath(path)!r} is damaged, or from another version of tallytree: {error}"
        ) from error


def _rebuilt(header: dict[str, Any], arrays: dict[str, Any]) -> StructuredEstimator:
    kind = _ESTIMATORS.get(str(header.get("class")))
    if kind is None:
        raise ModelError(f"it contains an unknown estimator {header.get('class')!r}")
    estimator = kind(**_restored_all(header["parameters"]))
    for name, value in header["attributes"].items():
        if name not in ("labels_", *_FEATURES[kind.__name__], *_RESULTS):
            raise ModelError(f"it sets {name!r}, which is not a parameter of saved estimators")
        setattr(estimator, name, _restored(value))
    estimator.history_ = history_of(header["history"])
    estimator.notes_ = dict(header.get("notes", {}))
    estimator.weights_ = arrays["weights"]
    _check_parameters(estimator)
    estimator._check_fit()
    estimator.classes_ = estimator.labels_.classes
    return estimator


def _check_parameters(estimator: StructuredEstimator) -> None:
    """Raise an error for parameters that would break a later fit."""
    check_parameters(estimator.get_params(deep=False))
    estimator._recipe()  # a name must be known
    numbers = (estimator.primal_, estimator.dual_)
    if not all(isinstance(number, (int, float)) for number in numbers):
        raise ModelError(f"its objective and lower bound must be numbers, got {numbers}")


def _plain(value: Any, name: str) -> Any:
    """Return a value for JSON."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if isinstance(value, (tuple, list)):
        return [_plain(one, name) for one in value]
    if name == "class_weight":
        return {"labels": [_plain(one, name) for one in value.items()]}
    if is_dataclass(value) and _VALUES.get(type(value).__name__) is type(value):
        parameters = {key: _plain(one, name) for key, one in recipe_parameters(value).items()}
        return {"class": type(value).__name__, "parameters": parameters}
    raise ModelError(
        f"{name} is {value!r}, which cannot be saved: only losses and solvers of tallytree can; "
        "replace it before saving, or save weights_ yourself"
    )


def _restored(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(map(_restored, value))
    if not isinstance(value, dict):
        return value
    if "labels" in value:
        return dict(value["labels"])
    kind = _VALUES.get(str(value.get("class")))
    if kind is None:
        raise ModelError(f"the file has {value.get('class')!r}, which is not a loss or solver of tallytree")
    return kind(**_restored_all(value["parameters"]))


def _restored_all(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters by name; values that only release 0.1.0 accepted become what they meant there."""
    restored = {name: _restored(value) for name, value in parameters.items()}
    passes, beta = restored.get("max_passes"), restored.get("beta")
    if passes == 0 or (isinstance(passes, float) and isfinite(passes)):
        restored["max_passes"] = max(ceil(passes), 1)
    if isinstance(beta, (int, float)) and beta > 0:
        restored["beta"] = min(max(beta, LEAST_BETA), MOST_BETA)
    if restored.get("hashed") is not None:
        restored["min_count"] = 1  # it was ignored
    return restored
