"""How many oracle calls one plane, several planes of the same tables, and diverse planes take to a gap."""

from data import conll_2000
from options import Options

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


def run(options: Options) -> None:
    """Train for F1 of tokens on the first sentences, with every solver and every source of planes."""
    count, tolerance = options.sentences or 300, 0.05
    corpus = conll_2000(options.conll, count)
    print(f"\n## Planes per call, F1 of tokens, slack: {count} sentences to {100 * tolerance:g} %\n")
    print("| solver | planes | oracle calls | seconds |\n| --- | --- | ---: | ---: |")
    for solver_name, solver in SOLVERS.items():
        for name, extra in EXTRAS.items():
            svm = SequenceSVM(TOKENS, scaling="slack", C=0.03, tolerance=tolerance)
            svm.set_params(solver=solver, extra=extra).fit(corpus.train_features, corpus.train_labels)
            last = svm.history_[-1]
            print(f"| {solver_name} | {name} | {last.calls:,} | {last.seconds:.0f} |", flush=True)
