"""The F-measure of whole chunks, as reported by the CoNLL scorer.

A chunk is correct if its type, its first and its last word are. This does not decompose over neighbouring
labels, but a machine can count it (``chunk_matches.py``), and a chain whose states are those of the machine
can be assembled from a few kinds of positions (``chunk_kinds.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import ModelError
from tallytree.losses.base import Line, flat
from tallytree.losses.chunk_kinds import chunk_kinds
from tallytree.losses.chunk_matches import ChunkMatches
from tallytree.losses.nodes import FBeta
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.transducers.chunks import Chunk, Scheme, checked_scheme, chunks_of
from tallytree.transducers.encodings import transduced
from tallytree.trees import Tree


@dataclass(frozen=True)
class ChunkFBeta(FBeta):
    """One minus the F-measure of whole chunks: ``1 - (1 + β²)·TP / (β²·|y*| + TP + FP)``.

    TP is the number of chunks that are also in the truth (type, first and last position), FP the number of
    other chunks, ``|y*|`` the number of chunks of the truth; 0 without any chunks. Chunks are those that the
    CoNLL scorer finds, also in invalid sequences: ``I-NP`` after ``O`` starts a chunk. For chains with named
    states.

    Parameters
    ----------
    truth : labelling, optional
        The true labelling.
    beta : float
        The weight of recall relative to precision, from 1e-6 to 1e6.
    scheme : {"BIO", "BIOES", "IO"}
        How labels encode chunks.
    background : str
        The label outside chunks.

    Examples
    --------
    >>> import tallytree as tt
    >>> loss = tt.losses.ChunkFBeta(["B-NP", "I-NP", "O", "B-VP"])
    >>> loss(["B-NP", "I-NP", "O", "B-VP"]), loss(["B-NP", "O", "O", "B-VP"])
    (0.0, 0.5)
    """

    background: Any = field(default="O", kw_only=True)
    scheme: Scheme = "BIO"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_scheme(self.scheme)

    def _truth_on(self, model: Model, codes: NDArray[np.int64]) -> Any:
        return model.labels(codes)  # chunks are encoded in the names

    def nodes(self, y: Any) -> Counter[Any]:
        """Return the chunks of a labelling."""
        return Counter(self._found(y))

    def _found(self, y: Any) -> list[Chunk]:
        """Return the chunks of a labelling in order."""
        self._check_labelling(y)
        labels = flat(y if self._model is None else self._model.labels(y))
        size = len(self.right) if self._model is None else len(self._model)
        if len(labels) != size:
            raise ModelError(f"the truth has {size} variables, the labelling has {len(labels)}")
        return chunks_of(labels, self.scheme, self.background)

    def _check_labelling(self, y: Any) -> None:
        if isinstance(y, Tree):
            raise ModelError(f"{type(self).__name__} is a loss of labellings, not of trees; use FBeta()")

    @cached_property
    def gold(self) -> Counter[Any]:
        """The chunks of the truth."""
        return Counter(self._chunks) if self._plain else self.nodes(self._required())

    @cached_property
    def size(self) -> int:
        """|y*|: the number of chunks of the truth."""
        return len(self._chunks) if self._plain else self.gold.total()

    def hits(self, y: Any) -> tuple[int, int]:
        """Return the numbers of true and of false positives of a labelling, by definition."""
        if not self._plain:
            return super().hits(y)
        predicted = self._found(y)
        right = len(self._known.intersection(predicted))
        return right, len(predicted) - right

    @property
    def _plain(self) -> bool:
        """Whether the nodes are the chunks, all different."""
        return type(self).nodes is ChunkFBeta.nodes

    @cached_property
    def _chunks(self) -> list[Chunk]:
        """The chunks of the truth, in order."""
        self._check_labelling(self.truth)
        return chunks_of(self.right, self.scheme, self.background)

    @cached_property
    def _known(self) -> frozenset[Chunk]:
        return frozenset(self._chunks)

    @property
    def one_tally(self) -> bool:
        """False: it needs true positives and false positives."""
        return False

    def reduce(self, model: Model) -> Reduction:
        """Count true and false positives; states also say whether a chunk has been correct so far."""
        bound = self if self._model is not None else self.on(model)
        kinds = chunk_kinds(model, self.scheme, self.background)
        if kinds is not None:
            return kinds.reduction(model, [(len(model), bound._chunks)])
        machine = ChunkMatches(tuple(bound._chunks), self.scheme, self.background)
        return transduced(Reduction.identity(model), machine)

    def reduce_all(self, model: Model, losses: Sequence[Any]) -> Reduction | None:
        """Count on many sentences that are concatenated in one model; None unless all labels are the same.

        Chunks do not continue from one sentence to the next.
        """
        kinds = chunk_kinds(model, self.scheme, self.background)
        if kinds is None:
            return None
        return kinds.reduction(model, [(len(loss._model), loss._chunks) for loss in losses])

    def linear(self) -> Line | None:
        """Return None: it is not linear."""
        return None
