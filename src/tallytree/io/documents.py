"""Untrusted JSON documents, in which every value knows its path.

Duplicate keys, ``NaN`` and ``Infinity`` are rejected, and so is excessive nesting. Errors
begin with the path: ``model.factors[3].table[0][1]``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, NoReturn, final, overload

from tallytree.errors import ModelError
from tallytree.io.files import Source, decoded
from tallytree.values import nearest

DEEPEST = 64

_BRACKETS = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"?|[][{}]', re.DOTALL)


def document(source: Source) -> At:
    """Parse a JSON document."""
    text = decoded(source)
    check_depth(text, source.name)
    try:
        value = json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        message = error.msg if text.strip() else "the file is empty"
        if text.strip() and (error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated")):
            message = f"{message}; the file ends in the middle, so it may have been cut off"
        raise ModelError(f"{source.name}, line {error.lineno}, column {error.colno}: {message}") from None
    except ValueError as error:  # from the hooks, or an integer of thousands of digits
        raise ModelError(f"{source.name}: {error}") from None
    return At(value, source.name, "")


def check_depth(text: str, name: str) -> None:
    """Count brackets outside strings, before a recursive parser sees them."""
    depth = 0
    for token in _BRACKETS.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if depth > DEEPEST:
            raise ModelError(f"{name} is nested more than {DEEPEST} levels deep")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {shortened(twice)} occurs twice in one object")
    return result


def _no_constant(word: str) -> NoReturn:
    raise ValueError(f'{word} is not valid JSON; write "-inf", in quotes, for minus infinity')


def shortened(text: str) -> str:
    """Return a text in quotes, shortened if long."""
    return repr(text) if len(text) <= 40 else repr(text[:40]) + "…"


def kind_of(value: object) -> str:
    """Describe a JSON value, for an error message."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if isinstance(value, str):
        return shortened(value)
    return json.dumps(value) if not isinstance(value, int) or abs(value) < 2**63 else "a huge integer"


@final
class At:
    """A value of the document and the path to it."""

    __slots__ = ("file", "path", "value")

    def __init__(self, value: Any, file: str, path: str) -> None:
        self.value, self.file, self.path = value, file, path

    def refuse(self, expected: str) -> NoReturn:
        """Raise an error: this is not what was expected."""
        raise self.error(f"expected {expected}, got {kind_of(self.value)}")

    def error(self, text: str) -> ModelError:
        """Return an error that begins with the path."""
        return ModelError(": ".join(filter(None, (self.file, self.path, text))))

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Prefix the errors of the library with this path."""
        try:
            yield
        except ModelError as error:
            raise self.error(str(error)) from None

    def item(self, key: str | int) -> At:
        """Go one level down."""
        step = f"[{key}]" if isinstance(key, int) else f".{key}" if self.path else key
        return At(self.value[key], self.file, self.path + step)

    def object(
        self,
        required: Collection[str],
        optional: Collection[str] = (),
        values: Mapping[str, object] = MappingProxyType({}),
    ) -> dict[str, At]:
        """Take an object with these keys and no others; `values`: what to write for keys that are missing."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        known = [*required, *optional]
        for key in self.value:
            if key not in known:
                near = nearest(key, known)
                hint = f"; did you mean {near!r}?" if near else f"; the known keys are {', '.join(known)}"
                raise self.error(f"unknown key {shortened(key)}{hint}")
        for key in required:
            if key not in self.value:
                hint = f'; write "{key}": {json.dumps(values[key])}' if key in values else ""
                raise self.error(f"the key {key!r} is missing{hint}")
        return {key: self.item(key) for key in self.value}

    def choice(self, keys: tuple[str, ...]) -> str:
        """Return which one of these keys an object has."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        present = [key for key in keys if key in self.value]
        if len(present) != 1:
            raise self.error(
                f"expected one of the keys {', '.join(keys)}, got {', '.join(present) or 'none'}"
            )
        return present[0]

    def members(self) -> dict[str, At]:
        """Take an object with any keys."""
        if not isinstance(self.value, dict):
            self.refuse("an object")
        return {key: At(value, self.file, f"{self.path}.{key}"[:200]) for key, value in self.value.items()}

    def items(self, length: int | None = None, what: str = "a list") -> Items:
        """Take a list, of this length if one is given."""
        if not isinstance(self.value, list) or length not in (None, len(self.value)):
            self.refuse(what if length is None else f"a list of {length}")
        return Items(self)

    def text(self, what: str = "a string") -> str:
        """Take a string."""
        if not isinstance(self.value, str):
            self.refuse(what)
        if any("\ud800" <= character <= "\udfff" for character in self.value):
            raise self.error(f"{self.value!a} has an unpaired surrogate, which cannot be written to a file")
        return str(self.value)

    def whole(self, what: str, low: int, high: int) -> int:
        """Take an integer from ``low`` to ``high``."""
        value = self.value
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
            self.refuse(f"{what}, {low} to {high}" if low < high else f"{what}, {low}")
        return value

    def number(self) -> float:
        """Take a finite number."""
        value = self.value
        if not isinstance(value, (int, float)) or isinstance(value, bool) or not _fits(value):
            self.refuse("a finite number")
        return float(value)

    def label(self, what: str) -> str | int:
        """Take a name or a number."""
        return self.text() if isinstance(self.value, str) else self.whole(what, 0, 2**31 - 1)

    def entries(self, shape: tuple[int, ...], convert: Callable[[Any], Any], what: str) -> list[Any]:
        """Take nested lists of this shape, flattened; ``convert`` raises ValueError for invalid entries."""
        if not shape:
            return [self._converted(convert, what)]
        if not isinstance(self.value, list) or len(self.value) != shape[0]:
            self.refuse(f"a list of {shape[0]}")
        if len(shape) == 1:
            try:
                return [convert(value) for value in self.value]
            except ValueError:
                for item in self.items():
                    item._converted(convert, what)
                raise
        return [entry for item in self.items() for entry in item.entries(shape[1:], convert, what)]

    def _converted(self, convert: Callable[[Any], Any], what: str) -> Any:
        try:
            return convert(self.value)
        except ValueError:
            self.refuse(what)


@final
class Items(Sequence[At]):
    """The items of a list with their paths, created on demand, so that long lists stay small."""

    __slots__ = ("_whole",)

    def __init__(self, whole: At) -> None:
        self._whole = whole

    def __len__(self) -> int:
        return len(self._whole.value)

    @overload
    def __getitem__(self, key: int) -> At: ...
    @overload
    def __getitem__(self, key: slice) -> list[At]: ...
    def __getitem__(self, key: int | slice) -> At | list[At]:
        if isinstance(key, slice):
            return [self._whole.item(i) for i in range(len(self))[key]]
        return self._whole.item(key)


def _fits(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False
