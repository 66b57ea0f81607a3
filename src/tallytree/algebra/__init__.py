"""The two kinds of arithmetic in a message table: on scores (its entries) and on tallies (its index)."""

from tallytree.algebra.scores import Algebra, Counting, LogSumExp, MaxPlus

__all__ = ["Algebra", "Counting", "LogSumExp", "MaxPlus"]


def __dir__() -> list[str]:
    return sorted(__all__)
