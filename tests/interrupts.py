"""Helpers for tests of interrupts: an interrupt at a given check for signals, and answers as bytes."""

import numpy as np

from tallytree import _native

MANY = 10**12  # looks for signals: never


def bits(answer):
    """Return an answer as bytes: arrays, and lists or tuples of them."""
    if isinstance(answer, (tuple, list)):
        return b"|".join(map(bits, answer))
    return np.asarray(answer).tobytes()


def looks_of(work):
    """Count the checks for signals during some work, one after each piece of it."""
    _native.interrupt_at(MANY, 0.0)
    work()
    return MANY - _native.interrupt_at(0)


def interrupted(work, look):
    """Do some work with an interrupt at a given check; return whether it occurred."""
    _native.interrupt_at(look, 0.0)
    try:
        work()
    except KeyboardInterrupt:
        return True
    finally:
        _native.interrupt_at(0)
    return False


def some_looks(looks, most):
    """Return the first and the last checks, and some in between."""
    ends = {*range(1, 9), *range(looks - 4, looks + 1)}
    return sorted(n for n in {*ends, *np.linspace(1, looks, most).astype(int).tolist()} if 1 <= n <= looks)


def interrupt_often(make, work, check, most=40):
    """Interrupt work on the result of `make` at some of its checks for signals, and check after each.

    With several threads, others may have done everything before this one looks: then it is tried again.
    """
    happened = 0
    for _ in range(50):
        looks = looks_of(lambda: work(make()))
        for look in some_looks(looks, most):
            subject = make()
            happened += interrupted(lambda: work(subject), look)  # noqa: B023
            assert check(subject), f"after an interrupt at look {look} of {looks}"
        if happened > 4:
            return
    raise AssertionError(f"it was interrupted {happened} times only")
