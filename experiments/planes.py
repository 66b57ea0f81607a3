"""How many oracle calls one plane, several planes of the same tables, and diverse planes take to a gap."""

from pathlib import Path

from data import chunking

import tallytree as tt
from tallytree.learning import CuttingPlanes, Diverse, FrankWolfe, SequenceSVM, TopTallies

EXTRAS = {
    "one": None,
    "2 top tallies": TopTallies(2),
    "4 top tallies": TopTallies(4),
    "3, diverse": Diverse(3, 3),
}
TOKENS = tt.losses.FBeta(background="O")
SOLVERS = {"Frank-Wolfe": FrankWolfe(), "cutting planes, one slack": CuttingPlanes("one")}


def compare(path: Path, sentences: int, tolerance: float) -> None:
    """Train for F1 of tokens on the first sentences, with every solver and every source of planes."""
    task = chunking(path, sentences)
    print(f"\n## Planes per call: F1 of tokens, slack, {sentences} sentences, gap of {100 * tolerance:g} %\n")
    print("| solver | planes | oracle calls | seconds |\n| --- | --- | ---: | ---: |")
    for solver_name, solver in SOLVERS.items():
        for name, extra in EXTRAS.items():
            svm = SequenceSVM(TOKENS, scaling="slack", C=0.03, solver=solver, extra=extra)
            last = (
                svm.set_params(tolerance=tolerance).fit(task.train_features, task.train_labels).history_[-1]
            )
            print(f"| {solver_name} | {name} | {last.calls:,} | {last.seconds:.0f} |", flush=True)
