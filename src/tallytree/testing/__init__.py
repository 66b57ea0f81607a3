"""Test tools: enumeration of all labellings, random problems, and checkers.

Everything here follows the definitions and not the recursions: a score is a sum over factors, a tally a
capped sum over the entries of a statistic, and a profile the best score of each tally among all labellings.
Code that extends the library can be tested in the same way: draw a problem with `random_model` and
`random_statistics`, solve it, and pass the answer to `check_profile` or `check_distribution`; use
`check_loss` for your own loss, and `check_machine` for a machine. `check_bounds` verifies a certificate by
bounds.
"""

from tallytree.testing.bounds import check_bounds
from tallytree.testing.checkers import check_distribution, check_loss, check_profile, check_solution
from tallytree.testing.enumeration import (
    LABELLING_LIMIT,
    Best,
    Enumeration,
    brute_force,
    factors_of,
    score_of,
    score_tolerance,
    tally_of,
)
from tallytree.testing.machines import accepted, check_machine, check_reduction
from tallytree.testing.problems import SHAPES, TREE_LOSSES, random_model, random_statistics

__all__ = [
    "LABELLING_LIMIT",
    "SHAPES",
    "TREE_LOSSES",
    "Best",
    "Enumeration",
    "accepted",
    "brute_force",
    "check_bounds",
    "check_distribution",
    "check_loss",
    "check_machine",
    "check_profile",
    "check_reduction",
    "check_solution",
    "factors_of",
    "random_model",
    "random_statistics",
    "score_of",
    "score_tolerance",
    "tally_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
