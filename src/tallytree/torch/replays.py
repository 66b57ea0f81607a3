"""Errors of CUDA graphs that were captured with layers of this package."""

from __future__ import annotations

import torch


def check_replays() -> None:
    """Raise an error if a replayed CUDA graph has met invalid input since the last call.

    A call of a layer checks its inputs and raises an error. In a replay of a captured call, the kernels check
    them as well, but no error is raised: the loss becomes nan and its gradients 0. This function
    waits for the device and raises the error, for example once per epoch. Without captured graphs it does
    nothing.

    Raises
    ------
    ModelError
        The inputs of some replay were invalid: a mask with a hole, tags out of range, or scores that are nan.

    Examples
    --------
    >>> check_replays()
    """
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        from tallytree.torch.gpu import replays

        replays.check()
