"""One given tree in the chart of its sentence: scores that forbid all others."""

from __future__ import annotations

import numpy as np

from tallytree.parsing.compiled import Compiled
from tallytree.parsing.derivation import crossing, labels_by_span
from tallytree.planning.charts import spans
from tallytree.running.charts import Scores
from tallytree.trees import Tree


def scores_of_only(tree: Tree, compiled: Compiled, scores: Scores) -> Scores:
    """Return scores that forbid all trees but one.

    Over each span the labels must be the tree's, and no span may cross one of the tree's: a smallest span
    around one that is left out would be split into two of which one crosses it.
    """
    words = len(tree)
    starts, ends = spans(words)
    numbers = {label: i for i, label in enumerate(compiled.names)}
    found = {
        place: tuple(numbers.get(label, -1) for label in labels)
        for place, labels in labels_by_span(tree).items()
    }
    places = zip(starts.tolist(), ends.tolist(), strict=True)
    stacks, inner, outer = compiled.stacks
    wanted = np.array([stacks.get(found.get(place, ()), -1) for place in places])
    free = np.array([path.from_closed for path in compiled.chains])
    right = np.concatenate([outer[:, None] == wanted[:words], inner[:, None] == wanted[words:]], axis=1)
    possible = (right | free[:, None]) & ~crossing(found, starts, ends)
    same = np.array(tree.tags)[:, None] == compiled.tag_labels
    return Scores(
        np.where(same, scores.words, -np.inf), scores.rules, np.where(possible, scores.chains, -np.inf)
    )
