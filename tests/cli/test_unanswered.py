"""Sentences that cannot satisfy a constraint, and labels of another task: tag, chunk, parse, train."""

import json
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from command_line import run, said

from tallytree.cli.exits import Exit
from tallytree.statistics.formulas import quoted_name


def test_sentences_without_a_tree_are_named(corpora, capsys):
    run("train", "parse", "train.mrg", "-o", "g.json")
    Path("words.txt").write_text("the cat sat\nsat\nthe dog sat\n")
    capsys.readouterr()
    assert run("parse", "g.json", "words.txt", "--count", "n=VP", "--where", "n == 9") == Exit.INFEASIBLE
    captured = capsys.readouterr()
    assert captured.out == "\n\n\n"
    assert "sentence 2 (sat): no tree that satisfies the constraint\n" in captured.err
    assert captured.err.endswith("tallytree: 3 of 3 sentences have no tree that satisfies the constraint\n")


@pytest.mark.parametrize("task", ["tag", "chunk"])
def test_sentences_without_a_labelling_are_named_and_the_others_labelled(corpora, capsys, task):
    run("train", task, "train.txt", "-o", "m.npz", "--quiet", "--tolerance", "0.9")
    sentences = ["the DT B-NP\ncat NN I-NP\nsat VB B-VP\n", "dog NN B-NP\n", "a DT B-NP\ndog NN I-NP\n"]
    Path("some.txt").write_text("\n".join(sentences))
    label = {"tag": "NN", "chunk": "I-NP"}[task]
    two = [task, "m.npz", "some.txt", "--where", f"'{label}' == 2"]
    capsys.readouterr()
    assert run(*two, "-o", "out.txt") == Exit.INFEASIBLE
    captured = capsys.readouterr()
    assert f"tallytree: sentence 2 (dog): no labelling satisfies '{quoted_name(label)} == 2'" in captured.err
    assert captured.err.endswith("1 of 3 sentences has no labelling that satisfies the constraint\n")
    first, second, third = Path("out.txt").read_text().strip().split("\n\n")
    assert second == "dog NN B-NP _"
    assert all(part.split().count(label) - 1 <= 2 and "_" not in part for part in (first, third))
    assert run(*two, "--json") == Exit.INFEASIBLE
    first, second, third = map(json.loads, capsys.readouterr().out.splitlines())
    assert second == {"words": ["dog"], "labels": None}
    assert first["labels"].count(label) == third["labels"].count(label) == 2
    assert run(*two, "-k", "2", "--json") == Exit.INFEASIBLE
    assert json.loads(capsys.readouterr().out.splitlines()[1]) == {"words": ["dog"], "labellings": []}
    told = json.loads(said(capsys, *two, "--score", "--json"))
    assert (told["sentences"], told["without a labelling"], told["words"]) == (3, 1, 6)
    assert told["accuracy"] < 1.0


@pytest.mark.parametrize("task", ["tag", "chunk"])
@pytest.mark.parametrize("text", ["0 >= 1", "1 >= 0", "X - X == 0"])
def test_constraints_that_compare_numbers_only(corpora, capsys, task, text):
    run("train", task, "train.txt", "-o", "m.npz", "--quiet", "--tolerance", "0.9")
    text = text.replace("X", {"tag": "NN", "chunk": "'I-NP'"}[task])
    capsys.readouterr()
    plain = said(capsys, task, "m.npz", "train.txt")
    code = run(task, "m.npz", "train.txt", "--where", text)
    out = capsys.readouterr().out
    assert (code, out == plain) == ((Exit.INFEASIBLE, False) if text == "0 >= 1" else (Exit.OK, True))


@pytest.mark.parametrize("loss", ["hamming", "chunk-f1", "f1"])
def test_a_chunker_is_not_trained_on_tags(corpora, capsys, loss):
    Path("tags.txt").write_text("the DT\ncat NN\n")
    code = run("train", "chunk", "tags.txt", "-o", "m.npz", "--loss", loss, "--quiet")
    assert code == Exit.MALFORMED and not Path("m.npz").exists()
    assert (
        "line 1 of tags.txt: 'DT' in the last column is not a chunk label, such as B-NP"
        in capsys.readouterr().err
    )


def test_counts_that_nothing_uses_are_refused(corpora, capsys):
    run("train", "parse", "train.mrg", "-o", "g.json")
    run("train", "chunk", "train.txt", "-o", "m.npz", "--quiet", "--tolerance", "0.9")
    Path("words.txt").write_text("the cat sat\n")
    for command, count in (("chunk m.npz train.txt", "np=B-NP"), ("parse g.json words.txt", "n=NP")):
        name = count.split("=")[0]
        capsys.readouterr()
        assert run(*command.split(), "--count", count) == Exit.USAGE
        message = f"--count {name} has no effect; use it in --where, or remove it"
        assert message in capsys.readouterr().err
    assert json.loads(said(capsys, "parse", "g.json", "words.txt", "--count", "n=NP", "--json"))["tally"]["n"]


def test_expectations_refuse_constraints_by_name(corpora, capsys):
    run(
        "train",
        "chunk",
        "train.txt",
        "-o",
        "m.npz",
        "--quiet",
        "--tolerance",
        "0.9",
        "--objective",
        "likelihood",
    )
    for options, message in (
        (
            "--maximise chunk-f1 --valid bio",
            "--maximise does not support constraints; remove --valid, or --max",
        ),
        (
            "--decode expected-f --where O>=1",
            "--decode expected-f does not support constraints; remove --where",
        ),
    ):
        capsys.readouterr()
        assert run("chunk", "m.npz", "train.txt", *options.split()) == Exit.USAGE
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "meant"), [("--max-iterations", "--passes"), ("--iterations", "--passes"), ("--c", "--C")]
)
def test_options_of_other_programs_are_suggested(corpora, capsys, option, meant):
    with pytest.raises(SystemExit):
        run("train", "chunk", "train.txt", "-o", "m.npz", option, "1")
    assert f"did you mean {meant}?" in capsys.readouterr().err
