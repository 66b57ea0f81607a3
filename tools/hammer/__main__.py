"""Compare random small problems with enumeration, until the time is up or something differs.

    python tools/hammer --seed 0 --seconds 60 --area all

prints the number of cases per second for each area. If the library and the enumeration differ, or an error is
raised that is not one of the library's, the case is reported with the command that repeats it, and the exit
status is 1. ``--keep-going`` names every such case.
"""

from __future__ import annotations

import argparse
import faulthandler
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable

import numpy as np
import on_files
import on_interrupts
import on_losses
import on_models
import on_networks
import on_sequences
import on_texts
import on_trees

AREAS: dict[str, Callable[[np.random.Generator], None]] = {
    "profile": on_models.profile,
    "solve": on_models.solve,
    "k-best": on_models.k_best,
    "diverse": on_models.diverse,
    "distribution": on_models.distribution,
    "relax": on_models.relax,
    "score-between": on_models.score_between,
    "single": on_models.single,
    "same-bits": on_models.same_bits,
    "losses": on_losses.losses,
    "batches": on_losses.batches,
    "loss-batches": on_losses.loss_batches,
    "regular": on_sequences.regular,
    "machines": on_sequences.machines,
    "trees": on_trees.solve,
    "tree-sums": on_trees.sums,
    "tree-losses": on_trees.losses,
    "files": on_files.files,
    "interrupts": on_interrupts.models,
    "sentences": on_texts.sentences,
    "chunks": on_texts.chunked,
    "corpus": on_texts.corpus,
    "networks": on_networks.networks,
    "interrupted-order": on_interrupts.in_order,
    "interrupted-trees": on_interrupts.trees,
}


def main() -> int:
    faulthandler.enable()
    warnings.simplefilter("ignore")
    chosen = arguments()
    if chosen.case is not None:
        return int(not asked(chosen.area, chosen.seed, chosen.case))
    areas = list(AREAS) if chosen.area == "all" else [chosen.area]
    begin, counts, spent, wrong = time.monotonic(), Counter[str](), Counter[str](), 0
    while time.monotonic() - begin < chosen.seconds and (chosen.keep_going or not wrong):
        area = areas[counts.total() % len(areas)]
        started = time.monotonic()
        wrong += not asked(area, chosen.seed, counts[area])
        counts[area] += 1
        spent[area] += time.monotonic() - started
    for area in areas:
        print(f"{area:18s} {counts[area]:8,d} cases, {counts[area] / max(spent[area], 1e-9):7.0f} a second")
    rate = counts.total() / (time.monotonic() - begin)
    print(f"{'all':18s} {counts.total():8,d} cases, {rate:7.0f} a second; {wrong} differences")
    return int(wrong > 0)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="hammer", description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--area", choices=["all", *AREAS], default="all")
    parser.add_argument("--case", type=int, help="this case alone; needs an area")
    parser.add_argument("--keep-going", action="store_true", help="go on after a difference")
    chosen = parser.parse_args()
    if chosen.case is not None and chosen.area == "all":
        parser.error("a case belongs to an area; give --area")
    return chosen


def asked(area: str, seed: int, number: int) -> bool:
    """Check one case, determined by area, seed and number; return whether it passed."""
    rng = np.random.default_rng([seed, list(AREAS).index(area), number])
    try:
        AREAS[area](rng)
    except Exception:  # whatever it is, it is named
        print(f"python tools/hammer --area {area} --seed {seed} --case {number}", file=sys.stderr)
        traceback.print_exc(limit=-4)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
