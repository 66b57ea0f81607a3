"""Options of plans and of runs, as values.

All functions (:func:`solve`, :func:`profile`, …) take the same keyword arguments and read them once, by
:func:`read_options`. Inside the library they are passed as one value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from inspect import signature
from typing import Any, Literal, NamedTuple, TypedDict, get_args

import numpy as np

from tallytree.deprecation import warn_renamed
from tallytree.errors import BudgetError, ModelError
from tallytree.kernels import native
from tallytree.planning.budget import default_memory_limit, readable_bytes
from tallytree.planning.orders import Order
from tallytree.planning.precision import Precision
from tallytree.values import counted, nearest

LayoutName = Literal["auto", "rows", "cells"]
Backend = Literal["native", "reference"]
Strategy = Literal["auto", "full", "bounds"]


class PlanOptions(NamedTuple):
    """Options for planning.

    Attributes
    ----------
    order : str, sequence of int or CliqueTree, optional
        An elimination order or a heuristic; by default several are tried and the cheapest is kept.
    memory_limit : float, optional
        In bytes; by default half of the memory.
    layout : {"auto", "rows", "cells"}
        How tallies are stored.
    precision : {"double", "single"}
        The precision of the tables.
    beside : float
        Bytes of the limit that the caller uses itself.
    every_table : bool
        Whether all tables will be needed, as for probabilities and labellings in order. If not, large
        tables may share memory in the cache, even if all of them fit.
    operation_limit : float, optional
        The maximum number of add-max operations: planning stops early if long lists of tallies exceed it.
        Other plans are compared with it before they run.
    """

    order: Order | None = None
    memory_limit: float | None = None
    layout: LayoutName = "auto"
    precision: Precision = "double"
    beside: float = 0.0
    every_table: bool = False
    operation_limit: float | None = None

    @property
    def limit(self) -> float:
        """The memory limit in bytes."""
        if self.memory_limit is None:
            return default_memory_limit()
        try:
            limit = float(self.memory_limit)
        except (TypeError, ValueError):
            limit = -1.0
        if isinstance(self.memory_limit, (bool, str)) or not limit >= 0:
            raise ModelError(
                f"memory_limit must be a number of bytes, such as 1e9; got {self.memory_limit!r}"
            )
        return limit

    def check_size(self, variables: int, factors: int, steps: int) -> None:
        """Raise an error for a program that is too large whatever its tables are, before it is generated."""
        least = native.least_plan_bytes(variables, factors, steps - variables) + self.beside
        if least > self.limit:
            raise BudgetError(
                f"the plan needs at least {readable_bytes(least)} for the program of "
                f"{counted(variables, 'variable')} alone, but the limit is "
                f"{readable_bytes(self.limit)}; raise memory_limit="
            )


class RunOptions(NamedTuple):
    """Options for running a plan.

    Attributes
    ----------
    backend : {"native", "reference"}
        The compiled executor, or the NumPy reference.
    threads : int, optional
        One for small problems and the number of processors for large ones by default.
    every_table : bool
        Whether all tables will be needed, as for labellings in order. If not, a run may keep
        only checkpoints.
    """

    backend: Backend = "native"
    threads: int | None = None
    every_table: bool = False


class Options(NamedTuple):
    """Options for planning, running, and the strategy for a single answer.

    Attributes
    ----------
    plan : PlanOptions
    run : RunOptions
    strategy : {"auto", "full", "bounds"}
    operation_limit : float, optional
        The maximum number of add-max operations of one answer; no limit by default.
    """

    plan: PlanOptions = PlanOptions()
    run: RunOptions = RunOptions()
    strategy: Strategy = "auto"
    operation_limit: float | None = None

    def with_every_table(self) -> Options:
        """Return the same options for a run that keeps all tables."""
        plan, run = self.plan._replace(every_table=True), self.run._replace(every_table=True)
        return self._replace(plan=plan, run=run)


_DEFAULTS = Options()


class Keywords(TypedDict, total=False):
    """The options as keyword arguments of the public functions."""

    order: Order | None
    memory_limit: float | None
    layout: LayoutName
    precision: Precision
    backend: Backend
    threads: int | None
    strategy: Strategy
    operation_limit: float | None
    tallies: LayoutName  # the old name of layout


_DOUBLE_ONLY = ("order", "memory_limit", "layout", "backend", "threads")
_ALL = (*_DOUBLE_ONLY, "precision")
_LIMIT = ("operation_limit",)
_OF_ONE = ("strategy", *_LIMIT)
_CHOICES = {
    "layout": get_args(LayoutName),
    "backend": get_args(Backend),
    "precision": get_args(Precision),
    "strategy": get_args(Strategy),
}


def read_options(
    keywords: Mapping[str, Any],
    function: Callable[..., Any],
    *,
    single: bool = True,
    one: bool = False,
    limited: bool = False,
) -> Options:
    """Return the options passed to a public function as keyword arguments.

    Parameters
    ----------
    keywords : mapping
        The arguments.
    function : callable
        The function, for error messages.
    single : bool
        Whether the function supports single precision.
    one : bool
        Whether it has a single answer, so that there is a choice of strategy.
    limited : bool
        Whether the number of its operations can be limited, as that of a single answer always can.

    Examples
    --------
    >>> from tallytree import solve
    >>> read_options({"memory_limit": 1e6, "threads": 2}, solve).run
    RunOptions(backend='native', threads=2, every_table=False)
    >>> read_options({"memory": 1e6}, solve)
    Traceback (most recent call last):
    TypeError: solve() got an unexpected keyword argument 'memory'; did you mean 'memory_limit'? Its options
    are where, fixed, allowed, order, memory_limit, layout, backend, threads, precision
    """
    if not keywords:
        return _DEFAULTS
    given = _renamed(keywords)
    known = (*(_ALL if single else _DOUBLE_ONLY), *(_OF_ONE if one else _LIMIT if limited else ()))
    for name, value in given.items():
        if name not in known:
            raise _unexpected(name, function, known)
        if name in _CHOICES:
            _check_choice(name, value)
    if isinstance(given.get("order"), (list, np.ndarray)):  # a plan keeps it
        given["order"] = tuple(np.asarray(given["order"]).tolist())
    strategy, most = given.pop("strategy", "auto"), _operation_limit(given.pop("operation_limit", None))
    run = RunOptions(given.pop("backend", "native"), given.pop("threads", None))
    return Options(PlanOptions(**given, operation_limit=most), run, strategy, most)


def _unexpected(name: str, function: Callable[..., Any], known: Sequence[str]) -> TypeError:
    """Return the error for a keyword that is neither an option nor a parameter of the function."""
    parameters = signature(function).parameters.values()
    named = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD]
    near = nearest(name, (*named, *known))
    hint = f"did you mean {near!r}? Its" if near else "its"
    keywords = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY]
    return TypeError(
        f"{function.__name__}() got an unexpected keyword argument {name!r}; {hint} options are "
        f"{', '.join((*keywords, *known))}"
    )


def _operation_limit(given: Any) -> float | None:
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, (int, float, np.number)) or not given > 0:
        raise ModelError(f"operation_limit must be a positive number or None, got {given!r}")
    return float(given)


def _renamed(keywords: Mapping[str, Any]) -> dict[str, Any]:
    given = dict(keywords)
    if "tallies" in given:
        warn_renamed("tallies=", "layout=", stacklevel=5)
        given["layout"] = given.pop("tallies")
    return given


def _check_choice(name: str, value: Any) -> None:
    if value not in _CHOICES[name]:
        *most, last = map(repr, _CHOICES[name])
        raise ModelError(f"{name} must be {', '.join(most)} or {last}, got {value!r}")
