"""Parse trees, alone or next to the true one, with correct and wrong constituents in different colours."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tallytree.errors import ModelError
from tallytree.plot.canvas import ROW, axes, figure, tiles
from tallytree.plot.inks import Inks, inks, mixed
from tallytree.trees import Constituent, Tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_CHARACTER, _LEVEL = 0.095, 0.46  # inches
_WIDEST = 24.0


def tree_picture(tree: Tree, *, gold: Tree | None = None, ax: Axes | None = None) -> Axes:
    """Draw a parse tree.

    Parameters
    ----------
    tree : Tree
        As returned by :func:`tallytree.parsing.parse_tree` and parsers.
    gold : Tree, optional
        The true tree over the same words: constituents that it also has are green, others red. If a label
        occurs more often over the same words than it should, the extra ones are red.
    ax : matplotlib Axes, optional
        The axes to draw on; by default the current axes if they are empty, or a new figure large
        enough for the sentence.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.plot import tree_picture
    >>> tree = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))")
    >>> ax = tree_picture(tree)
    >>> [text.get_text() for text in ax.texts][:4]
    ['S', 'NP', 'NN', 'fish']
    """
    places = _placed(tree)
    canvas = axes(ax, *_size(places), shared=False)
    _draw(canvas, places, gold)
    return canvas  # type: ignore[no-any-return]


def trees_side_by_side(
    trees: Sequence[Tree], *, titles: Sequence[str] | None = None, compare: bool = True
) -> list[Axes]:
    """Plot trees of one sentence next to each other, in several rows if they are wide.

    The others are compared with the first.

    Parameters
    ----------
    trees : sequence of Tree
        Trees over the same words; the true one comes first.
    titles : sequence of str, optional
        One for each tree; by default the number of correct constituents.
    compare : bool
        Whether to colour correct and wrong constituents. In the first tree, constituents that no other tree
        has are red as well: they were missed by all.

    Examples
    --------
    >>> import tallytree as tt
    >>> from tallytree.plot import trees_side_by_side
    >>> right = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat) (NP (NN fish))))")
    >>> wrong = tt.parsing.parse_tree("(S (NP (NN fish)) (VP (VB eat)) (NP (NN fish)))")
    >>> [ax.get_title() for ax in trees_side_by_side([right, wrong])]
    ['4 constituents', '3 of 4 right']
    """
    if not trees:
        raise ModelError("there is nothing to plot: the sequence of trees is empty")
    names = _titles(trees) if titles is None else list(titles)
    if len(names) != len(trees):
        raise ModelError(f"{len(trees)} trees need as many titles, got {len(names)}")
    placed = [_placed(tree) for tree in trees]
    canvases = _canvases([_size(places) for places in placed])
    for number, (ax, places, name) in enumerate(zip(canvases, placed, names, strict=True)):
        gold = None if not compare or len(trees) == 1 else trees[0] if number else _union(trees[1:])
        _draw(ax, places, gold)
        ax.set_title(name, fontsize=10)
    _level(canvases)
    return list(canvases)


def _canvases(sizes: Sequence[tuple[float, float]]) -> list[Any]:
    """Return axes for pictures of these sizes: in one row if they fit, otherwise in several."""
    high, widths = max(height for _, height in sizes), [width for width, _ in sizes]
    if sum(widths) > ROW:
        return tiles(len(sizes), max(widths), high + 0.3)
    drawn = figure(sum(widths), high + 0.3)
    return list(drawn.subplots(1, len(sizes), squeeze=False, width_ratios=widths)[0])


# --- where everything is ------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """A node: its label and span, where it is, where its parent is, and whether it is a word or a tag."""

    label: str
    span: tuple[int, int]
    x: float
    y: float
    parent: tuple[float, float] | None
    kind: str  # "word", "tag", "constituent" or "" for a node without a label


def _placed(tree: Tree) -> list[_Place]:
    """Put words on a line, spaced by their letters, and nodes above the middle of their children."""
    ends, centres = 0.0, []
    for word, tag in tree.tagged:
        room = max(len(word), len(tag), 2) + 1.5
        centres.append(ends + room / 2)
        ends += room
    return _below(tree, 0, centres)


def _below(node: Tree, start: int, centres: Sequence[float]) -> list[_Place]:
    """Return a node and all below it, each before its children."""
    span = (start, start + len(node))
    if node.word is not None:
        x = centres[start]
        word = _Place(node.word, span, x, 0.0, (x, 1.0), "word")
        return [_Place(node.label, span, x, 1.0, None, "tag"), word]
    parts = []
    for child in node.children:
        parts.append(_below(child, start, centres))
        start += len(child)
    tops = [part[0] for part in parts]
    here = ((tops[0].x + tops[-1].x) / 2, max(top.y for top in tops) + 1)
    for part in parts:
        part[0] = part[0]._replace(parent=here)
    own = _Place(node.label, span, *here, None, "constituent" if node.label else "")
    return [own, *(place for part in parts for place in part)]


def _size(places: Sequence[_Place]) -> tuple[float, float]:
    wide = max(place.x for place in places) + 4
    return min(max(_CHARACTER * wide, 2.2), _WIDEST), _LEVEL * (max(place.y for place in places) + 1)


# --- colours ------------------------------------------------------------------------------------------------


def _colours(places: Sequence[_Place], gold: Tree | Counter[Constituent] | None, ink: Inks) -> list[str]:
    """Return the colour of each node."""
    grey = mixed(ink.paper, ink.text, 0.6)
    plain = {"word": ink.text, "tag": grey, "constituent": ink.text, "": ink.pale}
    if gold is None:
        return [plain[place.kind] for place in places]
    left = Counter(gold.constituents() if isinstance(gold, Tree) else gold)
    words = sum(place.kind == "word" for place in places)
    if isinstance(gold, Tree) and len(gold) != words:
        raise ModelError(f"the true tree has {len(gold)} words, but this one has {words}")
    colours = []
    for place in places:
        key = Constituent(place.label, *place.span)
        marked = ink.right if left[key] else ink.accent
        colours.append(plain[place.kind] if place.kind != "constituent" else marked)
        left[key] -= left[key] > 0 and place.kind == "constituent"
    return colours


def _union(trees: Sequence[Tree]) -> Counter[Constituent]:
    seen: Counter[Constituent] = Counter()
    for tree in trees:
        seen |= tree.constituents()
    return seen


def _titles(trees: Sequence[Tree]) -> list[str]:
    gold = trees[0].constituents()
    correct = [(tree.constituents(), (tree.constituents() & gold).total()) for tree in trees[1:]]
    return [f"{gold.total()} constituents", *(f"{right} of {own.total()} right" for own, right in correct)]


# --- drawing ------------------------------------------------------------------------------------------------


def _draw(ax: Any, places: Sequence[_Place], gold: Tree | Counter[Constituent] | None) -> None:
    ax.set_axis_off()
    ink = inks(ax)
    for place, colour in zip(places, _colours(places, gold, ink), strict=True):
        if place.parent is not None:
            x, y = place.parent
            bend = y - 0.45  # at right angles: spans do not overlap, so no edge crosses another label
            line = ink.faint if place.kind == "word" else ink.pale
            ax.plot([place.x, place.x, x, x], [place.y, bend, bend, y], color=line, linewidth=1.3, zorder=1)
        box = {"boxstyle": "round,pad=0.18", "facecolor": ink.paper, "edgecolor": "none"}
        style = {"fontsize": 9, "ha": "center", "va": "center", "zorder": 2, "bbox": box, "color": colour}
        if place.kind == "word":
            style |= {"fontstyle": "italic"}
        elif place.kind == "constituent":
            style |= {"fontweight": "bold"}
        ax.text(place.x, place.y, place.label, **style)
    ax.set_xlim(0, max(place.x for place in places) + 4)
    ax.set_ylim(-0.5, max(place.y for place in places) + 0.5)


def _level(canvases: Sequence[Any]) -> None:
    """Put the words of all trees on one line."""
    top = max(ax.get_ylim()[1] for ax in canvases)
    for ax in canvases:
        ax.set_ylim(-0.5, top)
