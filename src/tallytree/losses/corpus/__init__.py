"""Losses counted over many models at once, such as F1, IoU or chunk F1 of a whole corpus.

The best score for every tally of a corpus is the join of the profiles of its parts, and far too large to
compute. But it is close to a concave upper bound, which is cheap: ``Σ_k max_l (μ_k(l) + λ·l) - λ·L`` bounds
the score at the tally L for every vector of multipliers λ. The search (``search.py``) keeps the boxes of
tallies that can still be optimal, and joins (``join.py``) only the rest: the answer is exact.
"""

from tallytree.losses.corpus.augmented import CorpusSolution, loss_augmented_corpus

__all__ = ["CorpusSolution", "loss_augmented_corpus"]
