"""Values of sentences that a kernel adds up, and their derivatives."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from tallytree.torch.functions import Pull, Scores, Slopes
from tallytree.torch.gpu import chains as plain
from tallytree.torch.gpu.structures import NO_TOTAL

_DIVISORS = {"sum": 1.0, "token_mean": 0.0}


class Totalled:
    """The total of the values of all sentences, which a kernel adds up; or just these values.

    ``total``: where it is put.
    """

    def __init__(self, scores: Scores) -> None:
        self.scores, self.total = scores, NO_TOTAL
        self._value: Tensor | None = None
        if scores.reduction != "none":
            emissions = scores.emissions
            self._value = emissions.new_empty(())
            divisor = float(emissions.shape[0]) if scores.reduction == "mean" else _DIVISORS[scores.reduction]
            self.total = self._value.data_ptr(), divisor

    def of(self, values: Tensor) -> Tensor:
        """Return the total, or the values if they are not added up."""
        return values if self._value is None else self._value

    @property
    def rate(self) -> float:
        """The derivative of the result by each value; 0: one over the number of positions."""
        divisor = 1.0 if self._value is None else self.total[1]
        return 1 / divisor if divisor else 0.0

    def pull(
        self,
        chains: plain.Chains,
        first: plain.Summed | None,
        again: Callable[..., plain.Summed],
        apart: bool = False,
        at_once: Callable[[Tensor, float], Slopes | None] | None = None,
    ) -> Pull:
        """Return the vector-Jacobian product, given the derivatives for gains of 1, if they are known.

        `again`: computes them, times one gain for each sentence if given. Tables for shared weights are
        summed over sentences, unless they are `apart`, so different gains must be known before. `at_once`:
        may compute the result for one gain for all, in a single launch.
        """
        scores, rate, known = self.scores, self.rate, [first]  # not self: the graph of its total has this

        def pulled(gain: Tensor) -> Slopes:
            given = _as_scores(gain, scores)
            if at_once is not None and plain.is_uniform(given):
                found = at_once(given, rate)
                if found is not None:
                    return found
            summed = chains.shared and not (apart and known)
            if summed and not plain.is_uniform(given):
                return plain.gathered(chains, again(given), None, rate, in_place=True)
            sums = known.pop() if known else None  # they are overwritten
            return plain.gathered(chains, again() if sums is None else sums, given, rate, in_place=True)

        return pulled


def _as_scores(gain: Tensor, scores: Scores) -> Tensor:
    """Return gains in the dtype of the scores, either contiguous or all the same."""
    found = gain if gain.dtype == scores.emissions.dtype else gain.to(scores.emissions.dtype)
    return found if plain.is_uniform(found) else found.contiguous()
