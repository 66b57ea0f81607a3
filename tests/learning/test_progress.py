"""Progress of training: one line on a terminal, plain lines elsewhere, and an estimate that does not jump."""

import io
import math
import re
import sys
from itertools import pairwise

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from tallytree.learning import RunOptions, SequenceCRF, SequenceSVM
from tallytree.learning.progress import Progress, shown_passes, time_left

X = [[["a"], ["b"], ["a"]], [["b"], ["b"]], [["a"], ["c"]]] * 4
Y = [["x", "y", "x"], ["y", "y"], ["x", "x"]] * 4


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def passes(gaps, pace=1.0, options=None):
    """Return the history of a run with these relative gaps."""
    history = []
    for number, gap in enumerate(gaps, 1):
        entry = Progress(number, 1.0, 1.0 - gap, True, 0.1, number, pace * number, None)
        history.append(entry._replace(left=time_left([*history, entry], options or RunOptions())))
    return history


@pytest.mark.parametrize("estimator", [SequenceSVM, SequenceCRF])
def test_a_terminal_has_one_line_that_is_written_again(estimator, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "60")
    fitted = estimator(verbose=True).fit(X, Y)
    shown = terminal.getvalue()
    assert shown.endswith("\033[K\n") and shown.count("\n") == 1
    lines = shown.rstrip("\n").split("\r")[1:]
    assert len(lines) == len(fitted.history_)
    assert all(len(line) - len("\033[K") <= 59 for line in lines)


@pytest.mark.parametrize("width", [40, 60, 79, 99, 200])
def test_a_narrow_terminal_still_shows_the_remaining_time(width):
    entry = Progress(1234, 46632.8, 12.0, False, 0.07331, 5_200_000, 7654.9, 1234.0)
    line = entry.within(width)
    assert len(line) <= width and line.startswith("pass 1234: loss 0.07331, ")
    assert ("about 1234 s left (86 %)" in line) == (width >= 60)
    assert ("gap ~1" in line) == (width >= 60)
    assert (line == str(entry)) == (width == 200)


@pytest.mark.parametrize("estimator", [SequenceSVM, SequenceCRF])
def test_elsewhere_there_are_plain_lines(estimator, capsys):
    fitted = estimator(verbose=True).fit(X, Y)
    lines = capsys.readouterr().err.splitlines()
    shown, stored = ([str(one).partition("(")[0] for one in some] for some in (lines, fitted.history_))
    assert shown == stored  # but for percentages, which never fall
    assert not any("\r" in line or "\033" in line for line in lines)


def test_the_line_of_a_terminal_ends_when_training_is_stopped(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    original = Terminal.write

    def write(self, text):
        written = original(self, text)
        if "pass 2" in text:
            raise KeyboardInterrupt
        return written

    monkeypatch.setattr(Terminal, "write", write)
    with pytest.raises(KeyboardInterrupt):
        SequenceSVM(verbose=True, tolerance=1e-12, max_passes=50).fit(X, Y)
    assert terminal.getvalue().endswith("\n")


def test_the_estimate_of_a_steady_run_is_right():
    options = RunOptions(tolerance=0.5**20, max_passes=1000)
    for entry in passes([0.5**k for k in range(1, 20)], 2.0, options)[2:]:
        assert entry.left == pytest.approx(2.0 * (20 - entry.number), rel=1e-6, abs=1e-6)
        assert entry.done == pytest.approx(entry.number / 20, rel=1e-6)


def test_the_estimate_does_not_jump():
    rng = np.random.default_rng(0)
    gaps = np.exp(-0.1 * np.arange(1, 60) + rng.normal(scale=0.4, size=59))
    lefts = [entry.left for entry in passes(gaps, 1.0, RunOptions(tolerance=1e-3, max_passes=1000))[5:]]
    for before, after in pairwise(lefts):
        assert 0.5 * before - 2.0 <= after <= 2.0 * before + 2.0


def test_the_estimate_keeps_to_the_limits_of_the_run():
    flat = passes([0.5] * 10, 1.0, RunOptions(max_passes=25))
    assert flat[-1].left == pytest.approx(15.0)
    timed = passes([0.5] * 10, 1.0, RunOptions(max_seconds=12.0))
    assert timed[-1].left == pytest.approx(2.0, abs=1e-9)
    assert [entry.left for entry in flat[:2]] == [None, None]
    still = passes([0.5] * 4, 0.0)
    assert still[-1].left == 0.0 and still[-1].done == 1.0


def test_until_the_last_pass_there_is_time_left_for_one_more():
    options = RunOptions(tolerance=0.01)
    gaps = [0.5, 0.2, 0.05, 0.02, 0.019, 0.018, 0.017, 0.005]
    *others, last = passes(gaps, 6.0, options)
    assert all(entry.left >= 6.0 for entry in others[2:]) and last.left == 0.0


def test_percentages_never_fall(capsys):
    lefts = [None, 4.0, 3.0, 9.0, 8.0, 1.0]
    entries = [Progress(k, 1.0, 0.5, True, 0.1, k, float(k), left) for k, left in enumerate(lefts, 1)]
    with shown_passes(True) as show:
        for entry in entries:
            show(entry)
    shown = [int(part) for part in re.findall(r"\((\d+) %\)", capsys.readouterr().err)]
    assert shown == [33, 50, 50, 50, 86]


def falling(primals, dual, pace, options):
    """Passes in which the primal falls to the dual, as in Frank-Wolfe's."""
    history = []
    for number, primal in enumerate(primals, 1):
        entry = Progress(number, primal, dual, True, 0.1, number, pace * number, None)
        history.append(entry._replace(left=time_left([*history, entry], options)))
    return history


def test_the_estimate_of_a_primal_that_falls_far_is_of_the_right_size_from_the_start():
    """The gap relative to the primal is near 1 for long, and tells nothing."""
    primals = [1.4 * (1.0 + 400.0 * math.exp(-(number**0.5))) for number in range(1, 100)]
    options = RunOptions(tolerance=0.1, max_passes=1000)
    needed = next(k for k, primal in enumerate(primals, 1) if 1.0 - 1.4 / primal <= 0.1)
    for entry in falling(primals[: needed - 5], 1.4, 2.0, options)[4:]:
        assert entry.left == pytest.approx(2.0 * (needed - entry.number), rel=0.3, abs=4.0)


def test_the_gap_is_what_the_tolerance_limits():
    entry = Progress(3, 200.0, 198.0, True, 0.1, 9, 3.0, 1.0)
    assert str(entry) == (
        "pass 3: loss 0.1, objective 200, gap 0.01, 9 oracle calls, 3.0 s, about 1 s left (75 %)"
    )
    assert RunOptions(tolerance=0.01).reached([entry])
    assert math.isclose(entry.relative_gap, 0.01)


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_that_cannot_be_written_does_not_end_a_fit(terminal, monkeypatch):
    class Gone(Terminal):
        def isatty(self) -> bool:
            return terminal

        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stderr", Gone())
    assert SequenceSVM(verbose=True).fit(X, Y).converged_
