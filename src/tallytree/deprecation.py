"""Names that have changed: the old name works for one more release, with a warning that gives the new one."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Mapping
from typing import Any

REMOVAL = "0.3.0"
"""The release in which the old names of this one are removed."""


def warn_renamed(old: str, new: str, stacklevel: int) -> None:
    """Warn that something has another name; at the line so many calls up."""
    text = f"{old} is now called {new}; the old name will be removed in release {REMOVAL}"
    warnings.warn(text, DeprecationWarning, stacklevel=stacklevel)


def renamed(module: str, names: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the ``__getattr__`` of a module some of whose names have changed.

    Parameters
    ----------
    module : str
        The module's ``__name__``.
    names : mapping of str to str
        The new name for each old one.

    Returns
    -------
    callable
        Gives the object of the new name for an old one and warns at the line that used it, so that
        imports, ``isinstance`` and pickles made under the old name work.

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

    def attribute(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warn_renamed(f"{module}.{name}", f"{module}.{names[name]}", stacklevel=3)
        return getattr(sys.modules[module], names[name])

    return attribute
