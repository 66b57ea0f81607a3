"""Progress on a terminal, and silence elsewhere."""

import io
import re
import sys
import time
from argparse import Namespace

import numpy as np
import pytest
from command_line import run

import tallytree as tt
from tallytree.cli.forecasts import expected_seconds, expected_sums
from tallytree.cli.speed import Speed, measured
from tallytree.cli.text import progress
from tallytree.io import ProblemFile, write_uai


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("tallytree.cli.text._PATIENCE", 0.0)
    monkeypatch.setattr("tallytree.cli.text._PACE", 0.01)
    with progress("solving", shown=True):
        while "solving: 0 s" not in terminal.getvalue():
            time.sleep(0.01)
    assert terminal.getvalue().endswith("\r\033[K")
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    with progress("solving", shown=False):
        pass
    assert quiet.getvalue() == ""


def test_a_percentage_where_the_time_is_known(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("tallytree.cli.text._PATIENCE", 0.0)
    monkeypatch.setattr("tallytree.cli.text._PACE", 0.01)
    with progress("solving", shown=True, expected=lambda: 0.05):
        while "solving: 0 s, about 99 % (Ctrl-C stops)" not in terminal.getvalue():
            time.sleep(0.01)
    shares = [int(share) for share in re.findall(r"about (\d+) %", terminal.getvalue())]
    assert shares == sorted(shares) and shares[0] < 99


def test_what_a_question_takes_is_known_before(tmp_path):
    problem = ProblemFile(tt.Model.chain(np.zeros((30, 4)), np.eye(4)), [tt.count(state=1, name="ones")])
    options = Namespace(memory=None, order=None, precision="double", strategy="auto")
    assert 0.0 < expected_seconds(problem, options) < 10.0
    assert 0.0 < expected_seconds(problem, options, whole=True) < 10.0
    options.strategy = "bounds"
    assert expected_seconds(problem, options) is None
    wide = ProblemFile(tt.Model.grid(np.zeros((60, 60, 2)), np.eye(2), np.eye(2)))
    assert expected_seconds(wide, options, whole=True) is None


def test_fresh_memory_is_a_part_of_the_price():
    model = tt.Model.chain(np.zeros((30, 4)), np.eye(4))
    plan = tt.plan(model, [tt.count(state=1)])
    assert Speed(1e3, 1e4).seconds(plan) == plan.operations / 1e3 + plan.peak_bytes / 1e4
    assert "as just measured" in str(measured())


def test_training_says_that_it_computes_features_before_the_first_pass(tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    data = tmp_path / "train.txt"
    data.write_text("the DT B-NP\ncat NN I-NP\n\nit PRP B-NP\n")
    for quiet, told in (((), "2 sentences read; computing their features\n"), (("--quiet",), "")):
        terminal = Terminal()
        monkeypatch.setattr(sys, "stderr", terminal)
        run("train", "chunk", str(data), "-o", str(tmp_path / "m.npz"), *quiet)
        assert terminal.getvalue().startswith(told) and ("features" in terminal.getvalue()) == bool(told)


def test_probabilities_show_how_far_they_are(tmp_path, monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("tallytree.cli.text._PATIENCE", 0.0)
    monkeypatch.setattr("tallytree.cli.text._PACE", 0.001)
    model = tt.Model.grid(np.zeros((12, 12, 2)), np.eye(2), np.eye(2))
    write_uai(model, tmp_path / "grid.uai")
    plan = tt.plan(model, [tt.count(state=1)])
    assert 0 < expected_sums(plan, marginals=False) < 60
    assert 0 < expected_sums(plan, marginals=True) < 60
    monkeypatch.setattr("tallytree.cli.probabilities.expected_sums", lambda plan, marginals: 1.0)
    assert run("marginals", str(tmp_path / "grid.uai"), "--count", "ones=1") == 0
    shown = terminal.getvalue()
    assert re.search(r"probabilities: \d+ s, about \d+ %", shown)
    assert re.search(r"marginals: \d+ s, about \d+ %", shown)
