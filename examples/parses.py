"""Find parses of one sentence that are really different.

The best trees of a parser are often the same tree with one detail changed. In a diverse list, each tree is
the best one that differs from all previous trees in a given number of constituents. The readings below
disagree on who has the telescope, and on what is in the park.
"""

from tallytree import parsing
from tallytree.plot import trees_side_by_side

RULES = {
    ("S", "NP", "VP"): 0.0,
    ("NP", "DT", "NN"): -0.5,
    ("NP", "NP", "PP"): -1.3,
    ("PP", "IN", "NP"): 0.0,
    ("VP", "VBD", "NP"): -0.7,
    ("VP", "VP", "PP"): -1.1,
}
WORDS = {
    "DT": {"the": -0.4, "a": -1.1},
    "NN": {"girl": -1.5, "man": -1.5, "telescope": -1.5, "park": -1.5},
    "VBD": {"saw": 0.0},
    "IN": {"with": -0.7, "in": -0.7},
}
SENTENCE = "the girl saw a man with a telescope in the park"


def parses(sentence=SENTENCE, count=3, distance=4):
    """Return the best trees, and the best trees that differ in at least `distance` constituents."""
    forest = parsing.Forest(parsing.Grammar(RULES, {}, WORDS, root="S"), sentence)
    return parsing.k_best(forest, count), parsing.diverse_k_best(forest, count, distance=distance)


def differences(one, other):
    """Count the constituents that are in only one of two trees."""
    a, b = one.constituents(), other.constituents()
    return (a - b).total() + (b - a).total()


def main(quick=False):
    """Print the distances of the best trees from the first, and draw the diverse ones."""
    best, diverse = parses(count=2 if quick else 3)
    for name, found in (("best", best), ("diverse", diverse)):
        apart = ", ".join(str(differences(found[0].tree, parse.tree)) for parse in found[1:])
        scores = ", ".join(f"{parse.score:.1f}" for parse in found)
        print(f"{name}: scores {scores}; {apart} constituents from the first")
    trees = [parse.tree for parse in diverse]
    titles = [f"score {parse.score:.1f}" for parse in diverse]
    return trees_side_by_side(trees, titles=titles)[0].figure


if __name__ == "__main__":
    from saving import save

    save(main, __file__)
