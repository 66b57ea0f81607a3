"""Tagging of the treebank sample."""

from contest import contest, crfsuite
from data import tagging
from options import Options

from tallytree.learning import FrankWolfe, SequenceSVM, accuracy


def run(options: Options) -> None:
    corpus = tagging(options.treebank, options.sentences)
    few = {"solver": FrankWolfe(averaging=True), "tolerance": 0.0, "max_passes": 6}
    taggers = [
        ("Hamming, margin, average of 6 passes", SequenceSVM(C=0.1, **few)),
        ("Hamming, margin", SequenceSVM(C=0.1, **options.stop)),
    ]
    contest("Tagging, treebank sample", corpus, accuracy, "accuracy", [*crfsuite(), *taggers], options)
