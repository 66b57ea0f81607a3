"""What statistics can be combined and compared with: integers, and errors with advice for everything else."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Real
from typing import Protocol, runtime_checkable

import numpy as np

from tallytree.errors import ModelError
from tallytree.values import integral


@runtime_checkable
class Combination(Protocol):
    """A statistic or a combination of statistics."""

    def linear(self) -> object:
        """Return it as a linear combination."""


ROUND = "Round a fractional bound yourself: math.floor for <=, math.ceil for >="
MULTIPLY = "Multiply out: `2*a >= 3*b` instead of `a >= 1.5*b`"


def integer(number: object, fractional: str = ROUND) -> int:
    """Return an integer; `fractional`: advice for other numbers."""
    try:
        return integral(number)
    except TypeError:
        advice = fractional if isinstance(number, Real) and isfinite(number) else "Give a single integer"
        if isinstance(number, str):
            advice = "Convert it with int(…), or write the whole constraint as text: where='ones == 2'"
        raise ModelError(
            f"statistics can only be combined and compared with integers, got {number!r}. {advice}"
        ) from None


def not_linear(written: str, condition: str, instead: str = "") -> ModelError:
    """Return the error for an operation on statistics that is not linear; ``condition``: an example of it."""
    return ModelError(
        f"{written} is not linear{instead}; {instead and 'or '}compute it in the objective, which receives "
        f"every tally, as in `np.where({condition}, score, -np.inf)`"
    )


def not_whole(written: str) -> ModelError:
    """Return the error for a statistic divided by a number or by another statistic."""
    return ModelError(
        f"{written} is a fraction, and statistics can only be combined with integers. Multiply out: "
        "`a == 2` instead of `a / 2 == 1`"
    )


def not_a_product(left: object, right: object) -> ModelError:
    """Return the error for a product of two statistics."""
    return ModelError(
        f"({left}) * ({right}) is not linear: statistics can only be scaled by integers; compute the product "
        "in the objective, which receives every tally"
    )


def not_a_constraint(value: object) -> ModelError:
    """Return the error for a value that was given for a constraint."""
    if isinstance(value, (bool, np.bool_)):
        return ModelError(
            f"got {value} for a constraint. `==` only makes one from a statistic and a single integer: write "
            "`ones == 2`, or the whole constraint as text, 'ones == 2'. Between two statistics it asks "
            "whether they are the same statistic; for equal tallies write `a - b == 0`"
        )
    return ModelError(
        f"a constraint compares statistics, for example `ones >= 2`; got {value!r}. {_how_to_compare(value)}"
    )


def _how_to_compare(value: object) -> str:
    """Return what was probably meant by a value that is not a constraint."""
    if isinstance(value, (list, tuple)):
        return "Join several with &: `(ones >= 2) & (twos <= 5)`"
    if isinstance(value, str):
        return "A string is accepted only as where=, with the statistics that it names"
    if isinstance(value, Mapping):
        wanted = " and ".join(f"{name} == {number!r}" for name, number in list(value.items())[:2])
        return f"Write it as text, with the names of the statistics: '{wanted}'"
    if isinstance(value, Combination):
        return (
            f"Compare it with an integer, as in `{value.linear()} == 2`. Put each comparison in parentheses: "
            "`(ones >= 2) & (ones <= 5)`"
        )
    return "Compare a statistic with an integer"


def unbound(recipe: object, name: str, known: bool) -> AttributeError:
    """Return the error for an attribute that a recipe has not, though statistics may."""
    advice = f": it needs a model first. Pass the model, or use .on(model).{name}" if known else ""
    return AttributeError(f"{type(recipe).__name__!r} has no attribute {name!r}{advice}")
