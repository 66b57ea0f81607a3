"""More than one labelling: the k best, the best outside a set, and diverse ones."""

from tallytree.kbest.diverse import diverse_k_best
from tallytree.kbest.exclusion import exclude
from tallytree.kbest.in_order import iter_best, k_best, ranked

__all__ = ["diverse_k_best", "exclude", "iter_best", "k_best", "ranked"]


def __dir__() -> list[str]:
    return sorted(__all__)
