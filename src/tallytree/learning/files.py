"""Arrays and a header in one file, without pickle, written atomically."""

from __future__ import annotations

import json
import os
import re
import struct
import zipfile
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import BudgetError, ModelError
from tallytree.io.documents import check_depth
from tallytree.io.files import replacing
from tallytree.planning.budget import default_memory_limit

DAMAGE = (
    ArithmeticError,
    AttributeError,
    EOFError,
    LookupError,
    OSError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
)
"""Errors from reading a damaged file, which are reported as a :class:`ModelError`."""

_HEADER = "header"
_KINDS = {"estimator": "an estimator", "checkpoint": "a checkpoint"}


def write_arrays(
    path: str | os.PathLike[str], header: dict[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> None:
    """Write arrays and a JSON header to an npz file, atomically."""
    objects = [name for name, array in arrays.items() if array.dtype.kind not in "biuf"]
    if objects:
        raise ModelError(f"only numeric arrays can be written, but {objects} hold something else")
    text = np.frombuffer(json.dumps(header).encode("utf-8"), dtype=np.uint8)
    with replacing(path) as file:
        np.savez(file, **{_HEADER: text, **arrays})  # type: ignore[arg-type]


def read_arrays(path: str | os.PathLike[str], kind: str) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read such a file; nothing in it is executed.

    Raises ModelError if the file is damaged or of another kind, and BudgetError if it is larger than
    half of the memory.
    """
    name = os.fspath(path)
    with open(path, "rb") as file:
        check_length(os.fstat(file.fileno()).st_size, name)
        try:
            arrays = {key.removesuffix(".npy"): array_of(data) for key, data in _members(file)}
            if _HEADER not in arrays:
                raise ValueError("it has no header")
            text = arrays.pop(_HEADER).tobytes().decode("utf-8")
            check_depth(text, "the header")
            header = json.loads(text)
        except DAMAGE as error:
            raise ModelError(f"{name!r} is not a tallytree {kind}, or it is damaged: {error}") from error
    if not isinstance(header, dict) or header.get("kind") != kind:
        stored_kind = str(header.get("kind")) if isinstance(header, dict) else ""
        raise ModelError(
            f"{name!r} is not a tallytree {kind}: it holds {_KINDS.get(stored_kind, 'something else')}"
        )
    return header, arrays


def check_length(length: int, name: str) -> None:
    """Raise an error for a file that would fill the memory."""
    if length > default_memory_limit():
        raise BudgetError(f"{name!r} has {length} bytes, more than half of the memory of this machine")


def _members(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """Iterate over the parts of an archive, whose total size is at most that of the file."""
    with zipfile.ZipFile(file) as archive:
        members = archive.infolist()
        whole = sum(member.file_size for member in members)
        if whole > os.fstat(file.fileno()).st_size or any(member.compress_type for member in members):
            raise ValueError("its parts are compressed, but tallytree writes uncompressed ones")
        for member in members:
            yield member.filename, archive.read(member)


def array_of(data: bytes) -> NDArray[Any]:
    """Read a numeric array in NumPy's own format, no larger than the data.

    NumPy would evaluate the header as a Python literal; those written here match one pattern.

    Raises ValueError if it is not such an array.
    """
    match = _ARRAY.match(data)
    if match is None:
        raise ValueError("a part is not an array of numbers")
    kind, by_columns, sizes = (group.decode() for group in match.groups())
    shape = tuple(int(size) for size in sizes.split(",") if size.strip())
    dtype, entries = np.dtype(kind), data[match.end() :]
    if prod(shape) * dtype.itemsize != len(entries):
        raise ValueError(f"{len(entries)} bytes do not match an array of shape {shape}")
    return (
        np.frombuffer(entries, dtype=dtype).reshape(shape, order="F" if by_columns == "True" else "C").copy()
    )


_ARRAY = re.compile(
    rb"\x93NUMPY\x01\x00..\{'descr': '([<>|](?:b1|[iu][1248]|f[248]))', 'fortran_order': (True|False), "
    rb"'shape': \(((?:\d{1,18}(?:, ?\d{1,18})*,?)?)\), \} *\n",
    re.DOTALL,
)
