"""Comparison of estimators on one corpus: one row of a table for each."""

import time
from collections.abc import Callable, Iterator
from typing import Any

import sklearn_crfsuite
from data import Corpus
from options import Options

from tallytree.learning import SequenceCRF, SequenceSVM

Contestant = tuple[str, Any]
Measure = Callable[[list[Any], list[Any]], float]


def crfsuite() -> Iterator[Contestant]:
    yield "sklearn-crfsuite, L-BFGS", sklearn_crfsuite.CRF(algorithm="lbfgs", c2=1.0)
    yield "sklearn-crfsuite, averaged perceptron", sklearn_crfsuite.CRF(algorithm="ap", max_iterations=50)


def contest(
    title: str, corpus: Corpus, measure: Measure, unit: str, estimators: list[Contestant], options: Options
) -> None:
    """Fit all estimators; times are also given relative to the first one."""
    print(f"\n## {title}: {len(corpus.train_labels):,} sentences, judged on {len(corpus.test_labels):,}\n")
    print(f"| | {unit} | seconds | relative to L-BFGS | passes | gap | oracle calls/s |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    baseline = None
    for name, estimator in estimators:
        if not options.wants(name):
            continue
        seconds = fitted(estimator, corpus)
        baseline = seconds if baseline is None else baseline
        score = 100 * measure(corpus.test_labels, estimator.predict(corpus.test_features))
        ratio = f"{seconds / baseline:.2f}"
        print(
            f"| {name} | {score:.2f} | {seconds:.0f} | {ratio} | {' | '.join(told(estimator))} |", flush=True
        )


def fitted(estimator: Any, corpus: Corpus) -> float:
    started = time.perf_counter()
    estimator.fit(corpus.train_features, corpus.train_labels)
    return time.perf_counter() - started


def told(estimator: Any) -> tuple[str, str, str]:
    """Return passes, gap and speed of an estimator of ours."""
    if isinstance(estimator, SequenceCRF):
        last = estimator.history_[-1]
        gap = "" if estimator.objective == "risk" else f"{100 * last.relative_gap:.2g} %"
        return str(last.number), gap, f"{last.calls / last.seconds:,.0f}"
    if not isinstance(estimator, SequenceSVM):
        return "", "", ""
    oracle, passes = estimator._trained.oracle, len(estimator.history_)
    gap = max(estimator.gap_, 0.0) / estimator.primal_
    return str(passes), f"{100 * gap:.2g} %", f"{oracle.calls / oracle.seconds:,.0f}"
