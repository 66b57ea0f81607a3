"""Smoke test of a wheel: import it and solve a three-variable chain."""

import numpy as np

import tallytree as tt
import tallytree._native

model = tt.Model.chain(np.array([[0.0, 1.0], [0.0, 2.0], [0.0, -1.0]]), np.zeros((2, 2)))
ones = tt.count(model, state=1)
profile = tt.profile(model, [ones])
assert profile.best().assignment.tolist() == [1, 1, 0]
assert profile.scores.tolist() == [0.0, 2.0, 3.0, 2.0]
assert profile.best(where=ones <= 1).assignment.tolist() == [0, 1, 0]
print("tallytree works here;", tallytree._native.__name__, "is compiled in")
