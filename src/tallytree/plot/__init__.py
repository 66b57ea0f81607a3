"""Plots, with the ``plot`` extra (matplotlib). Each function returns the axes it drew on.

They follow pyplot's conventions. A function that returns one axes draws on the current axes by default, so
several curves can share them; if these hold a picture already, it makes a new figure. A function that returns
a list of axes makes a new figure. ``ax=`` selects other axes. Notebooks show the figure and ``plt.savefig``
saves it. Colours follow the style, such as ``plt.style.use("dark_background")``.
"""

from tallytree.plot.cliques import clique_tree_picture
from tallytree.plot.profile import profile_curve
from tallytree.plot.reliability import reliability_curve
from tallytree.plot.solutions import side_by_side
from tallytree.plot.training import training_curves
from tallytree.plot.trees import tree_picture, trees_side_by_side

__all__ = [
    "clique_tree_picture",
    "profile_curve",
    "reliability_curve",
    "side_by_side",
    "training_curves",
    "tree_picture",
    "trees_side_by_side",
]


def __dir__() -> list[str]:
    return sorted(__all__)
