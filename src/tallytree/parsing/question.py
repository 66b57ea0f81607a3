"""A loss on a forest: what it counts, what the truth scores, and a tree with its loss certified."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tallytree.answers.certificate import BEST, claimed
from tallytree.answers.objective import Objective
from tallytree.answers.solution import tally_type, unique_names
from tallytree.answers.tally_table import Where
from tallytree.errors import CertificateError, ModelError
from tallytree.losses.base import Line, Loss
from tallytree.losses.scaling import Scaling, checked_scaling, scaled
from tallytree.parsing.derivation import Scores
from tallytree.parsing.forest import Forest
from tallytree.parsing.losses import counted_loss
from tallytree.parsing.parse import Parse
from tallytree.parsing.statistics import Chart, TreeStatistic
from tallytree.trees import Tree

__all__ = ["AugmentedParse", "TreeLossQuestion"]


@dataclass(frozen=True)
class AugmentedParse(Parse):
    """The tree that maximises a loss together with the score.

    Attributes
    ----------
    value : float
        ``loss + score - truth_score`` under margin scaling, ``loss·(1 + score - truth_score)`` under slack
        scaling.
    loss, score : float
        Of the tree.
    truth_score : float
        The score of the truth.
    tally : named tuple of int
        What the loss counts, then what the constraint counts.
    tree, certificate
        As for every :class:`Parse`.
    """

    loss: float = field(kw_only=True)
    truth_score: float = field(kw_only=True)


class TreeLossQuestion:
    """A loss on a forest, with one of the two scalings."""

    def __init__(self, forest: Forest, loss: Loss, scaling: Scaling) -> None:
        if not isinstance(loss, Loss) or not isinstance(loss.truth, Tree):
            raise ModelError(
                f"a loss bound to a tree is needed, as tallytree.losses.FBeta(tree); got {loss!r}"
            )
        self.forest, self.loss, self.counted = forest, loss, counted_loss(loss)
        self.scaling = checked_scaling(scaling, loss)
        self.truth_score = forest.score(loss.truth)
        if self.truth_score == -np.inf:
            raise ModelError(
                "the truth scores -inf: it is no tree of the grammar, so no tree can be compared with it"
            )

    @property
    def line(self) -> Line | None:
        """The loss as a sum over spans that can be added to the scores; None if that is not the question."""
        return self.counted.line if self.scaling == "margin" else None

    def objective(self, margin: float) -> Objective:
        """Return how loss and score are put together, as a function of score and tallies."""

        def augmented(score: Any, *tallies: Any) -> Any:
            return scaled(self.scaling, self.counted.value(*tallies), score - self.truth_score, margin)

        return augmented

    def answer(self, found: Parse, margin: float) -> AugmentedParse:
        """Put the loss to a tree: from its tallies, and certified by its definition."""
        defined = self.loss(found.tree)
        counted = [s.tally(found.tree) for s in self.counted.statistics]
        loss = float(self.counted.value(*map(np.asarray, counted)))
        if abs(defined - loss) > 1e-9 * max(1.0, defined):
            raise CertificateError(
                f"the certificate failed: the chart promises loss {loss!r}, {found.tree} has {defined!r}. "
                "This is a bug in tallytree, or in a loss of your own"
            )
        value = float(scaled(self.scaling, loss, found.score - self.truth_score, margin))
        return AugmentedParse(
            value,
            found.score,
            found.tally,
            found.tree,
            found.certificate,
            loss=loss,
            truth_score=self.truth_score,
        )

    # --- losses that are sums over spans ------------------------------------------------------------------

    def gaining(self, line: Line, margin: float, scores: Scores) -> Forest:
        """Return the forest with a multiple of the loss, less its constant, added to some scores of it."""
        compiled, words = self.forest.compiled, len(self.forest.words)
        chart = Chart(compiled, self.forest.starts, self.forest.ends)
        gain = np.zeros((len(compiled.bags), len(self.forest.starts)))
        for weight, statistic in zip(line[1], self.counted.statistics, strict=True):
            gain += margin * weight * statistic.weights(chart)
        chains = np.ascontiguousarray(scores.chains + compiled.spread(gain, words))
        return self.forest.rescored(Scores(scores.words, scores.rules, chains))

    def unfolded(self, found: Parse, where: Where, read: Sequence[TreeStatistic]) -> Parse:
        """Return a tree of the forest with the loss in its scores as one of the forest itself."""
        assert found.certificate is not None
        every = (*self.counted.statistics, *(s for s in read if s not in self.counted.statistics))
        tally = tally_type(unique_names(tuple(s.name for s in every)))(*(s.tally(found.tree) for s in every))
        score = self.forest.score(found.tree)
        off = found.certificate.promised - found.certificate.score  # the chart is as far off as it was
        proof = replace(
            found.certificate,
            claim=claimed("tree", BEST, where, "value"),
            score=score,
            promised=score + off,
            tally=dict(zip(tally._fields, tally, strict=True)),
        )
        return replace(found, score=score, tally=tally, certificate=proof)
