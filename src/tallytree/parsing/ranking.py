"""Trees in order: the k best, and diverse ones."""

from __future__ import annotations

from dataclasses import replace

from tallytree.answers.certificate import BEST, Claim
from tallytree.answers.listed import Answers
from tallytree.answers.tallies import tally_type, unique_names
from tallytree.answers.tally_table import Where
from tallytree.bounding.answering import answered
from tallytree.errors import InfeasibleError
from tallytree.kbest import ranked
from tallytree.model.inputs import whole_number
from tallytree.parsing.counts import false_positives, true_positives
from tallytree.parsing.forest import Forest
from tallytree.parsing.parse import Parse
from tallytree.parsing.statistics import checked_statistics
from tallytree.planning.options import Options, PlanOptions
from tallytree.solving import ask
from tallytree.statistics.constraints import Constraint, as_constraint
from tallytree.trees import Tree

_LOOKED_THROUGH = 256  # trees in order, before distances are carried as statistics

_APART = (
    "of the trees at least {distance} brackets away from each of the {{rank}} before it, none{{among}} has a "
    "higher {{noun}}"
)


def diverse_k_best(
    forest: Forest, k: int, distance: int, *, where: Where = None, memory_limit: float | None = None
) -> list[Parse]:
    """Return k trees, each the best among those far enough from all previous ones.

    Trees are first examined in order: the next one that is far enough is the best such tree. If it is
    not among the first few hundred, the distances to all previous trees are carried as statistics.

    Parameters
    ----------
    forest : Forest
        A sentence with a grammar.
    k : int
        The number of trees; fewer are returned if no further tree is far enough, and none for 0.
    distance : int
        The minimum number of constituents in which two trees differ.
    where : Constraint, optional
        Only trees that satisfy this constraint.
    memory_limit : float, optional
        As for :func:`profile`.

    Examples
    --------
    >>> import tallytree as tt
    >>> rules = {("N", "N", "N"): -1.0}
    >>> forest = tt.parsing.Forest(tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N"), "a a a")
    >>> [str(parse.tree) for parse in tt.parsing.diverse_k_best(forest, 5, distance=2)]
    ['(N (N a) (N (N a) (N a)))', '(N (N (N a) (N a)) (N a))']
    """
    many, least = whole_number(k, "k", least=0), whole_number(distance, "the distance", least=1)
    parses: Answers[Parse] = Answers()
    try:
        trees = ranked(forest, where=where, memory_limit=memory_limit)
    except InfeasibleError:
        return parses
    seen = 0
    for seen, parse in enumerate(trees, 1):
        if len(parses) == many:
            return parses
        if all(_distance(parse.tree, other.tree) >= least for other in parses):
            parses.append(_apart(forest, parse, where, len(parses), least))
        if seen == _LOOKED_THROUGH:
            return _by_statistics(forest, parses, many, least, where, memory_limit)
    return parses


def _by_statistics(
    forest: Forest, found: list[Parse], many: int, least: int, where: Where, memory_limit: float | None
) -> list[Parse]:
    """Continue with one statistic per previous tree: the distance to it."""
    options = Options(PlanOptions(memory_limit=memory_limit))
    constraint = None if where is None else as_constraint(where)
    far = [_away(parse.tree, least) for parse in found]
    try:
        while len(found) < many:
            for condition in far:
                constraint = condition if constraint is None else constraint & condition
            best: Parse = answered(ask(forest, (), constraint), options).best()
            found.append(_apart(forest, best, where, len(found), least))
            far = [_away(best.tree, least)]
    except InfeasibleError:
        pass
    return found


def _distance(one: Tree, other: Tree) -> int:
    """Count the constituents in exactly one of the trees."""
    a, b = one.constituents(), other.constituents()
    return (a - b).total() + (b - a).total()


def _away(tree: Tree, least: int) -> Constraint:
    """Return the constraint that a tree is far from this one: ``FP + (size - TP) >= least``."""
    return false_positives(tree) - true_positives(tree) >= least - tree.constituents().total()


def _apart(forest: Forest, best: Parse, where: Where, rank: int, distance: int) -> Parse:
    """Attach the claim of a diverse tree; its tally has the constraint's statistics, without distances."""
    assert best.certificate is not None
    read = () if where is None else checked_statistics(as_constraint(where).statistics, len(forest))
    tally = tally_type(unique_names(tuple(s.name for s in read)))(*(s.tally(best.tree) for s in read))
    text = _APART.format(distance=distance) if rank else BEST
    claim = Claim(text, where, rank=rank).words("tree")
    return replace(
        best, tally=tally, certificate=replace(best.certificate, claim=claim, tally=tally._asdict())
    )
