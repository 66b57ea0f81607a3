"""Functions that ``torch.compile`` does not trace: it breaks the graph there once, and traces the rest."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")


def eager(function: Callable[P, R]) -> Callable[P, R]:
    """Run a function eagerly in compiled models, too.

    ``torch.compiler.disable`` does that, but loads the compiler, which takes seconds, so it is only called
    while a compiler is active.
    """

    @wraps(function)
    def untraced(*arguments: P.args, **keywords: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            outside: Callable[P, R] = torch.compiler.disable(function)  # type: ignore[no-untyped-call]
            return outside(*arguments, **keywords)
        return function(*arguments, **keywords)

    return untraced
