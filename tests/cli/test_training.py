"""Training on the command line, and what comes of it: train, tag, chunk, parse."""

import io
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from command_line import run, said

import tallytree as tt
from tallytree.cli.exits import Exit
from tallytree.io import read_conll, read_conllu
from tallytree.learning import FrankWolfe, SequenceSVM, load
from tallytree.parsing import Forest, Grammar, parse_tree, read_grammar, read_treebank, write_treebank

COLUMNS = """-DOCSTART- -X- O

the DT B-NP
cat NN I-NP
sat VB B-VP

a DT B-NP
dog NN I-NP
ran VB B-VP
fast RB O
"""
TREES = [
    "(S (NP (DT the) (NN cat)) (VP (VB sat)))",
    "(S (NP (DT a) (NN dog)) (VP (VB saw) (NP (NN fish)) (PP (IN with) (NP (NN milk)))))",
    "(S (NP (NP (DT a) (NN dog)) (PP (IN with) (NP (NN milk)))) (VP (VB sat)))",
    "(S (NP (NN milk)) (VP (VB saw) (NP (NN fish))))",
]


def conllu(*sentences: str) -> str:
    blocks = []
    for number, sentence in enumerate(sentences, 1):
        rows = [
            [str(i), word, "_", tag, tag.lower(), "_", "0", "_", "_", "_"]
            for i, (word, tag) in enumerate((one.split("/") for one in sentence.split()), 1)
        ]
        rows.insert(1, ["1-2", "x", *"________"])
        lines = "".join("\t".join(row) + "\n" for row in rows)
        blocks.append(f"# sent_id = {number}\n{lines}\n")
    return "".join(blocks)


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(COLUMNS)
    Path("train.conllu").write_text(conllu("the/DET cat/NOUN sat/VERB", "a/DET dog/NOUN ran/VERB"))
    write_treebank("train.mrg", map(parse_tree, TREES))
    return tmp_path


def piped(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


# --- tag and chunk ------------------------------------------------------------------------------------------


def test_a_chunker_from_columns(files, capsys):
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
    assert svm.notes_ == {"name": "chunk", "reads": ["word", "tag"], "format": "columns", "column": -1}
    out = said(capsys, "chunk", "m.npz", "train.txt")
    assert out.splitlines()[:3] == ["-DOCSTART- -X- O", "", "the DT B-NP B-NP"]
    read = read_conll(io.StringIO(out))
    assert [row[:3] for sentence in read for row in sentence] == [
        row for sentence in read_conll("train.txt") for row in sentence
    ]
    X = [[row[:2] for row in sentence] for sentence in read]
    assert [[row[3] for row in sentence] for sentence in read] == [one.tolist() for one in svm.predict(X)]
    assert "f1         1.0000" in said(capsys, "chunk", "m.npz", "train.txt", "--score")


def test_constraints_and_other_decoders(files, capsys):
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


def test_a_tagger_from_conllu_fills_the_column_in(files, capsys):
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


def test_raw_text_from_standard_input(files, capsys, monkeypatch):
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


def test_words_and_labels_are_enough_for_a_chunker(files, capsys):
    Path("two.txt").write_text("the B\ncat I\n\na B\ndog I\n")
    run("train", "chunk", "two.txt", "-o", "m.npz", "--C", "10", "--quiet")
    assert load("m.npz").notes_["reads"] == ["word"]
    capsys.readouterr()
    assert said(capsys, "chunk", "m.npz", "two.txt").startswith("the B B\ncat I I\n")


def test_a_checkpoint_is_taken_up_again(files, capsys):
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
    assert "is from another run: its solver is" in capsys.readouterr().err


@pytest.mark.parametrize("solver", ["cutting-planes", "subgradient"])
def test_other_solvers(files, capsys, solver):
    run("train", "chunk", "train.txt", "-o", "m.npz", "--solver", solver, "--passes", "3", "--quiet")
    assert type(load("m.npz").solver).__name__.lower() == solver.replace("-", "")


def test_an_interrupt_keeps_the_best(files, capsys, monkeypatch):
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


def test_an_interrupt_from_the_keyboard(files):
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


def test_a_grammar_from_a_treebank(files, capsys, monkeypatch):
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


def test_trees_with_constraints_and_other_decoders(files, capsys):
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


def test_a_parser_is_learned_for_a_loss(files, capsys):
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


def test_sentences_without_a_tree_are_named(files, capsys):
    run("train", "parse", "train.mrg", "-o", "g.json")
    Path("words.txt").write_text("the cat sat\nsat\nthe dog sat\n")
    capsys.readouterr()
    assert run("parse", "g.json", "words.txt", "--count", "n=VP", "--where", "n == 9") == Exit.INFEASIBLE
    captured = capsys.readouterr()
    assert captured.out == "\n\n\n"
    assert "sentence 2 has no tree: sat …" in captured.err


# --- what goes wrong ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ("train tag nowhere.txt -o m.npz", Exit.USAGE, "nowhere.txt: No such file"),
        ("train tag empty.txt -o m.npz", Exit.MALFORMED, "there are no sentences in empty.txt"),
        ("train parse empty.txt -o m.npz", Exit.MALFORMED, "there are no trees in empty.txt"),
        ("train tag train.txt -o m.npz --column 9", Exit.MALFORMED,
         "line 3 of train.txt: the label should be in column 9, but there are 3 columns: 'the "),
        ("train tag train.txt -o m.npz --column x", Exit.MALFORMED, "--column takes a number from 1"),
        ("train tag train.txt -o m.npz --hashed 0", Exit.MALFORMED,
         "an integer of at least 1 and below 2**31"),
        ("train tag train.txt -o m.npz --jobs 0", Exit.MALFORMED, "n_jobs must be a number of processes"),
        ("train tag nowhere.txt -o no/m.npz", Exit.USAGE, "tallytree: no/m.npz: No such file"),
        ("train tag nowhere.txt -o .", Exit.USAGE, "tallytree: .: Is a directory"),
        ("parse g.json train.mrg -o no/trees", Exit.USAGE, "tallytree: no/trees: No such file"),
        ("train tag train.mrg -o m.npz", Exit.MALFORMED, "line 2 of train.mrg has"),
        ("tag chunker.npz train.txt", Exit.MALFORMED, "was trained to chunk; use `tallytree chunk`"),
        ("tag plain.npz train.txt", Exit.MALFORMED, "is not a tagger or chunker written by"),
        ("tag train.txt train.txt", Exit.MALFORMED, "is not a tallytree estimator"),
        ("chunk chunker.npz train.mrg --format text", Exit.MALFORMED, "which raw text does not have"),
        ("chunk chunker.npz one.txt", Exit.MALFORMED,
         "line 1 of one.txt: the tag should be in column 2, but there is one column: 'word'"),
        ("chunk chunker.npz train.txt --where n>=1", Exit.MALFORMED, "add --count n=LABEL"),
        ("chunk chunker.npz train.txt --count n=O --where n", Exit.MALFORMED, "--where takes a condition"),
        ("chunk chunker.npz train.txt --count n=O --where n>=5", Exit.INFEASIBLE, "sentence 2 (the …): no"),
        ("chunk chunker.npz train.txt --count 1n=O", Exit.MALFORMED, "is not a valid name in a formula"),
        ("chunk chunker.npz train.txt -k 2 --decode expected-f", Exit.MALFORMED, "remove --decode"),
        ("parse train.txt train.txt", Exit.MALFORMED, "train.txt, line 1, column 1"),
        ("parse chunker.npz train.txt", Exit.MALFORMED, "chunker.npz holds a SequenceSVM, not a parser"),
        ("train parse train.mrg -o p.npz --loss hamming", Exit.MALFORMED,
         "--loss hamming does not work for parse"),
        ("train tag train.txt -o p.npz --loss crossing-brackets", Exit.MALFORMED,
         "does not work for tag; use"),
        ("parse g.json one.txt --score --format text", Exit.MALFORMED, "--score compares with trees"),
        ("parse g.json train.mrg -k 2 --decode max-bracket", Exit.MALFORMED,
         "max-bracket predicts a single tree"),
        ("parse g.json train.mrg --penalty 0", Exit.MALFORMED, "--penalty has no effect except"),
        ("parse g.json empty.txt --score", Exit.MALFORMED, "there are no trees in empty.txt"),
        ("parse g.json train.mrg --count n=Np", Exit.MALFORMED,
         "--count n: unknown label 'Np'; did you mean 'NP'? The labels are NP, PP, S, VP, *"),
        ("parse g.json train.mrg --count n=NP --count n=VP", Exit.MALFORMED, "--count sets 'n' twice"),
        ("parse g.json latin.txt", Exit.MALFORMED, "latin.txt is not UTF-8 text: line 3 has the byte 0xe9"),
        ("parse g.json latin.txt --score", Exit.MALFORMED, "line 3 has the byte 0xe9"),
        ("chunk chunker.npz empty.txt --score", Exit.MALFORMED, "no sentences in empty.txt, so nothing can"),
        ("chunk chunker.npz train.txt --background O", Exit.MALFORMED, "--background has no effect except"),
        ("chunk chunker.npz train.txt --scale 2", Exit.MALFORMED,
         "no effect except with --decode expected-f"),
        ("chunk chunker.npz train.txt --count n=Q", Exit.MALFORMED,
         "--count n: unknown label 'Q'. The labels are B-NP, B-VP, I-NP, O"),
        ("chunk chunker.npz latin.txt", Exit.MALFORMED, "is not UTF-8 text: line 3 has the byte 0xe9"),
        ("train chunk train.txt -o m.npz --background O", Exit.MALFORMED,
         "except with --loss f1 and iou of tag"),
        ("train parse train.mrg -o m.npz --loss f1 --background O", Exit.MALFORMED,
         "--background has no effect"),
        ("train chunk train.txt -o m.npz --beta 2", Exit.MALFORMED,
         "no effect except with --loss f1 and chunk-f1"),
        ("train chunk train.txt -o m.npz --seed 1 --solver cutting-planes", Exit.MALFORMED,
         "--seed has no effect"),
        ("train chunk train.txt -o m.npz --vertical 1", Exit.MALFORMED, "--vertical has no effect except"),
        ("train parse train.mrg -o g.json --column 2", Exit.MALFORMED,
         "--column has no effect except for tag"),
        ("train parse train.mrg -o g.json --C 1", Exit.MALFORMED, "--C has no effect if rules are only"),
        ("train chunk train.txt -o m.npz --test empty.txt", Exit.MALFORMED, "no sentences in empty.txt"),
        ("train tag train.txt -o train.txt", Exit.MALFORMED, "train.txt would be overwritten, but it is"),
        ("train parse train.mrg -o train.mrg", Exit.MALFORMED, "train.mrg would be overwritten"),
        ("chunk chunker.npz train.txt -o ./chunker.npz", Exit.MALFORMED, "chunker.npz would be overwritten"),
        ("parse g.json train.mrg -o g.json", Exit.MALFORMED, "g.json would be overwritten"),
        ("chunk chunker.npz odd.txt --score", Exit.MALFORMED, "'X-NP' is not a label of the BIO scheme"),
        ("train parse train.mrg -o g.json --test empty.txt", Exit.MALFORMED, "no trees in empty.txt"),
    ],
)  # fmt: skip
def test_errors_say_what_to_do(files, capsys, arguments, code, message):
    Path("empty.txt").write_text("\n")
    Path("one.txt").write_text("word\n")
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


def test_files_may_stand_behind_options(files, capsys):
    run("train", "parse", "-o", "g.json", "train.mrg")
    capsys.readouterr()
    before = said(capsys, "parse", "g.json", "train.mrg", "--score", "--format", "trees")
    assert said(capsys, "parse", "g.json", "--score", "train.mrg", "--format", "trees") == before
    assert said(capsys, "parse", "--score", "--format", "trees", "g.json", "train.mrg") == before


@pytest.mark.parametrize("command", ["chunk", "parse"])
def test_no_labelling_is_no_answer(files, capsys, command):
    with pytest.raises(SystemExit) as stopped:
        run(command, "model", "-k", "0")
    assert stopped.value.code == Exit.USAGE
    assert "expected a positive integer, got '0'" in capsys.readouterr().err


def test_learning_is_named_where_it_is_missing(files, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "tallytree.learning", None)
    assert run("train", "tag", "train.txt", "-o", "m.npz") == Exit.FAILURE
    assert "tallytree.learning" in capsys.readouterr().err


@pytest.mark.parametrize("task", ["chunk", "parse"])
def test_a_test_file_that_is_not_there_is_told_of_before_training(files, capsys, task):
    data = {"chunk": "columns.txt", "parse": "trees.mrg"}[task]
    Path(data).write_text(COLUMNS if task == "chunk" else "(S (N a) (V b))")
    assert run("train", task, data, "-o", "new.npz", "--test", "nowhere.txt") == Exit.USAGE
    assert "nowhere.txt: No such file" in capsys.readouterr().err
    assert not Path("new.npz").exists()


def test_probabilities_on_the_command_line(files, capsys):
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


@pytest.mark.parametrize("objective", ["softmax-margin", "risk"])
def test_losses_of_probabilities_on_the_command_line(files, objective):
    options = ("--objective", objective, "--loss", "chunk-f1", "--beta", "2", "--c1", "0.01", "--c2", "0")
    assert run("train", "chunk", "train.txt", "-o", "crf.npz", "--tolerance", "0.2", *options) == 0
    crf = load("crf.npz")
    assert crf.objective == objective and crf.loss == tt.losses.ChunkFBeta(beta=2.0) and crf.c2 == 0.0


def test_grammars_with_probabilities(files):
    assert run("train", "parse", "train.mrg", "-o", "crf.npz", "--objective", "likelihood") == 0
    assert type(load("crf.npz")).__name__ == "TreeCRF"


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["--c2", "1"], "--c2 has no effect without --objective"),
        (["--objective", "risk", "--C", "1"], "--C has no effect with --objective"),
        (["--objective", "likelihood", "--loss", "f1"], "--loss has no effect with --objective likelihood"),
    ],
)
def test_options_that_do_not_go_together(files, arguments, text, capsys):
    assert run("train", "chunk", "train.txt", "-o", "x.npz", *arguments) == Exit.MALFORMED
    assert text in capsys.readouterr().err


def test_probabilities_of_margins_are_refused(files, capsys):
    assert run("train", "chunk", "train.txt", "-o", "svm.npz") == 0
    assert run("chunk", "svm.npz", "train.txt", "--marginals") == Exit.MALFORMED
    assert "train it with --objective" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        run("chunk", "svm.npz", "train.txt", "--maximise", "g2")
    assert "expected accuracy, f1" in capsys.readouterr().err
