"""Arrays and a header in one file, without pickle, written so that a reader never sees half of one."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.io.files import replacing

__all__ = ["read_arrays", "write_arrays"]

_HEADER = "header"


def write_arrays(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and a JSON header to an npz file: under another name, then moved."""
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise ModelError(f"only arrays of numbers and texts are written, and {objects} hold objects")
    text = np.frombuffer(json.dumps(header).encode("utf-8"), dtype=np.uint8)
    with replacing(path) as file:
        np.savez(file, **{_HEADER: text, **arrays})  # type: ignore[arg-type]


def read_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read such a file; nothing in it can run.

    Raises
    ------
    ModelError
        The file is damaged, or holds something else.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
        header = json.loads(arrays.pop(_HEADER).tobytes().decode("utf-8"))
    except (zipfile.BadZipFile, ValueError, KeyError, EOFError, AttributeError) as error:
        raise ModelError(
            f"{os.fspath(path)!r} is no {kind} of tallytree, or it is damaged: {error}"
        ) from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        found = header.get("kind") if isinstance(header, dict) else None
        raise ModelError(
            f"{os.fspath(path)!r} is no {kind} of tallytree: it holds {found or 'something else'}"
        )
    return header, arrays
