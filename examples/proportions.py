"""Train a tagger on a few labelled sentences and many sentences with known label counts.

Labelling every word is expensive; counting the noun phrases of a sentence is quick. A conditional random
field can learn from both: a counted sentence contributes the log-probability of its counts, an exact sum over
all labellings with these counts. Needs the extra ``learn``.
"""

import matplotlib.pyplot as plt

from tallytree.learning import SequenceCRF, sample_sentences, templated
from tallytree.plot.canvas import ACCENT, INK
from tallytree.plot.inks import inks

COUNTED = ("B-NP", "I-NP", "O")


def corpus():
    """Return the features of the words, and their chunk labels."""
    sentences = sample_sentences()
    X = [templated([(word, tag) for word, tag, _ in sentence]) for sentence in sentences]
    return X, [[chunk for *_, chunk in sentence] for sentence in sentences]


def accuracies(X, y, labelled, train=45):
    """Return held-out accuracies: few labels, few labels and counts, all labels."""
    X_few, y_few, X_rest, y_rest = X[:labelled], y[:labelled], X[labelled:train], y[labelled:train]
    counts = [{label: labels.count(label) for label in COUNTED} for labels in y_rest]
    models = (
        SequenceCRF(c2=0.1).fit(X_few, y_few),
        SequenceCRF(c2=0.1).fit(X_few, y_few, counted=(X_rest, counts)),
        SequenceCRF(c2=0.1).fit(X[:train], y[:train]),
    )
    return [model.score(X[45:], y[45:]) for model in models]


def main(quick=False):
    """Draw the accuracy over the number of labelled sentences."""
    X, y = corpus()
    sizes = [5] if quick else [4, 6, 10, 15, 20, 30]
    few, counted, all_ = zip(*(accuracies(X, y, size) for size in sizes), strict=True)
    for size, alone, more in zip(sizes, few, counted, strict=True):
        print(
            f"{size} labelled: {alone:.2f}, with {45 - size} counted: {more:.2f}; all labelled: {all_[0]:.2f}"
        )
    figure = plt.figure(figsize=(7, 3.8), dpi=110, layout="constrained")
    ax = figure.add_subplot()
    ax.axhline(all_[0], color=inks(ax).pale, linestyle="--", label="all 45 sentences labelled")
    ax.plot(sizes, counted, "o-", color=ACCENT, label="the other sentences counted")
    ax.plot(sizes, few, "o-", color=INK, label="labelled sentences alone")
    ax.set_xlabel("labelled sentences, of 45", color=INK)
    ax.set_ylabel("accuracy on 15 others", color=INK)
    ax.legend(frameon=False, loc="lower right")
    ax.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    from saving import save

    save(main, __file__)
