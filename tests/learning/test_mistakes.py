"""User errors in predictions, losses and templates: the messages say what to do."""

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import tallytree as tt
from tallytree.learning import (
    BestDecoder,
    Graph,
    GraphCRF,
    GraphSVM,
    MaxExpected,
    SequenceCRF,
    SequenceSVM,
    TreeCRF,
    TreeSVM,
    WindowFeatures,
    accuracy,
    corpus_f,
    grid_graph,
    label_graphs,
    load,
    templated,
    train,
)
from tallytree.parsing import parse_tree

X = [[["a"], ["b"]], [["b"], ["a"], ["c"]]]
Y = [["B-x", "O"], ["O", "B-x", "O"]]
NUMBERS = [[1, 0], [0, 1, 0]]
GRAPHS = [Graph(np.eye(3)[[0, 1]], [[0, 1]]), Graph(np.eye(3)[[1, 0, 2]], [[0, 1]])]
TREES = [parse_tree("(S (A a) (B b))"), parse_tree("(S (A b) (B a))")]


def test_a_single_example_needs_a_list():
    crf = SequenceCRF().fit([[{"w": "a"}, {"w": "b"}]], [["x", "y"]])
    with pytest.raises(tt.ModelError, match=r"got \{'w': 'a'\}; pass a list of examples, also"):
        crf.predict([{"w": "a"}, {"w": "b"}])


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"decode": BestDecoder}, r"decode= needs a decoder, .* got the class BestDecoder; call it"),
        ({"decode": MaxExpected}, r"decode= needs a decoder, .* got the class MaxExpected; call it"),
        ({"decode": "f1"}, r"decode= needs a decoder, such as MaxExpected\('chunk-f1'\); got 'f1'"),
        ({"where": True}, "got True for a constraint.* for equal tallies write `a - b == 0`"),
        ({"where": tt.count(state="O")}, r"where= needs a constraint, .*; got count\(.*\); compare it"),
    ],
)
def test_what_is_not_a_decoder_or_a_constraint(kind, options, text):
    with pytest.raises(tt.ModelError, match=text):
        kind().fit(X, Y).predict(X, **options)


@pytest.mark.parametrize(
    ("estimator", "examples", "y"),
    [
        (SequenceSVM("crossing-brackets"), X, Y),
        (SequenceSVM("crossing-brackets", scaling="slack"), X, Y),
        (SequenceCRF("crossing-brackets", objective="risk"), X, Y),
        (SequenceCRF(tt.losses.CrossingBracketsRate(), objective="softmax-margin"), X, Y),
        (GraphSVM("crossing-brackets"), GRAPHS, Y),
        (GraphCRF("crossing-brackets", objective="risk"), GRAPHS, Y),
    ],
)
def test_losses_of_trees_are_not_for_labellings(estimator, examples, y):
    with pytest.raises(tt.ModelError, match=r"CrossingBrackets(Rate)? is a loss of parse trees"):
        estimator.fit(examples, y)


@pytest.mark.parametrize("kind", [TreeSVM, TreeCRF])
@pytest.mark.parametrize("loss", ["hamming", "accuracy", "chunk-f1"])
def test_losses_of_labellings_are_not_for_trees(kind, loss):
    objective = {"objective": "risk"} if kind is TreeCRF else {}
    text = r"expected a loss of trees such as .*FBeta|is a loss of labellings, not of trees; use FBeta\(\)"
    with pytest.raises(tt.ModelError, match=text):
        kind(loss, **objective).fit(["a b", "b a"], TREES)


@pytest.mark.parametrize(
    "estimator",
    [
        SequenceSVM("f1"),
        SequenceSVM("iou", scaling="slack"),
        SequenceCRF("f1", objective="risk"),
        GraphSVM("f2"),
        GraphCRF("f1", objective="softmax-margin"),
    ],
)
def test_a_background_is_one_of_the_labels(estimator):
    examples = X if isinstance(estimator, (SequenceSVM, SequenceCRF)) else GRAPHS
    text = (
        r"the background 'O' of the loss is not one of the labels, which are N, V; pass the negative "
        r"label, as in \w+\(background=…\)"
    )
    with pytest.raises(tt.ModelError, match=text):
        estimator.fit(examples, [["N", "V"], ["V", "N", "V"]])
    text = r"the background 'O' of the loss is not one of the labels, which are 0 to 1; .*background=0"
    with pytest.raises(tt.ModelError, match=text):
        estimator.fit(examples, NUMBERS)
    assert estimator.fit(examples, Y).labels_.count == 2


def test_the_number_of_a_label_may_be_the_background():
    svm = SequenceSVM(tt.losses.FBeta(background=1)).fit(X, Y)
    assert np.array_equal(svm.weights_, SequenceSVM("f1").fit(X, Y).weights_)


@pytest.mark.parametrize("least", ["x", -0.1, 1.5, np.nan, None])
def test_the_least_probability_of_chunks(least):
    with pytest.raises(tt.ModelError, match="least must be a number from 0 to 1, got"):
        SequenceCRF().fit(X, Y).predict_chunks(X, least=least)


def test_chunks_need_names():
    with pytest.raises(tt.ModelError, match="the labels are numbers, but chunks need names such as 'B-NP'"):
        SequenceCRF().fit(X, NUMBERS).predict_chunks(X)


@pytest.mark.parametrize("loss", ["zero-one", "crossing-brackets"])
def test_losses_without_an_expectation(loss):
    text = r"expected losses can be computed for Hamming losses and losses of nodes or chunks, got "
    with pytest.raises(tt.ModelError, match=text):
        SequenceCRF().fit(X, Y).expected_loss(X, Y, loss)


@pytest.mark.parametrize("weight", ["1", None, [1.0]])
def test_weights_of_labels_are_numbers(weight):
    with pytest.raises(tt.ModelError, match=r"the weight of label 'O' is .*, but weights must be finite"):
        SequenceCRF(class_weight={"O": weight}).fit(X, Y)


@pytest.mark.parametrize(
    "templates", ["word", 3, None, [(0, 0)], [((0, 0, 0),)], [((0, "1"),)], [((-1, 0),)]]
)
def test_templates_are_places(templates):
    with pytest.raises(tt.ModelError, match=r"a template is a sequence of \(column, offset\)"):
        WindowFeatures(templates)
    if templates is not None:
        with pytest.raises(tt.ModelError, match=r"a template is a sequence of \(column, offset\)"):
            templated([("a", "A")], templates)


@pytest.mark.parametrize(
    ("sentence", "text"),
    [
        (["the", "cat"], "each position must be a row of 2 columns, got 'the'"),
        ([("the",), ("cat",)], r"each position must be a row of 2 columns, got \('the',\)"),
        ([("the", "D"), ("cat",)], r"each position must be a row of 2 columns, got \('cat',\)"),
        ([("the", 3)], r"the columns of a row must be strings, got \('the', 3\)"),
        ([None], "each position must be a row of 2 columns, got None"),
        (None, "a sentence must be a sequence of rows, got None"),
        ("the cat", "a sentence must be a sequence of rows, got 'the cat'"),
    ],
)
def test_sentences_are_rows(sentence, text):
    with pytest.raises(tt.ModelError, match=text):
        templated(sentence)
    with pytest.raises(tt.ModelError, match=text):
        WindowFeatures()(sentence)


def test_rows_may_have_more_columns_than_templates_read():
    assert templated([("a", "A", "x"), ("b", "B", 3)]) == templated([("a", "A"), ("b", "B")])
    assert templated([]) == []


def test_an_archive_of_something_else(tmp_path):
    np.savez(tmp_path / "plain.npz", a=1)
    with pytest.raises(tt.ModelError, match=r"is not a tallytree estimator, .*: it has no header"):
        load(tmp_path / "plain.npz")


@pytest.mark.parametrize("kind", [TreeSVM, TreeCRF])
def test_trees_are_scored_against_trees(kind):
    fitted = kind().fit(["a b", "b a"], TREES)
    for wrong in (None, "(S (A a) (B b))"):
        with pytest.raises(tt.ModelError, match="example 1: y must contain trees, as "):
            fitted.score(["a b", "b a"], [TREES[0], wrong])
    with pytest.raises(tt.ModelError, match=r"MaxExpected is for labellings; for trees, use"):
        fitted.predict(["a b"], decode=MaxExpected("f1"))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([["a"]], []), "nodes must be numbers, got .*'a'"),
        ((None, []), "nodes must have two axes"),
        ((np.eye(3), [[0, 1, 2]]), r"edges must be pairs of nodes, of shape \(K, 2\), got \[\[0, 1, 2\]\]"),
        ((np.eye(3), [0, 1]), r"edges must be pairs of nodes"),
        ((np.eye(3), [0, 1, 2]), r"edges must be pairs of nodes"),
        ((np.eye(3), None), r"edges must be pairs of nodes"),
        ((np.eye(3), [["a", "b"]]), r"edges must be pairs of nodes"),
        ((np.eye(3), [[0.5, 1]]), r"edges must be pairs of nodes"),
        ((np.eye(3), [[True, False]]), r"edges must be pairs of nodes"),
        (
            (np.eye(3), [[0, 1], [2, 2]]),
            r"edge 1 joins node 2 with itself; use a feature of the node instead",
        ),
        ((np.eye(3), [[0, 3]]), r"edges join nodes 0 to 2, got 0 to 3"),
        ((np.eye(3), [[0, 2**32 + 1]]), r"edges join nodes 0 to 2, got 0 to 4294967297"),
        ((np.eye(4), [[0, 1]], None, (2, 3)), r"shape \(2, 3\) has 6 entries, but there are 4 nodes"),
        ((np.eye(4), [[0, 1]], None, "ab"), r"shape must be a tuple of integers, got 'ab'"),
    ],
)
def test_graphs_are_matrices_and_pairs(arguments, text):
    with pytest.raises(tt.ModelError, match=text):
        Graph(*arguments)


@pytest.mark.parametrize(
    "edges", [[], np.zeros((0, 2)), [[0.0, 1.0]], np.array([[0, 1]], dtype=np.uint8), [(0, 1)]]
)
def test_edges_may_be_any_integers(edges):
    assert Graph(np.eye(2), edges).edges.dtype == np.int32


def test_helpers_for_graphs_check_their_shapes():
    with pytest.raises(
        tt.ModelError, match=r"features must have shape \(rows, columns, features\), got \(3, 3\)"
    ):
        grid_graph(np.ones((3, 3)))
    with pytest.raises(tt.ModelError, match="features must be numbers, got 'a'"):
        grid_graph("a")
    with pytest.raises(tt.ModelError, match=r"X must have shape \(examples, features\), got \(2,\)"):
        label_graphs([1.0, 2.0], 2, [[0, 1]])
    for labels in ("2", 0, 1.5):
        with pytest.raises(tt.ModelError, match="labels must be a positive integer, got"):
            label_graphs([[1.0, 2.0]], labels, [[0, 1]])


def test_train_needs_a_problem():
    with pytest.raises(
        tt.ModelError, match=r"problem must be a TrainingProblem, .*; got SequenceSVM\(\).*\.fit"
    ):
        train(SequenceSVM())
    with pytest.raises(
        tt.ModelError, match="problem must be a TrainingProblem, such as SequenceProblem; got"
    ):
        train(X)


def test_scores_need_sequences():
    with pytest.raises(tt.ModelError, match="truths must be a sequence of labellings, got None"):
        corpus_f(None, Y)
    with pytest.raises(tt.ModelError, match="predictions must be a sequence of labellings, got 3"):
        accuracy(Y, 3)


@pytest.mark.parametrize("objective", ["risk", "softmax-margin"])
def test_losses_that_cannot_be_summed(objective):
    text = "ZeroOne cannot be summed over labellings; use a loss that counts positions or chunks, such"
    with pytest.raises(tt.ModelError, match=text):
        SequenceCRF("zero-one", objective=objective).fit(X, Y)


def test_the_usual_background_is_suggested_if_it_is_a_label():
    with pytest.raises(tt.ModelError, match=r"the background 'P' .*; .* FBeta\(background='O'"):
        SequenceSVM(tt.losses.FBeta(background="P")).fit(X, Y)


@pytest.mark.parametrize("kind", [SequenceSVM, SequenceCRF])
def test_a_constraint_can_be_a_string_with_labels(kind):
    data = [[["a"], ["b"], ["a"], ["c"]]] * 4
    model = kind().fit(data, [["B-NP", "I-NP", "B-NP", "O"]] * 4)
    for text, constraint in (
        ("'B-NP' == 1", tt.count(state="B-NP") == 1),
        (
            "O >= 2 and 'B-NP' + 'I-NP' <= 1",
            (tt.count(state="O") >= 2) & (tt.count(state=["B-NP", "I-NP"]) <= 1),
        ),
        ("not 'I-NP' <= O", tt.count(state="I-NP") > tt.count(state="O")),
    ):
        found, wanted = model.predict(data, where=text), model.predict(data, where=constraint)
        assert [one.tolist() for one in found] == [one.tolist() for one in wanted]
    for text, message in (
        (
            "B-NP >= 1",
            "where uses 'B', which is not a label. In a formula, - means minus; quote the name B-NP: 'B-NP'",
        ),
        ("'B-PN' >= 1", r"which is not a label; did you mean 'B-NP'\?"),
        ("x >= 1", "which is not a label; the names are B-NP, I-NP, O"),
        ("O = 1", "'=' has no meaning in a formula; write =="),
        ("O + 1", r"where takes a condition, such as O >= 2; got 'O \+ 1'"),
    ):
        with pytest.raises(tt.ModelError, match=message):
            model.predict(data, where=text)
    with pytest.raises(tt.InfeasibleError, match="example 0: no labelling satisfies 'O == 5'"):
        model.predict(data, where="O == 5")
    for text in ("x >= 1", "'1' <= 1", "1 <= 1"):
        with pytest.raises(tt.ModelError, match=r"the labels are numbers; .* tt\.count\(state=1\) <= 2$"):
            kind().fit(data, [[0, 1, 0, 1]] * 4).predict(data, where=text)
    each = ["O >= 2", None, tt.count(state="B-NP") == 1, "'B-NP' == 0"]
    for text, one, found in zip(each, data, model.predict(data, where=each), strict=True):
        assert found.tolist() == model.predict([one], where=text)[0].tolist()
    with pytest.raises(tt.ModelError, match=r"where= needs a constraint, .* got <function"):
        model.predict(data, where=lambda ones: ones <= 2)


def test_a_label_that_is_called_infinity():
    data, truth = [[["a"], ["b"]]] * 4, [["inf", "O"]] * 4
    model = SequenceSVM().fit(data, truth)
    with pytest.raises(tt.ModelError, match=r"where uses 'inf', the name of a label, .* quote or rename it"):
        model.predict(data, where="inf <= 0")
    assert model.predict(data[:1], where="'inf' <= 0")[0].tolist() == ["O", "O"]


def test_a_vocabulary_without_features_is_mentioned():
    X, y = [[["a"], ["b"]], [["a"]]], [["A", "B"], ["A"]]
    with pytest.warns(UserWarning, match=r"no feature occurs 10 times .* occurs 2 times"):
        SequenceCRF(min_count=10).fit(X, y)


def test_labels_that_differ_by_white_space_are_mentioned():
    with pytest.warns(UserWarning, match="the labels 'A' and 'A ' differ only by white space"):
        SequenceSVM().fit([[["a"], ["b"]], [["a"]]], [["A", "B"], ["A "]])


def test_arrays_with_positions_as_columns_are_recognised():
    X, y = [np.zeros((4, n)) for n in (5, 7)], [["a"] * 5, ["b"] * 7]
    with pytest.raises(
        tt.ModelError, match=r"example 0 has the shape \(4, 5\) for 5 labels; .* transpose them"
    ):
        SequenceSVM().fit(X, y)


def test_equal_counts_are_written_as_a_difference():
    model = SequenceSVM().fit([[["a"], ["b"]]], [["A", "B"]])
    with pytest.raises(tt.ModelError, match="for equal tallies write `a - b == 0`"):
        model.predict([[["a"]]], where=tt.count(state="A") == tt.count(state="B"))


def test_a_background_is_suggested_if_one_is_likely():
    X, y = [[["a"], ["b"]]], [["A", "B"]]
    for background, advice in (
        ("a", r"choose another, as in FBeta\(background='A', beta=1.0\)"),
        ("Q", r"pass the negative label, as in FBeta\(background=…\)"),
    ):
        with pytest.raises(tt.ModelError, match=advice):
            SequenceSVM(tt.losses.FBeta(background=background)).fit(X, y)
