"""Commands that write files: convert, explore."""

import bz2
import gzip
import json
from io import BytesIO
from pathlib import Path

import numpy as np
import pytest
from command_line import run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.io import ProblemFile, Source, read_cfn, read_problem, write_cfn, write_uai
from tallytree.io.files import read_stream


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
        assert (f"cannot store statistics; omitted: {lost}\n" in told) if lost else ("omitted" not in told)


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


@pytest.mark.parametrize("kind", ["json", "uai", "wcsp", "cfn"])
def test_compressed_output(files, capsys, kind):
    said(capsys, "convert", "week.uai", f"plain.{kind}")
    said(capsys, "convert", "week.uai", f"packed.{kind}.gz")
    packed = Path(f"packed.{kind}.gz").read_bytes()
    assert packed.startswith(b"\x1f\x8b")
    assert gzip.decompress(packed) == Path(f"plain.{kind}").read_bytes()
    said(capsys, "convert", "week.uai", f"again.{kind}.gz")
    assert Path(f"again.{kind}.gz").read_bytes() == packed  # neither its name nor the time is in it
    found = [json.loads(said(capsys, "solve", name, "--json")) for name in ("week.uai", f"packed.{kind}.gz")]
    assert found[0]["assignment"] == found[1]["assignment"]
    assert not list(Path.cwd().glob(".*.tmp"))


@pytest.mark.parametrize(("module", "suffix"), [("lzma", "xz"), ("bz2", "bz2"), ("gzip", "GZ")])
def test_output_compressed_by_others(files, capsys, module, suffix):
    packer = pytest.importorskip(module)
    said(capsys, "convert", "week.uai", "plain.cfn")
    said(capsys, "convert", "week.uai", f"packed.cfn.{suffix}")
    packed = Path(f"packed.cfn.{suffix}").read_bytes()
    assert packed != Path("plain.cfn").read_bytes() == packer.decompress(packed)
    assert said(capsys, "solve", f"packed.cfn.{suffix}") == said(capsys, "solve", "plain.cfn")


def test_text_that_begins_like_a_compressed_file():
    assert read_stream(BytesIO(b"BZh N\n"), "words").data == b"BZh N\n"
    assert read_stream(BytesIO(bz2.compress(b"")), "empty").data == b""


def test_a_failed_conversion_leaves_the_compressed_file_alone(files, capsys):
    Path("out.uai.gz").write_bytes(b"before")
    assert run("convert", "week.json", "out.uai.gz") == Exit.MALFORMED
    assert Path("out.uai.gz").read_bytes() == b"before"


def test_rounded_costs_are_told(files, capsys):
    thirds = tt.Model.chain(np.array([[0, 1 / 3], [0, -2 / 3]]), np.eye(2) / 7)
    write_uai(thirds, "thirds.uai")
    for kind in ("cfn", "wcsp"):
        run("convert", "thirds.uai", f"exact.{kind}", "--json")
        told = capsys.readouterr()
        assert "rounded" not in told.err
        cost = -json.loads(said(capsys, "solve", f"exact.{kind}", "--json"))["score"]
        scale = json.loads(told.out)
        assert scale["offset"] - cost / scale["scale"] == pytest.approx(tt.solve(thirds).score, abs=1e-13)
        run("convert", "thirds.uai", f"rough.{kind}", "--decimals", "2")
        err = capsys.readouterr().err
        assert "tallytree: scores are rounded to 2 decimals, by up to 0.0033 each; the best labelling" in err
    with pytest.warns(UserWarning, match="rounded to 3 decimals, by up to 0.00033 each") as caught:
        write_cfn(ProblemFile(thirds), "rough.cfn", decimals=3)
    assert caught[0].filename == __file__


def test_costs_of_any_size_are_read_back(files):
    tiny = tt.Model.chain(np.array([[0, 1e-12 / 3], [0, -2e-12 / 3]]), np.zeros((2, 2)))
    with pytest.warns(UserWarning, match="rounded to 15 decimals"):
        write_cfn(ProblemFile(tiny), "tiny.cfn")
    large = tt.Model.chain(np.array([[0, 1e9 / 3], [0, -2e9 / 3]]), np.eye(2) / 7)
    scale = write_cfn(ProblemFile(large), "large.cfn")  # as precise as doubles: no warning
    assert scale.score(-read_cfn("large.cfn").solve().score) == pytest.approx(tt.solve(large).score, abs=2e-6)
