"""The certificate of a search by bounds, verified: one plain pass at each of its prices."""

from __future__ import annotations

import numpy as np

from tallytree.answers.certificate import Proof
from tallytree.answers.solution import Solution
from tallytree.bounding.certificate import BoundsEvidence, Part
from tallytree.bounding.sentences import SentenceEvidence
from tallytree.model.rounding import rounding
from tallytree.reductions.folding import folded
from tallytree.solving import solve
from tallytree.statistics.statistic import Statistic
from tallytree.testing.sentences import check_sentences


def check_bounds(solution: Solution) -> None:
    """Verify what a solution by bounds rests on, by plain inference on models with prices in their scores.

    At the prices of each part no labelling may have more than the certificate says, and the solution itself
    must be within the budget of it where its tally lies in the box.

    Parameters
    ----------
    solution : Solution
        Found with ``strategy="bounds"``, and not read from a file: it must remember what it was found by.

    Raises
    ------
    AssertionError
        With the numbers that do not agree.

    Examples
    --------
    >>> import numpy as np
    >>> import tallytree as tt
    >>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
    >>> check_bounds(tt.solve(model, where=tt.count(state=1) == 1, strategy="bounds"))
    """
    evidence = solution.proof.rests_on() if isinstance(solution.proof, Proof) else None
    if isinstance(evidence, SentenceEvidence):
        check_sentences(solution, evidence)
        return
    assert isinstance(evidence, BoundsEvidence), "this solution was not found by bounds"
    assert evidence.parts, "the certificate has no part"
    inside = [
        within for part in evidence.parts if (within := _check_part(solution, evidence, part)) is not None
    ]
    assert any(inside) or not inside, "the regret of the solution is beyond the budget of its part"


def _check_part(solution: Solution, evidence: BoundsEvidence, part: Part) -> bool | None:
    """Check the most that there is; return whether the solution is within the budget, None if outside.

    Boxes overlap in one case alone: a tally without loss under slack scaling has a part of its own.
    """
    terms = list(zip(evidence.statistics, part.prices, strict=True))
    priced = folded(evidence.model, terms)
    reach = sum(abs(price) * _reach(statistic) for statistic, price in terms)
    allowance = 4 * rounding(priced.blocks) + 1e-12 * (abs(part.most) + abs(solution.value))
    allowance += 8 * np.finfo(float).eps * reach  # what adding prices to small scores loses
    most = solve(priced, strategy="full").score
    assert abs(most - part.most) <= allowance, (
        f"at the prices {part.prices} a labelling has {most!r}, the certificate says {part.most!r}"
    )
    if evidence.model.key != solution.model.key:
        return None  # the labelling was brought back to another model
    score = evidence.model.score(solution.assignment)  # with the loss in it, where that is folded
    tally = [statistic.tally(solution.assignment) for statistic in evidence.statistics]
    regret = part.most - score - sum(p * t for p, t in zip(part.prices, tally, strict=True))
    assert regret >= -allowance, f"the solution is {-regret!r} above what the certificate says is the most"
    inside = all(a <= t <= b for a, t, b in zip(part.low, tally, part.high, strict=True))
    return bool(regret <= part.budget + allowance) if inside else None


def _reach(statistic: Statistic) -> int:
    """Return a number that no sum of sizes of its entries is beyond."""
    return sum(len(block) * int(np.abs(block.tables).max(initial=0)) for block in statistic.blocks)
