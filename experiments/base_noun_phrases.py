"""Base noun phrases of the treebank sample: those that contain no other."""

from chunking import chunkers, f1_of_chunks
from contest import contest, crfsuite
from data import base_noun_phrases
from options import Options


def run(options: Options) -> None:
    corpus = base_noun_phrases(options.treebank, options.sentences)
    everything = [*crfsuite(), *chunkers(options)]
    contest("Base noun phrases, treebank sample", corpus, f1_of_chunks, "chunk F1", everything, options)
