"""Generalisation bounds: bounds on the loss on unseen examples, evaluated exactly."""

from tallytree.bounds.margin import Maximum, worst_within_margin
from tallytree.bounds.softened import SoftMaximum, softened_maxima
from tallytree.bounds.theorem import PacBayesBound, pac_bayes

__all__ = [
    "Maximum",
    "PacBayesBound",
    "SoftMaximum",
    "pac_bayes",
    "softened_maxima",
    "worst_within_margin",
]


def __dir__() -> list[str]:
    return sorted(__all__)
