"""Time limits are those of a run, and objectives without a bound are measured by their gradient."""

import warnings

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from sklearn.exceptions import ConvergenceWarning

from tallytree.learning import RunOptions, SequenceCRF, SequenceSVM
from tallytree.learning.progress import Progress, time_left

X = [[["a"], ["b"], ["a"]], [["b"], ["b"]], [["a"], ["c"]]] * 4
Y = [["x", "y", "x"], ["y", "y"], ["x", "x"]] * 4
MAKERS = {
    "SVM": lambda **more: SequenceSVM(tolerance=0.0, **more),
    "likelihood": lambda **more: SequenceCRF(tolerance=0.0, **more),
    "risk": lambda **more: SequenceCRF("f1", objective="risk", c2=0.01, tolerance=0.0, **more),
}


@pytest.mark.parametrize("kind", MAKERS)
def test_a_run_that_resumes_has_its_own_time(kind, tmp_path):
    """A limit of no time at all ends every run after one pass."""
    given = {"checkpoint": tmp_path / "run.npz", "max_seconds": 1e-9, "max_passes": 50}
    y = Y if kind != "risk" else [["O" if label == "x" else label for label in labels] for labels in Y]
    for run in (1, 2, 3):
        with pytest.warns(ConvergenceWarning, match="To go further, raise max_seconds, "):
            fitted = MAKERS[kind](**given).fit(X, y)
        assert len(fitted.history_) == run
    seconds = [entry.seconds for entry in fitted.history_]
    assert seconds == sorted(seconds)  # the history has the time of all runs


def test_the_time_of_an_earlier_run_is_not_blamed(tmp_path):
    given = {"checkpoint": tmp_path / "run.npz", "tolerance": 0.0}
    with pytest.warns(ConvergenceWarning, match="raise max_passes, "):
        first = SequenceSVM(**given, max_passes=2).fit(X, Y)
    limit = first.history_[-1].seconds + 60.0
    with pytest.warns(ConvergenceWarning, match="raise max_passes, "):
        SequenceSVM(**given, max_passes=4, max_seconds=limit).fit(X, Y)


def risk(**more):
    y = [["O" if label == "x" else label for label in labels] for labels in Y]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = SequenceCRF("f1", objective="risk", c2=0.01, **more).fit(X, y)
    return fitted, [str(one.message) for one in caught]


def test_the_expected_loss_has_a_gradient_and_no_gap():
    fitted, told = risk()
    assert fitted.converged_ and not told
    length = max(1.0, np.linalg.norm(fitted.weights_))
    assert fitted.history_[-1].gradient == pytest.approx(fitted.gradient_norm_ / length)
    assert fitted.history_[-1].measure <= fitted.tolerance
    assert "gradient" in str(fitted.history_[-1]) and "gap" not in str(fitted.history_[-1])


def test_advice_on_the_expected_loss_leaves_the_penalty_alone():
    fitted, (told,) = risk(max_passes=1, tolerance=1e-9)
    assert f"stopped at a relative gradient norm of {fitted.history_[-1].gradient:.3g}, above" in told
    assert told.endswith("To go further, raise max_passes, or raise the tolerance")


def test_the_starting_point_is_told_apart(capsys):
    fitted, _ = risk(verbose=True)
    lines = capsys.readouterr().err.splitlines()
    first = [line for line in lines if line.startswith("starting point, pass ")]
    assert first and not any(" left" in line for line in first)
    assert len(lines) == len(first) + len(fitted.history_)


def test_a_run_that_converged_is_not_run_again(tmp_path):
    fitted, _ = risk(checkpoint=tmp_path / "run.npz")
    again, _ = risk(checkpoint=tmp_path / "run.npz")
    assert again.converged_ and len(again.history_) == len(fitted.history_)
    assert again.gradient_norm_ == pytest.approx(fitted.gradient_norm_)
    assert again.weights_.tolist() == fitted.weights_.tolist()


def test_the_remaining_time_follows_the_gradient():
    """A gradient that halves every 2 s is at the tolerance of 1/32 after 10."""
    history = [Progress(k, 1.0, 0.0, True, 0.1, k, 2.0 * k, None, 4.0 * 0.5**k) for k in range(1, 5)]
    assert time_left(history, RunOptions(tolerance=4.0 * 0.5**7)) == pytest.approx(6.0)
