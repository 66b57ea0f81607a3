"""Where exact losses pay off: objectives and decoders compared, on few and on many sentences.

``--task probabilities`` trains models that have no result in ``--results`` yet, the cheapest first;
``--task tables`` prints tables of the results.
"""

import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
import sklearn_crfsuite
from data import Corpus, conll_2000, conll_2002
from options import Options
from results import Key, Result, Rows, counts, is_there, keep, measure
from sklearn.model_selection import KFold

import tallytree as tt
from tallytree.learning import BestDecoder, Decoder, MaxExpected, SequenceCRF, SequenceSVM

F1, F2 = tt.losses.ChunkFBeta(), tt.losses.ChunkFBeta(beta=2.0)
CORPORA = ("conll2000", "esp", "ned")
SIZES, SEEDS = (100, 500, 2000, None), 5
LARGEST = 8000  # as many as "all" are, about
TOO_LONG, PIECE = 500, 250  # words: lists of prices and of tennis results, each given as one sentence


class Contestant(NamedTuple):
    """What to train: how, which settings to choose from, and about how much a step of it costs."""

    name: str
    make: Callable[..., Any]
    setting: str
    grid: tuple[float, ...]
    cost: float = 1.0


def contestants() -> Iterator[Contestant]:
    """Yield what to train; each has as many settings to choose from."""
    crfsuite = partial(sklearn_crfsuite.CRF, algorithm="lbfgs")
    yield Contestant("sklearn-crfsuite", crfsuite, "c2", (0.1, 0.5))
    yield Contestant("likelihood", SequenceCRF, "c2", (0.1, 0.5))
    softened = partial(SequenceCRF, objective="softmax-margin")
    yield Contestant("softmax margin, Hamming", partial(softened, "hamming"), "c2", (0.1, 0.5))
    yield Contestant("margin, Hamming", partial(SequenceSVM, tolerance=0.02), "C", (0.1, 0.5))
    slack = partial(SequenceSVM, F1, scaling="slack", tolerance=0.02)
    yield Contestant("slack, F1 of chunks", slack, "C", (0.3, 1.5), 3.0)
    yield Contestant("softmax margin, F1 of chunks", partial(softened, F1), "c2", (0.1, 0.5), 1.5)
    risk = partial(SequenceCRF, F1, objective="risk", max_passes=40)
    yield Contestant("risk, F1 of chunks", risk, "c2", (0.001, 0.01), 2.5)


DECODERS: dict[str, Decoder] = {
    "best": BestDecoder(),
    "expected F1": MaxExpected(F1),
    "expected F2": MaxExpected(F2),
    "F1 of the corpus": MaxExpected(F1, corpus=True),
}


def corpus_named(options: Options, name: str) -> Corpus:
    if name == "conll2000":
        return conll_2000(options.conll, None)
    return conll_2002(options.entities, name)


def drawn(corpus: Corpus, size: int | None, seed: int) -> tuple[list[Any], list[Any]]:
    """Return some of the sentences to learn from, lists in pieces."""
    order = np.random.default_rng(seed).permutation(len(corpus.train_labels))[:size]
    parts = [(i, part) for i in order for part in pieces(corpus.train_labels[i])]
    return (
        [corpus.train_features[i][part] for i, part in parts],
        [corpus.train_labels[i][part] for i, part in parts],
    )


def pieces(labels: list[str]) -> Iterator[slice]:
    """Yield the parts of a sentence to learn from: all of it, or pieces of a list that cut no name."""
    start = 0
    while len(labels) > TOO_LONG and len(labels) - start > PIECE:
        end = max(i for i in range(start, start + PIECE + 1) if not labels[i].startswith("I-"))
        yield slice(start, end)
        start = end
    yield slice(start, len(labels))


def chosen(contestant: Contestant, X: list[Any], y: list[Any], seed: int) -> tuple[Any, dict[str, Any]]:
    """Choose a setting by F1 of two folds of the sentences to learn from, and fit them all."""
    scores = []
    for value in contestant.grid:
        folds = KFold(2, shuffle=True, random_state=seed).split(X)
        scores.append(sum(fold_score(contestant, value, X, y, *fold) for fold in folds) / 2)
    best = {contestant.setting: contestant.grid[int(np.argmax(scores))]}
    return contestant.make(**best).fit(X, y), {**best, "scores": scores}


def fold_score(
    contestant: Contestant, value: float, X: list[Any], y: list[Any], train: Any, test: Any
) -> float:
    fitted = contestant.make(**{contestant.setting: value}).fit([X[i] for i in train], [y[i] for i in train])
    return measure(counts([y[i] for i in test], fitted.predict([X[i] for i in test])), 1.0)


def decoded(fitted: Any, corpus: Corpus) -> dict[str, Rows]:
    """Return what each decoder finds; only our CRFs have more than one."""
    if not isinstance(fitted, SequenceCRF):
        return {"best": counts(corpus.test_labels, fitted.predict(corpus.test_features))}
    return {
        name: counts(corpus.test_labels, fitted.predict(corpus.test_features, decode=decoder))
        for name, decoder in DECODERS.items()
    }


def jobs(options: Options) -> list[tuple[Key, Contestant]]:
    """Return what is to be run, the cheapest first; all sentences are drawn once."""
    sizes = SIZES if options.sentences is None else (options.sentences,)
    found = [
        (Key("probabilities", corpus, size, seed, contestant.name), contestant)
        for size in sizes
        for seed in range(1 if size is None else SEEDS)
        for corpus in CORPORA
        for contestant in contestants()
        if options.wants(contestant.name)
    ]
    return sorted(found, key=lambda job: (job[0].size or LARGEST) * job[1].cost)


def run(options: Options) -> None:
    read = cache(partial(corpus_named, options))
    for key, contestant in jobs(options):
        if is_there(options.results, key):
            continue
        corpus, started = read(key.corpus), time.process_time()
        fitted, best = chosen(contestant, *drawn(corpus, key.size, key.seed), key.seed)
        seconds = time.process_time() - started
        keep(options.results, Result(key, decoded(fitted, corpus), best, seconds))
        print(f"{key.file}: {seconds:.0f} seconds", flush=True)
