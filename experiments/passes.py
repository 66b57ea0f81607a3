"""Time and memory of one pass over CoNLL-2000: margins, probabilities and crfsuite."""

import multiprocessing
import resource
import time
import warnings
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import sklearn_crfsuite
from data import Corpus, conll_2000
from options import Options
from sklearn.exceptions import ConvergenceWarning

import tallytree as tt
from tallytree.learning import SequenceCRF, SequenceSVM

HAMMING, TOKENS, CHUNKS = (
    tt.losses.HammingDistance(),
    tt.losses.FBeta(background="O"),
    tt.losses.ChunkFBeta(),
)
FEW, MORE = 2, 10
EstimatorFactory = Callable[[int], Any]
Cost = tuple[float, float, float]


def crfsuite(passes: int) -> Any:
    return sklearn_crfsuite.CRF(algorithm="lbfgs", c2=1.0, max_iterations=passes)


def ours(kind: Callable[..., Any], passes: int) -> Any:
    return kind(tolerance=0.0, max_passes=passes)


def estimators() -> dict[str, EstimatorFactory]:
    """Return what to train, each made for a number of passes."""
    softened, risk = (partial(SequenceCRF, objective=name) for name in ("softmax-margin", "risk"))
    slack = partial(SequenceSVM, scaling="slack")
    kinds = {
        "likelihood": SequenceCRF,
        "softmax margin, Hamming": partial(softened, HAMMING),
        "softmax margin, token F1": partial(softened, TOKENS),
        "softmax margin, chunk F1": partial(softened, CHUNKS),
        "risk, token F1": partial(risk, TOKENS),
        "risk, chunk F1": partial(risk, CHUNKS),
        "margin, Hamming": SequenceSVM,
        "slack, token F1": partial(slack, TOKENS),
        "slack, chunk F1": partial(slack, CHUNKS),
    }
    return {"sklearn-crfsuite, L-BFGS": crfsuite} | {
        name: partial(ours, kind) for name, kind in kinds.items()
    }


def cost(corpus: Corpus, make: EstimatorFactory, passes: int) -> Cost:
    """Fit in a separate process; return seconds, processor seconds, and the growth of memory in MB."""
    context = multiprocessing.get_context("fork")  # the corpus is there already, and nothing else runs
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_fit, args=(corpus, make(passes), there))
    process.start()
    found: Cost = here.recv()
    process.join()
    return found


def _fit(corpus: Corpus, estimator: Any, tell: Connection) -> None:
    warnings.simplefilter("ignore", ConvergenceWarning)
    before, wall, processor = peak(), time.perf_counter(), time.process_time()
    estimator.fit(corpus.train_features, corpus.train_labels)
    tell.send((time.perf_counter() - wall, time.process_time() - processor, peak() - before))


def peak() -> float:
    """Return the largest memory that this process had, in MB (Linux counts in KiB)."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6


def run(options: Options) -> None:
    many = options.sentences or "all"
    print(f"\n## One pass over {many} sentences of CoNLL-2000: the difference of {MORE} and {FEW} passes\n")
    print("| | seconds | processor seconds | memory MB |")
    print("| --- | ---: | ---: | ---: |")
    corpus = conll_2000(options.conll, options.sentences)
    for name, make in estimators().items():
        if options.wants(name):
            few, more = (cost(corpus, make, passes) for passes in (FEW, MORE))
            wall, processor = ((more[i] - few[i]) / (MORE - FEW) for i in (0, 1))
            print(f"| {name} | {wall:.2f} | {processor:.2f} | {more[2]:.0f} |", flush=True)
