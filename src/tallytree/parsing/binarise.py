"""Trees with at most two children, and back.

A node ``A → W X Y Z`` becomes ``A → W @A/W``, ``@A/W → X @A/X``, ``@A/X → Y Z``: each intermediate symbol
(``@``) stands for the remaining children and remembers ``horizontal`` of the earlier ones.
So unseen productions can be composed of seen pieces. With ``vertical=2`` a label also includes its parent
(``NP^S``), with 3 its grandparent, and so on. A chain of unary nodes is merged (``S+VP``) or kept.

The process is reversible: intermediate symbols are removed, ``^…`` is cut off, and ``+`` is split.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, get_args

from tallytree.errors import ModelError
from tallytree.trees import Tree

Unaries = Literal["collapse", "keep"]
Tail = Literal["pair", "single"]

INTERMEDIATE, PARENT, CHAIN, SIBLING = "@", "^", "+", "/"


def binarise(
    tree: Tree,
    *,
    horizontal: int | None = 1,
    vertical: int = 1,
    unaries: Unaries = "collapse",
    tail: Tail = "pair",
) -> Tree:
    """Return an equivalent tree with at most two children below each node.

    Parameters
    ----------
    tree : Tree
        Its labels must not start with ``@`` or contain ``^`` or ``+``.
    horizontal : int or None
        The number of earlier siblings that an intermediate symbol remembers; None for all.
    vertical : int
        1 for plain labels, 2 for labels with their parent's, and so on. Tags stay plain.
    unaries : {"collapse", "keep"}
        Whether a chain of unary constituents is merged into one symbol. Tags stay as they are.
    tail : {"pair", "single"}
        Whether the last intermediate symbol is above the last two children, or above the last one. The
        latter gives fewer rules with more symbols, which makes charts with statistics faster.

    Examples
    --------
    >>> from tallytree.parsing import parse_tree
    >>> tree = parse_tree("(S (NP (DT the) (JJ old) (NN fish)) (VP (VB swims)))")
    >>> print(binarise(tree, vertical=2))
    (S (NP^S (DT the) (@NP^S/DT (JJ old) (NN fish))) (VP^S (VB swims)))
    >>> print(binarise(tree, horizontal=0, tail="single"))
    (S (NP (DT the) (@NP (JJ old) (@NP (NN fish)))) (@S (VP (VB swims))))
    >>> unbinarise(binarise(tree, vertical=2)) == tree
    True
    """
    if vertical < 1 or (horizontal is not None and horizontal < 0):
        raise ModelError(
            f"vertical must be at least 1 and horizontal at least 0 or None, got {vertical} and {horizontal}"
        )
    for name, value, known in (("unaries", unaries, get_args(Unaries)), ("tail", tail, get_args(Tail))):
        if value not in known:
            raise ModelError(f"{name} must be one of {', '.join(map(repr, known))}, got {value!r}")
    return _Binariser(horizontal, vertical, unaries == "collapse", tail == "pair").tree(tree, ())


class _Binariser:
    def __init__(self, horizontal: int | None, vertical: int, collapse: bool, pair: bool) -> None:
        self.horizontal, self.vertical, self.collapse, self.pair = horizontal, vertical, collapse, pair

    def tree(self, tree: Tree, above: tuple[str, ...]) -> Tree:
        if tree.is_tag:
            _check(tree.label)
            return tree
        chain, bottom = [tree.label], tree
        while self.collapse and tree.label and len(bottom.children) == 1 and not bottom.children[0].is_tag:
            bottom = bottom.children[0]
            chain.append(bottom.label)
        for label in chain:
            _check(label)
        name = CHAIN.join(chain)
        ancestors = (*reversed(chain), *above)
        known = [label for label in above if label][: self.vertical - 1]
        symbol = PARENT.join((name, *known)) if name else ""
        below = [self.tree(child, ancestors) for child in bottom.children]
        if len(below) == 1:
            return Tree(symbol, below)
        return Tree(symbol, self.pairs(symbol, below, [_name(child) for child in bottom.children]))

    def pairs(self, symbol: str, children: Sequence[Tree], names: Sequence[str]) -> tuple[Tree, ...]:
        """Return the one or two trees below a symbol that stand for all children."""
        if self.pair and len(children) == 2:
            return tuple(children)
        rest: tuple[Tree, ...] = tuple(children[-2:]) if self.pair else (children[-1],)
        for at in range(len(children) - len(rest), 0, -1):
            first = 0 if self.horizontal is None else max(0, at - self.horizontal)
            memory = SIBLING + SIBLING.join(names[first:at]) if first < at else ""
            rest = (children[at - 1], Tree(f"{INTERMEDIATE}{symbol}{memory}", rest))
        return rest


def _name(tree: Tree) -> str:
    return tree.label


def _check(label: str) -> None:
    if label.startswith(INTERMEDIATE) or PARENT in label or CHAIN in label:
        raise ModelError(
            f"the label {label!r} contains a marker of binarised trees ('{INTERMEDIATE}' in front, "
            f"'{PARENT}' or '{CHAIN}'); rename it first"
        )


def labels_of(symbol: str) -> tuple[str, ...]:
    """Return the labels that a symbol of a binarised tree stands for, from the top.

    Examples
    --------
    >>> labels_of("S+VP^S"), labels_of("@NP/DT"), labels_of("")
    (('S', 'VP'), (), ())
    """
    if not symbol or symbol.startswith(INTERMEDIATE):
        return ()
    return tuple(symbol.split(PARENT)[0].split(CHAIN))


def unbinarise(tree: Tree) -> Tree:
    """Return the original of a binarised tree.

    Examples
    --------
    >>> unbinarise(Tree("S+VP", [Tree("VB", "swim"), Tree("@S+VP/VB", [Tree("RB", "fast")])]))
    Tree('(S (VP (VB swim) (RB fast)))')
    """
    labels = labels_of(tree.label) or (tree.label,)
    inner = Tree(labels[-1], tree.word if tree.word is not None else _spliced(tree))
    for label in reversed(labels[:-1]):
        inner = Tree(label, [inner])
    return inner


def _spliced(tree: Tree) -> Iterator[Tree]:
    for child in tree.children:
        if child.label.startswith(INTERMEDIATE):
            yield from _spliced(child)
        else:
            yield unbinarise(child)
