"""Distributions over the binary trees of sentences, with a score for each span."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tallytree.bulk.binary_trees import best_binary_trees, draw_binary_trees, sum_binary_trees
from tallytree.errors import InfeasibleError, ModelError
from tallytree.parsing.counts import count
from tallytree.parsing.distribution import TreeDistribution
from tallytree.parsing.forest import Forest
from tallytree.parsing.grammar import Grammar
from tallytree.parsing.parse import Parse
from tallytree.parsing.statistics import TreeStatistic
from tallytree.solving import distribution
from tallytree.torch.backends import backend_of
from tallytree.torch.eager import eager
from tallytree.torch.functions import Shares, attached, kept
from tallytree.torch.inputs import Ends, Lengths, check_devices, checked_floats, shape_of
from tallytree.torch.structured import Structured
from tallytree.torch.tally import Tally
from tallytree.trees import Tree

_SPAN, _WORD, _LETTER = "@span", "·word", "w"


@lru_cache(maxsize=64)
def _grammar(labels: tuple[str, ...]) -> Grammar:
    """Return the grammar of all binary trees whose constituents, including words, have one label each."""
    return Grammar(
        {(label, _SPAN, _SPAN): 0.0 for label in labels},
        {**{(label, _WORD): 0.0 for label in labels}, **{(_SPAN, label): 0.0 for label in labels}},
        {_WORD: {_LETTER: 0.0}},
        root=_SPAN,
        max_chain=1,
    )


@lru_cache(maxsize=256)
def _forest(labels: tuple[str, ...], length: int) -> Forest:
    """Return the forest of all binary trees over some number of words, without scores."""
    return Forest(_grammar(labels), [_LETTER] * length)


class _Gathering(NamedTuple):
    """Where derivatives of a chart belong; the graph of its results holds this, and not the chart."""

    shape: torch.Size
    full_shape: tuple[int, ...]
    order: list[int]

    def __call__(self, slopes: Mapping[int, Any]) -> Tensor:
        """Return derivatives with respect to scores, from those of the forests of some sentences."""
        whole = np.zeros(self.full_shape)
        for number, slope in slopes.items():
            length = len(slope) - 1
            whole[number, :length, :length] = slope[:-1, 1:][..., self.order]
        return torch.from_numpy(whole).view(self.shape)


class Chart(Structured):
    """The distribution over the binary trees of each sentence of a batch.

    A tree over T words has 2T - 1 constituents: one for each word, and T - 1 that combine two others. Its
    score is the sum of the scores of its labelled spans, and its probability is proportional to the
    exponential of the score.

    Parameters
    ----------
    scores : tensor of shape (B, T, T), or (B, T, T, C)
        ``scores[b, i, j, c]`` is for a constituent from word i to word j, inclusive, with label c;
        entries with ``j < i`` are ignored. -inf forbids a constituent.
    lengths : tensor or list of B int, optional
        The number of words of each sentence; T by default.
    mask : bool tensor of shape (B, T), optional
        The same, as ones followed by zeros.
    labels : sequence of str, optional
        The names of the C labels, for use in statistics such as ``tt.parsing.count("NP")``; by
        default their numbers, ``"0"``, ``"1"``, ….

    Examples
    --------
    >>> chart = Chart(torch.zeros(1, 4, 4))
    >>> chart.log_partition.exp()  # 5 binary trees over 4 words
    tensor([5.0000])
    >>> chart.marginals[0, 0]
    tensor([1.0000, 0.4000, 0.4000, 1.0000])
    """

    @eager
    def __init__(
        self,
        scores: Tensor,
        lengths: Lengths | None = None,
        *,
        mask: Tensor | None = None,
        labels: Sequence[str] | None = None,
    ) -> None:
        self.scores = checked_floats(scores, "scores", "(batch, words, words[, labels])", (3, 4))
        batch, words, others = scores.shape[:3]
        if words != others:
            raise ModelError(f"scores must have one row and one column per word, got {shape_of(scores)}")
        self.lengths = Ends(lengths, mask, batch, words).lengths
        count = scores.shape[3] if scores.ndim == 4 else 1
        names = tuple(map(str, range(count))) if labels is None else tuple(labels)
        if len(names) != count or len(set(names)) != count:
            raise ModelError(f"labels must have {count} distinct names, one per label, got {names}")
        self.labels, self._rules = names, _grammar(names)

    # --- sums ----------------------------------------------------------------------------------------------

    @kept
    def _exact_partition(self) -> Tensor:
        def evaluate() -> tuple[Tensor, Shares]:
            values, marginals = self._sums
            return values.clone(), lambda gain: [_times(marginals, gain)]

        return attached(evaluate, self.scores, exact=True)

    @cached_property
    def _sums(self) -> tuple[Tensor, Tensor]:
        """The log-partition of each sentence, and the marginals, in float64 on the CPU."""
        found = sum_binary_trees(self._table, self.lengths.numpy(), torch.get_num_threads())
        for number in found.left_out.tolist():
            self._forest_of(number)  # raises the error
        with torch.inference_mode(False):
            return torch.from_numpy(found.values), torch.from_numpy(found.marginals).view(self.scores.shape)

    @cached_property
    @eager
    def _slopes(self) -> tuple[Tensor, ...]:
        with torch.inference_mode(False):
            return (self._sums[1].to(self.device, copy=True),)

    @property
    def _gathering(self) -> _Gathering:
        return _Gathering(self.scores.shape, self._full_shape, self._order)

    @property
    def _full_shape(self) -> tuple[int, ...]:
        return (*self.scores.shape[:3], len(self.labels))

    @cached_property
    def _order(self) -> list[int]:
        """The positions of the labels in the grammar's order."""
        return [self._rules.labels.index(label) for label in self.labels]

    @eager
    def tally(self, *statistics: Any) -> Tally:
        """Return the distribution of the tally, with ``log Σ exp F(tree)`` for each value, with gradient.

        Parameters
        ----------
        *statistics : TreeStatistic
            The statistics, such as ``tt.parsing.count("NP")``; several are counted jointly.

        Examples
        --------
        The expected number of constituents with the second of two labels:

        >>> import tallytree as tt
        >>> chart = Chart(torch.zeros(1, 3, 3, 2))
        >>> chart.tally(tt.parsing.count("1")).expect()
        tensor([2.5000])
        """
        for one in statistics:
            if not isinstance(one, TreeStatistic):
                raise ModelError(f"expected a statistic such as tt.parsing.count('NP'), got {one!r}")
        if not statistics:
            raise ModelError("tally() needs at least one statistic, as in tally(tt.parsing.count('NP'))")
        known = {number: one for number, one in enumerate(self._distributions(statistics)) if one is not None}
        nothing = np.zeros((0 if known else 1, len(statistics)), dtype=np.int64)
        tallies = np.concatenate([nothing, *(one.tallies for one in known.values())])
        low, high = tallies.min(axis=0), tallies.max(axis=0)
        places = {number: tuple((one.tallies - low).T) for number, one in known.items()}
        gathered, shape = self._gathering, (len(self.lengths), *(high - low + 1))

        def evaluate() -> tuple[Tensor, Shares]:
            table = np.full(shape, -np.inf)
            for number, one in known.items():
                table[number][places[number]] = one.log_partitions

            def shares(gain: Tensor) -> list[Tensor | None]:
                rows = gain.to("cpu", torch.float64).numpy()
                slopes = {n: one.gradient(rows[n][places[n]]).constituents for n, one in known.items()}
                return [gathered(slopes)]

            return torch.from_numpy(table), shares

        logits = attached(evaluate, self.scores, exact=True)
        return Tally(statistics, logits, tuple(low.tolist()), self.dtype)

    def _distributions(self, statistics: tuple[TreeStatistic, ...]) -> Iterator[TreeDistribution | None]:
        """Yield the distribution of the tally of each sentence; None if no tree is allowed."""
        for forest in self.subjects():
            try:
                yield distribution(forest, statistics)
            except InfeasibleError:
                yield None

    # --- trees ---------------------------------------------------------------------------------------------

    def _exact_score(self, labels: Tensor) -> Tensor:
        if not isinstance(labels, Tensor) or labels.shape[-self.scores.ndim :] != self.scores.shape:
            got = shape_of(labels) if isinstance(labels, Tensor) else type(labels).__name__
            raise ModelError(f"trees must be tensors of ones of shape {shape_of(self.scores)}, got {got}")
        check_devices(scores=self.scores, trees=labels)
        return torch.where(labels != 0, self.scores.double(), 0.0).flatten(1 - self.scores.ndim).sum(-1)

    @kept
    @eager
    def argmax(self) -> Tensor:
        """The tree with the highest score for each sentence: ones where it has constituents."""
        found, left_out = best_binary_trees(self._table, self.lengths.numpy(), torch.get_num_threads())
        for number in left_out.tolist():
            found[number] = self._written(self._best_of(number), number).view(found.shape[1:])
        return torch.from_numpy(found).view(self.scores.shape).to(self.device)

    @eager
    def sample(self, sample_shape: Sequence[int] = (), generator: torch.Generator | None = None) -> Tensor:
        """Draw exact samples.

        Parameters
        ----------
        sample_shape : tuple of int
            The number of samples: ``sample((n,))`` has shape (n, B, T, T[, C]).
        generator : torch.Generator, optional
            The random generator, on the CPU; PyTorch's default otherwise.
        """
        shape, (batch, words) = torch.Size(sample_shape), self.scores.shape[:2]
        sizes = shape.numel(), batch, 3 * words
        uniforms = torch.rand(sizes, dtype=torch.float64, generator=generator, device="cpu")
        given = self._table, self.lengths.numpy(), uniforms.numpy()
        drawn, left_out = draw_binary_trees(*given, torch.get_num_threads())
        for number in left_out.tolist():
            self._best_of(number)  # raises the error
        return torch.from_numpy(drawn).view(*shape, *self.scores.shape).to(self.device)

    def trees(self, indicators: Tensor) -> list[Tree]:
        """Convert one tree per sentence, given as ones in a tensor, to :class:`Tree` objects.

        Examples
        --------
        >>> chart = Chart(torch.zeros(1, 2, 2), labels=["X"])
        >>> chart.trees(chart.argmax)
        [Tree('(X (X (·word w)) (X (·word w)))')]
        """
        found = indicators.detach().cpu().reshape(self._full_shape)
        return [self._read(one, int(length)) for one, length in zip(found, self.lengths, strict=True)]

    def _read(self, indicators: Tensor, length: int) -> Tree:
        chosen = {(i, j): self.labels[c] for i, j, c in indicators[:length, :length].nonzero().tolist()}

        def made(first: int, last: int) -> Tree:
            if first == last:
                return Tree(chosen[first, last], [Tree(_WORD, _LETTER)])
            split = next(k for k in range(last - 1, first - 1, -1) if (first, k) in chosen)
            return Tree(chosen[first, last], [made(first, split), made(split + 1, last)])

        try:
            return made(0, length - 1)
        except (KeyError, StopIteration):
            raise ModelError(
                "the ones do not form a binary tree: they must include all words, the whole sentence, and "
                "two parts of each constituent longer than a word"
            ) from None

    # --- the interface of all structures --------------------------------------------------------------------

    @property
    def tensors(self) -> tuple[Tensor, ...]:
        """The scores."""
        return (self.scores,)

    def with_tensors(self, *tensors: Tensor) -> Chart:
        """Return the same distribution with other scores."""
        return Chart(tensors[0], self.lengths, labels=self.labels)

    def subjects(self) -> list[Any]:
        """Return the sentences as forests, for use with the rest of the library (:class:`Forest`)."""
        return self._forests

    @cached_property
    def _forests(self) -> list[Forest]:
        return [self._forest_of(number) for number in range(len(self.lengths))]

    @cached_property
    def _table(self) -> NDArray[np.float64]:
        """The scores on the CPU, (B, T, T, C)."""
        backend = backend_of(self.scores.device, "charts")
        scores = self.scores.detach().to(backend.device, torch.float64).contiguous()
        return scores.numpy().reshape(self._full_shape)

    def _forest_of(self, number: int) -> Forest:
        length = int(self.lengths[number])
        spans = np.zeros((length + 1, length + 1, len(self.labels)))
        spans[:-1, 1:][..., self._order] = self._table[number, :length, :length]
        try:
            return _forest(self.labels, length).with_span_scores(spans)
        except ModelError as error:
            raise ModelError(f"scores of sentence {number}: {error}") from None

    def _best_of(self, number: int) -> Parse:
        """Return the best tree of a sentence, found in its forest."""
        try:
            return self._forest_of(number).best()
        except InfeasibleError:
            raise InfeasibleError(f"scores of -inf forbid every tree of sentence {number}") from None

    @property
    def event_shape(self) -> torch.Size:
        """The shape of a tree."""
        return self.scores.shape[1:]

    def _written(self, answer: Any, number: int) -> Tensor:
        tree = answer.tree if isinstance(answer, Parse) else answer
        ones = np.zeros(self._full_shape[1:], dtype=np.int64)
        for label, start, end in tree.constituents():
            ones[start, end - 1, self.labels.index(label)] = 1
        return torch.from_numpy(ones).view(self.event_shape)

    @property
    def _names(self) -> tuple[str, ...]:
        return self.labels

    def _count(self, name: str) -> TreeStatistic:
        return count(name, name=name)

    def _counted(self, labels: Tensor, number: int, statistics: tuple[Any, ...]) -> list[int]:
        tree = self._read(labels.reshape(self._full_shape[1:]), int(self.lengths[number]))
        return [statistic.tally(tree) for statistic in statistics]

    def __repr__(self) -> str:
        batch, words = self.scores.shape[:2]
        return f"Chart({batch} sentences, up to {words} words, {len(self.labels)} labels)"


def _times(marginals: Tensor, gain: Tensor) -> Tensor:
    """Return marginals times one gain for each sentence."""
    return marginals * gain.to("cpu", torch.float64).view(-1, *[1] * (marginals.ndim - 1))
