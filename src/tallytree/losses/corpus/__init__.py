"""Losses counted over many models at once: F1, IoU or chunk F1 of a whole corpus.

The best score for every tally of a corpus is the join of the profiles of its parts, and far too large to
compute. But it lies close below a concave function, which is cheap: ``Σ_k max_l (μ_k(l) + λ·l) - λ·L`` bounds
the score at the tally L for every vector of multipliers λ. The search (``search.py``) keeps the boxes of
tallies that can still win by that bound, and joins (``join.py``) only what is left: the answer is exact.
"""

from tallytree.losses.corpus.augmented import CorpusSolution, loss_augmented_corpus

__all__ = ["CorpusSolution", "loss_augmented_corpus"]
