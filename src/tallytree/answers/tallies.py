"""Tallies as named tuples, and look-ups in arrays of tallies."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import InfeasibleError, ModelError
from tallytree.model.inputs import suggestion
from tallytree.statistics.constraints import And, Constraint
from tallytree.statistics.linear import Comparison
from tallytree.values import integral


class Named(tuple[int, ...]):
    """A tally whose entries can be looked up by name, even if the name is not an identifier."""

    __slots__ = ()
    _fields: ClassVar[tuple[str, ...]]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            if key not in self._fields:
                raise KeyError(f"{key} is not one of ({', '.join(self._fields)})")
            key = self._fields.index(key)
        return tuple.__getitem__(self, key)

    def __getattr__(self, name: str) -> Any:  # called for names that are not identifiers
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(f"the tally has no attribute {name!r}: {error.args[0]}") from None

    def __repr__(self) -> str:
        return f"Tally({named_values(self._fields, self)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return tally_of, (self._fields, tuple(self))

    def _replace(self, /, **changes: int) -> Any:
        """Return the tally with other values, by name."""
        unknown = [name for name in changes if name not in self._fields]
        if unknown:
            raise ValueError(f"{', '.join(unknown)}: not among ({', '.join(self._fields)})")
        return tally_of(self._fields, [changes.get(*pair) for pair in zip(self._fields, self, strict=True)])


@lru_cache(maxsize=512)
def tally_type(names: tuple[str, ...]) -> Any:
    """Return the named tuple for statistics with these names.

    Examples
    --------
    >>> tally = tally_type(("ones", "B-NP"))(3, 2)
    >>> tally, tally.ones, tally["B-NP"]
    (Tally(ones=3, B-NP=2), 3, 2)
    """
    content = {"__slots__": (), "_fields": names, "__module__": __name__}
    return type("Tally", (Named, namedtuple("Tally", names, rename=True)), content)


def tally_of(names: tuple[str, ...], values: Iterable[int]) -> Any:
    """Return a tally; how pickles make it again."""
    return tally_type(names)(*values)


def named_values(names: Iterable[str], values: Iterable[object]) -> str:
    """Return names and values for a message.

    Examples
    --------
    >>> named_values(["ones", "B-NP"], [3, 2])
    'ones=3, B-NP=2'
    """
    return ", ".join(f"{name}={value}" for name, value in zip(names, values, strict=True))


@lru_cache(maxsize=512)
def unique_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names, with a number appended to those that occur more than once."""
    seen: dict[str, int] = {}
    result = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        result.append(name if seen[name] == 1 else f"{name}_{seen[name]}")
    return unique_names(tuple(result)) if len(set(result)) < len(result) else tuple(result)


def named_tally(statistics: Iterable[Any]) -> Any:
    """Return the named tuple for the tallies of some statistics."""
    return tally_type(unique_names(tuple([s.name for s in statistics])))


def whole_numbers(values: Iterable[Any]) -> list[int]:
    """Return a tally as plain integers, of any size.

    Examples
    --------
    >>> whole_numbers([np.uint64(2**64 - 1), 2**70, 2.0])
    [18446744073709551615, 1180591620717411303424, 2]
    """
    given = list(values)
    try:
        if not any(isinstance(value, (bool, np.bool_)) for value in given):
            return [integral(value) for value in given]
    except TypeError:
        pass
    raise ModelError(f"a tally must consist of integers, got {given}")


Tally = int | Iterable[int] | Mapping[str, int]
"""A tally as passed by users: in the order of the statistics, or by name; an integer for one statistic."""


def wanted_tally(names: Sequence[str], tally: Sequence[Any], named: Mapping[str, Any]) -> list[int]:
    """Return a tally passed in order, by name, or both, as one integer per name.

    A sequence or a mapping of all of it may be passed as one argument.

    Examples
    --------
    >>> names = ("ones", "B-NP")
    >>> wanted_tally(names, (3, 2), {}) == wanted_tally(names, ((3, 2),), {})
    True
    >>> wanted_tally(names, (3,), {"B-NP": 2}), wanted_tally(names, ({"B-NP": 2, "ones": 3},), {})
    ([3, 2], [3, 2])
    """
    if set(named) == {"tally"} - set(names) and not tally:  # as `sample` and `marginals` take it
        tally, named = (named["tally"],), {}
    if len(tally) == 1 and not named:
        tally, named = _unpacked(tally[0])
    unknown = [name for name in named if name not in names]
    values = dict(zip(names, tally, strict=False))
    twice = [name for name in named if name in values]
    values.update(named)
    if unknown or twice or len(tally) > len(names) or len(values) < len(names):
        got = [*map(repr, tally), *(f"{name}={value!r}" for name, value in named.items())]
        advice = suggestion(unknown[0], tuple(names)) if unknown else ""
        if "where" in unknown:
            advice = ". For a constraint, ask tt.distribution(…, where=…) or profile.best(where=…)"
        raise ModelError(
            f"a tally needs one integer for each of ({', '.join(names)}), in order or by name; "
            f"got ({', '.join(got)}){advice}"
        )
    return whole_numbers([values[name] for name in names])


def _unpacked(whole: Any) -> tuple[Sequence[Any], Mapping[str, Any]]:
    """Return a tally passed as one argument, in order and by name."""
    if isinstance(whole, Mapping):
        return (), whole
    try:
        return tuple(whole), {}
    except TypeError:  # the integer of a single statistic
        return (whole,), {}


def row_of(tallies: NDArray[np.int64], wanted: Sequence[int]) -> int | None:
    """Return the row equal to a tally, or None."""
    if any(abs(value) >= 2**63 for value in wanted):
        return None
    rows = np.flatnonzero((tallies == np.array(wanted, dtype=np.int64)).all(axis=1))
    return int(rows[0]) if len(rows) else None


_SHOWN = 16  # statistics of a tally in a message


def unattained(
    noun: str, names: Sequence[str], tallies: NDArray[np.int64], wanted: Sequence[int]
) -> InfeasibleError:
    """Return the error for a tally that nothing has, with the nearest ones."""
    place = np.array([max(-(2**70), min(2**70, value)) for value in wanted], dtype=np.float64)
    distance = np.abs(tallies - place).sum(axis=1)
    return InfeasibleError(
        f"no {noun} has the tally {_named(names, wanted)}; {nearest_tallies(names, tallies, distance)}"
    )


def unsatisfied(noun: str, constraint: Constraint | None, near: str) -> InfeasibleError:
    """Return the error for a constraint that nothing satisfies; ``near`` has the nearest tallies.

    Examples
    --------
    >>> from tallytree.statistics.recipes import count
    >>> ones = count(state=1, name="ones")
    >>> unsatisfied("labelling", (ones <= 2) & (ones >= 3), "…")
    InfeasibleError("no labelling satisfies '(ones <= 2) and (ones >= 3)'; tallies are integers, and none is
    between 2 and 3; …")
    """
    notes = [
        f"tallies are integers, and none is between {below.bound} and {above.bound}; "
        for below, above in pairwise(constraint.parts if isinstance(constraint, And) else ())
        if isinstance(below, Comparison) and isinstance(above, Comparison) and below.terms == above.terms
        if (below.relation, above.relation, above.bound - below.bound) == ("<=", ">=", 1)
    ]
    return InfeasibleError(f"no {noun} satisfies '{constraint}'; {''.join(notes)}{near}")


def nearest_tallies(
    names: Sequence[str], tallies: NDArray[np.int64], missed: NDArray[Any], read: Iterable[Any] = ()
) -> str:
    """Return the tallies nearest to satisfying a constraint, for the end of an error message.

    `read`: the statistics of the constraint, of which the caps are named.
    """
    if not len(tallies):
        return "no tally is attainable"
    rows = np.argsort(np.broadcast_to(missed, len(tallies)), kind="stable")[:3]
    shown = (_named(names, row) for row in tallies[rows].tolist())
    caps = [(s.name, s.cap) for s in read if getattr(s, "cap", None) is not None]
    notes = [f"; {name} is capped, so {cap} means {cap} or more" for name, cap in caps]
    return f"the nearest attainable tallies are {', '.join(shown)}{''.join(notes)}"


def _named(names: Sequence[str], tally: Sequence[int]) -> str:
    end = ", …" if len(names) > _SHOWN else ""
    return f"({named_values(names[:_SHOWN], tally[:_SHOWN])}{end})"
