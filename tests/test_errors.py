"""Errors: their base classes, and pickling between processes."""

import pickle
import subprocess
import sys

import pytest

import tallytree as tt
from tallytree.errors import (
    BudgetError,
    CertificateError,
    InfeasibleError,
    ModelError,
    ObjectiveError,
    TallytreeError,
)

EVERY = [TallytreeError, ModelError, InfeasibleError, BudgetError, CertificateError, ObjectiveError]


@pytest.mark.parametrize("kind", EVERY)
def test_every_error_is_a_tallytree_error(kind):
    assert issubclass(kind, TallytreeError)
    assert kind.__doc__


@pytest.mark.parametrize(
    ("kind", "builtin"), [(ModelError, ValueError), (ObjectiveError, ValueError), (BudgetError, MemoryError)]
)
def test_errors_can_be_caught_as_what_python_calls_them(kind, builtin):
    with pytest.raises(builtin, match="too much"):
        raise kind("too much")


@pytest.mark.parametrize("kind", EVERY)
@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_errors_survive_pickling(kind, protocol):
    error = kind("what was wrong; what to do next")
    error.add_note("seen in batch 3")
    again = pickle.loads(pickle.dumps(error, protocol))
    assert type(again) is kind
    assert str(again) == str(error)
    assert again.__notes__ == ["seen in batch 3"]


def test_a_warning_about_speed_can_be_filtered_by_its_type():
    assert issubclass(tt.PerformanceWarning, UserWarning)
    assert not issubclass(tt.PerformanceWarning, TallytreeError)


def test_errors_survive_the_pickling_of_dask():
    """Dask sends errors between processes with tblib, which creates them without calling the constructor."""
    program = (
        "import pickle, tallytree as tt; from tblib import pickling_support; pickling_support.install(); "
        "print([str(pickle.loads(pickle.dumps(kind('too much')))) for kind in "
        "(tt.BudgetError, tt.ModelError, tt.ObjectiveError, tt.InfeasibleError, tt.CertificateError)])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(["too much"] * 5)


@pytest.mark.parametrize(
    ("ask", "wrong", "meant"),
    [
        (tt.solve, "were", "where"),
        (tt.solve, "objectiv", "objective"),
        (tt.profile, "memory", "memory_limit"),
        (tt.distribution, "wher", "where"),
        (tt.k_best, "alowed", "allowed"),
        (tt.iter_best, "objectve", "objective"),
        (tt.plan, "ordr", "order"),
    ],
)
def test_the_keyword_that_was_meant(ask, wrong, meant):
    with pytest.raises(TypeError, match=rf"{ask.__name__}\(\) got an .* {wrong!r}; did you mean {meant!r}\?"):
        list(ask(tt.Model([2, 2]), **{wrong: None}))
