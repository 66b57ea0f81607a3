"""Clique trees: the objects of the paper, for inspection and teaching."""

from tallytree.paper.cliquetree.rules import check_clique_tree
from tallytree.paper.cliquetree.tree import CliqueTree, clique_tree

__all__ = ["CliqueTree", "check_clique_tree", "clique_tree"]
