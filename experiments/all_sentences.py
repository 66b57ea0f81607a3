"""All sentences of CoNLL-2000: the settings that are best on training sentences, with equal features.

Every method has three settings. They are compared by F1 on 3,000 training sentences, after training on 2,000
others; the best one is trained on all of them, and evaluated on the held-out sentences.
"""

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import sklearn_crfsuite
from data import Corpus, conll_2000
from options import Options
from probabilities import Contestant, decoded
from results import Rows, counts, interval, measure, ranged
from tables import shown

from tallytree.learning import SequenceCRF, SequenceSVM

TRAINED, JUDGED = 2000, 3000


def contestants() -> Iterator[Contestant]:
    crfsuite = partial(sklearn_crfsuite.CRF, algorithm="lbfgs")
    yield Contestant("sklearn-crfsuite", crfsuite, "c2", (0.1, 0.3, 1.0))
    softened = partial(SequenceCRF, "hamming", objective="softmax-margin", c2=0.3, all_possible_states=True)
    yield Contestant("softmax margin, Hamming", softened, "margin", (1.0, 3.0, 5.0))
    yield Contestant("margin, Hamming", partial(SequenceSVM, tolerance=0.02), "C", (0.03, 0.1, 0.2))


def tried(contestant: Contestant, value: float, corpus: Corpus) -> float:
    """Return F1 on some training sentences, after training on others."""
    order = np.random.default_rng(1000).permutation(len(corpus.train_labels))
    judged, others = np.split(order, [min(JUDGED, len(order) // 2)])

    def some(numbers: Any) -> tuple[list[Any], list[Any]]:
        return [corpus.train_features[i] for i in numbers], [corpus.train_labels[i] for i in numbers]

    fitted = contestant.make(**{contestant.setting: value}).fit(*some(others[:TRAINED]))
    X, y = some(judged)
    return measure(counts(y, fitted.predict(X)), 1.0)


def judged(contestant: Contestant, corpus: Corpus) -> tuple[float, str]:
    """Return the best setting, and all of them with their F1, the best one in bold."""
    scores = {value: tried(contestant, value, corpus) for value in contestant.grid}
    best = max(scores, key=lambda value: scores[value])

    def told(value: float) -> str:
        setting = f"`{contestant.setting}={value:g}`"
        return f"{f'**{setting}**' if value == best else setting} {scores[value]:.2f}"

    return best, ", ".join(map(told, scores))


def run(options: Options) -> None:
    corpus = conll_2000(options.conll, options.sentences)
    base: Rows | None = None
    print(
        "\n| | settings and their F1 on training sentences | decoder | F1 | difference from crfsuite "
        "| CPU seconds |"
    )
    print("| --- | --- | --- | ---: | ---: | ---: |")
    for contestant in contestants():
        if not options.wants(contestant.name):
            continue
        best, settings = judged(contestant, corpus)
        started = time.process_time()
        fitted = contestant.make(**{contestant.setting: best})
        fitted.fit(corpus.train_features, corpus.train_labels)
        seconds = f"{time.process_time() - started:.0f}"
        for name, rows in decoded(fitted, corpus).items():
            base = rows if base is None else base
            apart = "" if rows is base else ranged(interval([rows], [base], 1.0))
            cells = contestant.name, settings, shown(name), f"{measure(rows, 1.0):.2f}", apart, seconds
            print(f"| {' | '.join(cells)} |", flush=True)
            settings = seconds = ""
