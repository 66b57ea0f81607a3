"""Comparison of samples with their probabilities."""

import numpy as np
import pytest


def check_frequencies(samples, labellings, probabilities):
    """Pearson's test; labellings that are expected fewer than 8 times are taken together."""
    places = {tuple(y): i for i, y in enumerate(labellings.tolist())}
    drawn = np.bincount([places[tuple(y)] for y in samples.tolist()], minlength=len(labellings))
    expected = probabilities * len(samples)
    assert drawn[expected == 0].sum() == 0
    rare = expected < 8
    drawn = np.append(drawn[~rare], drawn[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-9))
    statistic = ((drawn - expected) ** 2 / expected).sum()
    stats = pytest.importorskip("scipy.stats")
    assert stats.chi2.sf(statistic, len(expected) - 1) > 1e-3
