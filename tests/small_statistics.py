"""Helpers for tests of statistics."""

import itertools

import numpy as np

from tallytree.model.model import Model


def chain(size, states=2):
    return Model.chain(np.zeros((size, states)), np.zeros((states, states)))


def labellings(model):
    return itertools.product(*(range(n) for n in model.cardinalities.tolist()))
