"""Helpers for tests of single precision."""

import numpy as np

# ---------------------------------------------------------------- the rounding mode


def rounds_to_nearest():
    half = float("1.1e-16")  # not a constant, which the compiler would add up
    return 1.0 + half == 1.0 and -1.0 - half == -1.0 and (np.ones(40) + half == 1.0).all()
