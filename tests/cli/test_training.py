"""Training on the command line, and using the models: train, tag, chunk, parse."""

import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from command_line import COLUMNS, conllu, run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.io import read_conll, read_conllu
from tallytree.learning import FrankWolfe, load
from tallytree.parsing import Forest, Grammar, parse_tree, read_grammar, read_treebank


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


# --- tag and chunk ------------------------------------------------------------------------------------------


def test_a_loss_on_chunks_takes_the_scheme_of_the_labels(corpora, capsys):
    Path("es.txt").write_text("the DT B-NP\nold JJ I-NP\ncat NN E-NP\n\ndogs NNS S-NP\nrun VB O\n")
    training = ("train", "chunk", "es.txt", "--quiet", "--json", "--test", "es.txt")
    margin = ("--loss", "chunk-f1", "--scaling", "slack", "--C", 10, "-o", "m.npz")
    assert json.loads(said(capsys, *training, *margin))["test"]["f1"] == 1.0
    assert load("m.npz").loss.scheme == "BIOES"
    said(capsys, *training, "--objective", "likelihood", "--c2", 0.01, "-o", "crf.npz")
    found = said(capsys, "chunk", "crf.npz", "es.txt", "--maximise", "chunk-f1")
    assert [line.split()[-1] for line in found.splitlines() if line] == ["B-NP", "I-NP", "E-NP", "S-NP", "O"]


def test_labels_in_a_constraint_stand_for_their_counts(corpora, capsys):
    said(capsys, "train", "chunk", "train.txt", "-o", "m.npz", "--C", 10, "--quiet")
    by_label = said(capsys, "chunk", "m.npz", "train.txt", "--where", "'B-NP' == 2")
    assert by_label == said(capsys, "chunk", "m.npz", "train.txt", "--count", "n=B-NP", "--where", "n == 2")
    assert by_label.count("B-NP") == 2 * 2 + 2  # two in each sentence, besides those of the file
    said(capsys, "train", "parse", "train.mrg", "-o", "g.json")
    by_label = said(capsys, "parse", "g.json", "train.mrg", "--where", "PP >= 1 or NP <= 2")
    counted = ("--count", "p=PP", "--count", "n=NP", "--where", "p >= 1 or n <= 2")
    assert by_label == said(capsys, "parse", "g.json", "train.mrg", *counted)


def test_a_chunker_from_columns(corpora, capsys):
    told = json.loads(
        said(
            capsys,
            "train",
            "chunk",
            "train.txt",
            "-o",
            "m.npz",
            "--C",
            10,
            "--loss",
            "chunk-f1",
            "--scaling",
            "slack",
            "--json",
            "--test",
            "train.txt",
        )
    )
    assert told["converged"]
    assert told["labels"] == 4
    assert told["test"] == {
        "sentences": 2,
        "words": 7,
        "accuracy": 1.0,
        "precision": 1.0,
        "recall": 1.0,
        "f1": 1.0,
    }
    svm = load("m.npz")
    assert svm.loss == tt.losses.ChunkFBeta()
    assert (svm.scaling, svm.C) == ("slack", 10.0)
    assert svm.notes_ == {
        "name": "chunk",
        "reads": ["word", "tag"],
        "format": "columns",
        "column": -1,
        "columns": 3,
    }
    out = said(capsys, "chunk", "m.npz", "train.txt")
    assert out.splitlines()[:3] == ["-DOCSTART- -X- O", "", "the DT B-NP B-NP"]
    read = read_conll(io.StringIO(out))
    assert [row[:3] for sentence in read for row in sentence] == [
        row for sentence in read_conll("train.txt") for row in sentence
    ]
    X = [[row[:2] for row in sentence] for sentence in read]
    assert [[row[3] for row in sentence] for sentence in read] == [one.tolist() for one in svm.predict(X)]
    assert "f1         1.0000" in said(capsys, "chunk", "m.npz", "train.txt", "--score")


def test_constraints_and_other_decoders(corpora, capsys):
    run("train", "chunk", "train.txt", "-o", "m.npz", "--quiet")
    svm = load("m.npz")
    X = [
        [("the", "DT"), ("cat", "NN"), ("sat", "VB")],
        [("a", "DT"), ("dog", "NN"), ("ran", "VB"), ("fast", "RB")],
    ]

    def labels(*options: str) -> list[list[str]]:
        lines = said(capsys, "chunk", "m.npz", "train.txt", "--json", *options).splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    capsys.readouterr()
    counted = [one.tolist() for one in svm.predict(X, where=tt.count(state="B-NP", name="n") == 2)]
    found = labels("--count", "n=B-NP", "--where", "n <= 2", "--where", "n >= 2")
    assert [one["labels"] for one in found] == counted
    valid = labels("--valid", "bio", "--count", "n=I-NP", "--where", "n == 2")
    assert all(tt.valid_bio().accepts(one["labels"]) and one["labels"].count("I-NP") == 2 for one in valid)
    best = labels("-k", "3")
    assert [len(one["labellings"]) for one in best] == [3, 3]
    assert best[0]["labellings"][0] == svm.predict(X[:1])[0].tolist()
    assert len(labels("--decode", "expected-f", "--scale", "2")) == 2
    text = said(capsys, "chunk", "m.npz", "train.txt", "-k", "2").splitlines()
    assert len(text[2].split()) == 5


def test_a_tagger_from_conllu_fills_the_column_in(corpora, capsys):
    run("train", "tag", "train.conllu", "-o", "m.npz", "--C", "10", "--quiet")
    capsys.readouterr()
    Path("new.conllu").write_text(conllu("a/_ cat/_ ran/_"))
    out = said(capsys, "tag", "m.npz", "new.conllu")
    assert [token.upos for token in read_conllu(io.StringIO(out))[0]] == ["DET", "NOUN", "VERB"]
    expected = conllu("a/DET cat/NOUN ran/VERB").replace("\tdet\t", "\t_\t")
    expected = expected.replace("\tnoun\t", "\t_\t").replace("\tverb\t", "\t_\t")
    assert out == expected
    scores = json.loads(said(capsys, "tag", "m.npz", "train.conllu", "--score", "--json"))
    assert scores == {"sentences": 2, "words": 6, "accuracy": 1.0}
    run("train", "tag", "train.conllu", "-o", "x.npz", "--column", "xpos", "--quiet")
    assert load("x.npz").classes_.tolist() == ["det", "noun", "verb"]


def test_raw_text_from_standard_input(corpora, capsys, monkeypatch):
    piped(monkeypatch, COLUMNS)
    run("train", "tag", "-", "-o", "m.npz", "--C", "10", "--quiet")
    capsys.readouterr()
    piped(monkeypatch, "the dog sat\n\na cat\n")
    assert (
        said(capsys, "tag", "m.npz", "--format", "text") == "the\tDT\ndog\tNN\nsat\tVB\n\na\tDT\ncat\tNN\n\n"
    )
    piped(monkeypatch, "the dog sat")
    run("tag", "m.npz", "-", "--format", "text", "-o", "out.txt")
    assert capsys.readouterr().out == ""
    assert read_conll("out.txt") == [[("the", "DT"), ("dog", "NN"), ("sat", "VB")]]


def test_words_and_labels_are_enough_for_a_chunker(corpora, capsys):
    Path("two.txt").write_text("the B\ncat I\n\na B\ndog I\n")
    run("train", "chunk", "two.txt", "-o", "m.npz", "--C", "10", "--quiet")
    assert load("m.npz").notes_["reads"] == ["word"]
    capsys.readouterr()
    assert said(capsys, "chunk", "m.npz", "two.txt").startswith("the B B\ncat I I\n")


def test_a_checkpoint_is_taken_up_again(corpora, capsys):
    command = ("train", "chunk", "train.txt", "--checkpoint", "run.npz", "--tolerance", "1e-9", "--json")
    run(*command, "-o", "m.npz", "--passes", "2")
    first = capsys.readouterr()
    assert "training stopped at a relative gap of" in first.err
    assert json.loads(first.out)["passes"] == 2
    run(*command, "-o", "m.npz", "--passes", "5")
    history = load("m.npz").history_
    assert [entry.number for entry in history] == [1, 2, 3, 4, 5]
    assert history[1].seconds == json.loads(first.out)["seconds"]
    assert run(*command, "-o", "m.npz", "--seed", "1") == Exit.MALFORMED
    assert "is from another run: its seed is 0, not 1. Delete the file" in capsys.readouterr().err


@pytest.mark.parametrize("solver", ["cutting-planes", "subgradient"])
def test_other_solvers(corpora, capsys, solver):
    run("train", "chunk", "train.txt", "-o", "m.npz", "--solver", solver, "--passes", "3", "--quiet")
    assert type(load("m.npz").solver).__name__.lower() == solver.replace("-", "")


def test_an_interrupt_keeps_the_best(corpora, capsys, monkeypatch):
    advance = FrankWolfe().start.__globals__["FrankWolfeRun"].advance

    def tired(self, number: int, certify: bool):
        if number == 3:
            raise KeyboardInterrupt
        return advance(self, number, certify)

    monkeypatch.setattr("tallytree.learning.frank_wolfe.FrankWolfeRun.advance", tired)
    assert run("train", "chunk", "train.txt", "-o", "m.npz", "--tolerance", "1e-9") == Exit.INTERRUPTED
    captured = capsys.readouterr()
    assert "training was interrupted" in captured.err
    assert "pass 2: loss" in captured.err
    assert "passes       2" in captured.out
    assert "interrupted  True" in captured.out
    assert load("m.npz").interrupted_


def test_an_interrupt_in_the_first_pass_keeps_the_file_that_is_there(corpora, capsys, monkeypatch):
    Path("m.npz").write_bytes(b"an earlier model")

    def tired(self, number: int, certify: bool):
        raise KeyboardInterrupt

    monkeypatch.setattr("tallytree.learning.frank_wolfe.FrankWolfeRun.advance", tired)
    assert run("train", "chunk", "train.txt", "-o", "m.npz") == Exit.INTERRUPTED
    assert "interrupted" in capsys.readouterr().err
    assert Path("m.npz").read_bytes() == b"an earlier model"


def test_an_interrupt_from_the_keyboard(corpora):
    Path("many.txt").write_text(COLUMNS * 20)
    command = [sys.executable, "-m", "tallytree", "train", "chunk", "many.txt", "-o", "m.npz"]
    process = subprocess.Popen(
        [*command, "--tolerance", "1e-12", "--passes", "1000000"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # ignored where tests run behind
    )
    assert "pass 1" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == Exit.INTERRUPTED
    assert "interrupted  True" in out
    assert load("m.npz").interrupted_


# --- parse --------------------------------------------------------------------------------------------------


def test_a_grammar_from_a_treebank(corpora, capsys, monkeypatch):
    out = said(
        capsys, "train", "parse", "train.mrg", "-o", "g.json", "--vertical", "1", "--test", "train.mrg"
    )
    assert "trees         4" in out
    assert "f1              1.0000" in out
    trees = read_treebank("train.mrg")
    grammar = Grammar.from_treebank(trees, vertical=1)
    assert read_grammar("g.json").symbols == grammar.symbols
    Path("words.txt").write_text("the dog sat\n")
    best = Forest(grammar, "the dog sat").best().tree
    assert said(capsys, "parse", "g.json", "words.txt") == f"{best}\n"
    piped(monkeypatch, "the dog sat")
    assert said(capsys, "parse", "g.json", "--pretty") == f"{best.pretty()}\n\n"
    scores = json.loads(said(capsys, "parse", "g.json", "train.mrg", "--score", "--json"))
    assert scores["f1"] == scores["exact"] == 1.0


def test_trees_with_constraints_and_other_decoders(corpora, capsys):
    run("train", "parse", "train.mrg", "-o", "g.json", "--horizontal", "0", "--vertical", "1")
    grammar = read_grammar("g.json")
    Path("words.txt").write_text("a cat saw the dog with fish\n")
    forest = Forest(grammar, "a cat saw the dog with fish")
    capsys.readouterr()
    count = tt.parsing.count("NP", name="n")
    wanted = tt.parsing.solve(forest, where=count == 4)
    told = json.loads(
        said(capsys, "parse", "g.json", "words.txt", "--count", "n=NP", "--where", "n == 4", "--json")
    )
    assert told["score"] == wanted.score
    assert told["tally"] == {"n": 4}
    several = json.loads(said(capsys, "parse", "g.json", "words.txt", "-k", "3", "--json"))["trees"]
    assert [one["score"] for one in several] == [one.score for one in tt.parsing.k_best(forest, 3)]
    assert len(several) == 2
    best = said(capsys, "parse", "g.json", "words.txt", "--decode", "max-bracket", "--penalty", "0.2")
    assert best == f"{forest.max_bracket(0.2).tree}\n"
    sized = json.loads(said(capsys, "parse", "g.json", "words.txt", "--count", "size=*", "--json"))
    assert sized["tally"] == {"size": parse_tree(sized["tree"]).constituents().total()}


def test_a_parser_is_learned_for_a_loss(corpora, capsys):
    told = json.loads(
        said(
            capsys, "train", "parse", "train.mrg", "-o", "p.npz", "--loss", "f1", "--scaling", "slack",
            "--C", "1", "--vertical", "2", "--tolerance", "0.3", "--json", "--test", "train.mrg",
        )
    )  # fmt: skip
    assert told["converged"]
    svm = load("p.npz")
    assert (svm.loss, svm.scaling, svm.vertical) == (tt.losses.FBeta(), "slack", 2)
    trees = read_treebank("train.mrg")
    assert told["test"]["f1"] == svm.score([tree.words for tree in trees], trees)
    Path("words.txt").write_text("the dog saw fish\n")
    assert said(capsys, "parse", "p.npz", "words.txt") == f"{svm.predict(['the dog saw fish'])[0]}\n"
    wanted = tt.parsing.solve(svm.forest("the dog saw fish"), where=tt.parsing.count("NP") == 2)
    out = said(capsys, "parse", "p.npz", "words.txt", "--count", "n=NP", "--where", "n == 2", "--json")
    assert json.loads(out)["score"] == wanted.score


@pytest.mark.parametrize("task", ["tag", "chunk"])
def test_labellers_look_at_the_parts_of_words(corpora, task):
    assert run("train", task, "train.txt", "-o", "m.npz", "--quiet", "--tolerance", "0.9") == Exit.OK
    names = load("m.npz").encoder_.names
    assert {"lower=the", "starts=c", "ends=at", "shape=x"} <= set(names)
    assert any(name.startswith("1[0]=") for name in names) == (task == "chunk")
