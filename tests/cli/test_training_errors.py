"""Errors of training on the command line, and probabilities."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from command_line import COLUMNS, run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.learning import TAGGING, SequenceSVM, WindowFeatures, load


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("train tag nowhere.txt -o m.npz", Exit.USAGE, "nowhere.txt: No such file"),
        ("train tag empty.txt -o m.npz", Exit.MALFORMED, "there are no sentences in empty.txt"),
        ("train parse empty.txt -o m.npz", Exit.MALFORMED, "there are no trees in empty.txt"),
        ("train tag train.txt -o m.npz --column 9", Exit.MALFORMED,
         "line 3 of train.txt: the label should be in column 9, but there are 3 columns: 'the "),
        ("train chunk train.txt -o m.npz --column 2 --loss chunk-f1", Exit.MALFORMED,
         "line 3 of train.txt: 'DT' in column 2 is not a chunk label, such as B-NP, I-NP or O; set"),
        ("train chunk train.txt -o m.npz --test tags.txt", Exit.MALFORMED,
         "line 1 of tags.txt: 'DT' in the last column is not a chunk label"),
        ("chunk chunker.npz tags.txt --score", Exit.MALFORMED,
         "line 1 of tags.txt: 'DT' in the last column is not a chunk label"),
        ("train tag train.txt -o m.npz --column x", Exit.USAGE, "--column takes a number from 1"),
        ("train tag train.txt -o m.npz --beta 2 --loss f2", Exit.USAGE,
         "--beta has no effect except with --loss f1 and chunk-f1"),
        ("train tag train.txt -o m.npz --loss f1 --beta 1e7", Exit.MALFORMED,
         "beta must be a number from 1e-06 to 1e+06, got 10000000.0\n"),
        ("train chunk train.txt -o m.npz --loss f1 --background Q", Exit.MALFORMED,
         "is not one of the labels, which are B-NP, B-VP, I-NP, O; set it with --background\n"),
        ("train parse train.mrg -o p.npz --loss chunk-f2", Exit.USAGE, "chunk-f2 does not work for parse"),
        ("train tag nowhere.txt -o no/m.npz", Exit.USAGE, "tallytree: no/m.npz: No such file"),
        ("train tag nowhere.txt -o .", Exit.USAGE, "tallytree: .: Is a directory"),
        ("parse g.json train.mrg -o no/trees", Exit.USAGE, "tallytree: no/trees: No such file"),
        ("train tag train.mrg -o m.npz", Exit.MALFORMED, "line 2 of train.mrg has"),
        ("tag chunker.npz train.txt", Exit.MALFORMED, "was trained to chunk; use `tallytree chunk`"),
        ("tag plain.npz train.txt", Exit.MALFORMED,
         "is not a tagger or chunker: train one with `tallytree train`, or in Python as SequenceSVM"),
        ("tag train.txt train.txt", Exit.MALFORMED, "is not a tallytree estimator"),
        ("chunk chunker.npz train.mrg --format text", Exit.MALFORMED, "which raw text does not have"),
        ("chunk chunker.npz one.txt", Exit.MALFORMED,
         "line 1 of one.txt: the tag should be in column 2, but there is one column: 'word'"),
        ("chunk chunker.npz train.txt --where n>=1", Exit.MALFORMED,
         "--where uses 'n', which is not a label or a count; the names are B-NP, B-VP, "),
        ("chunk chunker.npz train.txt --count np=B-NP --where npp>=1", Exit.MALFORMED, "did you mean 'np'?"),
        ("chunk chunker.npz train.txt --where n=>1", Exit.MALFORMED,
         "--where: \"n=>1\", character 2: '=>' has no meaning in a formula; write >="),
        ("chunk chunker.npz train.txt --where B-NP>=1", Exit.MALFORMED,
         "not a label or a count. In a formula, - means minus; quote the name B-NP: 'B-NP'"),
        ("chunk chunker.npz train.txt --count n=B-NP --where n-m>=1", Exit.MALFORMED, "--where uses 'm'"),
        ("chunk chunker.npz train.txt --count n=B-PN", Exit.MALFORMED, "'B-PN'; did you mean 'B-NP'?"),
        ("chunk chunker.npz train.txt --count n=O --where n", Exit.MALFORMED, "--where takes a condition"),
        ("chunk chunker.npz train.txt --count n=O --where n>=5", Exit.INFEASIBLE, "(the cat sat): no label"),
        ("chunk chunker.npz train.txt --count \"'`=O", Exit.MALFORMED, "is not a valid name in a formula"),
        ("chunk chunker.npz train.txt -k 2 --decode expected-f", Exit.USAGE, "remove --decode"),
        ("parse train.txt train.txt", Exit.MALFORMED, "train.txt, line 1, column 1"),
        ("parse chunker.npz train.txt", Exit.MALFORMED, "chunker.npz holds a SequenceSVM, not a parser"),
        ("train parse train.mrg -o p.npz --loss hamming", Exit.USAGE,
         "--loss hamming does not work for parse"),
        ("train tag train.txt -o p.npz --loss crossing-brackets", Exit.USAGE,
         "does not work for tag; use"),
        ("parse g.json one.txt --score --format text", Exit.MALFORMED, "--score compares with trees"),
        ("parse g.json train.mrg -k 2 --decode max-bracket", Exit.USAGE,
         "max-bracket predicts a single tree"),
        ("parse g.json train.mrg --penalty 0", Exit.USAGE, "--penalty has no effect except"),
        ("parse g.json empty.txt --score", Exit.MALFORMED, "there are no trees in empty.txt"),
        ("parse g.json train.mrg --count n=Np", Exit.MALFORMED,
         "--count n: unknown label 'Np'; did you mean 'NP'? The labels are NP, PP, S, VP, *"),
        ("parse g.json train.mrg --count n=NP --count n=VP", Exit.USAGE, "--count sets 'n' twice"),
        ("parse g.json latin.txt", Exit.MALFORMED, "latin.txt is not UTF-8 text: line 3 has the byte 0xe9"),
        ("parse g.json latin.txt --score", Exit.MALFORMED, "line 3 has the byte 0xe9"),
        ("chunk chunker.npz empty.txt --score", Exit.MALFORMED, "no sentences in empty.txt, so nothing can"),
        ("chunk chunker.npz train.txt --background O", Exit.USAGE, "--background has no effect except"),
        ("chunk chunker.npz train.txt --scale 2", Exit.USAGE,
         "no effect except with --decode expected-f"),
        ("chunk chunker.npz train.txt --count n=Q", Exit.MALFORMED,
         "--count n: unknown label 'Q'. The labels are B-NP, B-VP, I-NP, O"),
        ("chunk chunker.npz latin.txt", Exit.MALFORMED, "is not UTF-8 text: line 3 has the byte 0xe9"),
        ("train chunk train.txt -o m.npz --background O", Exit.USAGE,
         "except with --loss f1 and iou of tag"),
        ("train parse train.mrg -o m.npz --loss f1 --background O", Exit.USAGE,
         "--background has no effect"),
        ("train chunk train.txt -o m.npz --beta 2", Exit.USAGE,
         "no effect except with --loss f1 and chunk-f1"),
        ("train chunk train.txt -o m.npz --seed 1 --solver cutting-planes", Exit.USAGE,
         "--seed has no effect"),
        ("train chunk train.txt -o m.npz --vertical 1", Exit.USAGE, "--vertical has no effect except"),
        ("train parse train.mrg -o g.json --column 2", Exit.USAGE,
         "--column has no effect except for tag"),
        ("train parse train.mrg -o g.json --C 1", Exit.USAGE, "--C has no effect if rules are only"),
        ("train chunk train.txt -o m.npz --test empty.txt", Exit.MALFORMED, "no sentences in empty.txt"),
        ("train tag train.txt -o train.txt", Exit.USAGE, "train.txt would be overwritten, but it is"),
        ("train parse train.mrg -o train.mrg", Exit.USAGE, "train.mrg would be overwritten"),
        ("chunk chunker.npz train.txt -o ./chunker.npz", Exit.USAGE, "chunker.npz would be overwritten"),
        ("train tag train.txt -o m.npz --hashed 9 --min-count 2", Exit.USAGE,
         "--min-count has no effect with --hashed; remove it"),
        ("chunk chunker.npz train.txt --score -k 2", Exit.USAGE,
         "-k has no effect with --score; remove it, or use -o"),
        ("chunk chunker.npz train.txt --score --marginals", Exit.USAGE,
         "--marginals has no effect with --score; remove it, or use -o"),
        ("chunk chunker.npz train.txt -o train.txt", Exit.USAGE, "train.txt would be overwritten"),
        ("chunk chunker.npz train.txt --decode expected-f", Exit.MALFORMED,
         "chunker.npz gives scores, not probabilities; train it with --objective to use --decode expected-f"),
        ("parse g.json train.mrg -o g.json", Exit.USAGE, "g.json would be overwritten"),
        ("chunk chunker.npz odd.txt --score", Exit.MALFORMED, "of odd.txt: 'X-NP' in the last column is"),
        ("train parse train.mrg -o g.json --test empty.txt", Exit.MALFORMED, "no trees in empty.txt"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(corpora, capsys, arguments, code, message):
    Path("empty.txt").write_text("\n")
    Path("one.txt").write_text("word\n")
    Path("tags.txt").write_text("the DT\ncat NN\n")
    Path("odd.txt").write_text("the DT B-NP\ncat NN X-NP\n")
    Path("latin.txt").write_bytes(b"a DT O\r\nb DT O\r\ncaf\xe9 NN O\r\n")
    if "chunker.npz" in arguments:
        run("train", "chunk", "train.txt", "-o", "chunker.npz", "--quiet", "--tolerance", "0.5")
    if "plain.npz" in arguments:
        tt.learning.save(SequenceSVM(C=1.0).fit([[["a"], ["b"]]], [["x", "y"]]), "plain.npz")
    if "g.json" in arguments:
        run("train", "parse", "train.mrg", "-o", "g.json")
    capsys.readouterr()
    assert run(*arguments.split()) == code
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("--hashed=0", "--hashed: expected a positive integer, got '0'"),
        ("--passes=0", "--passes: expected a positive integer, got '0'"),
        ("--jobs=0", "--jobs: expected a positive integer, got '0'"),
        (
            "--loss=chunk_f1",
            "--loss: unknown loss 'chunk_f1'; did you mean 'chunk-f1'? The names are accuracy",
        ),
        ("--loss=f0", "--loss: beta must be a number from 1e-06 to 1e+06, got 0.0\n"),
    ],
)
def test_values_of_options_are_checked_by_their_names(corpora, capsys, option, message):
    with pytest.raises(SystemExit) as stopped:
        run("train", "tag", "train.txt", "-o", "m.npz", option)
    told = capsys.readouterr().err
    assert stopped.value.code == Exit.USAGE and message in told and "tallytree.losses" not in told


@pytest.mark.parametrize(
    ("task", "name", "loss"),
    [
        ("chunk", "chunk-f2", tt.losses.ChunkFBeta(beta=2.0)),
        ("chunk", "f0.5", tt.losses.FBeta(beta=0.5, background="O")),
        ("tag", "accuracy", tt.losses.HammingDistance()),
        ("parse", "f2", tt.losses.FBeta(beta=2.0)),
    ],
)
def test_losses_have_the_same_names_as_in_python(corpora, task, name, loss):
    data = "train.mrg" if task == "parse" else "train.txt"
    assert run("train", task, data, "-o", "m.npz", "--loss", name, "--tolerance=0.9", "--quiet") == Exit.OK
    assert load("m.npz").loss == loss


def test_files_may_stand_behind_options(corpora, capsys):
    run("train", "parse", "-o", "g.json", "train.mrg")
    capsys.readouterr()
    before = said(capsys, "parse", "g.json", "train.mrg", "--score", "--format", "trees")
    assert said(capsys, "parse", "g.json", "--score", "train.mrg", "--format", "trees") == before
    assert said(capsys, "parse", "--score", "--format", "trees", "g.json", "train.mrg") == before


@pytest.mark.parametrize(("command", "column"), [("chunk", 2), ("tag", 1)])
def test_models_saved_in_python_are_read(corpora, capsys, command, column):
    sentences = tt.io.read_conll("train.txt")
    y = [[row[column] for row in sentence] for sentence in sentences]
    features = WindowFeatures() if command == "chunk" else WindowFeatures(TAGGING, parts=True)
    tt.learning.save(SequenceSVM(features=features).fit(sentences, y), "own.npz")
    assert "accuracy   1.0000" in said(capsys, command, "own.npz", "train.txt", "--score")
    wide = WindowFeatures([((2, 0),)])
    tt.learning.save(SequenceSVM(features=wide).fit(sentences, y), "own.npz")
    assert run(command, "own.npz", "train.txt") == Exit.MALFORMED
    assert "the features of own.npz read 3 columns" in capsys.readouterr().err


def test_labels_may_be_quoted_as_in_formulas(corpora, capsys):
    run("train", "chunk", "train.txt", "-o", "chunker.npz", "--quiet", "--tolerance", "0.5")
    capsys.readouterr()
    plain = said(capsys, "chunk", "chunker.npz", "train.txt", "--count", "n=B-NP,I-NP", "--where", "n <= 1")
    quoted = ("--count", "n='B-NP', \"I-NP\"", "--where", "n <= 1")
    assert said(capsys, "chunk", "chunker.npz", "train.txt", *quoted) == plain


@pytest.mark.parametrize("command", ["chunk", "parse"])
def test_no_labelling_is_no_answer(corpora, capsys, command):
    with pytest.raises(SystemExit) as stopped:
        run(command, "model", "-k", "0")
    assert stopped.value.code == Exit.USAGE
    assert "expected a positive integer, got '0'" in capsys.readouterr().err


def test_learning_is_named_where_it_is_missing(corpora, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tallytree.learning", None)
    assert run("train", "tag", "train.txt", "-o", "m.npz") == Exit.FAILURE
    assert "tallytree.learning" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["chunk", "parse"])
def test_a_test_file_that_is_not_there_is_told_of_before_training(corpora, capsys, task):
    data = {"chunk": "columns.txt", "parse": "trees.mrg"}[task]
    Path(data).write_text(COLUMNS if task == "chunk" else "(S (N a) (V b))")
    assert run("train", task, data, "-o", "new.npz", "--test", "nowhere.txt") == Exit.USAGE
    assert "nowhere.txt: No such file" in capsys.readouterr().err
    assert not Path("new.npz").exists()


def test_probabilities_on_the_command_line(corpora, capsys):
    assert (
        run("train", "chunk", "train.txt", "-o", "crf.npz", "--objective", "likelihood", "--c2", "0.1") == 0
    )
    crf = load("crf.npz")
    assert type(crf).__name__ == "SequenceCRF" and crf.c2 == 0.1
    capsys.readouterr()
    assert run("chunk", "crf.npz", "train.txt", "--maximise", "chunk-f2", "--marginals", "--json") == 0
    told = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert told["labels"] == ["B-NP", "I-NP", "B-VP", "O"]
    assert all(0.0 < probability <= 1.0 for probability in told["probabilities"])
    assert run("chunk", "crf.npz", "train.txt", "--marginals", "--maximise", "accuracy") == 0
    first = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("the"))
    assert first.split()[:4] == ["the", "DT", "B-NP", "B-NP"] and 0.0 < float(first.split()[4]) <= 1.0


def test_scores_are_not_taken_for_probabilities(corpora, capsys):
    assert run("train", "chunk", "train.txt", "-o", "svm.npz", "--passes", "1", "--quiet") == Exit.OK
    for options in (("--maximise", "chunk-f1"), ("--marginals",)):
        capsys.readouterr()
        assert run("chunk", "svm.npz", "train.txt", *options) == Exit.MALFORMED
        assert f"gives scores, not probabilities; train it with --objective to use {options[0]}" in (
            capsys.readouterr().err
        )
    assert run("chunk", "svm.npz", "train.txt", "--maximise", "chunk-f1", "--scale", "10") == Exit.OK


@pytest.mark.parametrize("objective", ["softmax-margin", "risk"])
def test_losses_of_probabilities_on_the_command_line(corpora, objective):
    options = ("--objective", objective, "--loss", "chunk-f1", "--beta", "2", "--c1", "0.01", "--c2", "0")
    assert run("train", "chunk", "train.txt", "-o", "crf.npz", "--tolerance", "0.2", *options) == 0
    crf = load("crf.npz")
    assert crf.objective == objective and crf.loss == tt.losses.ChunkFBeta(beta=2.0) and crf.c2 == 0.0


def test_grammars_with_probabilities(corpora):
    assert run("train", "parse", "train.mrg", "-o", "crf.npz", "--objective", "likelihood") == 0
    assert type(load("crf.npz")).__name__ == "TreeCRF"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--c2", "1"], "--c2 has no effect without --objective; add --objective likelihood"),
        (["--objective", "risk", "--C", "1"], "--C has no effect with --objective"),
        (["--objective", "likelihood", "--loss", "f1"], "--loss has no effect with --objective likelihood"),
    ],
)
def test_options_that_do_not_go_together(corpora, arguments, text, capsys):
    assert run("train", "chunk", "train.txt", "-o", "x.npz", *arguments) == Exit.USAGE
    assert text in capsys.readouterr().err


def test_probabilities_of_margins_are_refused(corpora, capsys):
    assert run("train", "chunk", "train.txt", "-o", "svm.npz") == 0
    assert run("chunk", "svm.npz", "train.txt", "--marginals") == Exit.MALFORMED
    assert "train it with --objective" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("chunk", "svm.npz", "train.txt", "--maximise", "g2")
    assert "expected accuracy, f1" in capsys.readouterr().err
    for metric in ("f", "f0", "fnan", "f-1", "f1e3", "f 2", "chunk-f", "chunk-f+2", "f9999999"):
        with pytest.raises(SystemExit) as stopped:
            run("chunk", "svm.npz", "train.txt", f"--maximise={metric}")
        assert stopped.value.code == Exit.USAGE
        text = f"expected a number from 1e-6 to 1e6 after f, as in f0.5, got '{metric}'"
        assert text in capsys.readouterr().err


@pytest.mark.parametrize("reader", ["full", "gone"])
def test_progress_that_cannot_be_written_does_not_end_a_training(corpora, reader):
    command = [sys.executable, "-m", "tallytree", "train", "chunk", "train.txt", "-o", "m.npz"]
    with open("/dev/full", "w") as full:
        stream = full if reader == "full" else subprocess.PIPE
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=stream, text=True)
    if process.stderr is not None:
        process.stderr.close()
    assert process.stdout.read().startswith("sentences ")
    process.stdout.close()
    assert process.wait() == 0
    assert load("m.npz").converged_
