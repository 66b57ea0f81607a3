"""The one place that certifies: what was promised of a labelling or a tree is held against its definition.

Messages, charts and definitions add the same local scores in different orders, so scores may differ by
rounding and no more (:func:`tallytree.model.rounding.rounding_bound`); tallies are integers, and equal.
"""

from __future__ import annotations

from collections.abc import Sequence

from tallytree.errors import CertificateError
from tallytree.kernels.evaluation import Evaluation
from tallytree.model.rounding import rounding_bound
from tallytree.planning.precision import single_rounding

_MODEL = "This is a bug in tallytree; please report it with the model"
_LOSS = "This is a bug in tallytree, or in the loss: check that with tallytree.testing.check_loss"


def certify(
    promised: tuple[float, Sequence[int]],
    attained: tuple[float, Sequence[int]],
    allowance: float | tuple[float, float],
    *,
    source: str = "messages promise",
    thing: object = "the decoded labelling",
    report: str = _MODEL,
) -> None:
    """Compare the score and the tally that were promised with those that are attained.

    `allowance`: how far the promised score may be from the attained one; or how far below it, and how far
    above. `source`, `thing` and `report`: words for the error: who promised, what was decoded, what to do.
    Raises CertificateError: they differ.
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
    """Certify a labelling that was decoded from messages; rounded up where they are in single precision."""
    exact, magnitude, terms, _ = evaluation
    below = rounding_bound(terms, magnitude)
    above = single_rounding(terms, magnitude) if single else below
    if tally != totals or not -below <= score - exact <= above:
        certify((score, tally), (exact, totals), (below, above))


def certify_value(fine: bool, promised: float, attained: str) -> None:
    """Raise unless a labelling is as good as the messages promise; ``attained`` says how good it is."""
    if not fine:
        raise CertificateError(
            f"the certificate failed: the messages promise the value {promised!r}, the labelling has "
            f"{attained}. {_LOSS}"
        )


def certify_loss(promised: float, defined: float, *, source: str, thing: object = "the labelling") -> None:
    """Compare the loss of a tally with the loss of what has that tally, by definition."""
    if abs(defined - promised) > 1e-9 * max(1.0, defined):
        raise CertificateError(
            f"the certificate failed: {source} promises loss {promised!r}, {thing} has {defined!r}. {_LOSS}"
        )
