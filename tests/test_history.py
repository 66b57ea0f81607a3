"""Stored benchmark results: times become ratios, and regressions are found."""

import json
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def history(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    import history

    monkeypatch.setattr(history, "FOLDER", tmp_path)
    return history


ROWS = [
    {"case": "a chain", "our ms": 2.0, "speed": 1.5, "R": 7, "found": True},
    {"case": "a chain", "our ms": 4.0, "speed": float("nan")},
]


def test_what_was_measured_is_written_as_json(history):
    import run

    rows = [{"case": "a chain", "our ms": np.float64(2.0), "same": np.bool_(True), "R": np.int64(7)}]
    written = json.loads(run.as_json({"rates": {"beside C": rows, "sizes": np.arange(2)}}))
    assert written == {
        "rates": {
            "beside C": [{"case": "a chain", "our ms": 2.0, "same": True, "R": 7}],
            "sizes": [0, 1],
        }
    }
    assert written["rates"]["beside C"][0]["same"] is True


def test_figures_are_ratios_with_names(history):
    found = history.figures({"rates": {"beside C": ROWS}}, {"rates": 0.5})
    assert found == {
        "rates · beside C · a chain · our ms": 4.0,
        "rates · beside C · a chain · speed": 1.5,
        "rates · beside C · a chain (2) · our ms": 8.0,
    }


def test_what_got_slower_is_found_whichever_way_is_better(history):
    before = {"b · t · x · our ms": 2.0, "b · t · x · speed": 2.0, "b · t · y · our ms": 1.0, "gone": 1.0}
    after = {"b · t · x · our ms": 5.0, "b · t · x · speed": 1.0, "b · t · y · our ms": 1.1, "new": 1.0}
    rows = history.slower(before, after)
    assert [(row["figure"], row["times as slow"]) for row in rows] == [
        ("b · t · x · our ms", 2.5),
        ("b · t · x · speed", 2.0),
    ]
    assert history.slower(after, before) == []


def test_runs_are_stored_and_the_newest_that_has_a_benchmark_is_found(history, monkeypatch, capsys):
    names = iter(["2030-01-01T00-00-00", "2030-01-02T00-00-00", "2030-01-03T00-00-00"])
    monkeypatch.setattr(history.time, "strftime", lambda _: next(names))
    history.store({}, {"rates · t · x · our ms": 1.0, "kbest · t · x · our ms": 1.0}, quick=False)
    history.store({}, {"rates · t · x · our ms": 2.0}, quick=False)
    history.store({}, {"rates · t · x · our ms": 9.0}, quick=True)
    earlier = history.before(False, ["rates", "kbest", "memory"])
    assert {name: record["when"][:10] for name, record in earlier.items()} == {
        "rates": "2030-01-02",
        "kbest": "2030-01-01",
    }
    after = {"rates · t · x · our ms": 2.1, "kbest · t · x · our ms": 3.0}
    assert len(history.compare(earlier, after)) == 1
    printed = capsys.readouterr().out
    assert "rates: none of 1 figures is slower" in printed and "kbest: slower than on 2030-01-01" in printed


def test_only_so_many_runs_are_kept(history, monkeypatch):
    monkeypatch.setattr(history, "KEPT", 2)
    names = iter([f"2030-01-0{i}T00-00-00" for i in range(1, 5)])
    monkeypatch.setattr(history.time, "strftime", lambda _: next(names))
    for _ in range(4):
        history.store({}, {"a · t · x · ms": 1.0}, quick=False)
    assert [path.stem[:10] for path in history.stored()] == ["2030-01-03", "2030-01-04"]
    assert 0 < history.reference() < 10


def test_figures_are_kept_where_there_is_no_git(history, monkeypatch):
    monkeypatch.setenv("PATH", "")
    assert history._commit() == ""
