"""Bracketed treebank files, as in the Penn Treebank.

A file is a sequence of trees, ``(S (NP (NN fish)) (VP (VB swim)))``, over any number of lines. An outer
bracket without a label is removed. Traces (tags ``-NONE-``) are dropped, with the constituents
that they leave empty; a label such as ``NP-SBJ-1`` or ``NP=2`` is cut to its category. Both can be kept.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from typing import NoReturn

from tallytree.errors import ModelError
from tallytree.io.files import Readable, decoded, source, write_atomically
from tallytree.trees import Tree

TRACE = "-NONE-"
DEEPEST = 200
"""Maximum nesting; sentences have about thirty levels."""

_EXPANSION = 128  # bytes of trees per byte of text, at most: a bracket in a bracket

_TOKEN = re.compile(r"\(\s*([^\s()]+)?|\)|[^\s()]+")  # a bracket with its label
_CATEGORY = re.compile(r"^[^-=]+")  # -NONE-, -LRB- and -RRB- begin with the separator


def read_treebank(path: Readable, *, traces: bool = False, functions: bool = False) -> list[Tree]:
    """Read all trees of a file.

    Parameters
    ----------
    path : path
        The file, in UTF-8.
    traces, functions : bool
        Whether to keep traces, and what follows the category in a label. A tree with only traces is left out.

    Raises
    ------
    ModelError
        A bracket is malformed; the message gives the line and the column.
    """
    origin = source(path, _EXPANSION)
    text = decoded(origin)
    trees = (_prepared(tree, traces, functions) for tree in _read(text, origin.name))
    return [tree for tree in trees if tree is not None]


def parse_tree(text: str, *, traces: bool = False, functions: bool = False) -> Tree:
    """Read a single tree from a text.

    Examples
    --------
    >>> parse_tree("( (S (NP-SBJ (NN fish)) (VP (VB eat) (NP (-NONE- *)))) )")
    Tree('(S (NP (NN fish)) (VP (VB eat)))')
    >>> parse_tree("(S (NN fish)")
    Traceback (most recent call last):
    tallytree.errors.ModelError: text, line 1, column 1: the bracket '(S' is never closed
    """
    trees = list(_read(text, "text"))
    if len(trees) != 1:
        raise ModelError(f"expected the brackets of one tree, got {len(trees)}")
    tree = _prepared(trees[0], traces, functions)
    if tree is None:
        raise ModelError("the tree has only traces; read it with traces=True")
    return tree


def write_treebank(path: str | os.PathLike[str], trees: Iterable[Tree]) -> None:
    """Write trees to a file, one per line; brackets in words become ``-LRB-`` and ``-RRB-``."""
    write_atomically(path, [tree_line(tree) for tree in trees])


def without_traces(tree: Tree) -> Tree | None:
    """Return the tree without traces and the constituents that they leave empty; None if nothing is left."""
    if tree.is_tag:
        return None if tree.label == TRACE else tree
    children = [child for child in map(without_traces, tree.children) if child is not None]
    return Tree(tree.label, children) if children else None


def without_functions(tree: Tree) -> Tree:
    """Return the tree with only the category in each label.

    Examples
    --------
    >>> without_functions(Tree("NP-SBJ-1", [Tree("NN", "fish"), Tree("-LRB-", "(")])).label
    'NP'
    """
    match = _CATEGORY.match(tree.label)
    label = match.group() if match else tree.label
    return Tree(label, tree.word if tree.word is not None else map(without_functions, tree.children))


# --- reading ------------------------------------------------------------------------------------------------


def _prepared(tree: Tree, traces: bool, functions: bool) -> Tree | None:
    whole = tree if traces else without_traces(tree)
    if whole is None:
        return None
    while not whole.label and len(whole.children) == 1:
        whole = whole.children[0]
    return whole if functions else without_functions(whole)


class _Open:
    """A bracket that is still open."""

    def __init__(self, place: int, label: str) -> None:
        self.place, self.label = place, label
        self.children: list[Tree] = []
        self.words: list[str] = []


def _read(text: str, name: str) -> Iterator[Tree]:
    def refuse(place: int, problem: str) -> NoReturn:
        line = text.count("\n", 0, place) + 1
        column = place - (text.rfind("\n", 0, place) + 1) + 1
        raise ModelError(f"{name}, line {line}, column {column}: {problem}")

    stack: list[_Open] = []
    for found in _TOKEN.finditer(text):
        token, place = found.group(), found.start()
        if token.startswith("("):
            if len(stack) == DEEPEST:
                refuse(place, f"brackets are nested more than {DEEPEST} levels deep")
            stack.append(_Open(place, found.group(1) or ""))
        elif not stack:
            what = "a closing bracket" if token == ")" else f"'{token}'"
            refuse(place, f"{what} is outside all brackets")
        elif token != ")":
            stack[-1].words.append(token)
        else:
            tree = _closed(stack.pop(), refuse)
            if stack:
                stack[-1].children.append(tree)
            else:
                yield tree
    if stack:
        refuse(stack[-1].place, f"the bracket '({stack[-1].label}' is never closed")


def _closed(bracket: _Open, refuse: object) -> Tree:
    assert callable(refuse)
    if bracket.words and bracket.children:
        refuse(
            bracket.place,
            f"the bracket '({bracket.label}' contains words ({bracket.words[0]!r}) and brackets; each word "
            "needs a bracket with its tag",
        )
    if len(bracket.words) > 1:
        refuse(bracket.place, f"the tag '({bracket.label}' has more than one word: {' '.join(bracket.words)}")
    if not bracket.words and not bracket.children:
        refuse(bracket.place, f"the bracket '({bracket.label}' is empty")
    return Tree(bracket.label, bracket.words[0] if bracket.words else bracket.children)


def tree_line(tree: Tree) -> str:
    """Return a tree as one line of a treebank file."""
    for node in tree.nodes():
        text = node.tree.label + (node.tree.word or "")
        if re.search(r"\s", text) or node.tree.word == "" or re.search(r"[()]", node.tree.label):
            raise ModelError(
                f"labels and words in a treebank file have no spaces, and labels no brackets; got {text!r}"
            )
    return _escaped(tree)


def _escaped(tree: Tree) -> str:
    if tree.word is not None:
        word = tree.word.replace("(", "-LRB-").replace(")", "-RRB-")
        return f"({tree.label} {word})"
    return f"({tree.label} {' '.join(map(_escaped, tree.children))})"
