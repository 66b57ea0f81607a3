"""Layers for PyTorch: exact structured distributions, losses and decoders, with gradients.

It has additional dependencies: ``pip install "tallytree[torch]"``.

>>> import torch
>>> import tallytree.torch as ttt
>>> emissions = torch.zeros(2, 3, 2, requires_grad=True)  # sentences, positions, tags
>>> chain = ttt.Chain(emissions, torch.zeros(2, 2), lengths=[3, 2])
>>> chain.log_partition.exp()
tensor([8.0000, 4.0000], grad_fn=<ExpBackward0>)
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"tallytree.torch needs {error.name}; install it with pip install 'tallytree[torch]'",
        name=error.name,
    ) from error

from tallytree.torch.chain import Chain
from tallytree.torch.chart import Chart
from tallytree.torch.conditioned import Conditioned
from tallytree.torch.crf import CRF
from tallytree.torch.losses import (
    ExpectedLoss,
    NegativeLogLikelihood,
    SoftmaxMargin,
    StructuredHinge,
    StructuredLoss,
    SummedLoss,
    TrainingLoss,
)
from tallytree.torch.replays import check_replays
from tallytree.torch.structured import Structured, TopK
from tallytree.torch.tally import Tally

__all__ = [
    "CRF",
    "Chain",
    "Chart",
    "Conditioned",
    "ExpectedLoss",
    "NegativeLogLikelihood",
    "SoftmaxMargin",
    "Structured",
    "StructuredHinge",
    "StructuredLoss",
    "SummedLoss",
    "Tally",
    "TopK",
    "TrainingLoss",
    "check_replays",
]


def __dir__() -> list[str]:
    return sorted(__all__)
