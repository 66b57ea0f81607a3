"""The best sentence by bounds, for lengths that no compiled machine can handle.

The full table of clipped n-grams, or of longest common subsequences, is exponential in the length of the
references. A search by bounds needs a few plain passes and the prefixes of sentences that can still be
optimal (:mod:`tallytree.bounding.sentences` has the proof).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.certificate import BEST, Claim, Proof
from tallytree.answers.certification import certify, certify_value
from tallytree.answers.solution import Solution
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.bounding.sentences import SentenceEvidence
from tallytree.bounding.strategy import work_limit
from tallytree.losses.scaling import Scaling, scaled
from tallytree.losses.sequences import SequenceLoss
from tallytree.losses.solution import AugmentedSolution
from tallytree.model.model import Model
from tallytree.model.rounding import rounding
from tallytree.planning.options import Options
from tallytree.running.sentences import Found, Measured, Searched, chain_tables, search, sentence_problem
from tallytree.transducers.encodings import alphabets_of

_TRIED = 2_000_000  # cells, about two seconds, before a full table is tried
_WORK = 16  # operations of a plain pass per cell
_BYTES = 32  # per cell, so that the memory limit also limits the work


class Unfinished(NamedTuple):
    """What a search knows that reached its limits.

    Attributes
    ----------
    value, bound : float
        The value of the best labelling found, and an upper bound on all values.
    """

    value: float
    bound: float


class SentenceSearch(NamedTuple):
    """A problem about the sentences of a chain.

    Attributes
    ----------
    model : Model
    loss : SequenceLoss
        With the words as numbers of the model.
    truth : labelling
        The labelling whose score the others are compared with.
    truth_score : float
    scaling, margin
        How loss and score are combined.
    """

    model: Model
    loss: SequenceLoss
    truth: NDArray[np.int64]
    truth_score: float
    scaling: Scaling
    margin: float

    def run(self, options: Options, everything: bool) -> AugmentedSolution | Unfinished | None:
        """Search within the memory limit, or a share of it; None if it is not supported."""
        measured, limit = self.loss.measured(), options.plan.limit - options.plan.beside
        plain = options.run.backend == "native" and options.plan.precision == "double"
        tables = chain_tables(self.model) if plain and measured is not None and len(self.model) else None
        if tables is None or measured is None or not measured.searchable(len(self.model)):
            return None
        most = min(limit / _BYTES, work_limit(self.model, options) / _WORK)
        cells = most if everything else min(most, _TRIED)
        allowed = self.model.score(self.truth) > -np.inf
        starts = (self.truth,) if allowed else ()
        searched = Searched(self.scaling, self.margin, self.truth_score, starts, cells, limit)
        result = search(sentence_problem(tables, alphabets_of(self.model), measured), searched)
        if result.finished and len(result.labelling):
            return self._answer(measured, searched, result)
        shift = self.truth_score if self.scaling == "margin" else 0.0
        return Unfinished(result.value - shift, result.bound - shift)

    def _answer(self, measured: Measured, searched: Searched, found: Found) -> AugmentedSolution:
        """Certify the result by the definitions of score and loss."""
        labelling = found.labelling
        loss, score = self.loss(labelling), self.model.score(labelling)
        value = float(scaled(self.scaling, loss, score - self.truth_score, self.margin))
        allowance = rounding(self.model.blocks, self.truth_score)
        certify((found.score, ()), (score, ()), allowance, source="the search promises")
        shift = self.truth_score if self.scaling == "margin" else 0.0
        slack = 1e-9 * (1 + self.margin + abs(score - self.truth_score)) + 2 * allowance
        certify_value(abs(value - (found.value - shift)) <= slack, found.value - shift, repr(value))
        counts = self.loss.counts(labelling)
        tally: Any = tally_type(unique_names(tuple(name for name, _ in counts)))(*(n for _, n in counts))
        evidence = SentenceEvidence(self.model, measured, searched, found)
        proof = Proof(evidence, found.score, Claim(BEST, noun="value"))
        solution = Solution(value, score, tally, labelling, self.model, proof)
        return AugmentedSolution(solution, loss, self.truth_score)
