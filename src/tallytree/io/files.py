"""Reading and writing files: read at once, if memory allows, and replaced atomically."""

from __future__ import annotations

import errno
import gzip
import os
import re
import secrets
import zlib
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeAlias, cast

from tallytree.errors import BudgetError, ModelError
from tallytree.planning.budget import default_memory_limit

PathLike: TypeAlias = str | os.PathLike[str]

EXPANSION = 64
"""Bytes of Python objects that a parser may create per byte of text; measured on lists of digits."""

_CHUNK = 1 << 20
_PACKED = {rb"\x1f\x8b": "gzip", rb"\xfd7zXZ\x00": "lzma", rb"BZh[1-9](1AY|\x17rE)": "bz2"}
"""The modules that unpack files that begin like this."""
_PACKERS = {".gz": "gzip", ".xz": "lzma", ".bz2": "bz2"}
_LINE_END = re.compile(rb"\r\n|\r|\n")


class Source(NamedTuple):
    """The bytes of a file, and its name for error messages."""

    name: str
    data: bytes


Readable: TypeAlias = PathLike | Source
"""What readers accept: a path, or bytes that are already in memory."""


def check_path(place: object) -> None:
    """Raise an error for text in place of the path of a file that holds it."""
    if isinstance(place, str) and "\n" in place:
        first = place.lstrip().partition("\n")[0][:40]
        raise ModelError(
            f"expected the path of a file, got text with several lines that begins with {first!r}; write it "
            "to a file, or pass tallytree.io.Source('text', text.encode())"
        )


def source(place: Readable, expansion: int = EXPANSION) -> Source:
    """Read a file; raise an error if it would not fit in memory once parsed."""
    if isinstance(place, Source):
        return place
    check_path(place)
    with Path(place).open("rb") as file:
        return read_stream(file, os.fspath(place), expansion)


def read_stream(stream: BinaryIO, name: str, expansion: int = EXPANSION) -> Source:
    """Read a stream to its end, uncompressed if it is compressed by gzip, xz or bzip2.

    Raises an error as soon as it is too long, compressed or not.
    """
    data = _read_all(stream, name, expansion)
    if (packer := _packer(data)) is not None:
        try:
            data = _read_all(import_module(packer).open(BytesIO(data)), name, expansion)
        except ImportError:
            raise ModelError(f"{name} is compressed, but this Python has no module {packer}") from None
        except (OSError, EOFError, zlib.error) as error:
            raise _damaged(name, packer, error) from None
        except Exception as error:  # LZMAError, of a module that need not be there
            if type(error).__name__ != "LZMAError":
                raise
            raise _damaged(name, packer, error) from None
        if _packer(data) is not None:
            raise ModelError(f"{name} is compressed by {_NAMES[packer]} more than once; decompress it first")
    return Source(name, data.removeprefix(BOM_UTF8))


def _packer(data: bytes) -> str | None:
    """Return the module that unpacks some bytes; None if they are not compressed."""
    return next((module for start, module in _PACKED.items() if re.match(start, data)), None)


def _damaged(name: str, packer: str, error: Exception) -> ModelError:
    return ModelError(f"{name} is compressed by {_NAMES[packer]}, but damaged: {error}")


_NAMES = {"gzip": "gzip", "lzma": "xz", "bz2": "bzip2"}


def unpacked_name(path: str) -> str:
    """Return a file name without the suffix of its compression."""
    return next((path[: -len(end)] for end in _PACKERS if path.lower().endswith(end)), path)


def _read_all(stream: Any, name: str, expansion: int) -> bytes:
    most = int(default_memory_limit() / expansion)
    chunks, length = [], 0
    while chunk := stream.read(_CHUNK):
        length += len(chunk)
        if length > most:
            raise BudgetError(
                f"{name} has more than {most} bytes; reading it could take {expansion} times as much "
                "memory, which is more than half of the memory of this machine"
            )
        chunks.append(chunk)
    return b"".join(chunks)


def decoded(found: Source) -> str:
    """Return the text of a file."""
    try:
        return found.data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise no_text(found.name, error) from None


def no_text(name: str, error: UnicodeDecodeError, before: int = 0) -> ModelError:
    """Return the error for a file that is not text, given the number of lines before the decoded part."""
    line = before + 1 + len(_LINE_END.findall(error.object, 0, error.start))
    byte = error.object[error.start]
    wide = not before and error.object.startswith((BOM_UTF16_LE, BOM_UTF16_BE))
    encoding, remedy = ("utf-16", "convert") if wide else ("latin1", "if it is Latin-1 text, convert")
    return ModelError(
        f"{name} is not UTF-8 text: line {line} has the byte 0x{byte:02x} ({error.reason}); {remedy} it "
        f"with `iconv -f {encoding} -t utf-8`"
    )


@contextmanager
def replacing(path: PathLike) -> Iterator[BinaryIO]:
    """Write next to a file under another name, then rename it, so that the change is atomic; links are kept.

    Devices and pipes are written to directly, so that ``/dev/null`` is not replaced by a file.
    """
    if Path(path).exists() and not Path(path).is_file():
        with Path(path).open("wb") as file:
            yield file
        return
    target = Path(path).resolve()
    unfinished = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    try:
        with unfinished.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    except BaseException as error:
        with suppress(OSError):
            unfinished.unlink()
        if isinstance(error, OSError) and str(error.filename) == str(unfinished):
            error.filename = os.fspath(path)  # the requested name
        raise


@contextmanager
def replacing_text(path: PathLike) -> Iterator[BinaryIO]:
    """Do the same for text, which is compressed if the name ends in ``.gz``, ``.xz`` or ``.bz2``."""
    packer = _PACKERS.get(Path(path).suffix.lower())
    with replacing(path) as file:
        if packer is None:
            yield file
            return
        with _packing(packer, file) as packed:
            yield packed


def _packing(packer: str, file: BinaryIO) -> BinaryIO:
    """Return a file that is written to another one, compressed by a module."""
    if packer == "gzip":  # without a name and a time, so that the same text gives the same bytes
        return cast(BinaryIO, gzip.GzipFile("", "wb", fileobj=file, mtime=0))
    try:
        return cast(BinaryIO, import_module(packer).open(file, "wb"))
    except ImportError:
        raise ModelError(f"this Python has no module {packer} to compress files; use .gz") from None


def check_writable(path: PathLike) -> None:
    """Raise the errors of :func:`replacing` early, before long computations."""
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(path))
    folder = Path(path).resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), os.fspath(path))
    if not os.access(folder, os.W_OK) and not Path(path).exists():
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), os.fspath(path))


def write_atomically(path: PathLike, lines: Iterable[str], *, encoding: str = "utf-8") -> None:
    """Replace a file by some lines, atomically; compressed if its name says so."""
    with replacing_text(path) as file:
        file.writelines((line + "\n").encode(encoding) for line in lines)


def needed(module: str) -> Any:
    """Import a module of an optional package; raise an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ModelError(
            f"this needs {package}, which cannot be imported ({error}); install it with "
            "`pip install 'tallytree[interop]'`"
        ) from None
