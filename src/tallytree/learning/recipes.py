"""Estimators with parameters that are objects with parameters: ``loss__beta``, ``solver__room``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, Self

from sklearn.base import BaseEstimator

from tallytree.errors import ModelError
from tallytree.losses import Loss


def recipe_parameters(recipe: Any) -> dict[str, Any]:
    """Return the parameters of a frozen value by name; for a loss, without its truth.

    Examples
    --------
    >>> import tallytree as tt
    >>> recipe_parameters(tt.losses.FBeta(beta=2.0, background="O"))
    {'background': 'O', 'beta': 2.0}
    """
    if not is_dataclass(recipe) or isinstance(recipe, type):
        return {}
    return {f.name: getattr(recipe, f.name) for f in fields(recipe) if f.init and f.name != "truth"}


_EXAMPLES = {
    "loss": "loss='f1'",
    "solver": "solver=FrankWolfe()",
    "extra": "extra=TopTallies()",
    "features": "features=WindowFeatures()",
}
"""Values to set before their parameters can be set."""


class RecipeEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose parameters may be frozen values with their own parameters."""

    loss: Loss | str | None

    @abstractmethod
    def _recipe(self) -> Loss:
        """Return the loss, which may be given by its name."""

    def _keep(self, given: Mapping[str, Any]) -> None:
        """Store the arguments of a constructor under their own names, as scikit-learn requires."""
        self.__dict__.update(
            {name: value for name, value in given.items() if name not in ("self", "__class__")}
        )

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; with ``deep``, those of losses and solvers as ``loss__beta``."""
        parameters: dict[str, Any] = super().get_params(deep=False)
        if deep:
            for name in list(parameters):
                inner = recipe_parameters(self._owner(name))
                parameters.update({f"{name}__{key}": part for key, part in inner.items()})
        return parameters

    def set_params(self, **parameters: Any) -> Self:
        """Set parameters by name; ``loss__beta`` replaces the loss by one with another beta."""
        inner = [name for name in parameters if "__" in name]
        super().set_params(**{name: value for name, value in parameters.items() if name not in inner})
        for name in inner:
            owner, _, key = name.partition("__")
            if owner not in self._get_param_names():
                super().set_params(**{owner: None})  # raises scikit-learn's error
            recipe = self._owner(owner)
            if key not in recipe_parameters(recipe):
                raise ModelError(f"unknown parameter {name!r}: {self._description(owner)}")
            setattr(self, owner, replace(recipe, **{key: parameters[name]}))
        return self

    def _owner(self, name: str) -> Any:
        """Return the value of a parameter; the loss itself if it is given by its name."""
        value = getattr(self, name)
        if name != "loss" or not isinstance(value, str):
            return value
        try:
            return self._recipe()
        except ModelError:  # for an unknown name: the fit reports it
            return None

    def _description(self, name: str) -> str:
        """Say what the value of a parameter is, and which parameters it has."""
        value, known = getattr(self, name), recipe_parameters(self._owner(name))
        if value is None:
            return f"{name} is None; set it first, as in {_EXAMPLES.get(name, f'{name}=…')}"
        return f"{name} is {value!r}, which has {', '.join(known) or 'no parameters'}"
