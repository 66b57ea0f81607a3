"""An experiment: SVMs, and the effect of minimising the generalisation bound itself from one of them.

Words inside and outside of base noun phrases of the treebank sample, predicted from the tags around them: few
weights, so that the bound is not vacuous.
"""

import time
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from data import Corpus, base_noun_phrase_words
from options import Options

import tallytree as tt
from tallytree.bounds import PacBayesBound
from tallytree.learning import SequenceSVM, corpus_f, minimise_bound

F1 = tt.losses.FBeta(background="O")
PASSES = 10


class Start(NamedTuple):
    """An SVM whose weights are multiplied, and its bound."""

    C: float
    scale: float
    weights: Any
    bound: PacBayesBound


def run(options: Options) -> None:
    corpus = base_noun_phrase_words(options.treebank, options.sentences)
    svms = {C: fitted(C, corpus, options) for C in (0.03, 0.3)}
    starts = [bounded(C, scale, svms[C], corpus) for C, scale in product(svms, (0.7, 1.0, 1.4))]
    best = min(starts, key=lambda start: start.bound.value)
    svm = svms[best.C]
    print(f"\n## Down the bound: {len(corpus.train_labels):,} sentences, {len(svm.weights_):,} weights\n")
    print("| | norms | mean of the maxima | bound | held-out word F1 | held-out loss | seconds |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for start in (next(one for one in starts if one.C == C and one.scale == 1.0) for C in svms):
        show(f"SVM, C = {start.C:g}", svm, start.weights, corpus)
    show(
        f"C = {best.C:g}, weights times {best.scale:g}: the best of {len(starts)}", svm, best.weights, corpus
    )
    problem = svm._trained.oracle.problem
    problem.loss = F1
    for softness in (1.0, 3.0):
        began = time.perf_counter()
        found = minimise_bound(problem, best.weights, softness=softness, passes=PASSES)
        seconds = time.perf_counter() - began
        show(f"{PASSES} passes down from there, softness {softness:g}", svm, found.weights, corpus, seconds)


def fitted(C: float, corpus: Corpus, options: Options) -> SequenceSVM:
    """Return a machine with Hamming margin, which is what the bound's indicator asks for."""
    svm = SequenceSVM(C=C, tolerance=0.05, max_passes=options.passes, max_seconds=options.seconds)
    return svm.fit(corpus.train_features, corpus.train_labels)


def bounded(C: float, scale: float, svm: SequenceSVM, corpus: Corpus) -> Start:
    weights = scale * svm._trained.weights
    return Start(C, scale, weights, bound_of(svm, weights, corpus))


def bound_of(svm: SequenceSVM, weights: Any, corpus: Corpus) -> PacBayesBound:
    svm.weights_ = weights
    return svm.bound(corpus.train_features, corpus.train_labels, loss=F1)


def show(name: str, svm: SequenceSVM, weights: Any, corpus: Corpus, seconds: float | None = None) -> None:
    """Print the terms of the bound at some weights, and what they do on held-out sentences."""
    bound = bound_of(svm, weights, corpus)
    found = svm.predict(corpus.test_features)
    pairs = zip(corpus.test_labels, found, strict=True)
    loss = np.mean([F1.against(truth)(list(one)) for truth, one in pairs])
    numbers = (bound.norm + bound.complexity, bound.empirical, bound.value)
    told = " | ".join(f"{number:.3f}" for number in numbers)
    f1 = 100 * corpus_f(corpus.test_labels, found, F1).f
    time_told = "" if seconds is None else f"{seconds:.0f}"
    print(f"| {name} | {told} | {f1:.2f} | {loss:.3f} | {time_told} |", flush=True)
