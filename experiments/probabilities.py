"""Small training sets and exact decoding: a comparison of objectives and decoders."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import sklearn_crfsuite
from data import Corpus, conll_2000
from options import Options
from sklearn.model_selection import KFold

import tallytree as tt
from tallytree.learning import BestDecoder, Decoder, MaxExpected, SequenceCRF
from tallytree.losses.chunks import chunks_of

F1, F2 = tt.losses.ChunkFBeta(), tt.losses.ChunkFBeta(beta=2.0)
SIZES, SEEDS = (100, 500, 2000, None), 5
SLOW = 500  # sentences: with more, losses of tallies are left out


class Contestant(NamedTuple):
    name: str
    make: Callable[..., Any]
    grid: tuple[float, ...]
    slow: bool = False


def contestants() -> Iterator[Contestant]:
    """Yield what to train; each has as many settings to choose from."""
    crfsuite = partial(sklearn_crfsuite.CRF, algorithm="lbfgs")
    yield Contestant("sklearn-crfsuite", crfsuite, (0.1, 0.5))
    yield Contestant("likelihood", SequenceCRF, (0.1, 0.5))
    softened = partial(SequenceCRF, objective="softmax-margin")
    yield Contestant("softmax margin, Hamming", partial(softened, "hamming"), (0.1, 0.5))
    yield Contestant("softmax margin, chunk F1", partial(softened, F1), (0.1, 0.5), slow=True)
    risk = partial(SequenceCRF, F1, objective="risk", max_passes=40)
    yield Contestant("expected chunk F1", risk, (0.003, 0.02), slow=True)


DECODERS: dict[str, Decoder] = {
    "best": BestDecoder(),
    "expected F1": MaxExpected(F1),
    "expected F2": MaxExpected(F2),
    "F1 of the corpus": MaxExpected(F1, corpus=True),
}


def counts(truths: list[Any], found: list[Any]) -> np.ndarray:
    """Return right, found and true chunks of each sentence."""
    rows = []
    for truth, one in zip(truths, found, strict=True):
        gold, mine = set(chunks_of(list(truth))), set(chunks_of(list(one)))
        rows.append((len(gold & mine), len(mine), len(gold)))
    return np.array(rows)


def measure(rows: np.ndarray, beta: float) -> float:
    right, found, true = rows.sum(axis=0)
    return 100 * (1 + beta**2) * right / max(beta**2 * true + found, 1)


def chosen(contestant: Contestant, X: list[Any], y: list[Any], seed: int) -> Any:
    """Choose c2 by F1 of two folds of the sentences to learn from, and fit them all."""
    scores = []
    for c2 in contestant.grid:
        folds = KFold(2, shuffle=True, random_state=seed).split(X)
        scores.append(sum(fold_score(contestant, c2, X, y, *fold) for fold in folds))
    return contestant.make(c2=contestant.grid[int(np.argmax(scores))]).fit(X, y)


def fold_score(contestant: Contestant, c2: float, X: list[Any], y: list[Any], train: Any, test: Any) -> float:
    fitted = contestant.make(c2=c2).fit([X[i] for i in train], [y[i] for i in train])
    return measure(counts([y[i] for i in test], fitted.predict([X[i] for i in test])), 1.0)


def one_round(
    corpus: Corpus, size: int | None, seed: int, options: Options
) -> Iterator[tuple[tuple[str, str], np.ndarray]]:
    """Yield the counts of each contestant with each decoder, on one part of the training sentences."""
    order = np.random.default_rng(seed).permutation(len(corpus.train_labels))[:size]
    X, y = ([some[i] for i in order] for some in (corpus.train_features, corpus.train_labels))
    for contestant in contestants():
        if not options.wants(contestant.name) or (contestant.slow and len(X) > SLOW):
            continue
        fitted = chosen(contestant, X, y, seed)
        for name, decoder in DECODERS.items():
            if not isinstance(fitted, SequenceCRF) and name != "best":
                continue
            more = {"decode": decoder} if isinstance(fitted, SequenceCRF) else {}
            found = fitted.predict(corpus.test_features, **more)
            yield (contestant.name, name), counts(corpus.test_labels, found)


def interval(rows: list[np.ndarray], base: list[np.ndarray], beta: float) -> str:
    """Return the difference to the first row, and 95 % of what a paired bootstrap of sentences gives."""
    rng = np.random.default_rng(0)
    drawn = [rng.integers(len(base[0]), size=len(base[0])) for _ in range(1000)]
    apart = [
        np.mean([measure(a[i], beta) - measure(b[i], beta) for a, b in zip(rows, base, strict=True)])
        for i in drawn
    ]
    low, high = np.quantile(apart, (0.025, 0.975))
    mean = np.mean([measure(a, beta) - measure(b, beta) for a, b in zip(rows, base, strict=True)])
    return f"{mean:+.2f} ({low:+.2f} to {high:+.2f})"


def table(corpus: Corpus, size: int | None, seeds: int, options: Options) -> None:
    found: dict[tuple[str, str], list[np.ndarray]] = {}
    for seed in range(seeds):
        for key, rows in one_round(corpus, size, seed, options):
            found.setdefault(key, []).append(rows)
    base = next(iter(found.values()))
    print(f"\n### {size or 'all'} sentences, {seeds} draws of them\n")
    print("| objective | decoder | F1 | difference from the first row | F2 | difference from the first row |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for (name, decoder), rows in found.items():
        cells = [name, decoder]
        for beta in (1.0, 2.0):
            cells += [f"{np.mean([measure(one, beta) for one in rows]):.2f}", interval(rows, base, beta)]
        print(f"| {' | '.join(cells)} |", flush=True)


def run(options: Options) -> None:
    corpus = conll_2000(options.conll, None)
    print("\n## Where exact losses pay: chunking, CoNLL-2000")
    for size in SIZES if options.sentences is None else (options.sentences,):
        table(corpus, size, SEEDS, options)
