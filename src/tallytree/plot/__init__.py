"""Pictures, for the extra ``plot`` (matplotlib). Each function returns the axes it drew on.

Without ``ax=`` a figure is made; it belongs to no window, and ``ax.figure.savefig(…)`` writes it to a file.
"""

from tallytree.plot.cliques import clique_tree_picture
from tallytree.plot.profile import profile_curve
from tallytree.plot.solutions import side_by_side
from tallytree.plot.training import training_curves
from tallytree.plot.trees import tree_picture, trees_side_by_side

__all__ = [
    "clique_tree_picture",
    "profile_curve",
    "side_by_side",
    "training_curves",
    "tree_picture",
    "trees_side_by_side",
]
