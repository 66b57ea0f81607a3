"""Chunking, CoNLL-2000: training for the Hamming distance, for token F1 and for chunk F1."""

from collections.abc import Iterator

from contest import Contestant, contest, crfsuite
from data import conll_2000
from options import Options

import tallytree as tt
from tallytree.learning import FrankWolfe, SequenceCRF, SequenceSVM, corpus_f

HAMMING = tt.losses.HammingDistance()
TOKENS = tt.losses.FBeta(background="O")
CHUNKS = tt.losses.ChunkFBeta()


def chunkers(options: Options) -> Iterator[Contestant]:
    """Yield what to train; how the values of C were chosen is in docs/experiments.md."""
    yield "CRF, likelihood", SequenceCRF(c2=1.0)
    yield "CRF, Hamming, softmax margin", SequenceCRF(HAMMING, objective="softmax-margin", c2=1.0)
    few = {"solver": FrankWolfe(averaging=True), "tolerance": 0.0, "max_passes": 6}
    yield "Hamming, margin, average of 6 passes", SequenceSVM(C=0.1, **few)
    yield "Hamming, margin", SequenceSVM(C=0.1, **options.stop)
    yield "token F1, slack", SequenceSVM(TOKENS, scaling="slack", C=0.3, **options.stop)
    yield "chunk F1, slack", SequenceSVM(CHUNKS, scaling="slack", C=0.3, **options.stop)


def f1_of_chunks(truths: list[list[str]], found: list[list[str]]) -> float:
    return corpus_f(truths, found, CHUNKS).f


def run(options: Options) -> None:
    corpus = conll_2000(options.conll, options.sentences)
    everything = [*crfsuite(), *chunkers(options)]
    contest("Chunking, CoNLL-2000", corpus, f1_of_chunks, "chunk F1", everything, options)
