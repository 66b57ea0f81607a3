"""The gallery scripts run on small data, and the claims of the scripts and their page hold."""

import re
import runpy
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import tallytree as tt

plt = pytest.importorskip("matplotlib.pyplot")
pytest.importorskip("sklearn")

ROOT = Path(__file__).parents[1]
OTHERS = {"saving", "tagger"}  # no scripts, or tested elsewhere
SCRIPTS = sorted({path.stem for path in (ROOT / "examples").glob("*.py")} - OTHERS)


@pytest.fixture(autouse=True)
def no_figures_are_left():
    yield
    plt.close("all")


def names(script):
    return runpy.run_path(str(ROOT / "examples" / f"{script}.py"))


@pytest.mark.parametrize("script", SCRIPTS)
def test_a_script_prints_and_draws(script, tmp_path, capsys):
    found = names(script)
    figure = found["main"](quick=True)
    figure.savefig(tmp_path / "picture.png")
    assert capsys.readouterr().out
    assert len(found["__doc__"].splitlines()) > 2
    assert any(ax.images or ax.lines or ax.patches for ax in figure.axes)


def test_a_script_writes_its_picture_where_it_is_told(tmp_path):
    script = ROOT / "examples" / "parses.py"
    for options, written in (["--quick"], "parses.png"), (["--quick", "-o", "other.png"], "other.png"):
        command = [sys.executable, str(script), *options]
        done = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        assert done.stdout.endswith(f"wrote {written}\n")
        assert (tmp_path / written).read_bytes().startswith(b"\x89PNG")


def test_the_page_has_every_script_and_quotes_it():
    page = (ROOT / "docs" / "gallery.md").read_text(encoding="utf-8")
    sources = "".join((ROOT / "examples" / f"{script}.py").read_text(encoding="utf-8") for script in SCRIPTS)
    for script in SCRIPTS:
        assert f"(../examples/{script}.py)" in page
        assert f"(pictures/{script}.png)" in page
    quoted = re.findall(r"^def .*?(?=^\S)", page, re.MULTILINE | re.DOTALL)
    assert len(quoted) == 8
    assert all(function in sources for function in quoted)


@pytest.mark.parametrize("k", [1, 3, 6, 10])
def test_segments_are_as_many_as_asked_for(k):
    script = names("segments")
    _, signal = script["measured"](60, 6)
    found = script["segmentations"](signal).at(segments=k)
    assert 1 + np.count_nonzero(np.diff(found.assignment)) == k


@pytest.mark.parametrize("area", [0, 5, 20, 64])
def test_digits_have_the_area_asked_for(area):
    script = names("digits")
    _, noisy = script["noisy_digits"](2)
    images = [script["denoised"](image, area) for image in noisy]
    assert [int(image.sum()) for image in images] == [area, area]


def test_entities_are_no_more_than_asked_for_and_valid():
    script = names("entities")
    limits = (5, 3, 2, 0)
    rows = script["tagged"](script["SENTENCE"].split(), limits)
    assert [sum(label.startswith("B") for label in row) for row in rows] == list(limits)
    assert all(tt.valid_bio().accepts(row) for row in rows)


def test_sentences_in_brackets_are_read():
    words, labels = names("entities")["labelled"]("[PER Anna Kovacs] flew to [LOC Riga] .")
    assert words == ["Anna", "Kovacs", "flew", "to", "Riga", "."]
    assert labels == ["B-PER", "I-PER", "O", "O", "B-LOC", "O"]


def test_rosters_keep_the_rules_and_the_fair_one_is_the_best():
    script = names("roster")
    wishes = script["wished"](5)
    free, fair = script["rosters"](wishes, 2, 3)

    def score(plan):
        return sum(day[d, 0] + day[n, 1] for day, (d, n) in zip(wishes, plan, strict=True))

    def is_fair(plan):
        counts = [sum(nurse in pair for pair in plan) for nurse in range(4)]
        nights_less_days = sum((n == 1) - (d == 1) for d, n in plan)
        return all(2 <= count <= 3 for count in counts) and nights_less_days <= 0

    plans = [[pair] for pair in script["PAIRS"]]
    for _ in range(4):
        plans = [[*plan, pair] for plan in plans for pair in script["PAIRS"] if pair[0] != plan[-1][1]]
    for plan, value in (free, fair):
        assert all(day != night for (_, night), (day, _) in pairwise(plan))
        assert score(plan) == value
    assert free[1] == max(map(score, plans))
    assert is_fair(fair[0])
    assert fair[1] == max(score(plan) for plan in plans if is_fair(plan))
    assert script["table"](fair[0]).astype(bool).sum() == 10


def test_diverse_parses_are_apart_and_the_best_are_not():
    script = names("parses")
    best, diverse = script["parses"](distance=4)
    apart = script["differences"]
    assert min(apart(a.tree, b.tree) for i, a in enumerate(diverse) for b in diverse[:i]) >= 4
    assert apart(best[0].tree, best[1].tree) < 4
    assert [parse.score for parse in diverse] == sorted((parse.score for parse in diverse), reverse=True)


def test_counts_help_where_few_sentences_are_labelled():
    script = names("proportions")
    few, counted, everything = script["accuracies"](*script["corpus"](), labelled=4)
    assert few + 0.05 < counted < everything
