"""Losses and solvers as parameters of estimators: ``loss__beta`` stands for a field of a frozen value."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from tallytree.errors import ModelError


def recipe_parameters(recipe: Any) -> dict[str, Any]:
    """Return the parameters of a frozen value by name; those of a loss without its truth.

    Examples
    --------
    >>> import tallytree as tt
    >>> recipe_parameters(tt.losses.FBeta(beta=2.0, background="O"))
    {'background': 'O', 'beta': 2.0}
    """
    if not is_dataclass(recipe) or isinstance(recipe, type):
        return {}
    return {f.name: getattr(recipe, f.name) for f in fields(recipe) if f.init and f.name != "truth"}


class RecipeEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters may be frozen values with parameters of their own."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep``, those of losses and solvers as ``loss__beta``."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name, value in list(parameters.items()):
                inner = recipe_parameters(value)
                parameters.update({f"{name}__{key}": part for key, part in inner.items()})
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; ``loss__beta`` makes a loss with another beta."""
        outer = {name: value for name, value in parameters.items() if "__" not in name}
        super().set_params(**outer)
        for name, value in parameters.items():
            if name in outer:
                continue
            owner, _, key = name.partition("__")
            recipe: Any = getattr(self, owner, None)
            known = recipe_parameters(recipe)
            if key not in known:
                raise ModelError(
                    f"there is no parameter {name!r}: {owner} is {recipe!r}"
                    + (f", which has {', '.join(known)}" if known else "")
                )
            setattr(self, owner, replace(recipe, **{key: value}))
        return self
