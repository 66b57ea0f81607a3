"""Parts of the library that need an extra, with an error that names it."""

from __future__ import annotations

from types import ModuleType

from tallytree.errors import TallytreeError


def learning() -> ModuleType:
    """Return :mod:`tallytree.learning`, which takes a second to import."""
    try:
        import tallytree.learning as module
    except ImportError as error:
        raise TallytreeError(str(error)) from None
    return module
