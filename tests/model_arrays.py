"""Helpers for tests of models."""

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tallytree.errors import ModelError

SCORES = st.floats(-9, 9, width=32) | st.just(-np.inf)

FREE = np.zeros((2, 2))


def arrays(*shape):
    return hnp.arrays(np.float64, shape, elements=SCORES)


def refusal(make, *args, **kwargs):
    with pytest.raises(ModelError) as caught:
        make(*args, **kwargs)
    return str(caught.value)
