"""Losses by name, as on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from tallytree.errors import ModelError
from tallytree.losses.base import Loss
from tallytree.losses.brackets import CrossingBrackets
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.node_numbers import SymmetricDifference
from tallytree.losses.nodes import FBeta, IntersectionOverUnion
from tallytree.losses.positions import HammingDistance, ZeroOne
from tallytree.values import nearest

_MAKERS: dict[str, Callable[..., Loss]] = {
    "accuracy": HammingDistance,  # what is scored, in place of the loss
    "hamming": HammingDistance,
    "f1": FBeta,
    "chunk-f1": ChunkFBeta,
    "iou": IntersectionOverUnion,
    "symmetric-difference": SymmetricDifference,
    "crossing-brackets": CrossingBrackets,
    "zero-one": ZeroOne,
}
LOSS_NAMES = tuple(_MAKERS)
"""The names that :func:`as_loss` accepts: ``"hamming"``, ``"f1"``, ``"chunk-f1"``, ``"iou"``,
``"symmetric-difference"``, ``"crossing-brackets"`` and ``"zero-one"``."""
_F = re.compile(r"((?:chunk-)?f)(\d+(?:\.\d*)?|\.\d+)", re.ASCII)


def as_loss(loss: Loss | str, background: Any = "O", **parameters: Any) -> Loss:
    """Return a loss given as an object or by name.

    Parameters
    ----------
    loss : Loss or str
        A loss is returned unchanged; a name must be one of ``LOSS_NAMES``. The number of an F-measure is its
        β, as in ``"f2"`` and ``"chunk-f0.5"``. ``"accuracy"`` stands for ``"hamming"``.
    background : label, optional
        The negative label for F of positions and ``"iou"``; None for trees, whose nodes are brackets.
    **parameters
        More parameters of a loss by name, such as ``beta`` of ``"f1"`` and ``"chunk-f1"``.

    Examples
    --------
    >>> as_loss("chunk-f1", beta=2.0) == as_loss("chunk-f2")
    True
    >>> as_loss("chunk_f1")
    Traceback (most recent call last):
    tallytree.errors.ModelError: unknown loss 'chunk_f1'; did you mean 'chunk-f1'? The names are accuracy,
    hamming, f1, chunk-f1, iou, symmetric-difference, crossing-brackets and zero-one, with any β as in f2; or
    pass a loss from tallytree.losses
    """
    if isinstance(loss, Loss):
        if parameters:
            given = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
            raise ModelError(f"{given} is for a loss given by name; use loss.replace({given})")
        return loss
    name, own = _split(loss)
    if own is not None and name != loss and parameters.get("beta", own) != own:
        raise ModelError(
            f"the loss {loss!r} has beta {own:g}, but beta={parameters['beta']!r} was given as well; use "
            f"{name!r} with beta={parameters['beta']!r}, or remove beta="
        )
    if own is not None:
        parameters = {"beta": own, **parameters}
    _check_names(loss, name, parameters)
    if name in ("f1", "iou"):
        parameters["background"] = background
    return _MAKERS[name](**parameters)


def base_name(loss: str) -> str:
    """Return the name of a loss without its β, and without synonyms.

    Examples
    --------
    >>> base_name("chunk-f0.5"), base_name("accuracy")
    ('chunk-f1', 'hamming')
    """
    name, _ = _split(loss)
    return "hamming" if name == "accuracy" else name


def _split(loss: object) -> tuple[str, float | None]:
    """Return a name in ``LOSS_NAMES`` and the β that it has; raise an error for unknown ones."""
    match = _F.fullmatch(loss) if isinstance(loss, str) else None
    if match is not None:
        return f"{match[1]}1", float(match[2])
    if isinstance(loss, str) and loss in _MAKERS:
        return loss, None
    names = f"{', '.join(LOSS_NAMES[:-1])} and {LOSS_NAMES[-1]}"
    raise ModelError(
        f"unknown loss {loss!r}{_hint(loss)} names are {names}, with any β as in f2; or pass a loss from "
        "tallytree.losses"
    )


def _hint(loss: object) -> str:
    """Return how a wrong loss may have been meant, up to the list of names."""
    if isinstance(loss, type) and issubclass(loss, Loss):
        return f"; it is a class, so call it, as in {loss.__name__}(). The"
    near = nearest(loss.lower(), LOSS_NAMES) if isinstance(loss, str) else None
    return f"; did you mean {near!r}? The" if near else "; the"


def _check_names(loss: object, name: str, parameters: Mapping[str, Any]) -> None:
    maker: Any = _MAKERS[name]
    known = [one.name for one in fields(maker) if one.init and one.name != "truth"]
    for given in parameters:
        if given not in (*known, "truth"):
            has = f"; it has {', '.join(known)}" if known else ""
            raise ModelError(f"the loss {loss!r} has no parameter {given!r}{has}")
