"""Standard scores of parses: labelled brackets of a whole corpus.

The conventions are those of EVALB, the usual scorer for the Penn Treebank: words with
punctuation tags are removed from the trees before spans are counted; tags are not brackets, and neither is
the outermost, empty label; ``PRT`` and ``ADVP`` are equivalent; brackets of all sentences are pooled before
precision and recall are computed. A sentence without a parse has no brackets.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from tallytree.errors import ModelError
from tallytree.trees import Constituent, Tree

PUNCTUATION = frozenset({",", ":", "``", "''", "."})
ALIKE = {"PRT": "ADVP"}


class BracketScores(NamedTuple):
    """Scores of parses.

    Attributes
    ----------
    precision, recall, f1 : float
        Of labelled brackets, over the whole corpus; 1 if there is nothing to find or nothing was found.
    exact : float
        The fraction of sentences whose brackets are all correct.
    sentences, failed : int
        The number of sentences, and how many of them have no parse.
    """

    precision: float
    recall: float
    f1: float
    exact: float
    sentences: int
    failed: int


def score_brackets(
    gold: Iterable[Tree],
    parses: Iterable[Tree | None],
    *,
    ignored: Iterable[str] = PUNCTUATION,
    alike: Mapping[str, str] | None = None,
) -> BracketScores:
    """Compare parses with the trees of a treebank.

    Parameters
    ----------
    gold : iterable of Tree
        The true trees.
    parses : iterable of Tree or None
        One for each true tree, over the same words; None if there is no parse.
    ignored : iterable of str
        Tags of words to ignore; the tag in ``gold`` decides.
    alike : mapping of label to label, optional
        Labels that count as another one; by default ``PRT`` as ``ADVP``.

    Examples
    --------
    >>> import tallytree as tt
    >>> gold = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))) (. .))")
    >>> found = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish) (. .))))")
    >>> tt.parsing.score_brackets([gold], [found]).f1
    1.0
    """
    same = ALIKE if alike is None else alike
    skip = frozenset(ignored)
    right = wanted = found = exact = failed = count = 0
    for truth, parse in zip(gold, parses, strict=True):
        kept = [tag not in skip for tag in truth.tags]
        target = _brackets(truth, kept, same)
        brackets = _brackets(parse, kept, same) if parse is not None else Counter()
        if parse is not None and parse.words != truth.words:
            raise ModelError(f"a parse has the words {parse.words}, but the true tree has {truth.words}")
        right += (target & brackets).total()
        wanted += target.total()
        found += brackets.total()
        exact += parse is not None and brackets == target
        failed += parse is None
        count += 1
    precision, recall = (right / n if n else 1.0 for n in (found, wanted))
    f1 = 2 * right / (found + wanted) if found + wanted else 1.0
    return BracketScores(precision, recall, f1, exact / count if count else 1.0, count, failed)


def _brackets(tree: Tree, kept: list[bool], alike: Mapping[str, str]) -> Counter[Constituent]:
    """Return the constituents over the words that are kept, without empty ones."""
    place = [0]
    for keep in kept:
        place.append(place[-1] + keep)
    result: Counter[Constituent] = Counter()
    for (label, start, end), n in tree.constituents().items():
        if place[start] < place[end]:
            result[Constituent(alike.get(label, label), place[start], place[end])] += n
    return result
