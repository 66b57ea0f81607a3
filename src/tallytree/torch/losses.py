"""Losses for training: modules that compare all taggings of a sentence with the true one, exactly.

With ``F`` the score of a tagging, ``y*`` the true one and ``Δ`` a loss of the library, such as the
F-measure of chunks:

* :class:`StructuredHinge`: ``max_y Δ(y) + F(y) − F(y*)`` (margin scaling), or
  ``max_y Δ(y) (1 + F(y) − F(y*))`` (slack scaling);
* :class:`SoftmaxMargin`: ``log Σ_y exp(F(y) + Δ(y)) − F(y*)``;
* :class:`ExpectedLoss`: ``Σ_y p(y) Δ(y)``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn

from tallytree.errors import ModelError
from tallytree.losses import as_loss
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling, checked_scaling
from tallytree.torch.backends import Backend, backend_of
from tallytree.torch.eager import eager
from tallytree.torch.functions import Given, Pull, Scores, computed, ends_of, right_of
from tallytree.torch.inputs import Ends, checked_chain, whole_tags

Reduction = Literal["mean", "sum", "none"]


class StructuredLoss(nn.Module):
    """Base class of losses of scores and true tags.

    Parameters
    ----------
    loss : Loss or str
        The loss of a wrong tagging: a recipe, such as ``tt.losses.FBeta(background=0)``, or its name. For
        losses of chunks the tags need names: pass ``labels``, or pass them to the loss, as in
        ``tt.losses.ChunkFBeta(labels)``.
    labels : sequence of str, optional
        The names of the tags, in the order of their numbers.
    reduction : {"mean", "sum", "none"}
        Over sentences.
    """

    def __init__(
        self, loss: Loss | str, *, labels: Sequence[str] | None = None, reduction: Reduction = "mean"
    ) -> None:
        super().__init__()
        recipe = as_loss(loss)
        names = recipe.truth if labels is None else labels
        if reduction not in get_args(Reduction):
            raise ModelError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
        self.loss, self.reduction = recipe.replace(truth=None), reduction
        self.labels = None if names is None else tuple(names)

    @eager
    def forward(
        self, emissions: Tensor, transitions: Tensor, tags: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Parameters
        ----------
        emissions, transitions, mask
            As for :class:`Chain`.
        tags : int tensor of shape (B, T)
            The true tags.
        """
        given, ends, right = self._checked(emissions, transitions, tags, mask)

        def compute(backend: Backend, scores: Scores) -> tuple[Tensor, Pull]:
            return self._computed(backend.functions, scores, right_of(right, scores, backend))

        return computed(self._function, compute, ends, given, self.reduction)

    def device_bytes(
        self, emissions: Tensor, transitions: Tensor, tags: Tensor, mask: Tensor | None = None
    ) -> int:
        """Return the GPU memory that a call needs for its tables, besides inputs and gradients.

        The arguments are those of a call; nothing is computed. On the CPU, each thread needs memory for one
        sentence at a time, all of them within the library's memory limit, and 0 is returned.
        """
        given, ends, right = self._checked(emissions, transitions, tags, mask)
        backend = backend_of(given.emissions.device, "loss_bytes")
        scores = given.scores(ends, backend)
        known = right_of(right, scores, backend)
        found: int = backend.functions.loss_bytes(scores, self.loss, self.labels, known, self._objective)
        return found

    _function = "objective"
    """The backend function that is needed."""
    _objective = "hinge"
    """What is computed, for the memory that it needs."""

    def _checked(
        self, emissions: Tensor, transitions: Tensor, tags: Tensor, mask: Tensor | None
    ) -> tuple[Given, Ends, Tensor]:
        given = Given(*checked_chain(emissions, transitions))
        count = given.emissions.shape[2]
        if self.labels is not None and len(self.labels) != count:
            raise ModelError(f"there are {count} tags, but labels has {len(self.labels)} names")
        return given, ends_of(None, mask, given.emissions), whole_tags(tags, given.emissions)

    @abstractmethod
    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        """Return the loss of each sentence and its derivatives, by the functions of a backend."""

    def extra_repr(self) -> str:
        """Describe the loss."""
        return f"{self.loss}, reduction={self.reduction!r}"


class StructuredHinge(StructuredLoss):
    """The structured hinge loss: a wrong tagging should score less than the true one, by at least its loss.

    Parameters
    ----------
    loss, labels, reduction
        As for :class:`StructuredLoss`.
    scaling : {"margin", "slack"}
        Whether the loss is added as a margin, or multiplies a margin of 1.

    Attributes
    ----------
    gap : tensor of shape (B,)
        After a call: how far each value may be below the maximum. It is 0 on the CPU. On a GPU, tables of
        float32 scores are rounded up, and the gap bounds the effect, a few millionths of the scores; for
        float64 scores it is their rounding.

    Examples
    --------
    >>> import tallytree as tt
    >>> labels = ["O", "B-NP", "I-NP"]
    >>> hinge = StructuredHinge(tt.losses.ChunkFBeta(labels), scaling="slack")
    >>> hinge(torch.zeros(1, 4, 3), torch.zeros(3, 3), torch.tensor([[0, 1, 2, 0]]))
    tensor(1.)
    """

    def __init__(
        self,
        loss: Loss | str,
        *,
        scaling: Scaling = "margin",
        labels: Sequence[str] | None = None,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(loss, labels=labels, reduction=reduction)
        checked_scaling(scaling, self.loss)
        self.scaling: Scaling = scaling
        self.gap: Tensor = torch.zeros(0)

    _function = "hinge"

    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        values, gap, pull = functions.hinge(scores, self.loss, self.labels, tags, self.scaling)
        # Neither a parameter nor a buffer, for which a module would look first.
        object.__setattr__(self, "gap", gap)
        return values, pull


class SoftmaxMargin(StructuredLoss):
    """The softmax margin: the negative log-likelihood, with the loss of each tagging added to its score.

    The parameters are those of :class:`StructuredLoss`.

    Examples
    --------
    >>> import tallytree as tt
    >>> soft = SoftmaxMargin(tt.losses.HammingDistance())
    >>> soft(torch.zeros(1, 2, 2), torch.zeros(2, 2), torch.tensor([[0, 1]]))
    tensor(2.6265)
    """

    _objective = "softmax-margin"

    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        found: tuple[Tensor, Pull] = functions.objective(
            scores, self.loss, self.labels, tags, "softmax-margin"
        )
        return found


class ExpectedLoss(StructuredLoss):
    """The expected loss of a sampled tagging (the risk), summed over all taggings exactly.

    The parameters are those of :class:`StructuredLoss`.

    Examples
    --------
    >>> import tallytree as tt
    >>> risk = ExpectedLoss(tt.losses.HammingDistance())
    >>> risk(torch.zeros(1, 2, 2), torch.zeros(2, 2), torch.tensor([[0, 1]]))
    tensor(1.)
    """

    _objective = "risk"

    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        found: tuple[Tensor, Pull] = functions.objective(scores, self.loss, self.labels, tags, "risk")
        return found
