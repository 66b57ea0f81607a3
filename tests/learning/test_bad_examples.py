"""Examples that cannot be learned from: the error identifies the example."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import tallytree as tt
from tallytree.learning import Graph, GraphCRF, GraphSVM, SequenceCRF, SequenceSVM, TreeCRF, TreeSVM
from tallytree.parsing import parse_tree

SENTENCES = [[["a"], ["b"]], [["c"], ["a"], ["b"]], [["b"], ["c"]]]
GRAPHS = [Graph(np.eye(3)[: len(one)], edges=[[0, 1]]) for one in SENTENCES]
LABELS = [["O", "B-X"], ["O", "B-X", "I-X"], ["B-X", "O"]]
TREES = [
    parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))"),
    parse_tree("(S (NP (NN fish)) (VP (VB swim)))"),
]
KINDS = ("likelihood", "softmax-margin", "risk")


def crfs(estimator, loss):
    return [estimator(None if kind == "likelihood" else loss, objective=kind) for kind in KINDS]


SEQUENCES = [*crfs(SequenceCRF, "chunk-f1"), SequenceSVM(), SequenceSVM("chunk-f1", scaling="slack")]
OF_GRAPHS = [*crfs(GraphCRF, tt.losses.FBeta(background="O")), GraphSVM()]
OF_TREES = [*crfs(TreeCRF, "f1"), TreeSVM()]
BOTH = [(one, SENTENCES) for one in SEQUENCES] + [(one, GRAPHS) for one in OF_GRAPHS]


def with_second(labelling):
    return [LABELS[0], labelling, LABELS[2]]


@pytest.mark.parametrize(("estimator", "X"), BOTH)
@pytest.mark.parametrize(
    ("labelling", "said"),
    [
        (["O"], "example 1 has 3 (positions|nodes) but 1 labels; each (position|node) needs one"),
        (["O", None, "O"], "example 1: labels must be all strings, .*; got None"),
        (["O", float("nan"), "O"], "example 1: labels must be all strings, .*; got nan"),
        (["O", -1, "O"], "example 1: labels must be all strings, .*; got -1 after 'O'"),
        (["O", 7, "O"], "example 1: labels must be all strings, .*; got 7 after 'O'"),
        ("OOO", "example 1: a labelling must be a sequence of labels, got the string 'OOO'"),
    ],
)
def test_labellings_that_do_not_fit(estimator, X, labelling, said):
    with pytest.raises(tt.ModelError, match=said):
        estimator.fit(X, with_second(labelling))


@pytest.mark.parametrize(("estimator", "X"), BOTH)
def test_labels_that_were_not_learned(estimator, X):
    fitted = estimator.fit(X, LABELS)
    unseen = with_second(["O", "B-Q", "O"])
    assert 0.0 <= fitted.score(X, unseen) < 1.0  # it cannot be right, which is no error
    if hasattr(fitted, "log_loss"):
        with pytest.raises(tt.ModelError, match=r"example 1: label 'B-Q' was not in the training data"):
            fitted.log_loss(X, unseen)


@pytest.mark.parametrize(
    "estimator",
    [*crfs(SequenceCRF, "chunk-f1")[1:], SequenceSVM("chunk-f1"), SequenceSVM("chunk-f1", scaling="slack")],
)
def test_labels_that_are_no_parts_of_chunks(estimator):
    with pytest.raises(tt.ModelError, match="example 1: 'Q' is not a label of the BIO scheme"):
        estimator.fit(SENTENCES, with_second(["O", "Q", "O"]))
    fitted = estimator.fit(SENTENCES, LABELS)
    with pytest.raises(tt.ModelError, match="example 1: 'Q' is not a label of the BIO scheme"):
        fitted.score(SENTENCES, with_second(["O", "Q", "O"]))


@pytest.mark.parametrize(
    ("estimator", "X", "y"),
    [(*pair, LABELS) for pair in BOTH if not isinstance(pair[0], (SequenceSVM, GraphSVM))]
    + [(one, ["fish eat fish", "fish swim"], TREES) for one in OF_TREES[:-1]],
)
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_weights_of_examples(estimator, X, y, weight):
    weights = [1.0] * len(X)
    weights[1] = weight
    with pytest.raises(tt.ModelError, match=f"the weight of example 1 is {weight}, but weights must be"):
        estimator.fit(X, y, sample_weight=weights)
    with pytest.raises(tt.ModelError, match="sample_weight must be numbers, got 'many'"):
        estimator.fit(X, y, sample_weight=["many"] * len(X))


@pytest.mark.parametrize("estimator", SEQUENCES)
def test_words_need_features(estimator):
    with pytest.raises(
        tt.ModelError, match=r"example 0: a position .* got 'the'; .* features=WindowFeatures"
    ):
        estimator.fit([["the", "cat"]], [["O", "B-X"]])


def test_tables_of_pandas_are_examples():
    pd = pytest.importorskip("pandas")
    X = [np.eye(3)[: len(one)] for one in LABELS]
    tables = [pd.DataFrame(one, columns=["a", "b", "c"]) for one in X]
    fitted, same = SequenceSVM().fit(X, LABELS), SequenceSVM().fit(tables, LABELS)
    assert np.array_equal(fitted.weights_, same.weights_)
    assert [one.tolist() for one in same.predict(tables)] == [one.tolist() for one in fitted.predict(X)]


@pytest.mark.parametrize("estimator", OF_GRAPHS)
def test_graphs_without_nodes_change_nothing(estimator):
    nothing = Graph(np.zeros((0, 3)), edges=np.zeros((0, 2), dtype=int))
    alone = estimator.fit(GRAPHS, LABELS).weights_
    assert np.allclose(estimator.fit([*GRAPHS, nothing], [*LABELS, []]).weights_, alone, atol=1e-2)
    assert [one.tolist() for one in estimator.predict([nothing, nothing])] == [[], []]


@pytest.mark.parametrize(("estimator", "X"), BOTH)
def test_a_single_label_is_all_there_is(estimator, X):
    every = [["O"] * len(one) for one in LABELS]
    assert [one.tolist() for one in estimator.fit(X, every).predict(X)] == every
    assert estimator.score(X, every) == 1.0


@pytest.mark.parametrize("estimator", OF_TREES)
def test_trees_that_do_not_fit(estimator):
    with pytest.raises(tt.ModelError, match=r"example 1 has the words \('fish', 'eat'\), but its tree is"):
        estimator.fit(["fish eat fish", "fish eat"], TREES)
    with pytest.raises(tt.ModelError, match="example 1: a sentence must be a sequence of words"):
        estimator.fit(["fish eat fish", ""], TREES)
    with pytest.raises(tt.ModelError, match="example 1: y must contain trees"):
        estimator.fit(["fish eat fish", "fish swim"], [TREES[0], None])
    fitted = estimator.fit(["fish eat fish", "fish swim"], TREES)
    with pytest.raises(tt.ModelError, match="example 1: a sentence must be a sequence of words"):
        fitted.predict(["fish swim", ""])
