"""Certification: the promised score and tally of a labelling or a tree are checked against the definitions.

Messages, charts and definitions add the same local scores in different orders, so scores may differ by
rounding only (:func:`tallytree.model.rounding.rounding_bound`); tallies are integers and must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.errors import CertificateError
from tallytree.kernels.evaluation import Evaluation
from tallytree.model.rounding import rounding_bound
from tallytree.planning.precision import single_rounding

_MODEL = "This is a bug in tallytree; please report it with the model"
_LOSS = "This is a bug in tallytree or in the loss; check the loss with tallytree.testing.check_loss"


def certify(
    promised: tuple[float, Sequence[int]],
    attained: tuple[float, Sequence[int]],
    allowance: float | tuple[float, float],
    *,
    source: str = "messages promise",
    thing: object = "the decoded labelling",
    report: str = _MODEL,
) -> None:
    """Compare the promised score and tally with those attained.

    `allowance`: the most by which the promised score may differ from the attained one; or a pair, the most
    by which it may be below and above. `source`, `thing` and `report`: wording of the error message.
    Raises CertificateError if they differ.
    """
    below, above = allowance if isinstance(allowance, tuple) else (allowance, allowance)
    (score, tally), (exact, total) = promised, attained
    if list(tally) != list(total) or not -below <= score - exact <= above:
        raise CertificateError(
            f"the certificate failed: {source} score {score!r} and tally {list(tally)}, {thing} has "
            f"{exact!r} and {list(total)}. {report}"
        )


def certify_labelling(
    score: float, tally: Sequence[int], evaluation: Evaluation, totals: Sequence[int], single: bool = False
) -> None:
    """Certify a labelling decoded from messages, which are rounded up in single precision."""
    exact, magnitude, terms, _ = evaluation
    below = rounding_bound(terms, magnitude)
    above = single_rounding(terms, magnitude) if single else below
    if tally != totals or not -below <= score - exact <= above:
        certify((score, tally), (exact, totals), (below, above))


def certify_value(fine: bool, promised: float, attained: str) -> None:
    """Raise unless a labelling is as good as the messages promise; ``attained`` is its own value."""
    if not fine:
        raise CertificateError(
            f"the certificate failed: the messages promise the value {promised!r}, the labelling has "
            f"{attained}. {_LOSS}"
        )


def certify_loss(promised: float, defined: float, *, source: str, thing: object = "the labelling") -> None:
    """Compare the loss computed from a tally with the loss of the decoded labelling by definition."""
    if abs(defined - promised) > 1e-9 * max(1.0, defined):
        raise CertificateError(
            f"the certificate failed: {source} promises loss {promised!r}, {thing} has {defined!r}. {_LOSS}"
        )


def certify_infeasible(constraint: object, tallies: NDArray[np.int64], missed: NDArray[Any]) -> None:
    """Check that none of the attainable tallies satisfies a constraint that is said to be infeasible.

    `missed`: by how much each of them violates it.
    """
    allowed = tallies[np.broadcast_to(missed, len(tallies)) == 0]
    if len(allowed):
        raise CertificateError(
            f"the certificate failed: a search found no labelling that satisfies '{constraint}', but one has "
            f"the tally {allowed[0].tolist()}. {_MODEL}"
        )
