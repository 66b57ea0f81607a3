"""Integer combinations of statistics, and the constraints that comparing them builds.

An expression is ``Σ_p c_p · G_p + d`` with integer coefficients; a constraint compares one with an integer,
or joins constraints by ``&``, ``|`` and ``~``. Since tallies are integers, four relations say everything (``G
< b`` is ``G <= b - 1``), and a negation moves inwards until it meets a comparison (``~(G <= b)`` is ``G >= b
+ 1``): a constraint is a tree of ``And`` and ``Or`` over comparisons, and nothing else.
"""

from __future__ import annotations

import operator
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from numbers import Number
from typing import Any, ClassVar, Literal, NoReturn, Protocol, Union, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from tallytree.core.blocks import Frozen, set_once
from tallytree.errors import ModelError

__all__ = [
    "And",
    "Comparison",
    "Constraint",
    "Counted",
    "Domain",
    "Expression",
    "Linear",
    "Operand",
    "Or",
    "Reducing",
    "Relation",
    "Term",
    "as_constraint",
    "local_part",
]

_FEW_TERMS = 16  # terms that are told apart without their digests

Relation = Literal["<=", ">=", "==", "!="]

Operand = Union["Expression", int, np.integer[Any]]
"""What an expression can be added to and compared with."""


class Domain(Protocol):
    """The part of a model that statistics look at: its variables, their states and the names of both."""

    @property
    def cardinalities(self) -> NDArray[np.int32]:
        """The number of states of each variable."""

    @property
    def alike(self) -> int | None:
        """The number of states where all variables have the same states, names included; None otherwise."""

    def state_codes(self, state: str | int) -> NDArray[np.int64]:
        """Return the number of a state for each variable, -1 where a variable does not have it."""

    def variable_indices(self, variables: Iterable[str | int]) -> NDArray[np.int64]:
        """Return the numbers of the given variables."""

    def encode(self, labelling: ArrayLike) -> NDArray[np.int64]:
        """Return a labelling as one state number per variable."""


class Expression(Frozen, ABC):
    """Something with an integer tally: add, subtract, scale by an integer, compare.

    Comparing with an integer or with another expression builds a :class:`Constraint`; only ``==`` and ``!=``
    between two statistics answer at once, by content.
    """

    __slots__ = ()
    __array_ufunc__: ClassVar[None] = None  # numpy integers leave ``np.int64(2) * ones`` to us

    @abstractmethod
    def linear(self) -> Linear:
        """Write this expression as a combination of statistics."""

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
            raise ModelError(
                f"({self.linear()}) * ({factor.linear()}) is not linear: statistics are scaled by integers "
                "only; put the product into the objective, which gets every tally"
            )
        scale, whole = _integer(factor), self.linear()
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

    # ``==`` builds a constraint, so only those with an ``==`` of their own, the statistics, can be keys
    def __hash__(self) -> int:
        raise TypeError(f"{self!r} is no key: `==` with it builds a constraint")

    def __eq__(self, other: object) -> Any:
        return _compare(self, "==", other) if isinstance(other, (Expression, Number)) else NotImplemented

    def __ne__(self, other: object) -> Any:
        return _compare(self, "!=", other) if isinstance(other, (Expression, Number)) else NotImplemented


class Term(Expression):
    """A statistic, or a recipe for one: what combinations are made of, known by its key and not its name."""

    __slots__ = ()

    name: str

    @property
    @abstractmethod
    def key(self) -> bytes:
        """What two equal terms have in common."""

    @abstractmethod
    def on(self, model: Domain) -> Term:
        """Bind to a model, or refuse one that does not fit."""

    def linear(self) -> Linear:
        """Write this statistic as a combination of one."""
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
    """A statistic, bound to what it is counted on: what messages can carry."""

    __slots__ = ()

    cap: int | None

    @property
    @abstractmethod
    def largest_entry(self) -> int:
        """The most, in magnitude, that one part of a labelling adds."""

    @abstractmethod
    def capped(self, cap: int | None) -> Counted:
        """Return the same statistic with another cap, or with none."""

    @classmethod
    @abstractmethod
    def combination(cls, expression: Expression, name: str | None = None) -> Counted:
        """Make one statistic of an integer combination of uncapped ones."""


@final
class Linear(Expression):
    """An integer combination of statistics plus a constant.

    Parameters
    ----------
    terms : iterable of (statistic, int)
        Statistics and their coefficients; equal statistics are put together, zeros are dropped.
    constant : int
        What is added to them.

    Examples
    --------
    >>> from tallytree.core.statistics import Statistic
    >>> a = Statistic([((0,), [0, 1])], name="a")
    >>> b = Statistic([((1,), [0, 1])], name="b")
    >>> 2 * a - b + 3
    2*a - b + 3
    >>> 2 * (a + b) - b < b + 4
    2*a <= 3
    """

    __slots__ = ("constant", "terms")

    terms: tuple[tuple[Term, int], ...]
    constant: int

    def __init__(self, terms: Iterable[tuple[Term, int]], constant: int = 0) -> None:
        coefficients: dict[Term, int] = {}
        for term, coefficient in terms:
            coefficients[term] = coefficients.get(term, 0) + coefficient
        set_once(self, "terms", tuple((t, c) for t, c in coefficients.items() if c))
        set_once(self, "constant", constant)

    def linear(self) -> Linear:
        """Return itself."""
        return self

    @property
    def statistics(self) -> tuple[Term, ...]:
        """The statistics it reads, in order of first use."""
        return tuple(term for term, _ in self.terms)

    def on(self, model: Domain) -> Linear:
        """Bind all recipes in it to a model; itself if there are none."""
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
        parts = [_signed(c, term.name) for term, c in self.terms]
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


def _integer(number: object) -> int:
    try:
        return operator.index(number)  # type: ignore[arg-type]
    except TypeError:
        raise ModelError(
            f"statistics are integers, and are combined and compared with integers; got {number!r}. For a "
            "bound that is not whole, round it yourself: math.floor for <=, math.ceil for >="
        ) from None


def _linear(operand: object) -> Linear:
    return operand.linear() if isinstance(operand, Expression) else Linear((), _integer(operand))


def _sum(left: Expression, right: object, sign: int) -> Linear:
    a, b = left.linear(), _linear(right)
    return Linear((*a.terms, *((term, sign * c) for term, c in b.terms)), a.constant + sign * b.constant)


def _compare(left: Expression, relation: Relation, right: object, offset: int = 0) -> Comparison:
    """Bring all statistics to the left and all numbers to the right, the first coefficient positive."""
    if isinstance(left, Term) and type(right) is int:  # the usual case, without a detour
        return Comparison(((left, 1),), relation, right + offset)
    difference = _sum(left, right, -1)
    bound = offset - difference.constant
    if difference.terms and difference.terms[0][1] < 0:
        return Comparison((-difference).terms, _FLIPPED[relation], -bound)
    return Comparison(difference.terms, relation, bound)


# --- constraints --------------------------------------------------------------------------------------------


class Constraint(ABC):
    """What a labelling's tallies must meet: a comparison, or several joined by ``&``, ``|`` and ``~``.

    Examples
    --------
    >>> from tallytree.core.statistics import Statistic
    >>> ones = Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="ones")
    >>> middle = (ones >= 1) & ~(ones > 5)
    >>> middle
    (ones >= 1) & (ones <= 5)
    >>> middle.holds({ones: [0, 1, 6]}).tolist()
    [False, True, False]
    >>> 1 <= ones <= 5
    Traceback (most recent call last):
    tallytree.errors.ModelError: the constraint 'ones >= 1' has no truth value of its own. ...
    """

    __slots__ = ()

    @property
    @abstractmethod
    def statistics(self) -> tuple[Term, ...]:
        """The distinct statistics it reads, in order of first use."""

    @abstractmethod
    def mapped(self, function: Callable[[Any], Term]) -> Constraint:
        """Put another statistic in the place of each; itself if they are the same ones."""

    def on(self, model: Domain) -> Constraint:
        """Bind all recipes in it to a model; itself if there are none."""
        return self.mapped(lambda term: term.on(model))

    @property
    def reducing(self) -> tuple[Reducing, ...]:
        """The parts of it that no tally tells."""
        return ()

    @abstractmethod
    def __invert__(self) -> Constraint: ...

    @abstractmethod
    def _mask(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]: ...

    @abstractmethod
    def violation(self, values: Mapping[Any, ArrayLike]) -> NDArray[Any]:
        """Say by how much it is missed: 0 where it holds.

        A comparison is missed by the distance of its left side from the nearest number that would do; of
        several joined by ``&`` the distances add up, of several joined by ``|`` the least counts.

        Examples
        --------
        >>> import tallytree as tt
        >>> ones = tt.Statistic([((0,), [0, 1]), ((1,), [0, 1])], name="ones")
        >>> ((ones >= 1) & (ones <= 3)).violation({ones: [0, 1, 6]}).tolist()
        [1, 0, 3]
        """

    def holds(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]:
        """Say where it holds.

        Parameters
        ----------
        values : mapping of statistic to integer or integer array
            The tally of every statistic it reads; arrays are taken elementwise.

        Returns
        -------
        boolean array
            Of the common shape of all values.
        """
        shape = np.broadcast_shapes(*(np.shape(value) for value in values.values()))
        mask = self._mask(values)
        return mask if mask.shape == shape else np.array(np.broadcast_to(mask, shape))

    def __and__(self, other: Constraint) -> Constraint:
        return And((*_parts(self, And), *_parts(as_constraint(other), And)))

    def __or__(self, other: Constraint) -> Constraint:
        return _any_of((*_parts(self, Or), *_parts(as_constraint(other), Or)))

    # reached from a left operand that is no constraint: the same refusal
    __rand__ = __and__
    __ror__ = __or__

    def __bool__(self) -> NoReturn:
        raise ModelError(
            f"the constraint '{self}' has no truth value of its own. Python asks for one in a chained "
            "comparison and in `and`, `or`, `not`, and would drop a half: instead of `2 <= ones <= 5` write "
            "`(ones >= 2) & (ones <= 5)`, and use `&`, `|`, `~` with parentheses"
        )


@final
@dataclass(frozen=True, slots=True, repr=False)
class Comparison(Constraint):
    """``Σ_p c_p · G_p`` compared with an integer; the first coefficient is positive."""

    terms: tuple[tuple[Term, int], ...]
    relation: Relation
    bound: int

    @property
    def left(self) -> Linear:
        """The combination that is compared with the bound."""
        return Linear(self.terms)

    @property
    def statistics(self) -> tuple[Term, ...]:
        """The distinct statistics it reads, in order of first use."""
        return tuple(term for term, _ in self.terms)

    def mapped(self, function: Callable[[Any], Term]) -> Constraint:
        """Put another statistic in the place of each; itself if they are the same ones."""
        others = [function(term) for term, _ in self.terms]
        if all(new is old for new, (old, _) in zip(others, self.terms, strict=True)):
            return self
        return self.with_terms((new, c) for new, (_, c) in zip(others, self.terms, strict=True))

    def with_terms(self, terms: Iterable[tuple[Term, int]]) -> Constraint:
        """Compare another combination with the same bound."""
        return _compare(Linear(terms), self.relation, self.bound)

    def __invert__(self) -> Constraint:
        relation, step = _NEGATED[self.relation]
        return Comparison(self.terms, relation, self.bound + step)

    def _mask(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]:
        return np.asarray(_RELATIONS[self.relation](self.left.evaluate(values), self.bound), dtype=np.bool_)

    def violation(self, values: Mapping[Any, ArrayLike]) -> NDArray[Any]:
        """Return how far the left side is from the nearest number that would do."""
        beyond = Linear(self.terms, -self.bound).evaluate(values)
        exact = beyond if _magnitude(beyond) < 2**48 else beyond.astype(object)  # thousands may be added up
        return np.asarray(_VIOLATIONS[self.relation](exact), dtype=exact.dtype)

    def __repr__(self) -> str:
        return f"{self.left} {self.relation} {self.bound}"


def _distinct(terms: Sequence[Term]) -> tuple[Term, ...]:
    """Keep the first of equal terms.

    Hashes do not read tables, which is quick for a few terms; many that differ in their tables alone would
    all have to be compared with each other, and digests are quicker then.
    """
    if len(terms) <= _FEW_TERMS:
        return tuple(dict.fromkeys(terms))
    first: dict[tuple[type[Term], bytes], Term] = {}
    for term in terms:
        first.setdefault((type(term), term.key), term)
    return tuple(first.values())


@dataclass(frozen=True, slots=True, repr=False)
class _Compound(Constraint):
    parts: tuple[Constraint, ...]

    symbol: ClassVar[str]
    join: ClassVar[np.ufunc]
    missed: ClassVar[np.ufunc]

    @property
    def statistics(self) -> tuple[Term, ...]:
        """The distinct statistics it reads, in order of first use."""
        return _distinct([term for part in self.parts for term in part.statistics])

    @property
    def reducing(self) -> tuple[Reducing, ...]:
        """The parts of it that no tally tells."""
        return tuple(one for part in self.parts for one in part.reducing)

    def mapped(self, function: Callable[[Any], Term]) -> Constraint:
        """Put another statistic in the place of each; itself if they are the same ones."""
        others = tuple(part.mapped(function) for part in self.parts)
        same = all(new is old for new, old in zip(others, self.parts, strict=True))
        return self if same else type(self)(others)

    def _mask(self, values: Mapping[Any, ArrayLike]) -> NDArray[np.bool_]:
        return np.asarray(reduce(self.join, (part._mask(values) for part in self.parts)))

    def violation(self, values: Mapping[Any, ArrayLike]) -> NDArray[Any]:
        """Return the sum over all parts, or the least of any."""
        return np.asarray(reduce(self.missed, (part.violation(values) for part in self.parts)))

    def __repr__(self) -> str:
        return f" {self.symbol} ".join(f"({part})" for part in self.parts)


@final
class And(_Compound):
    """All parts hold."""

    __slots__ = ()
    symbol = "&"
    join = np.logical_and
    missed = np.add

    def __invert__(self) -> Constraint:
        return _any_of(tuple(~part for part in self.parts))


@final
class Or(_Compound):
    """At least one part holds."""

    __slots__ = ()
    symbol = "|"
    join = np.logical_or
    missed = np.minimum

    def __invert__(self) -> Constraint:
        return And(tuple(~part for part in self.parts))


class Reducing(Constraint):
    """A constraint on the labelling as a whole, which no tally tells: another model meets it.

    All labellings of that model satisfy it (``core/reduction.py``), so it joins other constraints by ``&``
    only.
    """

    __slots__ = ()

    @abstractmethod
    def reduce(self, reduction: Any) -> Any:
        """Return a further reduction, which keeps to the labellings that satisfy this constraint."""

    @abstractmethod
    def satisfied(self, model: Any, labelling: ArrayLike) -> bool:
        """Say whether a labelling of a model satisfies it."""

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
            f"'{self}' is about the labelling as a whole, and no tally tells whether it holds. Give it to "
            "solve, k_best, iter_best or exclude as where=, or make the profile of "
            "tallytree.transduce(model, …)"
        )

    def violation(self, values: Mapping[Any, ArrayLike]) -> NoReturn:
        """Refuse: no tally tells."""
        self._mask(values)


def local_part(constraint: Constraint) -> Constraint | None:
    """Return what is left of a constraint without the parts that no tally tells; None if nothing is."""
    if not constraint.reducing:
        return constraint
    if isinstance(constraint, Reducing):
        return None
    assert isinstance(constraint, And)
    parts = tuple(part for part in map(local_part, constraint.parts) if part is not None)
    return And(parts) if parts else None


def _any_of(parts: tuple[Constraint, ...]) -> Or:
    whole = [one for part in parts for one in part.reducing]
    if whole:
        raise ModelError(
            f"'{whole[0]}' is about the labelling as a whole, and joins other constraints by & only; for an "
            "alternative between patterns write | inside of one pattern"
        )
    return Or(parts)


def _parts(constraint: Constraint, kind: type[_Compound]) -> tuple[Constraint, ...]:
    return constraint.parts if isinstance(constraint, kind) else (constraint,)


def as_constraint(value: object) -> Constraint:
    """Return ``value`` if it is a constraint, and refuse it with a hint if it is not."""
    if isinstance(value, Constraint):
        return value
    if isinstance(value, (bool, np.bool_)):
        raise ModelError(
            f"got {value} for a constraint. Between two statistics `a == b` asks whether they are the same "
            "statistic; for equal tallies write `a - b == 0`"
        )
    raise ModelError(f"a constraint compares statistics, as `ones >= 2` does; got {value!r}")


_RELATIONS: dict[Relation, Callable[[Any, int], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}
_VIOLATIONS: dict[Relation, Callable[[NDArray[Any]], Any]] = {  # of the left side less the bound
    "<=": lambda beyond: np.maximum(beyond, 0),
    ">=": lambda beyond: np.maximum(-beyond, 0),
    "==": np.abs,
    "!=": lambda beyond: beyond == 0,
}
_FLIPPED: dict[Relation, Relation] = {"<=": ">=", ">=": "<=", "==": "==", "!=": "!="}
_NEGATED: dict[Relation, tuple[Relation, int]] = {
    "<=": (">=", 1),
    ">=": ("<=", -1),
    "==": ("!=", 0),
    "!=": ("==", 0),
}
