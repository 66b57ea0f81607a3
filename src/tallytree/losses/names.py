"""Losses by name, as on the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from tallytree.errors import ModelError
from tallytree.losses.base import Loss
from tallytree.losses.brackets import CrossingBrackets
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.nodes import FBeta, IntersectionOverUnion, SymmetricDifference
from tallytree.losses.positions import HammingDistance, ZeroOne

_MAKERS: dict[str, Callable[..., Loss]] = {
    "hamming": HammingDistance,
    "f1": FBeta,
    "chunk-f1": ChunkFBeta,
    "iou": IntersectionOverUnion,
    "symmetric-difference": SymmetricDifference,
    "crossing-brackets": CrossingBrackets,
    "zero-one": ZeroOne,
}
LOSS_NAMES = tuple(_MAKERS)
_OTHER_NAMES = {"accuracy": "hamming"}  # what is scored, in place of the loss
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
        More parameters of a loss by name, such as ``beta``.

    Examples
    --------
    >>> as_loss("chunk-f1", beta=2.0) == as_loss("chunk-f2")
    True
    >>> as_loss("chunk_f1")
    Traceback (most recent call last):
    tallytree.errors.ModelError: unknown loss 'chunk_f1'; the names are hamming, f1, chunk-f1, iou,
    symmetric-difference, crossing-brackets and zero-one, with any β as in f2; or pass a loss from
    tallytree.losses
    """
    if isinstance(loss, Loss):
        return loss
    name = _OTHER_NAMES.get(loss, loss) if isinstance(loss, str) else ""
    if found := _F.fullmatch(name):
        name, parameters = f"{found[1]}1", {"beta": float(found[2]), **parameters}
    if name not in _MAKERS:
        names = f"{', '.join(LOSS_NAMES[:-1])} and {LOSS_NAMES[-1]}"
        raise ModelError(
            f"unknown loss {loss!r}; the names are {names}, with any β as in f2; or pass a loss from "
            "tallytree.losses"
        )
    if name in ("f1", "iou"):
        parameters["background"] = background
    return _MAKERS[name](**parameters)
