"""How many oracle calls one plane, several planes of the same tables, and diverse planes take to a gap."""

from data import conll_2000
from options import Options

import tallytree as tt
from tallytree.learning import CuttingPlanes, Diverse, FrankWolfe, SequenceSVM, TopTallies

EXTRAS = {
    "one": None,
    "2 top tallies": TopTallies(2),
    "4 top tallies": TopTallies(4),
    "8 top tallies": TopTallies(8),
    "3, diverse": Diverse(3, 3),
}
F1 = {"loss": tt.losses.FBeta(background="O"), "scaling": "slack", "C": 0.03}
HAMMING = {"C": 0.03}
SETTINGS = {
    "token F1, slack; Frank-Wolfe": {**F1, "solver": FrankWolfe()},
    "token F1, slack; cutting planes, one slack": {**F1, "solver": CuttingPlanes("one")},
    "Hamming, margin; Frank-Wolfe": {**HAMMING, "solver": FrankWolfe()},
    "Hamming, margin; cutting planes, one slack": {**HAMMING, "solver": CuttingPlanes("one")},
}


def run(options: Options) -> None:
    """Train on the first sentences, with every solver and every source of planes."""
    count, tolerance = options.sentences or 300, 0.05
    corpus = conll_2000(options.conll, count)
    print(f"\n## Planes per call: {count} sentences to a gap of {100 * tolerance:g} %\n")
    print("| loss and solver | planes | gap | passes | oracle calls | seconds |")
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    for setting, parameters in SETTINGS.items():
        for name, extra in EXTRAS.items():
            if not options.wants(f"{setting}; {name}"):
                continue
            svm = SequenceSVM(extra=extra, tolerance=tolerance, max_seconds=options.seconds, **parameters)
            svm.fit(corpus.train_features, corpus.train_labels)
            last = svm.history_[-1]
            told = f"{100 * last.relative_gap:.2g} % | {last.number} | {last.calls:,} | {last.seconds:.1f}"
            print(f"| {setting} | {name} | {told} |", flush=True)
