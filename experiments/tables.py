"""The tables of ``docs/experiments.md`` that ``probabilities`` and ``proportions`` have results for."""

from collections.abc import Iterable

import numpy as np
from options import Options
from probabilities import CORPORA, SIZES, contestants
from proportions import BAGS, LABELLED
from results import Result, interval, kept, measure, ranged, signed

NAMES = {"conll2000": "chunking, CoNLL-2000", "esp": "names, Spanish", "ned": "names, Dutch"}
BASE = "sklearn-crfsuite"


def summary(results: list[Result], beta: float) -> None:
    """Print differences from crfsuite, for all corpora and sizes."""
    drawn = {(one.key.corpus, one.key.size) for one in results}
    columns = [(corpus, size) for corpus in CORPORA for size in SIZES if (corpus, size) in drawn]
    heads = [f"{NAMES[corpus].split(', ')[1]}, {size or 'all'}" for corpus, size in columns]
    print(f"\n| difference in F{beta:g} | decoder | {' | '.join(heads)} |")
    print(f"| --- | --- |{' ---: |' * len(columns)}")
    for contestant in contestants():
        mine = [one for one in results if one.key.contestant == contestant.name]
        for decoder in mine[0].rows if mine and contestant.name != BASE else ():
            cells = [difference(results, column, contestant.name, decoder, beta) for column in columns]
            print(f"| {shown(contestant.name)} | {shown(decoder)} | {' | '.join(cells)} |")


def difference(
    results: list[Result], column: tuple[str, int | None], contestant: str, decoder: str, beta: float
) -> str:
    """Return the mean difference from crfsuite, in bold if its interval excludes zero."""
    some = [one for one in results if (one.key.corpus, one.key.size) == column]
    base = {one.key.seed: one.rows["best"] for one in some if one.key.contestant == BASE}
    rows = {one.key.seed: one.rows[decoder] for one in some if one.key.contestant == contestant}
    both = sorted(set(rows) & set(base))
    if not both:
        return ""
    mean, low, high = interval([rows[i] for i in both], [base[i] for i in both], beta)
    return f"**{signed(mean)}**" if low > 0 or high < 0 else signed(mean)


def shown(name: str) -> str:
    return name.replace("F1 of chunks", "chunk F1").replace("F1 of the corpus", "corpus F1")


def table(name: str, results: list[Result]) -> None:
    """Print a table of contestants and decoders, compared with crfsuite on the draws that both have."""
    base = {one.key.seed: one.rows["best"] for one in results if one.key.contestant == BASE}
    print(f"\n| {name} | decoder | draws | F1 | difference | F2 | difference |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for contestant in contestants():
        mine = [one for one in results if one.key.contestant == contestant.name]
        for decoder in mine[0].rows if mine else ():
            rows = {one.key.seed: one.rows[decoder] for one in mine}
            cells = [shown(contestant.name), shown(decoder), str(len(rows))]
            for beta in (1.0, 2.0):
                both = sorted(set(rows) & set(base)) if contestant.name != BASE else []
                beside = (
                    ranged(interval([rows[i] for i in both], [base[i] for i in both], beta)) if both else ""
                )
                cells += [f"{np.mean([measure(one, beta) for one in rows.values()]):.2f}", beside]
            print(f"| {' | '.join(cells)} |")


def curve(name: str, results: list[Result]) -> None:
    """Print F1 by the number of labelled sentences, with bags and without."""
    print(f"\n| {name} | labelled alone | with counts of {BAGS} others | difference | draws |")
    print("| ---: | ---: | ---: | ---: | ---: |")
    for size in LABELLED:
        alone, more = (_by_seed(results, size, contestant) for contestant in ("labelled", "counted"))
        both = sorted(set(alone) & set(more))
        if both:
            rows = [[some[seed] for seed in both] for some in (alone, more)]
            means = [f"{np.mean([measure(one, 1.0) for one in some]):.2f}" for some in rows]
            print(
                f"| {size} | {' | '.join(means)} | {ranged(interval(rows[1], rows[0], 1.0))} | {len(both)} |"
            )


def _by_seed(results: Iterable[Result], size: int, contestant: str) -> dict[int, np.ndarray]:
    return {
        one.key.seed: one.rows["best"]
        for one in results
        if one.key.size == size and one.key.contestant == contestant
    }


def run(options: Options) -> None:
    found = list(kept(options.results, "probabilities"))
    for beta in (1.0, 2.0) if found else ():
        summary(found, beta)
    for corpus in CORPORA:
        for size in SIZES:
            some = [one for one in found if one.key.corpus == corpus and one.key.size == size]
            if some:
                table(f"{NAMES[corpus]}, {size or 'all'} sentences", some)
    bags = list(kept(options.results, "proportions"))
    for corpus in CORPORA:
        some = [one for one in bags if one.key.corpus == corpus]
        if some:
            curve(NAMES[corpus], some)
