"""Helpers for tests of labellings in order."""

import numpy as np

from tallytree.testing import brute_force, tally_of


def satisfying(model, where):
    """Return the possible labellings that satisfy a constraint, and their scores, best first."""
    everything = brute_force(model)
    possible = everything.scores > -np.inf
    if where is not None:
        values = {s: tally_of(s, everything.labellings) for s in where.on(model).statistics}
        possible &= where.on(model).holds(values)
    scores, labellings = everything.scores[possible], everything.labellings[possible]
    best_first = np.argsort(-scores, kind="stable")
    return labellings[best_first], scores[best_first]
