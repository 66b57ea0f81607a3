"""Integer combinations of statistics, ``Σ_p c_p · G_p + d``, and comparisons of them."""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Number
from typing import Any, ClassVar, Literal, NoReturn, Union, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.errors import ModelError
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.domain import Domain
from tallytree.statistics.formulas import quoted_name
from tallytree.statistics.joining import Joined, Sum
from tallytree.statistics.operands import MULTIPLY, integer, not_a_product, not_linear, not_whole
from tallytree.values import Frozen, set_once

Relation = Literal["<=", ">=", "==", "!="]

Operand = Union["Expression", int, np.integer[Any]]
"""Anything that an expression can be added to or compared with."""


class Expression(Frozen, ABC):
    """Something with an integer tally, which can be added, subtracted, scaled by an integer and compared.

    Comparing it with an integer or another expression builds a :class:`Constraint`; only ``==`` and ``!=``
    between two statistics compare their content directly.
    """

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # so that NumPy defers ``np.int64(2) * ones`` to this class

    @abstractmethod
    def linear(self) -> Linear:
        """Return this expression as a combination of statistics."""

    def __add__(self, other: Operand) -> Linear:
        return _sum(self, other, 1)

    __radd__ = __add__

    def __sub__(self, other: Operand) -> Linear:
        return _sum(self, other, -1)

    def __rsub__(self, other: Operand) -> Linear:
        return -self + other

    def __neg__(self) -> Linear:
        return self * -1

    def __pos__(self) -> Linear:
        return self.linear()

    def __mul__(self, factor: Operand) -> Linear:
        if isinstance(factor, Expression):
            raise not_a_product(self.linear(), factor.linear())
        scale, whole = integer(factor, MULTIPLY), self.linear()
        return Linear(((term, scale * c) for term, c in whole.terms), scale * whole.constant)

    __rmul__ = __mul__

    def __le__(self, other: Operand) -> Constraint:
        return _compare(self, "<=", other)

    def __lt__(self, other: Operand) -> Constraint:
        return _compare(self, "<=", other, -1)

    def __ge__(self, other: Operand) -> Constraint:
        return _compare(self, ">=", other)

    def __gt__(self, other: Operand) -> Constraint:
        return _compare(self, ">=", other, 1)

    def __and__(self, other: object) -> NoReturn:
        raise ModelError(
            f"`&` and `|` join constraints, and {self.linear()} is a statistic. They bind more tightly than "
            "comparisons: instead of `ones >= 2 & ones <= 5` write `(ones >= 2) & (ones <= 5)`"
        )

    __or__ = __rand__ = __ror__ = __and__

    def __abs__(self) -> NoReturn:
        instead = ": instead of `abs(a - b) <= 1` write `(a - b <= 1) & (b - a <= 1)`"
        raise not_linear(f"abs({self.linear()})", "abs(a - b) <= 1", instead)

    def __mod__(self, other: object) -> NoReturn:
        raise not_linear(f"({self.linear()}) % {other!r}", "a % 2 == 0")

    def __truediv__(self, other: object) -> NoReturn:
        raise not_whole(f"({self.linear()}) / {other!r}")

    def __floordiv__(self, other: object) -> NoReturn:
        raise not_linear(f"({self.linear()}) // {other!r}", "a // 2 == 1")

    # ``==`` builds a constraint, so only statistics, which define their own ``==``, can be keys
    def __hash__(self) -> int:
        raise TypeError(f"{self!r} cannot be used as a key: `==` builds a constraint")

    def __eq__(self, other: object) -> Any:
        return _compare(self, "==", other) if isinstance(other, (Expression, Number)) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _compare(self, "!=", other) if isinstance(other, (Expression, Number)) else NotImplemented


class Term(Expression):
    """A statistic, or a recipe for one, identified by its key and not by its name."""

    __slots__ = ()

    name: str

    @property
    @abstractmethod
    def key(self) -> bytes:
        """A key that is equal for equal terms."""

    @abstractmethod
    def on(self, model: Domain) -> Term:
        """Bind it to a model; raise an error if it does not fit."""

    def linear(self) -> Linear:
        """Return this statistic as a combination of one."""
        return Linear(((self, 1),))

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Term):
            return self is other or (type(self) is type(other) and self.key == other.key)
        return super().__eq__(other)

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Term):
            return not self == other
        return super().__ne__(other)

    def __hash__(self) -> int:
        return hash(self.key)


class Counted(Term):
    """A statistic that is bound to a model or forest, so that messages can carry it."""

    __slots__ = ()

    entry_limit: ClassVar[int]  # strict bound on the magnitude that one part of a labelling adds
    cap: int | None

    @property
    @abstractmethod
    def largest_entry(self) -> int:
        """The largest magnitude that one part of a labelling adds."""

    @abstractmethod
    def capped(self, cap: int | None) -> Counted:
        """Return the same statistic with another cap, or without one."""

    @abstractmethod
    def merged_from(self, threshold: int) -> Counted:
        """Return a statistic with the same tallies below a threshold; above it, they may be merged."""

    @classmethod
    @abstractmethod
    def combination(cls, expression: Expression, name: str | None = None) -> Counted:
        """Return an integer combination of uncapped statistics as a single statistic."""


@final
class Linear(Expression):
    """An integer combination of statistics plus a constant.

    `terms`: statistics and their coefficients; equal statistics are merged, zeros are dropped.
    `constant`: the constant added to them.

    Examples
    --------
    >>> from tallytree.statistics.statistic import Statistic
    >>> a = Statistic([((0,), [0, 1])], name="a")
    >>> b = Statistic([((1,), [0, 1])], name="b")
    >>> 2 * a - b + 3
    2*a - b + 3
    >>> 2 * (a + b) - b < b + 4
    2*a < 4
    """

    __slots__ = ("_sum", "constant")

    _sum: Sum
    constant: int

    def __init__(self, terms: Iterable[tuple[Term, int]] | Sum, constant: int = 0) -> None:
        set_once(self, "_sum", terms if isinstance(terms, Sum) else Sum(Joined(tuple(terms))))
        set_once(self, "constant", constant)

    @property
    def terms(self) -> tuple[tuple[Term, int], ...]:
        """The distinct statistics with their coefficients."""
        return self._sum.terms

    def linear(self) -> Linear:
        """Return itself."""
        return self

    @property
    def statistics(self) -> tuple[Term, ...]:
        """The statistics it reads, in order of first use."""
        return tuple(term for term, _ in self.terms)

    def on(self, model: Domain) -> Linear:
        """Bind all recipes in it to a model; returns itself if there are none."""
        bound = [(term.on(model), c) for term, c in self.terms]
        same = all(new is old for (new, _), (old, _) in zip(bound, self.terms, strict=True))
        return self if same else Linear(bound, self.constant)

    def evaluate(self, values: Mapping[Any, ArrayLike]) -> NDArray[Any]:
        """Compute ``Σ_p c_p · values[G_p] + d`` exactly, elementwise.

        The result has dtype int64, or object where it might not fit.
        """
        columns = [(np.asarray(values[term]), c) for term, c in self.terms]
        reach = sum((abs(c) * _magnitude(column) for column, c in columns), abs(self.constant))
        dtype = np.int64 if reach < 2**63 else object
        return np.asarray(
            sum((column.astype(dtype) * c for column, c in columns), self.constant), dtype=dtype
        )

    def __reduce__(self) -> tuple[type[Linear], tuple[object, ...]]:
        return Linear, (self.terms, self.constant)

    def __repr__(self) -> str:
        return self.written(str)

    def written(self, named: Callable[[str], str]) -> str:
        """Return it as text; ``named`` converts names."""
        parts = [_signed(c, named(term.name)) for term, c in self.terms]
        if self.constant or not parts:
            parts.append(_signed(self.constant))
        text = " ".join(parts)
        return text[2:] if text.startswith("+") else "-" + text[2:]


def _signed(coefficient: int, name: str = "") -> str:
    sign, size = ("-" if coefficient < 0 else "+"), abs(coefficient)
    body = f"{size}*{name}" if name and size != 1 else name or str(size)
    return f"{sign} {body}"


def _magnitude(column: NDArray[Any]) -> int:
    return max(1, -int(column.min(initial=0)), int(column.max(initial=0)))


def _linear(operand: object) -> Linear:
    return operand.linear() if isinstance(operand, Expression) else Linear((), integer(operand))


def _sum(left: Expression, right: object, sign: int) -> Linear:
    a, b = left.linear(), _linear(right) if sign > 0 else -_linear(right)
    return Linear(a._sum.plus(b._sum), a.constant + b.constant)


def _compare(left: Expression, relation: Relation, right: object, offset: int = 0) -> Comparison:
    """Move all statistics to the left and all numbers to the right; the first coefficient is positive."""
    if isinstance(left, Term) and type(right) is int:  # fast path for the usual case
        return Comparison(((left, 1),), relation, right + offset, offset)
    difference = _sum(left, right, -1)
    bound = offset - difference.constant
    if difference.terms and difference.terms[0][1] < 0:
        return Comparison((-difference).terms, _FLIPPED[relation], -bound, -offset)
    return Comparison(difference.terms, relation, bound, offset)


# --- comparisons --------------------------------------------------------------------------------------------


@final
@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Constraint):
    """``Σ_p c_p · G_p`` compared with an integer; the first coefficient is positive."""

    terms: tuple[tuple[Term, int], ...]
    relation: Relation
    bound: int
    offset: int = field(default=0, compare=False)  # of the bound from the one in ``G < b`` or ``G > b``

    @property
    def left(self) -> Linear:
        """The combination on the left side."""
        return Linear(self.terms)

    @property
    def statistics(self) -> tuple[Term, ...]:
        """The distinct statistics it reads, in order of first use."""
        return tuple(term for term, _ in self.terms)

    def mapped(self, function: Callable[[Any], Term]) -> Constraint:
        """Replace each statistic by another; returns itself if none changes."""
        others = [function(term) for term, _ in self.terms]
        if all(new is old for new, (old, _) in zip(others, self.terms, strict=True)):
            return self
        return self.with_terms((new, c) for new, (_, c) in zip(others, self.terms, strict=True))

    def with_terms(self, terms: Iterable[tuple[Term, int]]) -> Constraint:
        """Return a comparison of another combination with the same bound."""
        return _compare(Linear(terms), self.relation, self.bound - self.offset, self.offset)

    def __invert__(self) -> Constraint:
        relation, step = _NEGATED[self.relation]
        return Comparison(self.terms, relation, self.bound + step)

    def _mask(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]:
        return np.asarray(_RELATIONS[self.relation](self.left.evaluate(values), self.bound), dtype=np.bool_)

    def violation(self, values: Mapping[Any, ArrayLike]) -> NDArray[Any]:
        """Return the distance of the left side from the nearest number that satisfies the comparison."""
        beyond = Linear(self.terms, -self.bound).evaluate(values)
        exact = beyond if _magnitude(beyond) < 2**48 else beyond.astype(object)  # so that sums fit
        row = _VIOLATIONS[self.relation](exact.reshape(-1))  # 1-D: a 0-d object array would become a scalar
        return np.asarray(row, dtype=exact.dtype).reshape(beyond.shape)

    def __repr__(self) -> str:
        return self.written(str)

    def written(self, named: Callable[[str], str] = quoted_name) -> str:
        """Return it as a formula, with the relation that the user wrote; ``named`` converts names."""
        relation = self.relation[0] if self.offset else self.relation
        return f"{self.left.written(named)} {relation} {self.bound - self.offset}"


_RELATIONS: dict[Relation, Callable[[Any, int], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_VIOLATIONS: dict[Relation, Callable[[NDArray[Any]], Any]] = {  # of the left side minus the bound
    "<=": lambda beyond: np.maximum(beyond, 0),
    ">=": lambda beyond: np.maximum(-beyond, 0),
    "==": np.abs,
    "!=": lambda beyond: beyond == 0,
}
_FLIPPED: dict[Relation, Relation] = {"<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED: dict[Relation, tuple[Relation, int]]
_NEGATED = {"<=": (">=", 1), ">=": ("<=", -1), "==": ("!=", 0), "!=": ("==", 0)}
