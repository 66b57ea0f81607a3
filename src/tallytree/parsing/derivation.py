"""From the steps of a chart to trees.

A derivation is an array with one row per step, top down and left to right: a word below its tag, a chain
of unary rules, or a binary rule. Symbols without a label disappear on the way.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.kernels.chart_problem import SPLIT, UNARY, WORD
from tallytree.model.rounding import rounding_bound
from tallytree.parsing.compiled import Compiled
from tallytree.planning.charts import span_numbers, spans
from tallytree.running.charts import Scores
from tallytree.trees import Tree


def crossing(
    brackets: Iterable[tuple[int, int]], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Return which spans overlap with one of these, neither containing the other."""
    crosses = np.zeros(len(starts), dtype=np.bool_)
    for start, end in brackets:
        crosses |= (start < starts) & (starts < end) & (end < ends)
        crosses |= (starts < start) & (start < ends) & (ends < end)
    return crosses


def labels_by_span(tree: Tree) -> dict[tuple[int, int], list[str]]:
    """Return the labels over each labelled span, from the top."""
    result: dict[tuple[int, int], list[str]] = {}
    for node in tree.nodes():
        if node.tree.label and not node.tree.is_tag:
            result.setdefault((node.start, node.end), []).append(node.tree.label)
    return result


def steps_tree(compiled: Compiled, steps: NDArray[np.int32], words: Sequence[str]) -> Tree:
    """Build the tree that the steps derive, as it was before binarisation."""
    names = compiled.names
    built: list[Any] = []  # a word, or the adjacent trees over a span
    for kind, number, start, *_ in reversed(steps.tolist()):
        if kind == WORD:
            built.append(words[start])
        elif kind == SPLIT:
            left = built.pop()
            built.append(left + built.pop())
        else:
            for label in reversed(compiled.chains[number].labels):
                built.append([Tree(names[label], built.pop())])
    (top,) = built
    return top[0] if len(top) == 1 else Tree("", top)


def steps_score(scores: Scores, steps: NDArray[np.int32]) -> tuple[float, float]:
    """Add up the scores of the steps; return the sum, and a bound on its rounding."""
    kinds, numbers, starts, widths = np.ascontiguousarray(steps.T[:4], dtype=np.int64)

    def taken(array: NDArray[np.float64], kind: int) -> NDArray[np.float64]:
        chosen = kinds == kind
        if array.shape[1] > 1:
            columns: Any = span_numbers(len(scores.words), starts[chosen], widths[chosen])
        else:
            columns = 0
        values: NDArray[np.float64] = array[numbers[chosen], columns]
        return values

    word_steps = kinds == WORD
    parts = np.concatenate(
        [
            scores.words[starts[word_steps], numbers[word_steps]],
            taken(scores.rules, SPLIT),
            taken(scores.chains, UNARY),
        ]
    )
    return float(parts.sum()), float(rounding_bound(len(steps), np.abs(parts).sum()))


def scores_of_only(tree: Tree, compiled: Compiled, scores: Scores) -> Scores:
    """Return scores that forbid all trees except one.

    Over each span the labels must be the tree's, and no span may cross one of the tree's: the smallest span
    around a missing one would be split into two, one of which crosses it.
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
