"""Comparison of batches with single calls."""

import numpy as np

import tallytree as tt


def alone(solve, *arguments, **options):
    """Return an answer, or the error in its place."""
    try:
        return solve(*arguments, **options)
    except tt.TallytreeError as error:
        return error


def assert_same(one, other):
    """Compare two solutions or errors, bit for bit."""
    assert type(one) is type(other)
    if isinstance(one, tt.TallytreeError):
        assert str(one) == str(other)
        return
    assert (one.value, one.score, one.tally) == (other.value, other.score, other.tally)
    assert one.tally._fields == other.tally._fields
    assert one.certificate == other.certificate
    assert one.model is other.model or one.model.key == other.model.key
    np.testing.assert_array_equal(one.assignment, other.assignment)
    assert one.assignment.dtype == other.assignment.dtype and not one.assignment.flags.writeable
