"""Files written by release 0.1.0 are read with the same meaning; ``data/0.1.0/make.py`` wrote them."""

import json
import runpy
import shutil
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import tallytree as tt
from tallytree import parsing
from tallytree.learning import CuttingPlanes, FrankWolfe, KBestDecoder, load, train
from tallytree.learning.files import read_arrays, write_arrays

FILES = Path(__file__).parent / "data" / "0.1.0"
MADE = runpy.run_path(str(FILES / "make.py"))
ANSWERS = json.loads((FILES / "answers.json").read_text(encoding="utf-8"))


def plain(labellings):
    return [np.asarray(labels).tolist() for labels in labellings]


def test_a_saved_sequence_svm():
    svm, known = load(FILES / "sequence_svm.npz"), ANSWERS["sequence_svm"]
    sentences = [MADE["attributes"](sentence) for sentence in MADE["SENTENCES"]]
    assert svm.loss == tt.losses.FBeta(beta=2.0, background="O")
    assert svm.solver == FrankWolfe(averaging=True)
    assert svm.notes_ == {"made of": "three sentences"}
    assert plain(svm.predict(sentences)) == known["labels"]
    assert plain(svm.predict(sentences[:1], decode=KBestDecoder(3))[0]) == known["ranked"]
    assert (svm.primal_, svm.dual_) == (known["primal"], known["dual"])


def test_a_saved_graph_svm():
    svm, known = load(FILES / "graph_svm.npz"), ANSWERS["graph_svm"]
    X, _ = MADE["graphs"]()
    assert svm.solver == CuttingPlanes("each")
    assert plain(svm.predict(X)) == known["labels"]
    assert (svm.primal_, svm.dual_) == (known["primal"], known["dual"])


def test_a_saved_tree_svm():
    svm, known = load(FILES / "tree_svm.npz"), ANSWERS["tree_svm"]
    trees = [parsing.parse_tree(text) for text in MADE["TREES"]]
    assert [str(tree) for tree in svm.predict([tree.words for tree in trees])] == known["trees"]
    assert svm.forest(trees[0].words).best().score == pytest.approx(known["score"], rel=1e-12)
    assert (svm.primal_, svm.dual_) == (known["primal"], known["dual"])


def test_estimators_that_were_loaded_can_be_fitted_again():
    svm = load(FILES / "sequence_svm.npz")
    sentences = [MADE["attributes"](sentence) for sentence in MADE["SENTENCES"]]
    again = svm.fit(sentences, MADE["LABELS"])
    assert again.primal_ == pytest.approx(ANSWERS["sequence_svm"]["primal"], rel=1e-9)


@pytest.mark.parametrize(
    ("parameter", "saved", "meant"),
    [
        ("max_passes", 20.0, 20),
        ("max_passes", 20.5, 21),
        ("max_passes", 0, 1),
        ("beta", 1e-9, 1e-6),
        ("beta", 1e9, 1e6),
    ],
)
def test_numbers_that_are_no_longer_accepted_become_what_they_meant(parameter, saved, meant, tmp_path):
    header, arrays = read_arrays(FILES / "sequence_svm.npz", "estimator")
    parameters = header["parameters"]
    (parameters if parameter in parameters else parameters["loss"]["parameters"])[parameter] = saved
    write_arrays(tmp_path / "saved.npz", header, arrays)
    svm = load(tmp_path / "saved.npz")
    assert getattr(svm if parameter == "max_passes" else svm.loss, parameter) == meant
    sentences = [MADE["attributes"](sentence) for sentence in MADE["SENTENCES"]]
    assert plain(svm.predict(sentences)) == ANSWERS["sequence_svm"]["labels"]


def test_counts_that_had_no_effect_are_dropped(tmp_path):
    header, arrays = read_arrays(FILES / "sequence_svm.npz", "estimator")
    header["parameters"] |= {"hashed": 64, "min_count": 2}
    write_arrays(tmp_path / "saved.npz", header, arrays)
    svm = load(tmp_path / "saved.npz")
    assert (svm.hashed, svm.min_count) == (64, 1)


def test_training_goes_on_from_a_checkpoint(tmp_path):
    file, known = shutil.copy(FILES / "checkpoint.npz", tmp_path), ANSWERS["checkpoint"]
    header, _ = read_arrays(file, "checkpoint")
    found = train(MADE["training_problem"](), max_passes=9, checkpoint=file, **MADE["RUN"])
    assert [list(entry[:8]) for entry in found.history[:4]] == header["history"]
    assert all(entry.gradient is None for entry in found.history)
    assert len(found.history) == 9
    np.testing.assert_allclose(found.weights, known["weights"], rtol=1e-9, atol=1e-12)
    assert (found.primal, found.dual) == pytest.approx((known["primal"], known["dual"]), rel=1e-9)


def test_a_problem_file():
    problem, known = tt.io.read_problem(FILES / "problem.json"), ANSWERS["problem"]
    found = problem.solve()
    assert found.labels.tolist() == known["labels"]
    assert (found.value, list(found.tally)) == (known["value"], known["tally"])


def test_a_grammar_file():
    grammar, known = parsing.read_grammar(FILES / "grammar.json"), ANSWERS["grammar"]
    best = parsing.Forest(grammar, MADE["WORDS"]).best()
    assert str(best.tree) == known["tree"]
    assert best.score == pytest.approx(known["score"], rel=1e-12)
