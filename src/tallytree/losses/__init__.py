"""Losses, and loss-augmented inference.

A loss is a recipe, ``FBeta(beta=2, background="O")``, which is bound to a truth by ``.against(truth)``; the
truth may also be the first argument, ``FBeta(truth, background="O")``.
"""

from tallytree.losses.augmented import LossProfile
from tallytree.losses.base import LabellingLoss, Loss
from tallytree.losses.bleu import Bleu
from tallytree.losses.brackets import CrossingBrackets, CrossingBracketsRate
from tallytree.losses.chunks import ChunkFBeta
from tallytree.losses.corpus import CorpusSolution
from tallytree.losses.names import LOSS_NAMES, as_loss
from tallytree.losses.node_numbers import FalsePositives, SymmetricDifference
from tallytree.losses.nodes import FBeta, IntersectionOverUnion, NodeLoss, Precision, Recall
from tallytree.losses.path import MarginPath
from tallytree.losses.positions import HammingDistance, HammingLoss, LabelCount, ZeroOne
from tallytree.losses.rouge import RougeL, RougeN
from tallytree.losses.scaling import objective, scaled
from tallytree.losses.sequences import SequenceLoss
from tallytree.losses.solution import AugmentedSolution
from tallytree.losses.weighted import WeightedHamming
from tallytree.transducers.chunks import chunks_of

__all__ = [
    "AugmentedSolution",
    "Bleu",
    "ChunkFBeta",
    "CrossingBrackets",
    "CrossingBracketsRate",
    "CorpusSolution",
    "FBeta",
    "FalsePositives",
    "HammingDistance",
    "HammingLoss",
    "IntersectionOverUnion",
    "LOSS_NAMES",
    "LabelCount",
    "LabellingLoss",
    "Loss",
    "LossProfile",
    "MarginPath",
    "NodeLoss",
    "Precision",
    "Recall",
    "RougeL",
    "RougeN",
    "SequenceLoss",
    "SymmetricDifference",
    "WeightedHamming",
    "ZeroOne",
    "as_loss",
    "chunks_of",
    "objective",
    "scaled",
]


def __dir__() -> list[str]:
    return sorted(__all__)
