"""A conditional random field as a module, with the interface of pytorch-crf."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args

import torch
from torch import Tensor, nn

from tallytree.errors import ModelError
from tallytree.torch.backends import backend_of
from tallytree.torch.chain import Chain, log_prob
from tallytree.torch.eager import eager
from tallytree.torch.functions import Given, Reduction, ends_of
from tallytree.torch.inputs import Ends, checked_chain, checked_names, turned, whole_tags

_REDUCTIONS = get_args(Reduction)


class CRF(nn.Module):
    """A linear-chain CRF with learned scores of transitions, first tags and last tags.

    A drop-in replacement for ``torchcrf.CRF``: the same arguments, the same parameters (so that saved weights
    can be loaded), the same defaults.

    Parameters
    ----------
    num_tags : int
        The number of tags.
    batch_first : bool
        Whether sentences are the first dimension of tensors, or the second (default).
    states : sequence of str, optional
        The names of the tags, for constraints and statistics of :meth:`distribution`.

    Attributes
    ----------
    start_transitions, end_transitions : Parameter of shape (num_tags,)
        Scores of the first and of the last tag.
    transitions : Parameter of shape (num_tags, num_tags)
        Scores of pairs of tags, from row to column.

    Examples
    --------
    >>> crf = CRF(3, batch_first=True)
    >>> emissions, tags = torch.zeros(2, 4, 3), torch.zeros(2, 4, dtype=torch.long)
    >>> (-crf(emissions, tags, reduction="mean")).backward()
    >>> len(crf.decode(emissions)[0])
    4
    """

    def __init__(
        self, num_tags: int, batch_first: bool = False, *, states: Sequence[str] | None = None
    ) -> None:
        if isinstance(num_tags, bool) or not isinstance(num_tags, int) or num_tags <= 0:
            raise ValueError(f"invalid number of tags: {num_tags}")
        super().__init__()
        self.num_tags, self.batch_first = num_tags, batch_first
        self.states = None if states is None else checked_names(states, "states", num_tags)
        self.start_transitions = nn.Parameter(torch.empty(num_tags))
        self.end_transitions = nn.Parameter(torch.empty(num_tags))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw all parameters from a uniform distribution between -0.1 and 0.1."""
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -0.1, 0.1)

    @eager
    def forward(
        self, emissions: Tensor, tags: Tensor, mask: Tensor | None = None, reduction: Reduction = "sum"
    ) -> Tensor:
        """Return the log-likelihood of tags.

        Parameters
        ----------
        emissions : tensor of shape (T, B, num_tags), or (B, T, num_tags) with ``batch_first``
            The scores of tags at all positions.
        tags : int64 tensor of shape (T, B), or (B, T)
            The true tags.
        mask : bool tensor of the same shape, optional
            Which positions belong to sentences: ones followed by zeros.
        reduction : {"sum", "mean", "token_mean", "none"}
            Over sentences; ``"token_mean"`` is the sum divided by the number of positions.
        """
        if reduction not in _REDUCTIONS:
            raise ValueError(f"invalid reduction: {reduction}; use 'none', 'sum', 'mean' or 'token_mean'")
        given, ends = self._checked(emissions, mask, tags)
        return log_prob(given, ends, whole_tags(self._turned(tags), given.emissions), reduction)

    @eager
    def decode(self, emissions: Tensor, mask: Tensor | None = None) -> list[list[int]]:
        """Return the tags with the highest score, as lists with the lengths of the sentences."""
        given, ends = self._checked(emissions, mask)
        backend = backend_of(given.emissions.device, "viterbi")
        found = backend.functions.viterbi(given.scores(ends, backend)).tolist()
        return [tags[:length] for tags, length in zip(found, ends.lengths.tolist(), strict=True)]

    @eager
    def distribution(self, emissions: Tensor, mask: Tensor | None = None) -> Chain:
        """Return the distribution over taggings, as a :class:`Chain`; sentences are its first dimension.

        Its emissions include the scores of first and last tags, so losses can be computed from it::

            chain = crf.distribution(emissions, mask)
            hinge(chain.emissions, chain.transitions, tags, chain.mask)  # tags with sentences first
        """
        given, ends = self._checked(emissions, mask)
        places = torch.arange(given.emissions.shape[1], device=given.emissions.device)
        first = (places == 0).view(1, -1, 1)
        last = (places == (ends.lengths.to(places.device) - 1).unsqueeze(1)).unsqueeze(-1)
        none = given.emissions.new_zeros(())
        added = torch.where(first, self.start_transitions, none) + torch.where(
            last, self.end_transitions, none
        )
        return Chain(given.emissions + added, self.transitions, ends.lengths, states=self.states)

    @eager
    def _checked(
        self, emissions: Tensor, mask: Tensor | None, tags: Tensor | None = None
    ) -> tuple[Given, Ends]:
        # errors contain the words of pytorch-crf's, which its tests look for
        if not isinstance(emissions, Tensor):
            raise ModelError(
                f"emissions must be a tensor, got {type(emissions).__name__}; use torch.as_tensor"
            )
        if emissions.ndim != 3:
            raise ModelError(f"emissions must have dimension of 3, got {emissions.ndim}")
        first, second, count = emissions.shape
        if count != self.num_tags:
            raise ModelError(f"expected last dimension of emissions is {self.num_tags}, got {count}")
        for name, other in (("tags", tags), ("mask", mask)):
            if isinstance(other, Tensor) and other.shape != (first, second):
                raise ModelError(
                    f"the first two dimensions of emissions and {name} must match, got {(first, second)} and "
                    f"{tuple(other.shape)}; batch_first is {self.batch_first}"
                )
        given, links = checked_chain(self._turned(emissions), self.transitions)
        ends = ends_of(None, None if mask is None else self._turned(mask), given, first=True)
        return Given(given, links, self.start_transitions, self.end_transitions), ends

    @eager
    def _turned(self, tensor: Any) -> Any:
        """Return a tensor with sentences as the first dimension."""
        return tensor if self.batch_first else turned(tensor)

    def __repr__(self) -> str:
        return f"CRF(num_tags={self.num_tags})"
