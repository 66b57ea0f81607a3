"""Score algebras: one set of recursions for three problems.

A message table holds elements of a commutative semiring ``(plus, times, zero, one)``. Parts of one labelling
are combined with ``times``, alternative labellings with ``plus``. Nothing else depends on the algebra, so

- :class:`MaxPlus` ``(max, +)`` gives the best score ``max F(y)``,
- :class:`LogSumExp` ``(logaddexp, +)`` gives the log-partition ``log Σ exp F(y)``,
- :class:`Counting` ``(+, ×)`` gives the number of labellings with ``F(y) > -inf``,

each over the labellings ``y`` with one tally. The recursions rely on these laws: both operations are
associative and commutative, ``zero`` and ``one`` are their identities, ``zero`` annihilates
(``times(a, zero) == zero``), and ``times`` distributes over ``plus``.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Algebra(ABC):
    """A commutative semiring on NumPy arrays.

    Attributes
    ----------
    dtype
        The dtype of an array of elements.
    zero, one
        The identities of `plus` and `times`. ``zero`` represents impossibility.
    plus_ufunc, times_ufunc
        The operations as NumPy ufuncs.
    idempotent
        Whether ``plus(a, a) == a``.
    """

    dtype: ClassVar[np.dtype[Any]]
    zero: ClassVar[float | int]
    one: ClassVar[float | int]
    plus_ufunc: ClassVar[np.ufunc]
    times_ufunc: ClassVar[np.ufunc]
    idempotent: ClassVar[bool]

    @abstractmethod
    def lift(self, scores: npt.ArrayLike) -> Array:
        """Return the elements for the factor scores (``-inf``: impossible)."""

    def as_elements(self, values: npt.ArrayLike) -> Array:
        """Return `values` as an array of this algebra's dtype."""
        return np.asarray(values, dtype=self.dtype)

    def plus(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Combine alternatives, elementwise and broadcasting."""
        # The dtype comes first: otherwise NumPy would add two Python integers in 64 bits.
        return self.as_elements(self.plus_ufunc(self.as_elements(a), self.as_elements(b)))

    def times(self, a: npt.ArrayLike, b: npt.ArrayLike) -> Array:
        """Combine parts, elementwise and broadcasting."""
        return self.as_elements(self.times_ufunc(self.as_elements(a), self.as_elements(b)))

    def full(self, shape: tuple[int, ...], element: float | int) -> Array:
        """Return a new array of this shape filled with `element`."""
        return np.full(shape, element, dtype=self.dtype)

    def reduce(self, elements: Array, axis: int | tuple[int, ...]) -> Array:
        """Combine the elements along `axis` with `plus`; `zero` for an empty axis.

        Examples
        --------
        >>> impossible = np.full((2, 3), -np.inf)
        >>> LogSumExp().reduce(impossible, axis=1)
        array([-inf, -inf])
        """
        return self.as_elements(self.plus_ufunc.reduce(elements, axis=axis, initial=self.zero))

    def accumulate_at(self, out: Array, index: Any, elements: Array) -> None:
        """Do ``out[index] = plus(out[index], elements)`` in place, also for repeated indices.

        Examples
        --------
        >>> out = MaxPlus().full((2,), MaxPlus.zero)
        >>> MaxPlus().accumulate_at(out, np.array([0, 1, 1]), np.array([4.0, 2.0, 3.0]))
        >>> out
        array([4., 3.])
        """
        self.plus_ufunc.at(out, index, elements)


@final
@dataclass(frozen=True)
class MaxPlus(Algebra):
    """The best score: alternatives by ``max``, parts by ``+``.

    Examples
    --------
    >>> algebra = MaxPlus()
    >>> float(algebra.plus(2.0, 3.0)), float(algebra.times(2.0, algebra.zero))
    (3.0, -inf)
    """

    dtype = np.dtype(np.float64)
    zero = -np.inf
    one = 0.0
    plus_ufunc = np.maximum
    times_ufunc = np.add
    idempotent = True

    def lift(self, scores: npt.ArrayLike) -> Array:
        """Return the scores themselves."""
        return self.as_elements(scores)


@final
@dataclass(frozen=True)
class LogSumExp(Algebra):
    """The log of a sum of exponentials: alternatives by ``log(exp a + exp b)``, parts by ``+``.

    `plus` factors out the larger argument, so nothing overflows, and ``-inf`` with ``-inf`` is
    ``-inf`` rather than nan.

    Examples
    --------
    >>> algebra = LogSumExp()
    >>> float(algebra.plus(-1000.0, -1000.0))
    -999.3068528194401
    """

    dtype = np.dtype(np.float64)
    zero = -np.inf
    one = 0.0
    plus_ufunc = np.logaddexp
    times_ufunc = np.add
    idempotent = False

    def lift(self, scores: npt.ArrayLike) -> Array:
        """Return the scores themselves."""
        return self.as_elements(scores)


@final
@dataclass(frozen=True)
class Counting(Algebra):
    """The number of possible labellings, as Python integers: exact at any size.

    Examples
    --------
    >>> algebra = Counting()
    >>> algebra.lift([0.5, -np.inf])
    array([1, 0], dtype=object)
    >>> int(algebra.times(3**20, 3**21))  # does not fit 64 bits
    36472996377170786403
    """

    dtype = np.dtype(object)
    zero = 0
    one = 1
    plus_ufunc = np.add
    times_ufunc = np.multiply
    idempotent = False

    def lift(self, scores: npt.ArrayLike) -> Array:
        """Return 1 for a finite score and 0 for ``-inf``."""
        return np.where(np.asarray(scores) > -np.inf, 1, 0).astype(object)
