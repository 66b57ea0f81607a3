"""Write the files beside this one. Run it with release 0.1.0: later ones must read what that release wrote.

``python make.py``, in an environment that has tallytree 0.1.0 with the extra ``learn``.
"""

import json
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np

import tallytree as tt
from tallytree import learning, parsing

HERE = Path(__file__).parent
SENTENCES = [["the", "cat", "sat"], ["a", "dog", "ran", "fast"], ["milk", "ran"]]
LABELS = [["B", "I", "O"], ["B", "I", "O", "O"], ["B", "O"]]
TREES = [
    "(S (NP (D the) (N chef)) (VP (V saw) (NP (NP (D the) (N fish)) (PP (P of) (NP (D a) (N pond))))))",
    "(S (NP (D the) (N chef)) (VP (V ate) (NP (D the) (N fish)) (PP (P with) (NP (D a) (N fork)))))",
    "(S (NP (D a) (N guest)) (VP (V ate) (NP (NP (D the) (N fish)) (PP (P of) (NP (D the) (N chef))))))",
]
WORDS = ["the", "guest", "saw", "a", "fish", "with", "a", "fork"]
RUN = {"C": 0.5, "tolerance": 0.0, "scaling": "slack"}


def numbers(*shape, seed):
    """Return numbers that look random and are the same everywhere."""
    return np.sin(np.arange(1.0, 1 + np.prod(shape)) * (10 + seed)).round(3).reshape(shape)


def attributes(sentence):
    return [[word, word[0]] for word in sentence]


def sequence_svm():
    loss = tt.losses.FBeta(beta=2.0, background="O")
    solver = learning.FrankWolfe(averaging=True)
    svm = learning.SequenceSVM(loss, scaling="slack", C=10.0, solver=solver)
    svm.fit([attributes(sentence) for sentence in SENTENCES], LABELS)
    learning.save(svm, HERE / "sequence_svm.npz", notes={"made of": "three sentences"})
    labels = svm.predict([attributes(sentence) for sentence in SENTENCES])
    ranked = svm.predict([attributes(SENTENCES[0])], decode=learning.KBest(3))
    return {"labels": plain(labels), "ranked": plain(ranked[0]), "primal": svm.primal_, "dual": svm.dual_}


def graphs():
    pixels = [numbers(2, 3, 2, seed=seed) for seed in (1, 2, 3)]
    return [learning.grid_graph(one) for one in pixels], [(one[:, :, 0] > 0).astype(int) for one in pixels]


def graph_svm():
    X, y = graphs()
    svm = learning.GraphSVM(
        tt.losses.IntersectionOverUnion(background=0), solver=learning.CuttingPlanes("each")
    )
    svm.fit(X, y)
    learning.save(svm, HERE / "graph_svm.npz")
    return {"labels": plain(svm.predict(X)), "primal": svm.primal_, "dual": svm.dual_}


def tree_svm():
    trees = [parsing.parse_tree(text) for text in TREES]
    svm = learning.TreeSVM(tt.losses.FBeta(), C=1.0, min_count=2, tolerance=0.1)
    svm.fit([tree.words for tree in trees], trees)
    learning.save(svm, HERE / "tree_svm.npz")
    return {
        "trees": [str(tree) for tree in svm.predict([tree.words for tree in trees])],
        "score": svm.forest(trees[0].words).best().score,
        "primal": svm.primal_,
        "dual": svm.dual_,
    }


def training_problem():
    rows = [numbers(length, 2, seed=length) for length in (2, 3, 4)]
    truths = [(matrix[:, 0] > matrix[:, 1]).astype(np.int64) for matrix in rows]
    return learning.SequenceProblem(rows, truths, 2, tt.losses.FBeta(background=0))


def checkpoint():
    file = HERE / "checkpoint.npz"
    file.unlink(missing_ok=True)
    learning.train(training_problem(), max_passes=4, checkpoint=file, **RUN)
    with tempfile.TemporaryDirectory() as folder:
        copied = shutil.copy(file, folder)
        found = learning.train(training_problem(), max_passes=9, checkpoint=copied, **RUN)
    return {"weights": found.weights.tolist(), "primal": found.primal, "dual": found.dual}


def problem():
    model = tt.Model.chain(
        np.array([[0.0, 1], [0.5, 0], [0, 0.25], [0, 2]]), [[0.5, 0], [0, 0.5]], states=["dry", "wet"]
    )
    statistics = [
        tt.count(state="wet", name="wet"),
        tt.mismatches(model, ["wet", "dry", "wet", "dry"], name="wrong"),
    ]
    question = tt.io.Problem(
        model,
        statistics,
        "score - weight * wrong",
        where="wet >= 1 and wet <= 3",
        parameters={"weight": 0.75},
    )
    tt.io.write_problem(question, HERE / "problem.json")
    found = question.solve()
    return {"labels": found.labels.tolist(), "value": found.value, "tally": list(found.tally)}


def grammar():
    made = parsing.Grammar.from_treebank(
        [parsing.parse_tree(text) for text in TREES], horizontal=1, vertical=1
    )
    parsing.write_grammar(HERE / "grammar.json", made)
    best = parsing.Forest(made, WORDS).best()
    return {"tree": str(best.tree), "score": best.score}


def plain(labellings):
    return [np.asarray(labels).tolist() for labels in labellings]


def main():
    assert tt.__version__ == "0.1.0"
    parts = (sequence_svm, graph_svm, tree_svm, checkpoint, problem, grammar)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        answers = {part.__name__: part() for part in parts}
    (HERE / "answers.json").write_text(json.dumps(answers, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
