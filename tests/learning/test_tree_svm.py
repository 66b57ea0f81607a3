"""The parsing estimator follows scikit-learn's contract; its files and checkpoints."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV

import tallytree as tt
from tallytree import parsing
from tallytree.learning import ExpectedFBeta, FrankWolfe, KBestDecoder, MaxBrackets, TreeSVM, load, save
from tallytree.learning.files import read_arrays, write_arrays

TREES = [
    parsing.parse_tree(text)
    for text in (
        "(S (NP (D the) (N chef)) (VP (V saw) (NP (NP (D the) (N fish)) (PP (P of) (NP (D a) (N pond))))))",
        "(S (NP (D the) (N chef)) (VP (V ate) (NP (D the) (N fish)) (PP (P with) (NP (D a) (N fork)))))",
        "(S (NP (D a) (N guest)) (VP (V ate) (NP (NP (D the) (N fish)) (PP (P of) (NP (D the) (N chef))))))",
        "(S (NP (D a) (N guest)) (VP (V saw) (NP (D a) (N pond)) (PP (P with) (NP (D the) (N chef)))))",
        "(S (NP (D the) (N guest)) (VP (V slept)))",
        "(S (NP (D the) (N chef)) (VP (V slept) (PP (P with) (NP (D a) (N fork)))))",
    )
]
SENTENCES = [" ".join(tree.words) for tree in TREES]


@pytest.fixture(scope="module")
def fitted():
    return TreeSVM(vertical=2).fit(SENTENCES, TREES)


def test_what_words_say_about_attachment_is_learned(fitted):
    plain = [parsing.Forest(fitted.grammar_, words).best().tree for words in SENTENCES]
    before = parsing.score_brackets(TREES, plain).f1
    assert before < fitted.score(SENTENCES, TREES) == 1.0
    assert fitted.predict([sentence.split() for sentence in SENTENCES]) == TREES
    assert fitted.converged_ and fitted.gap_ <= 0.01 * fitted.primal_
    assert fitted.classes_.tolist() == ["NP", "PP", "S", "VP"]
    new = fitted.predict(["the guest saw a fish of the chef"])[0]
    assert ("NP", 3, 8) in new.constituents()


def test_losses_and_scalings_of_all_kinds():
    for loss in (tt.losses.FBeta(beta=2.0), tt.losses.CrossingBrackets(), tt.losses.ZeroOne()):
        svm = TreeSVM(loss, scaling="slack", C=10.0, tolerance=0.1, vertical=2).fit(SENTENCES, TREES)
        found = svm.predict(SENTENCES)
        assert [loss.against(tree)(parse) for tree, parse in zip(TREES, found, strict=True)] == [0.0] * 6


def test_parameters_clones_and_grids():
    svm = TreeSVM(tt.losses.FBeta(), prior=0.5, tolerance=0.2)
    assert svm.get_params()["loss__beta"] == 1.0
    assert clone(svm).get_params() == svm.get_params()
    grid = GridSearchCV(svm, {"loss__beta": [0.5, 2.0], "C": [0.01, 1.0]}, cv=2)
    grid.fit(SENTENCES[:4], TREES[:4])
    assert grid.best_estimator_.loss.beta == grid.best_params_["loss__beta"]
    assert np.isfinite(grid.cv_results_["mean_test_score"]).all()


def test_prediction_has_the_same_choices_as_other_estimators(fitted):
    ranked = fitted.predict(SENTENCES[:2], decode=KBestDecoder(2))
    assert [trees[0] for trees in ranked] == TREES[:2]
    assert all(len(set(trees)) == 2 for trees in ranked)
    flat = fitted.predict(SENTENCES[:1], where=parsing.count("NP") <= 3)[0]
    assert flat.constituents()[("NP", 3, 5)] == 1 and ("NP", 3, 8) not in flat.constituents()
    sharp = fitted.predict(SENTENCES, decode=MaxBrackets(penalty=0.3, scale=20.0))
    assert sharp == TREES
    with pytest.raises(tt.InfeasibleError, match="example 0: no tree satisfies"):
        fitted.predict(SENTENCES[:1], where=parsing.count("NP") == 0)
    *kept, error, none = fitted.predict(
        [*SENTENCES[:2], SENTENCES[4], "the of"], where="PP >= 1", errors="return"
    )
    assert kept == TREES[:2] and isinstance(error, tt.InfeasibleError) and none is None
    with pytest.raises(tt.ModelError, match=r"for trees, use decode=MaxBrackets\(\)"):
        fitted.predict(SENTENCES[:1], decode=ExpectedFBeta())
    with pytest.raises(tt.ModelError, match="remove where="):
        fitted.predict(SENTENCES[:1], decode=MaxBrackets(), where=parsing.count("NP") <= 3)
    with pytest.raises(tt.ModelError, match="scale must be a positive number, got 0"):
        fitted.predict(SENTENCES[:1], decode=MaxBrackets(scale=0.0))


def test_a_sentence_without_a_tree_has_none(fitted):
    assert fitted.predict(["the of", SENTENCES[0]]) == [None, TREES[0]]
    assert fitted.predict(["the of"], where=parsing.count("NP") >= 1) == [None]


def test_trees_without_constituents_leave_tags_to_learn():
    trees = [parsing.parse_tree(text) for text in ("(A a)", "(B b)", "(A c)")]
    svm = TreeSVM(tolerance=0.5).fit([tree.words for tree in trees], trees)
    assert svm.predict(["a", "b"]) == trees[:2]


def test_hashed_attributes_need_no_vocabulary():
    svm = TreeSVM(C=10.0, hashed=2**8).fit(SENTENCES, TREES)
    assert svm.score(SENTENCES, TREES) == 1.0
    assert svm.model_.parts(svm.weights_)[0].shape == (2**8, len(svm.model_.counted.kinds))


@pytest.mark.parametrize(
    "svm",
    [TreeSVM(tt.losses.FBeta(beta=2.0), scaling="slack", tolerance=0.2), TreeSVM(hashed=64, vertical=2)],
    ids=repr,
)
def test_estimators_survive_pickles_and_files(svm, tmp_path):
    svm.fit(SENTENCES, TREES)
    save(svm, tmp_path / "svm.npz")
    new = [*SENTENCES, "the fish of a fork slept"]
    for other in (load(tmp_path / "svm.npz"), pickle.loads(pickle.dumps(svm))):
        assert other.get_params() == svm.get_params()
        assert other.weights_.tobytes() == svm.weights_.tobytes()
        assert other.predict(new) == svm.predict(new)
        assert other.classes_.tolist() == svm.classes_.tolist()
        assert (other.gap_, other.history_) == (svm.gap_, svm.history_)


def test_damaged_files_are_refused(fitted, tmp_path):
    file = tmp_path / "svm.npz"
    save(fitted, file)
    header, arrays = read_arrays(file, "estimator")
    header["attributes"]["model_"]["parameters"]["counted"]["class"] = "eval"
    write_arrays(file, header, arrays)
    with pytest.raises(tt.ModelError, match="the file has 'eval', which is no"):
        load(file)
    with pytest.raises(tt.ModelError, match="this TreeSVM is not fitted"):
        save(TreeSVM(), file)
    file.write_bytes(b"nothing")
    with pytest.raises(tt.ModelError, match="is not a tallytree estimator, or it is damaged"):
        load(file)


class Killed(BaseException):
    """Stands for a machine that goes away."""


@pytest.mark.parametrize("solver", [FrankWolfe(batch=2), FrankWolfe(averaging=True)], ids=repr)
def test_a_killed_fit_ends_with_the_same_weights(solver, tmp_path, monkeypatch):
    options = {"loss": tt.losses.FBeta(), "solver": solver, "tolerance": 0.0, "max_passes": 5}
    with pytest.warns(ConvergenceWarning):
        whole = TreeSVM(**options).fit(SENTENCES, TREES)
    file, written = tmp_path / "run.npz", []
    replaced = tt.learning.checkpoints.write_arrays

    def write(*arguments):
        replaced(*arguments)
        written.append(1)
        if len(written) == 2:
            raise Killed

    monkeypatch.setattr(tt.learning.checkpoints, "write_arrays", write)
    svm = TreeSVM(**options, checkpoint=file)
    with pytest.raises(Killed):
        svm.fit(SENTENCES, TREES)
    with pytest.warns(ConvergenceWarning):
        svm.fit(SENTENCES, TREES)
    assert len(written) == 5 and len(svm.history_) == 5
    assert svm.weights_.tobytes() == whole.weights_.tobytes()
    with pytest.raises(tt.ModelError, match="is from another run: its number of examples is"):
        svm.fit(SENTENCES[1:], TREES[1:])


def test_an_interrupted_fit_keeps_what_it_has(monkeypatch):
    def interrupted(progress):
        raise KeyboardInterrupt

    monkeypatch.setattr(tt.learning.progress, "show_line", interrupted)
    svm = TreeSVM(verbose=True)
    with pytest.raises(
        KeyboardInterrupt, match=r"interrupted after 1 pass.* set warm_start=True and fit again"
    ):
        svm.fit(SENTENCES, TREES)
    assert svm.interrupted_ and svm.weights_.any()
    assert svm.predict(SENTENCES[4:5]) == TREES[4:5]


def test_a_warm_start_goes_on_with_the_same_trees():
    svm = TreeSVM(max_passes=1, warm_start=True, tolerance=1e-3)
    with pytest.warns(ConvergenceWarning):
        svm.fit(SENTENCES, TREES)
    assert svm.set_params(max_passes=100).fit(SENTENCES, TREES).converged_
    with pytest.raises(tt.ModelError, match="warm_start continues from the planes of the last fit"):
        svm.fit(SENTENCES[:2], TREES[:2])


@pytest.mark.parametrize(
    ("X", "y", "text"),
    [
        ([], [], "no examples to learn from"),
        (SENTENCES[:1], TREES[:2], "there is 1 example but 2 trees"),
        (SENTENCES[:1], ["(S (N a))"], "example 0: y must contain trees, .* got '"),
        (SENTENCES[:1], TREES[1:2], "example 0 has the words .* but its tree is over"),
        ([[1, 2]], TREES[:1], "a sentence must be a sequence of words, .* got 1 for a word"),
        ([[None]], TREES[:1], "a sentence must be a sequence of words, .* got None for a word"),
        ([None], TREES[:1], "a sentence must be a sequence of words, .* got None"),
        ([""], TREES[:1], "a sentence must be a sequence of words, .* got ''"),
    ],
)
def test_malformed_data_is_refused(X, y, text):
    with pytest.raises(tt.ModelError, match=text):
        TreeSVM().fit(X, y)


def test_what_there_is_not_is_said(fitted):
    with pytest.raises(NotFittedError):
        TreeSVM().predict([])
    with pytest.raises(tt.ModelError, match="prior must be a non-negative number, got 'much'"):
        TreeSVM(prior="much").fit(SENTENCES, TREES)
    with pytest.raises(tt.ModelError, match="there is no generalisation bound for trees"):
        fitted.bound(SENTENCES, TREES)
    with pytest.raises(tt.ModelError, match="a loss of trees such as"):
        TreeSVM(tt.losses.HammingDistance()).fit(SENTENCES, TREES)
