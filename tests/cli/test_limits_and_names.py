"""What is found before a limit, files that must not be overwritten, and names with spaces and signs."""

import json
from pathlib import Path

import pytest
from command_line import run, said

from tallytree.cli.exits import Exit

UNARY = [[0, 1.5], [0, -2.5], [0, 3], [0, -1.25], [0, 0.5], [0, 2]]
SPACED = {
    "tallytree": 1,
    "model": {
        "chain": {"unary": UNARY, "pairwise": [[1, 0], [0, 1]]},
        "variables": ["mo", "tu", "c=d", "th", "fr", "sunday"],
        "states": ["dry", "wet day"],
    },
    "statistics": [{"name": "wet days", "count": {"state": "wet day"}}],
}


@pytest.fixture
def spaced(files):
    Path("spaced.json").write_text(json.dumps(SPACED))
    return files


def test_a_diverse_list_that_reaches_a_limit_prints_what_it_found(spaced, capsys):
    ask = ["k-best", "spaced.json", "-k", "6", "--distance", "2"]
    whole = said(capsys, *ask).splitlines()
    assert run(*ask, "--memory", "9K") == Exit.BUDGET
    captured = capsys.readouterr()
    lines = captured.out.splitlines()
    assert 2 < len(lines) < len(whole) and lines == whole[: len(lines)]
    assert f"tallytree: {len(lines) - 1} labellings found, but not the next" in captured.err
    assert run(*ask, "--memory", "9K", "--json") == Exit.BUDGET
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["kind"] == "BudgetError" and "not the next" in document["error"]["message"]
    assert document["labellings"] == json.loads(said(capsys, *ask, "--json"))[: len(lines) - 1]


def test_the_explorer_does_not_overwrite_problems(spaced, capsys):
    before = Path("spaced.json").read_bytes()
    assert run("explore", "spaced.json", "-o", "spaced.json") == Exit.USAGE
    assert "spaced.json would be overwritten" in capsys.readouterr().err
    assert run("explore", "spaced.json", "-o", "page.json") == Exit.USAGE
    assert "explore writes an HTML page, so page.json should end in .html" in capsys.readouterr().err
    assert Path("spaced.json").read_bytes() == before and not Path("page.json").exists()


def test_names_that_a_network_cannot_store_are_mentioned(spaced, capsys):
    assert run("convert", "spaced.json", "-o", "spaced.cfn") == Exit.OK
    message = "cfn files cannot store the name 'wet day'; states of its variables become v0, v1, ..."
    assert message in capsys.readouterr().err
    assert run("convert", "week.json", "--objective", "score", "-o", "week.cfn") == Exit.OK
    assert "cannot store the name" not in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ["# A page\n\nwith words\n", "<!DOCTYPE html>\n<html></html>\n", "a\tb\n1\t2\n"]
)
def test_other_files_are_not_taken_for_networks(files, capsys, text):
    Path("other.txt").write_text(text)
    assert run("solve", "other.txt") == Exit.MALFORMED
    assert "the format of other.txt is not recognised, by its name or its content" in capsys.readouterr().err


def test_quoted_names_may_have_equals_signs_and_spaces(spaced, capsys):
    found = json.loads(said(capsys, "solve", "spaced.json", "--fix", "'c=d'='dry'", "--json"))
    assert found["labels"][2] == "dry"
    assert run("solve", "spaced.json", "--where", "wet days >= 1") == Exit.MALFORMED
    assert "got 'days'; quote a name with spaces: 'wet days'" in capsys.readouterr().err


def test_what_only_python_has_is_translated(spaced, capsys):
    for arguments, text in (
        (("--where", "valid_bio() and x <= 1"), "is not a function; use --valid bio, of tallytree chunk"),
        (("--where", "'wet days' == 2.5"), "tallies are integers, and none is between 2 and 3; the nearest"),
        (("--where", "'wet days' in (2, 3)"), "write 'wet days' == 2 or 'wet days' == 3"),
    ):
        assert run("solve", "spaced.json", *arguments) in (Exit.MALFORMED, Exit.INFEASIBLE)
        assert text in capsys.readouterr().err
    Path("plain.json").write_text('{"tallytree": 1, "model": {"cardinalities": [2]}}')
    assert run("solve", "plain.json", "--fix", "0=wet") != Exit.OK
    assert capsys.readouterr().err.endswith("The model has no names for them; use numbers\n")
    assert run("solve", "plain.json", "--objective", "0 - score") != Exit.OK
    assert "score_between" not in capsys.readouterr().err


def test_marginals_are_a_table(spaced, capsys):
    lines = said(capsys, "marginals", "spaced.json").splitlines()
    assert lines[0] == "           dry  wet day"
    assert [line.split()[0] for line in lines[1:]] == SPACED["model"]["variables"]
    assert {len(line) for line in lines} == {len(lines[0])}


def test_a_profile_shows_allowed_tallies(spaced, capsys):
    lines = said(capsys, "profile", "spaced.json", "--where", "'wet days' >= 3", "--limit", "3").splitlines()
    assert "not allowed" not in "".join(lines) and any("<- best" in line for line in lines)
    assert [line.split()[0] for line in lines[1:-1]] == ["…", "3", "4", "5"]
    assert lines[-1] == "3 of 7 tallies; --limit 0 shows all"


def test_lists_of_constraints_and_files_that_end_early_are_explained(spaced, capsys):
    Path("list.json").write_text(json.dumps({**SPACED, "where": ["a", "b"]}))
    assert run("solve", "list.json") == Exit.MALFORMED
    assert 'where: expected text or an object, such as {"all": […]}' in capsys.readouterr().err
    Path("cut.json").write_text(json.dumps(SPACED)[:100])
    assert run("solve", "cut.json") == Exit.MALFORMED
    assert "the file ends in the middle, so it may have been cut off" in capsys.readouterr().err
