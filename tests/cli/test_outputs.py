"""Commands that write files: convert, explore."""

import json
from pathlib import Path

import pytest
from command_line import run, said

from tallytree.cli.exits import Exit
from tallytree.io import Source, read_problem


def test_convert(files, capsys):
    for source, target in [
        ("week.uai", "a.json"),
        ("a.json", "b.wcsp"),
        ("b.wcsp", "c.cfn"),
        ("c.cfn", "d.uai"),
    ]:
        said(capsys, "convert", source, target)
    scores = [json.loads(said(capsys, "solve", name, "--json"))["labels"] for name in ("week.uai", "d.uai")]
    assert scores[0] == scores[1]
    assert run("convert", "week.uai", "out.txt") == Exit.USAGE
    assert run("convert", "week.json", "out.uai") == Exit.MALFORMED
    assert "can only hold a model" in capsys.readouterr().err
    said(capsys, "convert", "week.json", "out.txt", "--to", "json")
    assert read_problem("out.txt").solve().value == 8.5


def test_convert_names_the_statistics_that_it_leaves_out(files, capsys):
    said(capsys, "convert", "week.uai", "a.json", "--count", "ones=1", "--count", "twos=0")
    for target, options, lost in [
        ("b.uai", (), "ones, twos"),
        ("b.cfn", ("--where", "ones <= 2"), "twos"),
        ("b.json", (), None),
    ]:
        assert run("convert", "a.json", target, *options) == Exit.OK
        told = capsys.readouterr().err
        assert (f"have no statistics; left out: {lost}\n" in told) if lost else ("left out" not in told)


def test_convert_takes_its_output_as_an_option(files, capsys):
    said(capsys, "convert", "week.uai", "a.json")
    for options in (("-o", "b.json", "week.uai"), ("week.uai", "--output", "b.json")):
        Path("b.json").unlink(missing_ok=True)
        said(capsys, "convert", *options)
        assert Path("b.json").read_bytes() == Path("a.json").read_bytes()
    assert said(capsys, "convert", "week.uai", "-o", "-", "--to", "json") == Path("a.json").read_text()
    told = json.loads(said(capsys, "convert", "week.uai", "-o", "w.uai", "--json"))
    assert told == {"output": "w.uai", "format": "uai"}
    for arguments, error in [
        (("week.uai",), "give the file to write: tallytree convert FILE OUTPUT, or -o OUTPUT"),
        (("week.uai", "c.json", "-o", "d.json"), "the output is given twice: c.json and -o d.json"),
    ]:
        with pytest.raises(SystemExit) as stopped:
            run("convert", *arguments)
        assert stopped.value.code == Exit.USAGE
        assert error in capsys.readouterr().err
    assert not Path("c.json").exists()
    assert not Path("d.json").exists()


def test_what_is_written_can_go_to_standard_output(files, capsys):
    out = said(capsys, "convert", "week.uai", "-", "--to", "json")
    assert read_problem(Source("out", out.encode())).solve().score == 9.0
    told = json.loads(said(capsys, "convert", "week.uai", "w.wcsp", "--json", "--decimals", "2"))
    assert told == {"output": "w.wcsp", "format": "wcsp", "offset": told["offset"], "scale": 100.0}
    assert said(capsys, "explore", "week.json", "-o", "-").startswith("<!doctype html>")
    assert json.loads(said(capsys, "explore", "week.json", "--json")) == {"output": "week.html"}
