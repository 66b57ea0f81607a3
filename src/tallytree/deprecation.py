"""Module attributes found on first use: lazily imported ones, and old names of renamed objects.

An old name works for one more release, with a warning that gives the new one.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

REMOVAL = "0.3.0"
"""The release in which the names deprecated in this one are removed."""


def warn_renamed(old: str, new: str, stacklevel: int) -> None:
    """Warn that something has been renamed; ``stacklevel`` is that of ``warnings.warn``."""
    text = f"{old} is now called {new}; the old name will be removed in release {REMOVAL}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)


def _submodule(module: str, name: str) -> Any:
    """Import a subpackage; if a dependency is missing, raise AttributeError, so that ``hasattr`` is False."""
    try:
        return import_module(f"{module}.{name}")
    except ImportError as error:
        raise AttributeError(f"module {module!r} has no attribute {name!r}: {error}") from error


def renamed(
    module: str, names: Mapping[str, str], lazy: Sequence[str] = (), sources: Mapping[str, str] | None = None
) -> Callable[[str], Any]:
    """Return a module ``__getattr__`` that resolves renamed and lazily imported names.

    Parameters
    ----------
    module : str
        The module's ``__name__``.
    names : mapping of str to str
        Maps each old name to the new one.
    lazy : sequence of str
        Subpackages of the module that are imported on first use.
    sources : mapping of str to str, optional
        Maps each name that is imported on first use to the submodule that defines it.

    Returns
    -------
    callable
        Returns the renamed object for an old name and warns at the line that used it, so that
        imports, ``isinstance`` and pickles made with the old name keep working.

    Examples
    --------
    >>> import warnings
    >>> old = renamed("math", {"ceiling": "ceil"})
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     old("ceiling")(1.5)
    2
    >>> print(caught[0].message)
    math.ceiling is now called math.ceil; the old name will be removed in release 0.3.0
    """
    where = dict(sources or {})

    def attribute(name: str) -> Any:
        if name in lazy:
            return _submodule(module, name)
        if name in where:
            value = getattr(import_module(f"{module}.{where[name]}"), name)
            setattr(sys.modules[module], name, value)  # found directly from now on
            return value
        if name not in names:
            text = f"module {module!r} has no attribute {name!r}"
            raise AttributeError(text, name=name, obj=sys.modules[module])
        warn_renamed(f"{module}.{name}", f"{module}.{names[name]}", stacklevel=3)
        return getattr(sys.modules[module], names[name])

    return attribute
