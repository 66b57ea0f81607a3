"""The parameters of estimators: what each accepts, checked at the start of a fit and when one is loaded.

Constructors only store what they are given, as in scikit-learn.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from tallytree.errors import ModelError
from tallytree.learning import accepted
from tallytree.learning.accepted import Accepted
from tallytree.learning.inference import Diverse, TopTallies
from tallytree.learning.likelihoods import OBJECTIVE
from tallytree.learning.oracle import SCALING
from tallytree.learning.solver import Solver
from tallytree.learning.templates import WindowFeatures
from tallytree.parsing.binarise import Tail

SOLVER = accepted.instance("FrankWolfe(), CuttingPlanes(), Subgradient() or None", Solver)

ACCEPTED: dict[str, Accepted] = {
    "scaling": SCALING,
    "C": accepted.POSITIVE,
    "solver": SOLVER,
    "extra": accepted.instance("TopTallies(), Diverse() or None", TopTallies, Diverse),
    "objective": OBJECTIVE,
    "c1": accepted.NON_NEGATIVE,
    "c2": accepted.NON_NEGATIVE,
    "margin": accepted.POSITIVE,
    "class_weight": Accepted(
        "a mapping of labels to numbers, 'balanced' or None",
        lambda value: (
            value is None or isinstance(value, Mapping) or (isinstance(value, str) and value == "balanced")
        ),
    ),
    "tolerance": accepted.NO_LIMIT,
    "max_passes": accepted.PASSES,
    "max_seconds": accepted.NO_LIMIT,
    "n_jobs": accepted.JOBS,
    "warm_start": accepted.FLAG,
    "checkpoint": accepted.FILE,
    "verbose": accepted.VERBOSE,
    "all_possible_states": accepted.FLAG,
    "hashed": accepted.integer(1, "a positive integer below 2**31", 2**31).or_none(),
    "min_count": accepted.NATURAL,
    "features": accepted.instance("WindowFeatures() or None", WindowFeatures),
    "horizontal": accepted.NATURAL.or_none(),
    "vertical": accepted.COUNT,
    "tail": accepted.one_of(*get_args(Tail)),
    "prior": accepted.NON_NEGATIVE,
    "smoothing": accepted.POSITIVE,
    "rare": accepted.NATURAL,
}
"""By name; the loss is checked by :func:`tallytree.losses.as_loss`."""


def check_parameters(given: Mapping[str, Any]) -> None:
    """Raise an error for the first parameter whose value is not accepted, or is ignored because of another.

    Parameters with other names are not checked.
    """
    for name, value in given.items():
        if name in ACCEPTED:
            ACCEPTED[name].check(name, value)
    hashed, least = given.get("hashed"), given.get("min_count", 1)
    if hashed is not None and least > 1:
        raise ModelError(
            f"min_count={least} has no effect with hashed={hashed}, because hashed features are not counted; "
            "remove one of them"
        )
