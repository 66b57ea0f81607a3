"""Losses for training: modules that compare all taggings of a sentence with the true one, exactly.

With ``F`` the score of a tagging, ``y*`` the true one and ``Δ`` a loss of the library, such as the
F-measure of chunks:

* :class:`NegativeLogLikelihood`: ``log Σ_y exp F(y) − F(y*)``;
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

from tallytree.bulk.chunk_tables import check_summable
from tallytree.bulk.expectations import LossObjective
from tallytree.errors import ModelError
from tallytree.losses import as_loss
from tallytree.losses.base import Loss
from tallytree.losses.scaling import Scaling, checked_scaling
from tallytree.torch.backends import Backend, backend_of
from tallytree.torch.eager import eager
from tallytree.torch.functions import Given, Pull, Scores, computed, ends_of, right_of
from tallytree.torch.inputs import Ends, checked_chain, checked_names, turned, whole_tags

LossReduction = Literal["mean", "sum", "none"]


class TrainingLoss(nn.Module):
    """Base class of losses of scores and true tags.

    Parameters
    ----------
    reduction : {"mean", "sum", "none"}
        Over sentences.
    batch_first : bool
        Whether sentences are the first dimension of emissions, tags and mask, or the second, which is the
        default of :class:`CRF`.
    """

    def __init__(self, *, reduction: LossReduction = "mean", batch_first: bool = True) -> None:
        super().__init__()
        if reduction not in get_args(LossReduction):
            raise ModelError(f"reduction must be 'mean', 'sum' or 'none', got {reduction!r}")
        self.reduction: LossReduction = reduction
        self.batch_first = batch_first

    @eager
    def forward(
        self, emissions: Tensor, transitions: Tensor, tags: Tensor, mask: Tensor | None = None
    ) -> Tensor:
        """Return the loss of a batch.

        Without ``batch_first``, the first two dimensions of emissions, tags and mask are (T, B).

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

    _function: str
    """The backend function that is needed."""

    def _checked(
        self, emissions: Tensor, transitions: Tensor, tags: Tensor, mask: Tensor | None
    ) -> tuple[Given, Ends, Tensor]:
        if not self.batch_first:
            emissions, tags, mask = map(turned, (emissions, tags, mask))
        given = Given(*checked_chain(emissions, transitions))
        return given, ends_of(None, mask, given.emissions), whole_tags(tags, given.emissions)

    @abstractmethod
    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        """Return the loss of each sentence and its derivatives, by the functions of a backend."""

    def extra_repr(self) -> str:
        """Describe the parameters."""
        return f"reduction={self.reduction!r}, batch_first={self.batch_first}"


class NegativeLogLikelihood(TrainingLoss):
    """The negative log-likelihood ``−log p(y*)`` of the true tags, the loss of a conditional random field.

    It is ``-Chain(emissions, transitions, mask=mask).log_prob(tags).mean()`` in one call, which is faster for
    small batches on a GPU. The parameters are those of :class:`TrainingLoss`.

    Examples
    --------
    >>> loss = NegativeLogLikelihood()
    >>> loss(torch.zeros(1, 2, 2), torch.zeros(2, 2), torch.tensor([[0, 1]])).exp()
    tensor(4.0000)
    """

    _function = "log_prob"

    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        found: tuple[Tensor, Pull] = functions.log_prob(scores, tags, -1.0)
        return found


class StructuredLoss(TrainingLoss):
    """Base class of losses that compare all taggings with the true one by a loss of the library.

    Parameters
    ----------
    loss : Loss or str
        The loss of a wrong tagging: a recipe, such as ``tt.losses.FBeta(background=0)``, or its name. For
        losses of chunks the tags need names: pass ``labels``.
    labels : sequence of str, optional
        The names of the tags, in the order of their numbers.
    reduction, batch_first
        As for :class:`TrainingLoss`.
    """

    def __init__(
        self,
        loss: Loss | str,
        *,
        labels: Sequence[str] | None = None,
        reduction: LossReduction = "mean",
        batch_first: bool = True,
    ) -> None:
        super().__init__(reduction=reduction, batch_first=batch_first)
        recipe = as_loss(loss)
        self.labels = _names_of(recipe, labels)
        self.loss = recipe.replace(truth=None)
        self._check(self.loss)

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

    @staticmethod
    def _check(loss: Loss) -> None:
        """Raise an error for a loss that is not supported."""

    _function = "objective"
    _objective = "hinge"
    """What is computed, for the memory that it needs."""

    def _checked(
        self, emissions: Tensor, transitions: Tensor, tags: Tensor, mask: Tensor | None
    ) -> tuple[Given, Ends, Tensor]:
        found = super()._checked(emissions, transitions, tags, mask)
        count = found[0].emissions.shape[2]
        if self.labels is not None and len(self.labels) != count:
            raise ModelError(f"there are {count} tags, but labels has {len(self.labels)} names")
        named = getattr(self.loss, "background", None)
        if self.labels is None and isinstance(named, str):
            raise ModelError(
                f"the background {named!r} of the loss is a name, but the tags have no names; pass labels="
            )
        return found

    def extra_repr(self) -> str:
        """Describe the loss and the parameters."""
        named = "" if self.labels is None else f"labels={list(self.labels)}, "
        return f"{self.loss}, {named}{super().extra_repr()}"


def _names_of(recipe: Loss, labels: Sequence[str] | None) -> tuple[str, ...] | None:
    """Return the names of the tags: as given, or those that the loss has in place of a truth."""
    names = None if labels is None else checked_names(labels, "labels")
    own = None if recipe.truth is None else tuple(recipe.truth)
    if names is not None and own is not None and names != own:
        raise ModelError(
            f"labels={list(names)} contradicts the names passed to the loss, {list(own)}; pass labels= only"
        )
    return own if names is None else names


class StructuredHinge(StructuredLoss):
    """The structured hinge loss: a wrong tagging should score less than the true one, by at least its loss.

    Parameters
    ----------
    loss, labels, reduction, batch_first
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
    >>> hinge = StructuredHinge(tt.losses.ChunkFBeta(), scaling="slack", labels=labels)
    >>> hinge(torch.zeros(1, 4, 3), torch.zeros(3, 3), torch.tensor([[0, 1, 2, 0]]))
    tensor(1.)
    """

    def __init__(
        self,
        loss: Loss | str,
        *,
        scaling: Scaling = "margin",
        labels: Sequence[str] | None = None,
        reduction: LossReduction = "mean",
        batch_first: bool = True,
    ) -> None:
        super().__init__(loss, labels=labels, reduction=reduction, batch_first=batch_first)
        checked_scaling(scaling, self.loss)
        self.scaling: Scaling = scaling
        self.gap: Tensor = torch.zeros(0)

    _function = "hinge"

    def extra_repr(self) -> str:
        """Describe the loss and the parameters."""
        return f"{super().extra_repr()}, scaling={self.scaling!r}"

    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        values, gap, pull = functions.hinge(scores, self.loss, self.labels, tags, self.scaling)
        # Neither a parameter nor a buffer, for which a module would look first.
        object.__setattr__(self, "gap", gap)
        return values, pull


class SummedLoss(StructuredLoss):
    """Base class of losses that are sums over all taggings.

    The loss must count positions or chunks: ``HammingDistance``, ``HammingLoss``, ``FBeta`` and the other
    losses of nodes, ``ChunkFBeta``, or a custom loss of nodes with ``by_size=True``. The parameters are
    those of :class:`StructuredLoss`.
    """

    _objective: LossObjective
    _check = staticmethod(check_summable)

    def _computed(self, functions: Any, scores: Scores, tags: Tensor) -> tuple[Tensor, Pull]:
        found: tuple[Tensor, Pull] = functions.objective(
            scores, self.loss, self.labels, tags, self._objective
        )
        return found


class SoftmaxMargin(SummedLoss):
    """The softmax margin: the negative log-likelihood, with the loss of each tagging added to its score.

    The parameters are those of :class:`SummedLoss`.

    Examples
    --------
    >>> import tallytree as tt
    >>> soft = SoftmaxMargin(tt.losses.HammingDistance())
    >>> soft(torch.zeros(1, 2, 2), torch.zeros(2, 2), torch.tensor([[0, 1]]))
    tensor(2.6265)
    """

    _objective = "softmax-margin"


class ExpectedLoss(SummedLoss):
    """The expected loss of a sampled tagging (the risk), summed over all taggings exactly.

    The parameters are those of :class:`SummedLoss`.

    Examples
    --------
    >>> import tallytree as tt
    >>> risk = ExpectedLoss(tt.losses.HammingDistance())
    >>> risk(torch.zeros(1, 2, 2), torch.zeros(2, 2), torch.tensor([[0, 1]]))
    tensor(1.)
    """

    _objective = "risk"
