"""Find at most k named entities in a sentence.

A headline has room for only a few names: which two are the most certain? We train a conditional random field
on a dozen sentences and ask for the best valid labelling with at most k entities. Probabilities of single
words are not enough, because an entity can have several words. Needs the extra ``learn``.
"""

import re

import matplotlib.pyplot as plt
import numpy as np

import tallytree as tt
from tallytree.colours import STATES
from tallytree.learning import SequenceCRF
from tallytree.plot.canvas import INK

EXAMPLES = """
[PER Anna Kovacs] flew to [LOC Lisbon] on Monday . | The bank [ORG Nordea] opened an office in [LOC Riga] .
[PER Tom Reed] works for [ORG Siemens] in [LOC Munich] . | They met [PER Jana] at a station in [LOC Prague] .
[ORG Green Energy] and [ORG Nordea] signed a contract . | On Friday [PER Lee] left for [LOC New York] .
The mayor of [LOC Ghent] thanked [PER Marie Dupont] . | [ORG Siemens] sold a plant to [ORG Delta Steel] .
[PER Marie] lives near [LOC Lake Como] . | Trains from [LOC Prague] to [LOC Munich] were late .
[PER Jana Novak] , who works for [ORG Delta Steel] , met [PER Tom] . | The weather was fine .
"""
SENTENCE = "Marie Novak of Siemens met Tom Lee of Green Bank in Lisbon on Monday ."
FIRST = ["B-LOC", "B-ORG", "B-PER"]  # every entity begins with one of these


def labelled(text):
    """Return the words of a bracketed sentence, and their labels."""
    words, labels = [], []
    for kind, inside, word in re.findall(r"\[(\w+) ([^]]+)\]|(\S+)", text):
        parts = inside.split() or [word]
        words += parts
        labels += [f"{'I' if i else 'B'}-{kind}" for i in range(len(parts))] if kind else ["O"]
    return words, labels


def features(words):
    """Return the features of each word: the word, its neighbour, and capitalisation."""
    around = ["<s>", *words, "</s>"]
    shape = ["Capital" if word[0].isupper() else "small" for word in around]
    return [
        [f"word={around[i]}", f"before={around[i - 1]}", f"shapes={shape[i - 1]} {shape[i]} {shape[i + 1]}"]
        for i in range(1, len(words) + 1)
    ]


def tagged(words, limits):
    """Train a model; return the best valid labelling for each limit on the number of entities."""
    data = [labelled(text) for line in EXAMPLES.strip().splitlines() for text in line.split("|")]
    crf = SequenceCRF(c2=0.05).fit([features(w) for w, _ in data], [labels for _, labels in data])
    entities, X = tt.count(state=FIRST, name="entities"), [features(words)]
    return [list(crf.predict(X, where=tt.valid_bio() & (entities <= limit))[0]) for limit in limits]


def draw(words, rows, limits):
    """Draw the sentence once for each limit, with entities coloured by type."""
    ax = plt.figure(figsize=(10, 0.5 * len(rows) + 0.7), dpi=110, layout="constrained").add_subplot()
    colours = dict(zip(("", "PER", "ORG", "LOC"), STATES, strict=False))
    ends = np.cumsum([len(word) + 1.6 for word in words])
    for row, labels in enumerate(rows):
        for word, label, left, right in zip(words, labels, [0, *ends], ends, strict=False):
            left += 0.0 if label.startswith("I") else 0.25  # words of one entity touch
            ax.barh(row, right - left, left=left, height=0.8, color=colours[label[2:]])
            ax.text((left + right) / 2, row, word, ha="center", va="center", fontsize=9, color=INK)
    ax.set_yticks(range(len(rows)), [f"at most {limit}" for limit in limits], color=INK)
    fills = [plt.Rectangle((0, 0), 1, 1, color=colours[kind]) for kind in ("PER", "ORG", "LOC")]
    names = ("person", "organisation", "place")
    ax.legend(fills, names, ncols=3, loc="upper center", bbox_to_anchor=(0.5, 0.0), frameon=False)
    ax.set(xlim=(0, ends[-1]), ylim=(len(rows) - 0.5, -0.5), xticks=[])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax.figure


def main(quick=False):
    """Tag one sentence with several limits."""
    words, limits = SENTENCE.split(), (5, 1) if quick else (5, 4, 3, 2, 1)
    rows = tagged(words, limits)
    for limit, labels in zip(limits, rows, strict=True):
        print(
            f"at most {limit}:", " ".join(f"{w}/{x}" for w, x in zip(words, labels, strict=True) if x != "O")
        )
    return draw(words, rows, limits)


if __name__ == "__main__":
    from saving import save

    save(main, __file__)
