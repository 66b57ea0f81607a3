"""The demo: its claims are true, on every terminal."""

import io
import runpy
import sys

import numpy as np
import pytest

import tallytree as tt
from tallytree import demo

MODEL = demo.recording()


def shown(monkeypatch, *, encoding="utf-8", columns=80):
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", str(columns))
    demo.main([])
    stream.flush()
    return stream.buffer.getvalue().decode(encoding)


def test_the_story_is_true():
    counted = demo.utterances(MODEL)
    profile = tt.profile(MODEL, [counted])
    plain, three = profile.best(), profile.at(3)
    assert (counted.tally(demo.TRUTH), plain.tally[0], three.tally[0]) == (3, 6, 3)
    assert three.score < plain.score
    assert (three.assignment != demo.TRUTH).sum() < (plain.assignment != demo.TRUTH).sum()


def test_utterances_are_counted():
    counted = demo.utterances(MODEL)
    labelling = np.zeros(len(MODEL), dtype=int)
    assert counted.tally(labelling) == 0
    labelling[[0, 1, 5, 9, 10]] = 1
    assert counted.tally(labelling) == 3


def test_f1_augmented_is_no_worse_than_a_few_labellings():
    worst = demo.worst_f1(MODEL)
    for y in (demo.TRUTH, tt.solve(MODEL).assignment, 1 - demo.TRUTH):
        tp, fp = int((y & demo.TRUTH).sum()), int((y & ~demo.TRUTH & 1).sum())
        assert worst.value >= MODEL.score(y) + 40 * (1 - 2 * tp / (demo.TRUTH.sum() + tp + fp)) - 1e-9


def test_it_prints_plan_picture_and_comparison(monkeypatch):
    text = shown(monkeypatch)
    assert "plan for 64 variables and 1 statistic (utterances)" in text
    assert "64 frames, each silence or speech. There are 3 utterances, but" in text
    assert "exactly 3  3 utterances, score 102.41, 7 frames wrong" in text
    assert "▲" in text
    assert "█" in text
    assert "\033" not in text


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_pictures_fit_the_width(columns):
    values = np.array([0.0, 3.0, 1.0] * 10)
    rows = [("truth", demo.strip(demo.TRUTH))]
    for line in [*demo.chart(values, columns), *demo.stacked(rows, columns)]:
        assert len(line) <= columns


def test_wrapping_loses_nothing():
    lines = list(demo.stacked([("truth", demo.strip(demo.TRUTH))], 40))
    assert "".join(line[13:] for line in lines) == demo.strip(demo.TRUTH)


def test_plain_characters_where_there_are_no_others(monkeypatch):
    text = shown(monkeypatch, encoding="ascii")
    assert text.isascii()
    assert "tau = 1" in text
    assert "^" in text


def test_the_chart_is_to_scale():
    lines = list(demo.chart(np.array([0.0, 10.0, 5.0]), 80, height=4))
    columns = ["".join(line[9 + 3 * i :][:1].ljust(1) for line in lines[:4]) for i in range(3)]
    filled = [sum(demo.LEVELS.index(cell) for cell in column) for column in columns]
    assert filled == [1, 32, 16]
    assert lines[4].index("▲") == 9 + 3


def test_differences_are_marked():
    assert demo.marks(np.array([0, 1, 1]), np.array([0, 0, 1])) == " ▲ "


def test_png(monkeypatch, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    demo.main(["--png", str(tmp_path / "profile.png")])
    assert (tmp_path / "profile.png").read_bytes().startswith(b"\x89PNG")


def test_png_without_matplotlib_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(SystemExit, match="pip install matplotlib"):
        demo.main(["--png", "profile.png"])


def test_it_runs_as_a_module(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["tallytree.demo"])
    monkeypatch.delitem(sys.modules, "tallytree.demo")
    runpy.run_module("tallytree.demo", run_name="__main__")
    assert "The profile" in capsys.readouterr().out
