"""The tables of ``docs/experiments.md`` that ``probabilities`` and ``proportions`` have results for."""

from collections.abc import Iterable

import numpy as np
from options import Options
from probabilities import CORPORA, SIZES, contestants
from proportions import BAGS, LABELLED
from results import Result, interval, kept, measure

NAMES = {"conll2000": "chunking, CoNLL-2000", "esp": "names, Spanish", "ned": "names, Dutch"}


def table(name: str, results: list[Result]) -> None:
    """Print a table of contestants and decoders, compared with crfsuite on the draws that both have."""
    base = {one.key.seed: one.rows["best"] for one in results if one.key.contestant == "sklearn-crfsuite"}
    print(f"\n| {name} | decoder | draws | F1 | beside crfsuite | F2 | beside crfsuite |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for contestant in contestants():
        mine = [one for one in results if one.key.contestant == contestant.name]
        for decoder in mine[0].rows if mine else ():
            rows = {one.key.seed: one.rows[decoder] for one in mine}
            cells = [contestant.name, decoder, str(len(rows))]
            for beta in (1.0, 2.0):
                both = sorted(set(rows) & set(base)) if contestant.name != "sklearn-crfsuite" else []
                beside = interval([rows[i] for i in both], [base[i] for i in both], beta) if both else ""
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
            print(f"| {size} | {' | '.join(means)} | {interval(rows[1], rows[0], 1.0)} | {len(both)} |")


def _by_seed(results: Iterable[Result], size: int, contestant: str) -> dict[int, np.ndarray]:
    return {
        one.key.seed: one.rows["best"]
        for one in results
        if one.key.size == size and one.key.contestant == contestant
    }


def run(options: Options) -> None:
    found = list(kept(options.results, "probabilities"))
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
