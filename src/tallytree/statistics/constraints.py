"""Constraints on tallies: comparisons joined by ``&``, ``|`` and ``~``.

Since tallies are integers, four relations suffice (``G < b`` is ``G <= b - 1``), and negations are moved
inwards to the comparisons (``~(G <= b)`` is ``G >= b + 1``): a constraint is a tree of ``And`` and
``Or`` over comparisons.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.statistics.joining import FEW_TERMS, Joined
from tallytree.statistics.operands import not_a_constraint
from tallytree.values import Frozen, set_once

if TYPE_CHECKING:
    from tallytree.statistics.domain import Domain
    from tallytree.statistics.linear import Term

_DEEPEST = 100  # levels of nested constraints
_LONG = 600  # characters of a constraint in a message


class Constraint(ABC):
    """A condition on tallies: a comparison, or several joined by ``&``, ``|`` and ``~``.

    Examples
    --------
    >>> from tallytree.statistics.statistic import Statistic
    >>> ones = Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="ones")
    >>> middle = (ones >= 1) & ~(ones > 5)
    >>> middle
    (ones >= 1) & (ones <= 5)
    >>> middle.holds({ones: [0, 1, 6]}).tolist()
    [False, True, False]
    >>> 1 <= ones <= 5
    Traceback (most recent call last):
    tallytree.errors.ModelError: the constraint 'ones >= 1' has no truth value. ...
    """

    __slots__ = ()

    @property
    @abstractmethod
    def statistics(self) -> tuple[Term, ...]:
        """The distinct statistics it reads, in order of first use."""

    @abstractmethod
    def mapped(self, function: Callable[[Any], Term]) -> Constraint:
        """Replace each statistic by another; returns itself if none changes."""

    def on(self, model: Domain) -> Constraint:
        """Bind all recipes in it to a model; returns itself if there are none."""
        return self.mapped(lambda term: term.on(model))

    @property
    def reducing(self) -> tuple[Reducing, ...]:
        """The parts that cannot be decided from tallies."""
        return ()

    def __str__(self) -> str:
        """Write it as a formula for a message, shortened in the middle if long."""
        text = self.written()
        return text if len(text) <= _LONG else f"{text[: _LONG - 100]} … {text[-90:]}"

    def written(self) -> str:
        """Return it as a formula, as far as formulas can express it."""
        return repr(self)

    @abstractmethod
    def __invert__(self) -> Constraint: ...

    @abstractmethod
    def _mask(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]: ...

    @abstractmethod
    def violation(self, values: Mapping[Any, ArrayLike]) -> NDArray[Any]:
        """Return how far it is from being satisfied: 0 where it holds.

        For a comparison, this is the distance of the left side from the nearest number that satisfies it; for
        comparisons joined by ``&`` the sum of their distances, for ``|`` the smallest of them.

        Examples
        --------
        >>> import tallytree as tt
        >>> ones = tt.Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="ones")
        >>> ((ones >= 1) & (ones <= 3)).violation({ones: [0, 1, 6]}).tolist()
        [1, 0, 3]
        """

    def holds(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]:
        """Evaluate the constraint elementwise.

        Parameters
        ----------
        values : mapping of statistic to integer or integer array
            The tally of every statistic it reads.

        Returns
        -------
        boolean array
            Has the broadcast shape of all values.
        """
        shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
        mask = self._mask(values)
        return mask if mask.shape == shape else np.array(np.broadcast_to(mask, shape))

    def __and__(self, other: Constraint) -> Constraint:
        joined = _joined(self, And).with_(_joined(as_constraint(other), And))
        return And.of(joined, max(_depth(self, And), _depth(other, And)))

    def __or__(self, other: Constraint) -> Constraint:
        parts = [one for one in (self, as_constraint(other)) if not isinstance(one, Or)]  # checked already
        _check_alternatives(parts)
        joined = _joined(self, Or).with_(_joined(other, Or))
        return Or.of(joined, max(_depth(self, Or), _depth(other, Or)))

    # reached if the left operand is not a constraint: the same error
    __rand__ = __and__
    __ror__ = __or__

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"the constraint '{self}' has no truth value. Python asks for one in a chained comparison, in "
            "`in`, `and`, `or` and `not`, and would drop a part: instead of `2 <= ones <= 5` write "
            "`(ones >= 2) & (ones <= 5)`, instead of `ones in (1, 2)` write `(ones == 1) | (ones == 2)`, and "
            "use `&`, `|`, `~` with parentheses"
        )


class _Compound(Frozen, Constraint):
    __slots__ = ("_joined", "depth")

    depth: int  # number of nested levels of & and |

    _joined: Joined[Constraint]
    symbol: ClassVar[str]
    word: ClassVar[str]
    join: ClassVar[np.ufunc]
    missed: ClassVar[np.ufunc]

    def __init__(self, parts: tuple[Constraint, ...]) -> None:
        self._fill(Joined(tuple(parts)), 1 + max(map(_depth, parts), default=0))

    @classmethod
    def of(cls, joined: Joined[Constraint], depth: int) -> Self:
        """Return a constraint whose parts are listed lazily."""
        made = object.__new__(cls)
        made._fill(joined, depth)
        return made

    def _fill(self, joined: Joined[Constraint], depth: int) -> None:
        if depth > _DEEPEST:
            raise ModelError(
                f"the constraint is nested more than {_DEEPEST} levels deep; join comparisons by & and | in "
                "long rows, which are one level each, or move the condition into the objective"
            )
        set_once(self, "_joined", joined)
        set_once(self, "depth", depth)

    @property
    def parts(self) -> tuple[Constraint, ...]:
        """The constraints that it joins; none of them has the same type."""
        return self._joined.items

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Compound) and type(self) is type(other) and self.parts == other.parts

    def __hash__(self) -> int:
        return hash((type(self), self.parts))

    def __reduce__(self) -> tuple[type[Self], tuple[object, ...]]:
        return type(self), (self.parts,)

    @property
    def statistics(self) -> tuple[Term, ...]:
        """The distinct statistics it reads, in order of first use."""
        return _distinct([term for part in self.parts for term in part.statistics])

    @property
    def reducing(self) -> tuple[Reducing, ...]:
        """The parts that cannot be decided from tallies."""
        return tuple(one for part in self.parts for one in part.reducing)

    def mapped(self, function: Callable[[Any], Term]) -> Constraint:
        """Replace each statistic by another; returns itself if none changes."""
        others = tuple(part.mapped(function) for part in self.parts)
        same = all(new is old for new, old in zip(others, self.parts, strict=True))
        return self if same else type(self)(others)

    def _mask(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]:
        return np.asarray(reduce(self.join, (part._mask(values) for part in self.parts)))

    def violation(self, values: Mapping[Any, ArrayLike]) -> NDArray[Any]:
        """Return the sum over all parts (``&``), or the minimum (``|``)."""
        return np.asarray(reduce(self.missed, (part.violation(values) for part in self.parts)))

    def __repr__(self) -> str:
        return f" {self.symbol} ".join(f"({part!r})" for part in self.parts)

    def written(self) -> str:
        """Return it as a formula, as far as formulas can express it."""
        return f" {self.word} ".join(f"({part.written()})" for part in self.parts)


@final
class And(_Compound):
    """All parts hold."""

    __slots__ = ()
    symbol, word = "&", "and"
    join = np.logical_and
    missed = np.add

    def __invert__(self) -> Constraint:
        return _any_of(tuple(~part for part in self.parts))


@final
class Or(_Compound):
    """At least one part holds."""

    __slots__ = ()
    symbol, word = "|", "or"
    join = np.logical_or
    missed = np.minimum

    def __invert__(self) -> Constraint:
        return And(tuple(~part for part in self.parts))


class Reducing(Constraint):
    """A constraint on the labelling as a whole, which tallies cannot express; another model enforces it.

    All labellings of that model satisfy it (``reductions/reduction.py``), so it can only be joined by ``&``.
    """

    __slots__ = ()

    @abstractmethod
    def reduce(self, reduction: Any) -> Any:
        """Return a further reduction, restricted to the labellings that satisfy this constraint."""

    @abstractmethod
    def satisfied(self, model: Any, labelling: ArrayLike) -> bool:
        """Whether a labelling of a model satisfies it."""

    @property
    def statistics(self) -> tuple[Term, ...]:
        """No statistics: it reads none."""
        return ()

    @property
    def reducing(self) -> tuple[Reducing, ...]:
        """Itself."""
        return (self,)

    def mapped(self, function: Callable[[Any], Term]) -> Constraint:
        """Return itself: it reads no statistic."""
        return self

    def _mask(self, values: Mapping[Any, ArrayLike]) -> NoReturn:
        raise ModelError(
            f"'{self}' is about the labelling as a whole and cannot be decided from tallies. Pass it to "
            "solve, k_best, diverse_k_best, iter_best or exclude as where=, or compute the profile of "
            "tallytree.transduce(model, …)"
        )

    def violation(self, values: Mapping[Any, ArrayLike]) -> NoReturn:
        """Raise an error: it cannot be decided from tallies."""
        self._mask(values)


def local_part(constraint: Constraint) -> Constraint | None:
    """Return a constraint without the parts that tallies cannot decide; None if nothing is left."""
    if not constraint.reducing:
        return constraint
    if isinstance(constraint, Reducing):
        return None
    assert isinstance(constraint, And)
    parts = tuple(part for part in map(local_part, constraint.parts) if part is not None)
    return And(parts) if parts else None


def _any_of(parts: tuple[Constraint, ...]) -> Or:
    _check_alternatives(parts)
    return Or(parts)


def _check_alternatives(parts: Sequence[Constraint]) -> None:
    whole = [one for part in parts for one in part.reducing]
    if whole:
        raise ModelError(
            f"'{whole[0]}' is about the labelling as a whole and can only be joined with & to other "
            "constraints; for alternative patterns, use | inside a single pattern"
        )


def _depth(constraint: Constraint, joined: type[_Compound] | None = None) -> int:
    """Return the nesting depth of a constraint, alone or joined with another one."""
    own = constraint.depth if isinstance(constraint, _Compound) else 0
    return own if joined is None or isinstance(constraint, joined) else own + 1


def _joined(constraint: Constraint, kind: type[_Compound]) -> Joined[Constraint]:
    return constraint._joined if isinstance(constraint, kind) else Joined((constraint,))


def as_constraint(value: object) -> Constraint:
    """Return ``value`` if it is a constraint; raise an error with a hint otherwise."""
    if isinstance(value, Constraint):
        return value
    raise not_a_constraint(value)


def _distinct(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Keep the first of equal terms.

    Hashes do not read tables, which is fast for a few terms; many terms that differ only in their tables
    would all have to be compared with each other, and digests are faster then.
    """
    if len(terms) <= FEW_TERMS:
        return tuple(dict.fromkeys(terms))
    first: dict[tuple[type[Term], bytes], Term] = {}
    for term in terms:
        first.setdefault((type(term), term.key), term)
    return tuple(first.values())


def all_of(constraints: Sequence[Constraint]) -> Constraint | None:
    """Join constraints by ``&``; None if there are none."""
    if len(constraints) > 1:
        return And(tuple(constraints))
    return constraints[0] if constraints else None
