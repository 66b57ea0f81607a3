"""Cases on learning: weights, what is predicted with them, and how training went."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import Any

import draws
import numpy as np
from answering import Text, asked
from draws import Rng, coin, pick
from scipy import sparse

import tallytree as tt
from tallytree import learning, losses, parsing

SEQUENCE_LOSSES = (
    None,
    losses.HammingLoss(),
    losses.FBeta(background="O"),
    losses.ChunkFBeta(),
    losses.ZeroOne(),
    losses.IntersectionOverUnion(background="O"),
)
GRAPH_LOSSES = (None, losses.FBeta(background=0), losses.HammingLoss(), losses.Recall(background=0))
TREE_LOSSES = (None, losses.FBeta(), losses.CrossingBrackets(), losses.ZeroOne(), losses.Recall())
SCALINGS = ("margin", "slack")


def _solvers() -> list[learning.Solver]:
    frank_wolfe = learning.FrankWolfe
    planes = learning.CuttingPlanes
    return [
        frank_wolfe(),
        frank_wolfe(averaging=True, room=1),
        planes("one"),
        planes("each"),
        learning.Subgradient(),
    ]


def _solver(rng: Rng) -> learning.Solver:
    return pick(rng, _solvers())


def _extra(rng: Rng) -> Any:
    return pick(rng, (None, None, learning.TopTallies(3), learning.Diverse(2, 2)))


def _history(steps: Any) -> list[Any]:
    """Return how training went, but for the time it took."""
    return [[one.number, one.primal, one.dual, one.certified, one.loss, one.calls] for one in steps]


def _trained(svm: Any) -> list[Any]:
    return [svm.weights_, svm.primal_, svm.dual_, svm.gap_, svm.converged_, _history(svm.history_)]


def _reloaded(svm: Any, X: Any) -> Any:
    """Save an estimator, load it, and predict with it."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        learning.save(svm, "model.npz")
        return learning.load(Path("model.npz")).predict(X)


# --- sequences ----------------------------------------------------------------------------------------------


def _sentences(rng: Rng, examples: int) -> tuple[list[Any], list[list[str]]]:
    """Draw sentences of a few words and the chunks that a rule, with some noise, gives them."""
    vocabulary = ("the", "cat", "saw", "red", "dogs", ".")
    X, y = [], []
    for _ in range(examples):
        words = [pick(rng, vocabulary) for _ in range(rng.integers(1, 7))]
        labels = ["O" if word in ("saw", ".") or coin(rng, 0.15) else "I" for word in words]
        labels = [
            "B" if x == "I" and before == "O" else x
            for x, before in zip(labels, ["O", *labels], strict=False)
        ]
        X.append(
            [
                [f"w={word}", f"previous={before}"]
                for word, before in zip(words, ["<s>", *words], strict=False)
            ]
        )
        y.append(labels)
    return X, y


def sequence_svm(rng: Rng) -> Any:
    X, y = _sentences(rng, 14)
    options = {"C": pick(rng, (0.05, 0.5)), "tolerance": 0.05, "max_passes": 12, "extra": _extra(rng)}
    loss, scaling = pick(rng, SEQUENCE_LOSSES), pick(rng, SCALINGS)

    def answers(solver: learning.Solver) -> list[Any]:
        svm = learning.SequenceSVM(loss, scaling=scaling, solver=solver, **options).fit(X[:10], y[:10])
        predicted = svm.predict(X)
        return [_trained(svm), predicted, svm.score(X, y), asked(_reloaded, svm, X[10:])]

    return [asked(answers, solver) for solver in (_solver(rng), _solver(rng))]


def decoders(rng: Rng) -> Any:
    """Ask a trained tagger for other labellings than the best, and for its bound."""
    X, y = _sentences(rng, 12)
    svm = learning.SequenceSVM(
        losses.FBeta(background="O"), scaling="slack", C=0.2, tolerance=0.2, max_passes=5
    )
    svm.hashed = pick(rng, (None, 16))
    svm.fit(X, y)
    predicted = svm.predict(X)
    return [
        asked(svm.predict, X, where=tt.count(state="B") == 1),
        asked(svm.predict, X, where=tt.valid_bio()),
        asked(svm.predict, X[:4], decode=learning.KBest(3)),
        asked(svm.predict, X, decode=learning.ExpectedFBeta(background="O", scale=2.0)),
        learning.corpus_f(y, predicted, losses.ChunkFBeta()),
        learning.accuracy(y, predicted),
        asked(lambda: _bound(svm.bound(X, y))),
    ]


def _bound(found: Any) -> list[Any]:
    return [found.value, found.norm, found.complexity, found.empirical, Text(found)]


def _sequence_problem(rng: Rng, loss: Any) -> learning.SequenceProblem:
    rows = [rng.normal(size=(rng.integers(1, 5), 3)) for _ in range(6)]
    truths = [rng.integers(0, 3, size=len(matrix)) for matrix in rows]
    return learning.SequenceProblem([sparse.csr_matrix(matrix) for matrix in rows], truths, 3, loss)


def training(rng: Rng) -> Any:
    """Train on a problem without an estimator: by every solver, along a path of C, and for a bound."""
    problem = _sequence_problem(rng, pick(rng, (losses.HammingDistance(), losses.FBeta(background=0))))
    options = {"tolerance": 0.05, "max_passes": 10}
    scaling = pick(rng, SCALINGS)

    def trained(found: learning.Trained) -> list[Any]:
        return [found.weights, found.primal, found.dual, found.converged, _history(found.history)]

    def descended() -> list[Any]:
        found = learning.minimise_bound(
            _sequence_problem(rng, losses.HammingLoss()), np.full(18, 0.3), passes=2
        )
        return [found.weights, found.best.value, [one.value for one in found.history]]

    ran = [
        asked(lambda s=s: trained(learning.train(problem, s, scaling=scaling, **options))) for s in _solvers()
    ]
    path = [[C, trained(found)] for C, found in learning.path(problem, [0.1, 1.0], **options)]
    return [ran, path, asked(descended)]


def stored(rng: Rng) -> Any:
    """Write sequences to a folder, and train on what is read from there."""
    rows = [sparse.csr_matrix(rng.normal(size=(3, 4)).round(1)) for _ in range(5)]
    labels = [rng.integers(0, 2, size=3).tolist() for _ in rows]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        learning.store_sequences("corpus", zip(rows, labels, strict=True))
        problem = learning.StoredSequences("corpus", 2, losses.HammingDistance())
        found = learning.train(problem, learning.Subgradient(), C=0.2, tolerance=0.3, max_passes=6)
        return [found.weights, found.primal, found.dual, _history(found.history)]


def window_features(rng: Rng) -> Any:
    """Train on some of the sentences that come with the library."""
    sentences = [pick(rng, learning.sample_sentences()) for _ in range(6)]
    X = [[(word, tag) for word, tag, _ in sentence] for sentence in sentences]
    y = [[chunk for *_, chunk in sentence] for sentence in sentences]
    svm = learning.SequenceSVM(C=0.05, tolerance=0.3, features=learning.WindowFeatures(parts=coin(rng))).fit(
        X, y
    )
    return [_trained(svm), svm.predict(X), asked(_reloaded, svm, X), learning.templated(X[0])]


# --- graphs and trees ---------------------------------------------------------------------------------------


def graph_svm(rng: Rng) -> Any:
    form = rng.integers(3)
    if form == 0:
        graphs = learning.label_graphs(
            rng.normal(size=(8, 2)), labels=4, edges=[[0, 1], [0, 2], [1, 2], [0, 3]]
        )
        truths = rng.integers(0, 2, size=(8, 4))
    elif form == 1:
        graphs = [learning.grid_graph(rng.normal(size=(2, 3, 2))) for _ in range(6)]
        truths = rng.integers(0, 2, size=(6, 2, 3))
    else:
        cycle = [[0, 1], [1, 2], [2, 3], [3, 0]]
        graphs = [learning.Graph(rng.normal(size=(4, 2)), cycle, rng.normal(size=(4, 2))) for _ in range(6)]
        truths = rng.integers(0, 2, size=(6, 4))
    options = {
        "C": 1.0,
        "tolerance": 0.05,
        "max_passes": 8,
        "extra": _extra(rng),
        "scaling": pick(rng, SCALINGS),
    }
    loss = pick(rng, GRAPH_LOSSES)

    def answers(solver: learning.Solver) -> list[Any]:
        svm = learning.GraphSVM(loss, solver=solver, **options).fit(graphs, truths)
        some = svm.predict(graphs[:2], decode=learning.KBest(2))
        return [_trained(svm), svm.predict(graphs), some, asked(_reloaded, svm, graphs[:3])]

    return [asked(answers, solver) for solver in (_solver(rng), _solver(rng))]


def tree_svm(rng: Rng) -> Any:
    trees = [draws.tree(rng, int(rng.integers(2, 6))) for _ in range(5)]
    sentences = [tree.words for tree in trees]
    shape = {
        "vertical": int(rng.integers(1, 3)),
        "prior": pick(rng, (0.3, 1.0)),
        "hashed": pick(rng, (None, 32)),
    }
    options = {"C": 0.5, "tolerance": 0.1, "max_passes": 5, "scaling": pick(rng, SCALINGS), **shape}

    def answers() -> list[Any]:
        svm = learning.TreeSVM(pick(rng, TREE_LOSSES), solver=_solver(rng), **options).fit(sentences, trees)
        careful = asked(svm.predict, sentences, decode=learning.MaxBrackets(penalty=0.3, scale=2.0))
        flat = asked(svm.predict, sentences[:2], where=parsing.count("A") <= 1)
        few = asked(svm.predict, sentences[:2], decode=learning.KBest(2))
        again = asked(_reloaded, svm, sentences)
        return [_trained(svm), svm.predict(sentences), svm.score(sentences, trees), careful, flat, few, again]

    return asked(answers)


# --- files of one version, read by another ------------------------------------------------------------------


def saved() -> dict[str, bytes]:
    """Return a trained estimator of each kind as the bytes of its file."""
    rng = np.random.default_rng(0)
    X, y = _sentences(rng, 10)
    trees = [draws.tree(rng, 4) for _ in range(4)]
    graphs = learning.label_graphs(rng.normal(size=(8, 2)), labels=3, edges=[[0, 1], [1, 2]])
    fitted = {
        "sequences": learning.SequenceSVM(losses.ChunkFBeta(), scaling="slack", C=0.2).fit(X, y),
        "graphs": learning.GraphSVM(losses.FBeta(background=0)).fit(graphs, rng.integers(0, 2, size=(8, 3))),
        "trees": learning.TreeSVM(hashed=16).fit([tree.words for tree in trees], trees),
    }
    files = {}
    for name, svm in fitted.items():
        svm.history_ = [one._replace(seconds=0.0, left=None) for one in svm.history_]
        with tempfile.TemporaryDirectory() as folder:
            learning.save(svm, Path(folder) / "model.npz")
            files[name] = (Path(folder) / "model.npz").read_bytes()
    return files


def loaded(name: str, data: bytes) -> Any:
    """Load a file that `saved` made, in this version or another, and predict with it."""
    rng = np.random.default_rng(1)
    X = {
        "sequences": _sentences(rng, 6)[0],
        "graphs": learning.label_graphs(rng.normal(size=(6, 2)), labels=3, edges=[[0, 1], [1, 2]]),
        "trees": [draws.tree(rng, 4).words for _ in range(4)],
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("model.npz").write_bytes(data)
        svm = learning.load("model.npz")
    return [svm.weights_, svm.predict(X[name])]
