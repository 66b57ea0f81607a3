"""Packages that are needed only by those who use them."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from tallytree.errors import ModelError


def needed(module: str) -> Any:
    """Import a module of an optional package, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ModelError(
            f"this needs {package}, which cannot be imported ({error}); install it with "
            "`pip install tallytree[interop]`"
        ) from None
