"""Parse trees.

A tree has a label and either children or a single word. Trees directly above words are **tags**; all others
are **constituents**, identified by their label and the words they span, ``(label, start, end)``, where
``end`` is exclusive. A node with an empty label groups trees without being a constituent, like
the outermost bracket in a treebank file.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import NamedTuple, final

from tallytree.errors import ModelError


class Constituent(NamedTuple):
    """A labelled span of words."""

    label: str
    start: int
    end: int


class Node(NamedTuple):
    """A subtree: its position, and the number of constituents above it."""

    tree: Tree
    start: int
    end: int
    depth: int


@final
class Tree:
    """An immutable parse tree.

    Parameters
    ----------
    label : str
        The label of the root; empty for a node that is not a constituent.
    children : iterable of Tree, or str
        The subtrees, at least one; or the word below a tag.

    Examples
    --------
    >>> tree = Tree("S", [Tree("NP", [Tree("NN", "fish")]), Tree("VP", [Tree("VB", "swim")])])
    >>> tree
    Tree('(S (NP (NN fish)) (VP (VB swim)))')
    >>> tree.words
    ('fish', 'swim')
    >>> sorted(tree.constituents())
    [Constituent(label='NP', start=0, end=1), Constituent(label='S', start=0, end=2), \
Constituent(label='VP', start=1, end=2)]
    """

    label: str
    children: tuple[Tree, ...]
    word: str | None
    _length: int

    def __init__(self, label: str, children: Iterable[Tree] | str) -> None:
        word = children if isinstance(children, str) else None
        below = () if isinstance(children, str) else tuple(children)
        if not isinstance(label, str):
            raise ModelError(f"the label of a tree must be a string, got {label!r}")
        if word is None and not below:
            raise ModelError(f"the tree '{label}' has neither children nor a word")
        wrong = next((child for child in below if not isinstance(child, Tree)), None)
        if wrong is not None:
            raise ModelError(
                f"the children of '{label}' must be trees, got {wrong!r}; a word is given on its own, as "
                "in Tree('NN', 'fish')"
            )
        length = 1 if word is not None else sum(map(len, below))
        self.__dict__.update(label=label, children=below, word=word, _length=length)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: a Tree is immutable; create a new one")

    @property
    def is_tag(self) -> bool:
        """Whether it is directly above a word."""
        return self.word is not None

    def nodes(self) -> Iterator[Node]:
        """Iterate over all nodes, parents before children, from left to right."""
        waiting = [(self, 0, 0)]
        while waiting:
            tree, start, depth = waiting.pop()
            at = start + tree._length
            yield Node(tree, start, at, depth)
            if tree.children:
                depth += bool(tree.label)
                for child in reversed(tree.children):
                    at -= child._length
                    waiting.append((child, at, depth))

    def __len__(self) -> int:
        """Return the number of words."""
        return self._length

    @cached_property
    def tagged(self) -> tuple[tuple[str, str], ...]:
        """The words with their tags, from left to right."""
        return tuple((node.tree.word, node.tree.label) for node in self.nodes() if node.tree.word is not None)

    @property
    def words(self) -> tuple[str, ...]:
        """The words, from left to right."""
        return tuple(word for word, _ in self.tagged)

    @property
    def tags(self) -> tuple[str, ...]:
        """The label above each word."""
        return tuple(tag for _, tag in self.tagged)

    def constituents(self) -> Counter[Constituent]:
        """Return each constituent with its count; tags and empty labels are not constituents."""
        return Counter(
            Constituent(node.tree.label, node.start, node.end)
            for node in self.nodes()
            if node.tree.label and not node.tree.is_tag
        )

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Tree) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    @cached_property
    def _text(self) -> str:
        parts: list[str] = []
        waiting: list[Tree | str] = [self]  # no recursion: trees may be deep
        while waiting:
            part = waiting.pop()
            if isinstance(part, str):
                parts.append(part)
            else:
                parts.append(f"({part.label}")
                waiting.append(")" if part.word is None else f" {part.word})")
                for child in reversed(part.children):
                    waiting += (child, " ")
        return "".join(parts)

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"Tree({str(self)!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return Tree, (self.label, self.children if self.word is None else self.word)

    def pretty(self, indent: int = 0) -> str:
        """Return the tree in bracket notation, one constituent per line.

        Examples
        --------
        >>> print(Tree("S", [Tree("NP", [Tree("NN", "fish")]), Tree("VB", "swim")]).pretty())
        (S
          (NP (NN fish))
          (VB swim))
        """
        if self.is_tag or all(child.is_tag for child in self.children):
            return " " * indent + str(self)
        lines = [" " * indent + f"({self.label}", *(child.pretty(indent + 2) for child in self.children)]
        return "\n".join(lines) + ")"
