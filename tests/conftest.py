"""Hypothesis profiles (``ci`` unless HYPOTHESIS_PROFILE names another), and a week as a test problem."""

import os

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

import tallytree as tt

settings.register_profile(
    "ci", deadline=None, derandomize=True, max_examples=100, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile(
    "thorough", deadline=None, max_examples=5000, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

EVIDENCE = [[0, 1.5], [0, -2.5], [0, 3.0], [0, -1.25], [0, 0.5], [0, -0.75], [0, 2.0]]


@pytest.fixture
def week():
    return tt.Model.chain(EVIDENCE, np.eye(2), states=["dry", "wet"])


@pytest.fixture
def wet(week):
    return tt.count(week, state="wet", name="wet")
