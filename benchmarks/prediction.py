"""Tagging 1,000 sentences of CoNLL-2000, compared with sklearn-crfsuite: the same features, in turn.

Both are trained for a few steps only, on all other sentences: the values of weights do not matter here. A
sentence has about 24 words with 19 attributes each, as lists of strings or as dictionaries.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import chunking
from common import Row, show

from tallytree.learning import SequenceCRF, templated
from tallytree.planning.budget import processors

Calls = dict[str, Callable[[], object]]


def features(sentence: chunking.Sentence) -> list[list[str]]:
    return templated([(word, tag) for word, tag, _ in sentence])


def mappings(sentence: chunking.Sentence) -> list[dict[str, str]]:
    """The same attributes as dictionaries: the value of each template by its name."""
    return [dict(name.split("=", 1) for name in names) for names in features(sentence)]  # type: ignore[misc]


def labels(sentences: list[chunking.Sentence]) -> list[list[str]]:
    return [[label for _, _, label in sentence] for sentence in sentences]


def contenders(quick: bool) -> tuple[Calls, int]:
    """Return what to time, each time with the reference first, and the number of sentences."""
    import sklearn_crfsuite

    train, test = chunking.sentences()[: 500 if quick else -1000], chunking.sentences()[-1000:]
    calls: Calls = {}
    for name, read in (("lists", features), ("dictionaries", mappings)):
        X, y, given = list(map(read, train)), labels(train), list(map(read, test))
        with warnings.catch_warnings(action="ignore"):
            theirs = sklearn_crfsuite.CRF(algorithm="lbfgs", c2=1.0, max_iterations=5).fit(X, y)
            ours = [SequenceCRF(max_passes=5, n_jobs=threads).fit(X, y) for threads in (1, processors())]
        calls[f"sklearn-crfsuite, {name}"] = lambda crf=theirs, X=given: crf.predict(X)
        for crf in ours:
            calls[f"{name}, threads: {crf.n_jobs}"] = lambda crf=crf, X=given: crf.predict(X)
            calls[f"{name}, marginals, threads: {crf.n_jobs}"] = lambda crf=crf, X=given: (
                crf.predict_marginals(X)
            )
    return calls, len(test)


def clocked(calls: Calls, rounds: int) -> dict[str, tuple[float, float]]:
    """Return the best wall and CPU times in seconds, of calls in turn."""
    best = {name: (float("inf"), float("inf")) for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            wall, cpu = time.perf_counter(), time.process_time()
            call()
            spent = time.perf_counter() - wall, time.process_time() - cpu
            best[name] = min(best[name][0], spent[0]), min(best[name][1], spent[1])
    return best


def main(quick: bool = False) -> dict[str, Any]:
    try:
        calls, count = contenders(quick)
    except (ImportError, FileNotFoundError) as error:
        print(f"prediction: skipped ({error})\n")
        return {}
    rows: list[Row] = []
    theirs = 1.0, 1.0
    for name, (wall, cpu) in clocked(calls, 5 if quick else 25).items():
        theirs = (wall, cpu) if name.startswith("sklearn-crfsuite") else theirs
        rows.append(
            {
                "": name,
                "sentences/s": count / wall,
                "speed": theirs[0] / wall,
                "per CPU second": count / cpu,
                "speed of a CPU": theirs[1] / cpu,
            }
        )
    show("tagging, beside sklearn-crfsuite with the same input", rows)
    return {"prediction": rows}


if __name__ == "__main__":
    main()
