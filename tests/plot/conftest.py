import sys

import pytest


@pytest.fixture(autouse=True)
def no_figures_are_left():
    """Pictures without ``ax=`` are drawn on the current axes, which must not be another test's."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")
