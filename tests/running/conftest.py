"""Problems for the tests of this folder."""

import numpy as np
import pytest

import tallytree as tt

# ---------------------------------------------------------------- what is told


@pytest.fixture
def model():
    return tt.Model.chain(np.array([[0.1, 1], [0, 0.7], [0.2, 0.3]]), np.zeros((2, 2)))
