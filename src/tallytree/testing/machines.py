"""The contract of a machine, checked against enumeration.

A machine decides for every labelling whether it accepts it, with which outputs (``machine.run``, which
follows the moves one by one). The reduction of a model by the machine must have exactly the accepted
labellings, each once, with its score and its outputs: in every encoding, for the best labelling, for all of
them in order, and for sums and counts over them.
"""

from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tallytree.errors import InfeasibleError
from tallytree.kbest import iter_best
from tallytree.model.model import Model
from tallytree.reductions.reduction import Reduction
from tallytree.solving import distribution, profile
from tallytree.testing.enumeration import Enumeration, brute_force, score_tolerance
from tallytree.transducers.constraints import transduce
from tallytree.transducers.encodings import EncodingName, alphabets_of
from tallytree.transducers.machine import Machine


def accepted(machine: Machine, model: Model) -> Enumeration:
    """Return the labellings of a small model that a machine accepts, with its outputs as tallies."""
    everything = brute_force(model)
    alphabets = alphabets_of(model)
    runs = [
        machine.run([labels[code] for labels, code in zip(alphabets, y, strict=True)])
        for y in everything.labellings.tolist()
    ]
    rows = [row for row, run in enumerate(runs) if run is not None]
    tallies = np.array([run for run in runs if run is not None], dtype=np.int64)
    return Enumeration(
        model,
        (),
        everything.labellings[rows],
        everything.scores[rows],
        tallies.reshape(len(rows), len(machine.outputs)),
    )


def check_machine(machine: Machine, model: Model) -> None:
    """Check a machine on a small chain, on all labellings, in both encodings.

    Raises
    ------
    AssertionError
        The message has the expected and the actual result.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.testing import check_machine
    >>> check_machine(tt.regular("0* 1 .*").machine, tt.Model.chain(np.zeros((3, 2)), np.eye(2)))
    """
    expected = accepted(machine, model)
    encodings: tuple[EncodingName, ...] = ("pairs", "split")
    for encoding in encodings:
        try:
            reduction = transduce(model, machine, encoding=encoding)
        except InfeasibleError:
            assert not len(expected.labellings), "some labelling is accepted, but the reduction has none"
            continue
        assert len(expected.labellings), "no labelling is accepted, but the reduction has some"
        check_reduction(reduction, expected)


def check_reduction(reduction: Reduction, expected: Enumeration) -> None:
    """Check that a reduction has these labellings of its original model, with their scores and tallies.

    Parameters
    ----------
    reduction : Reduction
        Its own statistics are checked, in order.
    expected : Enumeration
        Labellings of the original model, with the tallies of those statistics.
    """
    possible = expected.scores > -np.inf
    tolerance = score_tolerance(expected.model)
    tallies, scores = expected.profile()
    found = profile(reduction, reduction.statistics)
    np.testing.assert_array_equal(found.tallies, tallies, err_msg="the attainable tallies differ")
    np.testing.assert_allclose(found.scores, scores, rtol=0, atol=tolerance, err_msg="the best scores differ")
    known = {
        tuple(y): (score, tuple(tally))
        for y, score, tally in zip(
            expected.labellings[possible].tolist(),
            expected.scores[possible].tolist(),
            expected.tallies[possible].tolist(),
            strict=True,
        )
    }
    ranked = list(iter_best(reduction, reduction.statistics))
    for solution in ranked:
        y = tuple(solution.assignment.tolist())
        assert y in known, f"{y} is not one of the labellings, or occurs twice"
        score, tally = known.pop(y)
        assert abs(solution.score - score) <= tolerance, f"{y} scores {score}, not {solution.score}"
        assert tuple(solution.tally) == tally, f"{y} has the tally {tally}, not {solution.tally}"
    assert not known, f"{next(iter(known))} is missing"
    falls = all(a.score >= b.score - tolerance for a, b in pairwise(ranked))
    assert falls, "the labellings are not in order"
    if possible.any():
        _check_sums(reduction, expected)


def _check_sums(reduction: Reduction, expected: Enumeration) -> None:
    found = distribution(reduction, reduction.statistics)
    assert found.counts == expected.counts(), f"the counts are {expected.counts()}, not {found.counts}"
    _close(found.log_partitions, expected.log_partitions(), "the log-partitions differ")
    tallies, _ = expected.profile()
    for tally in [None, *map(tuple, tallies[:3].tolist())]:
        for got, wanted in zip(
            expected.model.by_variable(found.marginals(tally)), expected.marginals(tally), strict=True
        ):
            _close(got, wanted, f"the marginals given the tally {tally} differ")
    best = expected.model.by_variable(profile(reduction, reduction.statistics).max_marginals())
    possible = expected.labellings[expected.scores > -np.inf]
    scores = expected.scores[expected.scores > -np.inf]
    for v, got in enumerate(best):
        wanted = np.full(len(got), -np.inf)
        np.maximum.at(wanted, possible[:, v], scores)
        tolerance = score_tolerance(expected.model)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance, err_msg="the max-marginals differ")


def _close(got: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64], message: str) -> None:
    np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-11, err_msg=message)
