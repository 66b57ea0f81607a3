"""distribution, marginals and sample on the command line give the same numbers as the library."""

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import MODEL, WET, run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.io import ProblemFile, write_problem, write_uai

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
    assert len(lines) == 8
    assert lines[0].split() == ["0", "1"] and lines[1].split()[0] == "0"


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


def test_no_samples(files, capsys):
    assert said(capsys, "sample", "week.uai", "-n", "0").split() == ["score", "labelling"]
    assert json.loads(said(capsys, "sample", "week.uai", "-n", "0", "--json")) == []


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("week.json",), Exit.MALFORMED, "an objective does not apply; use --objective score to drop it"),
        (("week.uai", *COUNT, "--given", "x=2"), Exit.MALFORMED, "no such statistic; the statistics are wet"),
        (("week.uai", *COUNT, "--given", "wt=2"), Exit.MALFORMED, "no such statistic; did you mean 'wet'?"),
        (
            ("week.uai", "--given", "ones=2"),
            Exit.MALFORMED,
            "this problem has no statistics; add one with --count",
        ),
        (("week.uai", *COUNT, "--given", "wet=two"), Exit.USAGE, "--given wet: expected an integer"),
    ],
)
def test_what_cannot_be_drawn(files, capsys, arguments, code, says):
    assert run("sample", *arguments) == code
    assert says in capsys.readouterr().err


def test_a_tally_that_nothing_has(files, capsys):
    assert run("marginals", "week.uai", *COUNT, "--given", "wet=9") == Exit.INFEASIBLE
    assert "no labelling satisfies 'wet == 9'; the nearest attainable tallies are (wet=7), (wet=6)" in (
        capsys.readouterr().err
    )


def test_the_most_probable_tallies_are_shown(files, capsys):
    lines = said(capsys, "distribution", "week.uai", *COUNT, "--limit", "3").splitlines()
    assert [line.split()[0] for line in lines[1:4]] == ["3", "4", "5"]
    hidden = 1.0 - sum(float(line.split()[1]) for line in lines[1:4])
    assert lines[4].startswith("the 3 most probable of 8 tallies; the others have")
    assert float(lines[4].split("have ")[1].split()[0]) == pytest.approx(hidden, abs=0.005)


def test_probabilities_given_a_constraint(files, capsys):
    given = tt.distribution(MODEL, [WET], where=(WET >= 2) & (WET <= 4))
    ask = ("week.uai", *COUNT, "--where", "2 <= wet <= 4")
    found = json.loads(said(capsys, "distribution", *ask, "--json"))
    assert found["tallies"] == [[2], [3], [4]]
    assert found["probabilities"] == pytest.approx(given.probabilities.tolist())
    assert found["where"] == "(wet >= 2) and (wet <= 4)"
    assert said(capsys, "distribution", *ask).splitlines()[-1] == "given (wet >= 2) and (wet <= 4)"
    assert np.allclose(json.loads(said(capsys, "marginals", *ask, "--json")), given.marginals())
    drawn = json.loads(said(capsys, "sample", *ask, "-n", "30", "--seed", "1", "--json"))
    assert {one["tally"]["wet"] for one in drawn} == {2, 3, 4}


def test_given_some_of_the_statistics(files, capsys):
    first = tt.count(MODEL, state="wet", variables=[0, 1, 2], name="first")
    problem = ProblemFile(MODEL, [WET, first], where="wet <= 5")
    write_problem(problem, "two.json")
    given = tt.distribution(MODEL, [WET, first], where=(WET <= 5) & (first == 2))
    found = json.loads(said(capsys, "marginals", "two.json", "--given", "first=2", "--json"))
    assert np.allclose(found, given.marginals())
    chances = json.loads(said(capsys, "distribution", "two.json", "--given", "first=2", "--json"))
    assert chances["probabilities"] == pytest.approx(given.probabilities.tolist())


def test_the_plain_score_in_a_file_is_no_objective(files, capsys):
    document = json.loads(Path("week.json").read_text())
    for name, objective in (("plain.json", {"objective": "score"}), ("none.json", {"objective": None})):
        Path(name).write_text(json.dumps({key: x for key, x in {**document, **objective}.items() if x}))
    for command in (["distribution"], ["sample", "--seed", "1"], ["marginals"], ["relax"]):
        assert said(capsys, *command, "plain.json") == said(capsys, *command, "none.json")


def test_only_what_can_matter_is_computed(files, capsys, monkeypatch):
    """Conditions prune the tables, and the plan reflects this."""
    model = tt.Model.chain(np.zeros((150, 3)), np.eye(3))
    write_uai(model, "long.uai")
    ask = ("long.uai", "--count", "ones=1")
    prices = [
        json.loads(said(capsys, "plan", *ask, *given, "--json"))["probabilities"]
        for given in ((), ("--given", "ones=3"), ("--where", "ones <= 3"))
    ]
    assert prices[1]["operations"] < prices[0]["operations"] / 10
    assert prices[1]["operations"] == tt.plan(model, where=tt.count(state=1) == 3).operations
    assert prices[2]["operations"] < prices[0]["operations"] / 10
    for price in prices:
        assert price["marginals"]["seconds"] > price["distribution"]["seconds"] > 0
        assert price["marginals"]["peak_bytes"] > price["distribution"]["peak_bytes"]
    run_plan = ProblemFile.distribution_plan
    made = []
    monkeypatch.setattr(
        ProblemFile, "distribution_plan", lambda *a, **k: made.append(run_plan(*a, **k)) or made[-1]
    )
    said(capsys, "marginals", *ask, "--given", "ones=3")
    assert made[0].operations == prices[1]["operations"]
    lines = said(capsys, "plan", *ask).splitlines()
    assert lines[-2].startswith("distribution and sample: about ")
    assert lines[-1].startswith("marginals: about ")


def test_names_may_be_quoted_as_in_formulas(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    states = {"states": ["O", "B-NP"], "chain": {"unary": [[0, 1], [0, -2]], "pairwise": [[1, 0], [0, 1]]}}
    counts = [{"name": "B-NP", "count": {"state": "B-NP"}}]
    Path("np.json").write_text(json.dumps({"tallytree": 1, "model": states, "statistics": counts}))
    given = [
        ("--given", "B-NP=1"),
        ("--given", "'B-NP'=1"),
        ("--given", '"B-NP"=1'),
        ("--where", "'B-NP' == 1"),
    ]
    assert len({said(capsys, "marginals", "np.json", *one) for one in given}) == 1
    asked = ("--count", "n='B-NP'", "--given", "n=1", "--fix", "0='B-NP'")
    assert said(capsys, "marginals", "np.json", *asked).splitlines()[1].split() == ["0", "0.0000", "1.0000"]
