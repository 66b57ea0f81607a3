"""The value of counts in addition to labels: F1 by the number of labelled sentences, with bags and without.

Of each further sentence only the numbers of chunks of two types are known.
"""

import time
from collections import Counter
from functools import cache, partial
from typing import Any

from data import Corpus
from options import Options
from probabilities import corpus_named, drawn
from results import Key, Result, counts, is_there, keep

from tallytree.learning import SequenceCRF

LABELLED, BAGS, SEEDS = (10, 25, 50, 100, 200), 200, 3
CORPORA = {
    "esp": ("B-PER", "B-LOC"),
    "conll2000": ("B-NP", "B-VP"),
}


def fitted(corpus: Corpus, key: Key, penalty: float = 0.1) -> Any:
    """Learn from labelled sentences, and from the numbers of chunks in the others."""
    X, y = drawn(corpus, LABELLED[-1] + BAGS, key.seed)
    labelled = X[: key.size], y[: key.size]
    if key.contestant == "labelled":
        return SequenceCRF(c2=penalty, max_passes=60).fit(*labelled)
    known = {label for one in labelled[1] for label in one}
    names = [name for name in CORPORA[key.corpus] if name in known]
    bags = [{name: Counter(one)[name] for name in names} for one in y[LABELLED[-1] :]]
    return SequenceCRF(c2=penalty, max_passes=60).fit(*labelled, counted=(X[LABELLED[-1] :], bags))


def run(options: Options) -> None:
    read = cache(partial(corpus_named, options))
    for size in LABELLED if options.sentences is None else (options.sentences,):
        for seed in range(SEEDS):
            for name in CORPORA:
                for contestant in ("labelled", "counted"):
                    key = Key("proportions", name, size, seed, contestant)
                    if is_there(options.results, key) or not options.wants(contestant):
                        continue
                    corpus, started = read(name), time.process_time()
                    crf = fitted(corpus, key)
                    rows = {"best": counts(corpus.test_labels, crf.predict(corpus.test_features))}
                    seconds = time.process_time() - started
                    keep(options.results, Result(key, rows, {}, seconds))
                    print(f"{key.file}: {seconds:.0f} seconds", flush=True)
