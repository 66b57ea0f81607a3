"""The command line: every command that answers a question, with text and with JSON output."""

import gzip
import io
import json
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import PROBLEM, run, said

import tallytree as tt
from tallytree.cli.commands import parser
from tallytree.cli.exits import Exit
from tallytree.io import ProblemFile, problem_schema, read_problem, write_problem


def test_solve_for_people(files, capsys):
    assert said(capsys, "solve", "week.json") == (
        "value  8.5\nscore  8.5\ntally  wet = 3\n\n0   1   2   3   4   5   6\nwet dry wet dry dry dry wet\n"
    )


def test_solve_for_machines(files, capsys):
    best = PROBLEM.solve()
    assert json.loads(said(capsys, "solve", "week.json", "--json")) == {
        "value": best.value,
        "score": best.score,
        "tally": {"wet": 3},
        "assignment": best.assignment.tolist(),
        "labels": best.labels.tolist(),
    }


def test_solve_by_bounds(files, capsys):
    """A problem beyond the memory is solved by bounds; --strategy full refuses it."""
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(600, 3)), rng.normal(size=(3, 3)))
    ones, twos = tt.count(state=1, name="ones"), tt.count(state=2, name="twos")
    write_problem(ProblemFile(model, [ones, twos], where="ones == 150 and twos == 250"), "long.json")
    small = ("long.json", "--memory", "9M", "--quiet")
    best = read_problem("long.json").solve(strategy="bounds")
    found = json.loads(said(capsys, "solve", *small, "--json"))
    assert found["score"] == best.score and found["tally"] == {"ones": 150, "twos": 250}
    assert found["bounds"]["passes"] > 0 and found["bounds"]["counted"] == ["ones", "twos"]
    assert "optimal by bounds: " in said(capsys, "solve", *small)
    assert "a plain pass" in said(capsys, "solve", *small, "--explain", "--strategy", "bounds")
    assert run("solve", *small, "--strategy", "full") == Exit.BUDGET
    assert run("solve", *small, "--strategy", "bounds", "--operations", "1K") == Exit.BUDGET
    assert "no labelling has a value above" in capsys.readouterr().err
    assert said(capsys, "plan", *small).startswith("solve: by bounds, about 10 plain passes")
    told = json.loads(said(capsys, "plan", *small, "--json"))
    assert "limit" in told["error"] and told["bounds"]["passes"] > 0


def test_solve_in_single_precision(files, capsys):
    tenths = tt.Model.chain([[0.0, 0.1], [0.0, 0.7]], [[0.0, -0.3], [0.0, 0.2]])
    write_problem(ProblemFile(tenths), "tenths.json")
    found = json.loads(said(capsys, "solve", "tenths.json", "--precision", "single", "--json"))
    assert found["score"] == tt.solve(tenths).score
    assert 0 < found["gap"] < 1e-6
    lines = said(capsys, "solve", "tenths.json", "--precision", "single", "--explain").splitlines()
    assert lines[:2] == [f"score  {found['score']:.10g}", f"gap    {found['gap']:.2g}"]
    assert (
        f"optimal up to a gap of {found['gap']:.2g}: no labelling has a higher score by more than that"
        in lines
    )
    plans = [
        json.loads(said(capsys, "plan", "week.json", "--precision", p, "--json"))
        for p in ("single", "double")
    ]
    assert [plan["precision"] for plan in plans] == ["single", "double"]


@pytest.mark.parametrize(
    ("arguments", "score"),
    [
        (("week.json", "--objective", "score"), 9.0),
        (("week.json", "--set", "target=1"), 7.0),
        (("week.json", "--where", "wet >= 5", "--where", "wet != 6"), 8.5),
        (("week.json", "--fix", "2=dry", "--objective", "score"), 7.5),
        (("week.uai",), 9.0),
        (("week.uai", "--count", "ones=1", "--where", "ones == 2"), 8.0),
        (("week.uai", "--count", "any=0,1", "--where", "any == 7"), 9.0),
        (("week.uai", "--count", "k=1", "--objective", "score - w*k", "--set", "w=1e3"), 6.0),
        (("week.uai", "--evidence", "week.evid"), 8.5),
        (("two.wcsp",), 0.0),
        (("two.cfn",), -2.0),
    ],
)
def test_options_add_to_the_file(files, capsys, arguments, score):
    found = json.loads(said(capsys, "solve", *arguments, "--json"))
    assert found["score"] == pytest.approx(score)


def test_solve_explains(files, capsys):
    assert "optimal: no labelling" in said(capsys, "solve", "week.json", "--explain")
    assert "optimal" in json.loads(said(capsys, "solve", "week.json", "--explain", "--json"))["explanation"]


def test_a_narrow_terminal(files, capsys, monkeypatch):
    monkeypatch.setattr("tallytree.cli.questions.wrapping_width", lambda: 12)
    assert said(capsys, "solve", "week.uai").splitlines()[2:5] == ["0 1 2 3 4 5", "1 0 1 1 1 1", ""]


def test_grids_are_shown_as_grids(files, capsys):
    grid = tt.Model.grid(np.array([[[0, 1], [0, -1]], [[0, -1], [0, 1]]]), np.zeros((2, 2)), np.zeros((2, 2)))
    write_problem(ProblemFile(grid), "grid.json")
    assert said(capsys, "solve", "grid.json") == "score  2\n\n1 0\n0 1\n"


def test_plan(files, capsys):
    lines = said(capsys, "plan", "week.json")
    assert lines.startswith("solve: plan for 7 variables and 1 statistic (wet)\n")
    assert "; --strategy auto computes the table\n" in lines
    plan = json.loads(said(capsys, "plan", "week.json", "--json"))
    assert plan["width"] == 1
    assert sorted(plan["order"]) == list(range(7))
    assert 0 < plan["seconds"] < 1


def test_plan_prices_a_profile_too_where_that_takes_more(files, capsys):
    ask = ("plan", "week.uai", "--count", "ones=1")
    document = json.loads(said(capsys, *ask, "--json"))
    assert document["statistics"] == []
    whole = tt.plan(PROBLEM.model, [tt.count(state=1)])
    assert document["profile"]["operations"] == whole.operations
    lines = said(capsys, *ask).splitlines()
    assert lines[0].startswith("solve: plan for 7 variables and no statistics")
    assert "  without ones, which the objective does not use" in lines
    assert any(line.startswith("profile: plan for 7 variables and 1 statistic (ones)") for line in lines)
    assert sum("GB/s as just measured" in line for line in lines) == 2
    room = str(document["peak_bytes"] + 200)
    assert "limit" in json.loads(said(capsys, *ask, "--memory", room, "--json"))["profile"]["error"]


def test_orders(files, capsys):
    plan = json.loads(said(capsys, "plan", "week.json", "--order", "6,5,4,3,2,1,0", "--json"))
    assert plan["order"] == [6, 5, 4, 3, 2, 1, 0]
    assert said(capsys, "solve", "week.json", "--order", "min-fill") == said(capsys, "solve", "week.json")
    with pytest.raises(SystemExit):
        run("solve", "week.json", "--order", "best")
    assert "or numbers such as 2,0,1; got 'best'" in capsys.readouterr().err


def test_a_diverse_list(files, capsys):
    found = json.loads(said(capsys, "k-best", "week.uai", "-k", "3", "--distance", "3", "--json"))
    expected = tt.diverse_k_best(PROBLEM.model, 3, 3)
    assert [one["assignment"] for one in found] == [one.assignment.tolist() for one in expected]
    assert run("k-best", "week.uai", "-k", "3", "--distance", "7") == Exit.OK
    assert capsys.readouterr().err == "tallytree: there are only 2 labellings at this distance, not 3\n"
    ask = ("k-best", "week.uai", "-k", "2", "--distance", "3", "--count", "ones=1", "--where", "ones == 4")
    found = json.loads(said(capsys, *ask, "--json"))
    expected = tt.diverse_k_best(PROBLEM.model, 2, 3, where=tt.count(state=1) == 4)
    assert [one["assignment"] for one in found] == [one.assignment.tolist() for one in expected]
    assert run(*ask, "--objective", "score + ones") == Exit.MALFORMED
    assert "a diverse list is ordered by score" in capsys.readouterr().err


def test_relax(files, capsys):
    ask = ("relax", "week.uai", "--count", "ones=1", "--where", "ones == 4")
    document = json.loads(said(capsys, *ask, "--json"))
    assert document["upper_bound"] >= 8.0
    assert document["solution"]["tally"] == {"ones": 4}
    lines = said(capsys, *ask).splitlines()
    assert lines[0].startswith("bound  ")
    assert lines[1].startswith("gap    ")
    assert run("relax", "week.uai") == Exit.MALFORMED
    assert "no constraint (add one with --where)" in capsys.readouterr().err


def test_options_are_not_abbreviated_and_misspelt_ones_are_named(files, capsys):
    for given, meant in (("--objectiv", "--objective"), ("--cuont", "--count")):
        with pytest.raises(SystemExit) as stopped:
            run("solve", "week.json", given, "x")
        assert stopped.value.code == Exit.USAGE
        told = capsys.readouterr().err
        assert told.startswith("usage: tallytree solve")
        assert f"did you mean {meant}?" in told
    for line, meant in (("slove week.json", "solve"), ("solve week.json --strategy bound", "bounds")):
        with pytest.raises(SystemExit) as stopped:
            run(*line.split())
        assert stopped.value.code == Exit.USAGE
        assert f"did you mean {meant}?" in capsys.readouterr().err


def test_a_value_that_begins_with_a_dash(files, capsys):
    with pytest.raises(SystemExit):
        run("solve", "week.json", "--objective", "-abs(wet-2)")
    assert "a value that begins with - is written --objective=-…" in capsys.readouterr().err
    assert run("solve", "week.json", "--objective=-abs(wet-2)") == Exit.OK


def test_budget_errors_name_the_options(files, capsys):
    assert run("solve", "week.json", "--operations", "1") == Exit.BUDGET
    told = capsys.readouterr().err
    assert "--operations is 1" in told
    assert "memory of this machine" not in told
    assert run("solve", "week.uai", "--operations", "1") == Exit.BUDGET
    told = capsys.readouterr().err
    assert "raise --operations, or give a better elimination order (--order)" in told
    assert run("solve", "week.json", "--memory", "1K") == Exit.BUDGET
    told = capsys.readouterr().err
    assert "Raise --memory, or use a better elimination order" in told
    assert "memory_limit" not in told


def test_a_wide_graph_without_counts_names_another_tool(files, capsys):
    write_problem(ProblemFile(tt.Model.grid(np.zeros((40, 40, 2)), np.eye(2), np.eye(2))), "wide.json")
    assert run("solve", "wide.json") == Exit.BUDGET
    told = capsys.readouterr().err
    assert "toulbar2" in told and "--order" in told
    assert "Cap a statistic" not in told and "--memory" not in told


def test_profile(files, capsys):
    lines = said(capsys, "profile", "week.json").splitlines()
    assert lines[0].split() == ["wet", "score", "value"]
    assert lines[4].split() == ["3", "8.5", "8.5", "<-", "best"]
    assert lines[8].split() == ["7", "8.5", "4.5", "not", "allowed"]
    document = json.loads(said(capsys, "profile", "week.json", "--json"))
    assert document["scores"] == PROBLEM.profile().scores.tolist()
    assert document["best"] == 3
    assert document["allowed"] == [True] * 7 + [False]
    short = said(capsys, "profile", "week.json", "--limit", "2").splitlines()
    assert [line.split()[0] for line in short] == ["wet", "…", "2", "3", "2"]
    assert said(capsys, "profile", "week.uai").split() == ["score", "9", "<-", "best"]


def test_a_profile_of_nothing(files, capsys):
    write_problem(ProblemFile(tt.Model([2], [((0,), [-np.inf, -np.inf])])), "none.json")
    assert run("profile", "none.json") == Exit.INFEASIBLE
    assert "every labelling is forbidden" in capsys.readouterr().err


def test_k_best(files, capsys):
    lines = said(capsys, "k-best", "week.json", "-k", "3").splitlines()
    assert lines[0].split() == ["value", "score", "wet", "labelling"]
    assert lines[1].split()[:4] == ["1", "8.5", "8.5", "3"]
    found = json.loads(said(capsys, "k-best", "week.json", "-k", "3", "--json"))
    assert [one["value"] for one in found] == [s.value for s in PROBLEM.k_best(3)]
    assert run("k-best", "week.json", "--where", "wet > 9") == Exit.INFEASIBLE
    told = capsys.readouterr()
    assert told.out == ""
    assert "no labelling satisfies '(wet <= 6) and (wet > 9)'; the nearest attainable" in told.err
    assert run("k-best", "week.json", "--where", "wet > 9", "--json") == Exit.INFEASIBLE
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "InfeasibleError"
    assert run("k-best", "week.json", "-k", "0") == Exit.OK


def test_standard_input(files, capsys, monkeypatch):
    for name in ("week.json", "week.uai", "two.wcsp", "two.cfn"):
        data = Path(name).read_bytes()
        expected = said(capsys, "solve", name)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        assert said(capsys, "solve", "-") == expected


def test_no_limit_on_operations(files, capsys):
    said(capsys, "solve", "week.json", "--operations", "0", "--memory", "1.5G")


def test_help_has_examples_and_exit_codes(capsys):
    for arguments in (
        (),
        ("solve",),
        ("plan",),
        ("profile",),
        ("k-best",),
        ("convert",),
        ("completion",),
        ("train",),
        ("tag",),
        ("chunk",),
        ("parse",),
    ):
        with pytest.raises(SystemExit) as stopped:
            run(*arguments, "--help")
        assert stopped.value.code == 0
        out = capsys.readouterr().out
        assert "examples:\n  tallytree " in out
    with pytest.raises(SystemExit):
        run("--help")
    out = capsys.readouterr().out
    assert all(f"{code:>4}  " in out for code in Exit)
    with pytest.raises(SystemExit):
        run("--version")
    assert capsys.readouterr().out == f"tallytree {tt.__version__}\n"


def test_the_examples_of_the_help_parse():
    command_line = parser()
    texts = [command_line.epilog] + [one.epilog or "" for one in command_line._actions[-1].choices.values()]
    examples = [
        line.partition("tallytree ")[2]
        for text in texts
        for line in text.splitlines()
        if "tallytree " in line
    ]
    assert len(examples) >= 12
    for example in examples:
        words = shlex.split(example)
        command_line.parse_args(words[: words.index(">")] if ">" in words else words)


def test_schema_and_demo(capsys):
    assert json.loads(said(capsys, "schema")) == problem_schema()
    assert "The profile: the best score" in said(capsys, "demo")


@pytest.mark.parametrize("name", ["week.json", "week.uai", "two.wcsp", "two.cfn"])
def test_a_mark_of_the_byte_order_and_other_line_ends(files, capsys, monkeypatch, name):
    expected = said(capsys, "solve", name)
    data = b"\xef\xbb\xbf" + Path(name).read_bytes().replace(b"\n", b"\r\n")
    (files / f"marked-{name}").write_bytes(data)
    assert said(capsys, "solve", f"marked-{name}") == expected
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert said(capsys, "solve", "-") == expected


@pytest.mark.parametrize("name", ["week.json", "week.uai", "two.wcsp", "two.cfn"])
def test_compressed_files(files, capsys, monkeypatch, name):
    expected = said(capsys, "solve", name)
    data = gzip.compress(Path(name).read_bytes())
    Path(f"{name}.gz").write_bytes(data)
    assert said(capsys, "solve", f"{name}.gz") == expected
    Path(f"cut-{name}.gz").write_bytes(data[:-20])
    assert run("solve", f"cut-{name}.gz") == Exit.MALFORMED
    assert f"cut-{name}.gz is compressed by gzip, but damaged" in capsys.readouterr().err
    Path(f"nested-{name}.gz").write_bytes(gzip.compress(data))
    assert run("solve", f"nested-{name}.gz") == Exit.MALFORMED
    assert f"nested-{name}.gz is compressed by gzip more than once" in capsys.readouterr().err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
    assert said(capsys, "solve", "-") == expected


def test_importing_the_library_does_not_import_the_command_line():
    code = "import sys, tallytree; sys.exit('tallytree.cli' in sys.modules or 'argparse' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
