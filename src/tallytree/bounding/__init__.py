"""Exact answers without full tables: prices, a budget, and the few tallies that remain."""

from tallytree.bounding.answering import answered, check_operations
from tallytree.bounding.certificate import BoundsCertificate, Part
from tallytree.bounding.question import Question
from tallytree.bounding.strategy import bounded, price_of
from tallytree.bounding.table import BoundedTable

__all__ = [
    "BoundedTable",
    "BoundsCertificate",
    "Part",
    "Question",
    "answered",
    "bounded",
    "check_operations",
    "price_of",
]


def __dir__() -> list[str]:
    return sorted(__all__)
