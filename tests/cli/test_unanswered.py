"""Sentences that cannot satisfy a constraint, and columns or labels of another file."""

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


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("chunk m.npz raw.txt",
         "line 1 of raw.txt: there are 4 columns, but the model was trained on 3 (with the labels): "
         "'the cat sat .'; write one word and its tag per line"),
        ("tag t.npz raw.txt",
         "3 (with the labels): 'the cat sat .'; write one word per line, or use --format text for one sen"),
        ("train chunk train.txt -o n.npz --test raw.txt",
         "line 1 of raw.txt: '.' in the last column is not a chunk label, such as B-NP, I-NP or O; "
         "this is the file of --test, whose labels must be in the same column as in the training data"),
        ("train chunk tags.txt -o n.npz", "NP or O; set the column of the labels with --column\n"),
        ("chunk m.npz tags.txt --score",
         "I-NP or O; --score needs the labels in the column that the model was trained on\n"),
        ("train chunk one.txt -o n.npz",
         "'the,DT,B-NP' in the last column is not a chunk label, such as B-NP, I-NP or O; "
         "there is only one column; columns are separated by spaces or tabs\n"),
        ("train tag one.txt -o n.npz",
         "in column 2, but there is one column: 'the,DT,B-NP'; columns are separated by spaces or tabs\n"),
    ],
)  # fmt: skip
def test_columns_of_another_file_are_refused(corpora, capsys, arguments, message):
    Path("raw.txt").write_text("the cat sat .\n\na dog ran off\n")
    Path("tags.txt").write_text("the DT\ncat NN\n")
    Path("one.txt").write_text("the,DT,B-NP\ncat,NN,I-NP\n")
    for task, model in (("chunk", "m.npz"), ("tag", "t.npz")):
        if model in arguments:
            said(capsys, "train", task, "train.txt", "-o", model, "--quiet", "--tolerance", "0.9")
    assert run(*arguments.split()) == Exit.MALFORMED
    captured = capsys.readouterr()
    assert message in captured.err and captured.out == ""


def test_labels_that_a_model_does_not_know_are_named(corpora, capsys):
    said(capsys, "train", "chunk", "train.txt", "-o", "m.npz", "--quiet", "--tolerance", "0.9")
    Path("other.txt").write_text("the DT B-PER\ncat NN B-ORG\nsat VB O\n")
    note = "the model does not know 2 of the 3 labels in other.txt: B-PER, B-ORG; its labels are B-NP, B-VP, "
    assert run("chunk", "m.npz", "other.txt", "--score") == Exit.OK
    assert note in capsys.readouterr().err
    assert run("train", "chunk", "train.txt", "-o", "n.npz", "--quiet", "--test", "other.txt") == Exit.OK
    assert note in capsys.readouterr().err
    assert run("chunk", "m.npz", "train.txt", "--score") == Exit.OK
    assert capsys.readouterr().err == ""
