"""distribution, marginals and sample on the command line: the same numbers as in the library."""

import json

import numpy as np
import pytest
from command_line import MODEL, WET, run, said

import tallytree as tt
from tallytree.cli.exits import Exit

COUNT = ("--count", "wet=1")


@pytest.fixture
def weather():
    return tt.distribution(MODEL, [WET])


def test_the_distribution_of_a_count(files, capsys, weather):
    found = json.loads(said(capsys, "distribution", "week.uai", *COUNT, "--json"))
    assert found["tallies"] == weather.tallies.tolist()
    assert found["probabilities"] == pytest.approx(weather.probabilities.tolist())
    lines = said(capsys, "distribution", "week.uai", *COUNT).splitlines()
    assert lines[0].split() == ["wet", "probability"]
    assert float(lines[1].split()[1]) == pytest.approx(weather.probabilities[0], abs=1e-6)
    assert len(lines) == 9


def test_marginals_with_and_without_a_tally(files, capsys, weather):
    for given, tally in (((), None), (("--given", "wet=2"), [2])):
        found = json.loads(said(capsys, "marginals", "week.uai", *COUNT, *given, "--json"))
        assert np.allclose(found, weather.marginals(tally), atol=1e-12)
    lines = said(capsys, "marginals", "week.uai", *COUNT).splitlines()
    assert len(lines) == 7
    assert lines[0].split()[:2] == ["0", "0"]


def test_samples_are_of_the_tally_and_repeat_with_a_seed(files, capsys):
    ask = ("sample", "week.uai", *COUNT, "--given", "wet=2", "-n", "4", "--seed", "7")
    first, again = said(capsys, *ask, "--json"), said(capsys, *ask, "--json")
    assert first == again
    drawn = json.loads(first)
    assert len(drawn) == 4
    for one in drawn:
        assert one["tally"] == {"wet": 2}
        assert sum(one["assignment"]) == 2
        assert one["score"] == pytest.approx(MODEL.score(one["assignment"]))
    assert len(said(capsys, *ask).splitlines()) == 5


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("week.json",), Exit.MALFORMED, "constraints and objectives do not apply"),
        (("week.uai", *COUNT, "--given", "ones=2"), Exit.USAGE, "one number for each statistic (wet)"),
        (("week.uai", *COUNT, "--given", "wet=two"), Exit.USAGE, "--given wet: expected an integer"),
    ],
)
def test_what_cannot_be_drawn(files, capsys, arguments, code, says):
    assert run("sample", *arguments) == code
    assert says in capsys.readouterr().err


def test_a_tally_that_nothing_has(files, capsys):
    assert run("marginals", "week.uai", *COUNT, "--given", "wet=9") == Exit.INFEASIBLE
    assert "no labelling has the tally (wet=9); the nearest attainable tallies are (wet=7), (wet=6)" in (
        capsys.readouterr().err
    )


def test_the_most_probable_tallies_are_shown(files, capsys):
    lines = said(capsys, "distribution", "week.uai", *COUNT, "--limit", "3").splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["3", "4", "5"]
    hidden = 1.0 - sum(float(line.split()[1]) for line in lines[1:4])
    assert lines[4].startswith("the 3 most probable of 8 tallies; the others have")
    assert float(lines[4].split("have ")[1].split()[0]) == pytest.approx(hidden, abs=0.005)
