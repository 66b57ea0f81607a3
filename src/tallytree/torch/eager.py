"""Functions that PyTorch's compilers leave to Python.

``torch.compile`` breaks the graph there once, and traces the rest; modules of ``torch.jit.script`` call them.
"""

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
    while a compiler is active. A method may use others of its module only if these are eager, too: a scripted
    module has no others.
    """

    @wraps(function)
    def untraced(*arguments: P.args, **keywords: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            outside: Callable[P, R] = torch.compiler.disable(function)  # type: ignore[no-untyped-call]
            return outside(*arguments, **keywords)
        return function(*arguments, **keywords)

    ignored: Callable[P, R] = torch.jit.ignore(untraced)  # type: ignore[no-untyped-call]
    return ignored
