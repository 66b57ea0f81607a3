"""Train on real corpora, one table of ``docs/experiments.md`` for each task.

``make experiments`` runs all of them; ``python experiments/run.py --task chunking`` prints one table. A task
is a module of this folder with a function ``run(options)``, listed below.
"""

import argparse
import os
import sys
import warnings
from importlib import import_module
from pathlib import Path

from options import Options
from sklearn.exceptions import ConvergenceWarning

DATA = Path(os.environ.get("TALLYTREE_DATA", Path(__file__).parents[2] / "shared" / "data"))
RESULTS = Path(__file__).parents[1] / "build" / "results"
TASKS = {
    "chunking": "chunking",
    "probabilities": "probabilities",
    "proportions": "proportions",
    "tables": "tables",
    "all": "all_sentences",
    "tagging": "tagging",
    "base-np": "base_noun_phrases",
    "parsing": "parsing",
    "passes": "passes",
    "planes": "planes",
    "bound": "bound",
    "figure": "figure",
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--data",
        type=Path,
        default=DATA,
        help="the folder with conll2000/, conll2002/ and wsj/; by default that of TALLYTREE_DATA",
    )
    parser.add_argument("--sentences", type=int, help="learn from this many sentences only")
    parser.add_argument("--passes", type=int, default=40)
    parser.add_argument("--tolerance", type=float, default=0.02, help="the relative gap at which to stop")
    parser.add_argument(
        "--seconds", type=float, default=150.0, help="about how long each estimator may train"
    )
    parser.add_argument("--task", choices=TASKS, action="append", help="by default, all tasks")
    parser.add_argument("--only", help="only rows whose names contain this text")
    parser.add_argument("--longest", type=int, help="the number of words of the longest sentence to parse")
    parser.add_argument(
        "--results",
        type=Path,
        default=RESULTS,
        help="the folder in which probabilities and proportions store their results",
    )
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if not given.data.exists():
        sys.exit(f"there is no folder {given.data}; give the folder of the corpora with --data")
    warnings.simplefilter("ignore", ConvergenceWarning)
    options = Options(
        given.data,
        given.sentences,
        given.passes,
        given.tolerance,
        given.seconds,
        given.only,
        given.longest,
        given.results,
    )
    for task in given.task or TASKS:
        import_module(TASKS[task]).run(options)


if __name__ == "__main__":
    main()
