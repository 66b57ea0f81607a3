"""Bounds on the loss of unseen examples, evaluated exactly."""

from tallytree.bounds.margin import Maximum, worst_within_margin
from tallytree.bounds.theorem import PacBayesBound, pac_bayes

__all__ = ["Maximum", "PacBayesBound", "pac_bayes", "worst_within_margin"]
