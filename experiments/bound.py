"""An experiment: an SVM, and what going down the generalisation bound itself makes of it.

Words inside and outside of base noun phrases of the treebank sample, told by the tags around them: few
weights, so that the bound says something.
"""

from typing import Any

import numpy as np
from data import Corpus, base_noun_phrase_words
from options import Options

import tallytree as tt
from tallytree.bounds import PacBayesBound
from tallytree.learning import SequenceSVM, corpus_f, minimise_bound

F1 = tt.losses.FBeta(background="O")
SOFTNESS = (2.0, 0.5)
SCALES = (0.3, 0.5, 0.7, 1.0, 1.4, 2.0)


def run(options: Options) -> None:
    corpus = base_noun_phrase_words(options.treebank, options.sentences or 2000)
    svm = SequenceSVM(F1, scaling="slack", C=0.03, tolerance=0.05, max_passes=options.passes)
    svm.fit(corpus.train_features, corpus.train_labels)
    print(f"\n## The bound itself: {len(corpus.train_labels):,} sentences, {len(svm.weights_):,} weights\n")
    print("| | norms | mean of the maxima | bound | held-out F1 of words | held-out loss |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    show("SVM for F1, slack", svm, svm.weights_, corpus)
    start = min((scale * svm.weights_ for scale in SCALES), key=lambda w: bounded(svm, w, corpus).value)
    factor = float(np.sqrt(start @ start / (svm.weights_ @ svm.weights_)))
    show(f"the same, times {factor:.1f}, the best of {len(SCALES)}", svm, start, corpus)
    problem = svm._trained.oracle.problem
    for softness in SOFTNESS:
        found = minimise_bound(problem, start, softness=softness, passes=8)
        show(f"8 passes down the bound, softness {softness:g}", svm, found.weights, corpus)


def bounded(svm: SequenceSVM, weights: Any, corpus: Corpus) -> PacBayesBound:
    svm.weights_ = weights
    return svm.bound(corpus.train_features, corpus.train_labels)


def show(name: str, svm: SequenceSVM, weights: Any, corpus: Corpus) -> None:
    """Print the terms of the bound at some weights, and what they do on held-out sentences."""
    bound = bounded(svm, weights, corpus)
    found = svm.predict(corpus.test_features)
    pairs = zip(corpus.test_labels, found, strict=True)
    loss = np.mean([F1.against(truth)(list(one)) for truth, one in pairs])
    numbers = (bound.norm + bound.complexity, bound.empirical, bound.value)
    told = " | ".join(f"{number:.3f}" for number in numbers)
    f1 = 100 * corpus_f(corpus.test_labels, found, F1).f
    print(f"| {name} | {told} | {f1:.2f} | {loss:.3f} |", flush=True)
