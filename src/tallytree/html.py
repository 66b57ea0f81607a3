"""Small pieces of HTML for notebooks: tables, coloured labels and curves, with everything escaped.

Text has the colour of the notebook, and lines are visible on white as well as on black.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tallytree.colours import INK, state_colour
from tallytree.values import abbreviated, counted

_MOST = 400  # cells of a grid with text
_MOST_IN_A_ROW = 60  # cells of a sequence with text
_MOST_SQUARES = 4000
_MOST_COLUMNS = 30  # of cells with text
_LONGEST = 40  # letters of a name
_BEST = 10  # rows of a table of tallies
_THINNEST = 4  # pixels from bar to bar
_NEGLIGIBLE = 1e-5  # of the mass
LINE, DOT = "#2f80c4", "#d1495b"
_CELL = (
    "display:inline-block;box-sizing:content-box;line-height:1.4;padding:1px 5px;border-radius:3px;"
    f"text-align:center;font-family:ui-monospace,monospace;color:{INK};"
)
_SQUARE = "width:9px;height:9px;"
_PATCH = f"display:inline-block;{_SQUARE}margin-right:4px;"


class Parts(NamedTuple):
    """What is shown of an answer: names and values, a drawing, and its colours that have no text, by name."""

    about: list[tuple[str, object]]
    drawn: str
    legend: Mapping[str, str] = {}


def described(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Return a title above a table of names and values.

    Examples
    --------
    >>> described("Model", [("variables", 3)])
    '<b>Model</b><table><tr><th style="text-align:left">variables</th><td>3</td></tr></table>'
    """
    lines = (
        f'<tr><th style="text-align:left"{_full(name)}>{_short(name)}</th><td>{escape(str(value))}</td></tr>'
        for name, value in pairs
    )
    return f"<b>{escape(title)}</b><table>{''.join(lines)}</table>"


def _short(name: str) -> str:
    return escape(abbreviated(name, _LONGEST))


def _full(name: str) -> str:
    """Return the attribute that shows a long name when the mouse is over it."""
    return f' title="{escape(name)}"' if len(name) > _LONGEST else ""


def scored(value: float, score: float) -> list[tuple[str, object]]:
    """Return the score as a pair for :func:`described`, after the value if that differs in six digits."""
    shown = [("value", f"{value:.6g}"), ("score", f"{score:.6g}")]
    return [pair for pair in shown if pair[0] == "score" or pair[1] != shown[1][1]]


def rows(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table with a header row."""
    top = "".join(f"<th{_full(head)}>{_short(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(c))}</td>' for c in line)}</tr>" for line in lines)
    return f"<table><tr>{top}</tr>{body}</table>"


def ranking(
    kind: str,
    names: Sequence[str],
    tallies: NDArray[np.int64],
    values: NDArray[np.float64],
    noun: str,
    given: object = None,
) -> str:
    """Return a title, a picture if there is one statistic, and the tallies with the largest values.

    The values of a ``Distribution`` are bars, all others a curve. `given`: what they are conditional on.
    """
    title = f"{kind} of {', '.join(map(_short, names))}" if names else kind
    condition = "" if given is None else f" given {escape(str(given))}"
    if not len(values):
        return f"<b>{title}{condition}: empty, because every labelling is forbidden</b>"
    best = np.argsort(-values, kind="stable")[:_BEST]
    best = np.sort(best) if len(names) == 1 else best  # like the picture, from left to right
    lines = ([*tallies[row].tolist(), f"{values[row]:.6g}"] for row in best)
    table = rows([*names, noun], lines) if names or noun != "probability" else ""  # it would be 1
    picture = curve(tallies[:, 0], values, bars=kind == "Distribution") if len(names) == 1 else ""
    which = "most probable" if noun == "probability" else "best"
    order = f"sorted by {_short(names[0]) if len(names) == 1 else noun}"
    more = f"<i>the {len(best)} {which} of {len(values):,}, {order}</i>" if len(values) > len(best) else ""
    number = f": {counted(len(values), 'tally')}" if names else ""
    return f"<b>{title}{condition}{number}</b><br>{picture}{table}{more}"


def listing(items: Sequence[tuple[Mapping[str, object], str]], count: int, legend: Mapping[str, str]) -> str:
    """Return a table with a row for each of the first few of `count` items: its values, then its drawing.

    `legend`: the colours that have no text, by name.

    Examples
    --------
    >>> print(listing([({"score": 2}, "<b>drawn</b>")], 7, {}))
    <table><tr><th>score</th>...<td>2</td>...<b>drawn</b></td></tr></table><i>the first 1 of 7</i>
    """
    heads = list(dict.fromkeys(name for about, _ in items for name in about))
    top = "".join(f"<th{_full(head)}>{_short(head)}</th>" for head in heads)
    lines = []
    for about, drawn in items:
        values = "".join(f"<td>{escape(str(about.get(head, '')))}</td>" for head in heads)
        lines.append(f'<tr>{values}<td style="text-align:left">{drawn}</td></tr>')
    more = f"<i>the first {len(items)} of {count:,}</i>" if count > len(items) else ""
    return f"<table><tr>{top}<th></th></tr>{''.join(lines)}</table>{key(legend)}{more}"


def key(legend: Mapping[str, str]) -> str:
    """Return a line with the colours of a legend and their names; nothing if there are none.

    Examples
    --------
    >>> key({}), key({"wet": "#f2b134"}).endswith('background:#f2b134"></i>wet</div>')
    ('', True)
    """
    found = (f'<i style="{_PATCH}background:{colour}"></i>{_short(name)}' for name, colour in legend.items())
    between = "\u2003"  # an em space
    return f'<div style="margin-top:3px">{between.join(found)}</div>' if legend else ""


def untold(count: int, columns: int) -> bool:
    """Whether a grid or a sequence is so large that its cells are squares without text."""
    return count > (_MOST if columns else _MOST_IN_A_ROW) or columns > _MOST_COLUMNS


def cells(
    codes: Sequence[int], labels: Sequence[object], names: Sequence[str] | None, columns: int, letters: int
) -> str:
    """Return labels on coloured backgrounds in ``columns`` columns (0: whatever fits).

    Large grids and long sequences are small squares without text, whose names appear under the mouse.
    `letters`: the length of the longest label there could be, so that several labellings align.
    """
    squares = untold(len(codes), columns)
    cell = _SQUARE if squares else f"{_CELL}min-width:{min(letters, _LONGEST)}ch;"
    most = _MOST_SQUARES if squares else _MOST
    drawn = []
    for i, (code, label) in enumerate(zip(codes[:most], map(str, labels[:most]), strict=True)):
        about = ([names[i]] if names is not None else []) + ([label] if squares or _full(label) else [])
        title = f' title="{escape(": ".join(about))}"' if about else ""
        style = f"{cell}background:{state_colour(code)}"
        drawn.append(f'<span{title} style="{style}">{"" if squares else _short(label)}</span>')
    more = f"<span>… {len(codes) - most} more</span>" if len(codes) > most else ""
    if squares:
        return _grid("".join(drawn), columns, "9px", 1) + more
    return _grid(" ".join([*drawn, more]), columns, "auto", 2)


def _grid(content: str, columns: int, width: str, gap: int) -> str:
    layout = "line-height:1.9" if width == "auto" else "display:flex;flex-wrap:wrap"
    if columns:
        layout = f"display:inline-grid;grid-template-columns:repeat({columns},{width})"
    return f'<div style="max-width:100%;overflow-x:auto;{layout};gap:{gap}px">{content}</div>'


def curve(xs: NDArray[np.int64], ys: NDArray[np.float64], *, bars: bool = False) -> str:
    """Return an SVG curve through the points, or bars, with the ends of both scales and a dot on the best.

    If there are so many bars that they would be thin, only those with the mass are shown.
    """
    width, height, left, bottom, edge = 360, 140, 62, 18, 8
    if bars and np.ptp(xs) > (width - left - edge) / _THINNEST:
        shown = _with_the_mass(ys)
        xs, ys = xs[shown], ys[shown]
    low, high = 0.0 if bars else float(ys.min()), float(ys.max())
    step = (width - left - edge) / (int(np.ptp(xs)) or 1)
    across = left + (xs - xs.min()) * step
    up = height - bottom - (ys - low) * ((height - bottom - edge) / ((high - low) or 1))
    best, thick = int(ys.argmax()), float(np.clip(0.7 * step, 1, 14)) if bars else 0.0
    places = [(across[i], up[i]) for i in sorted({*range(0, len(xs), 1 + len(xs) // width), best})]
    if bars:
        drawn = "".join(f"M{x:.1f},{height - bottom}V{y:.1f}" for x, y in places)
        line = f'<path d="{drawn}" stroke="{LINE}" stroke-width="{thick:.1f}"/>'
    else:
        points = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        line = f'<polyline points="{points}" fill="none" stroke="{LINE}" stroke-width="1.5"/>'
    dot = f'<circle cx="{across[best]:.1f}" cy="{up[best]:.1f}" r="4" fill="{DOT}"/>'
    beside = left - 6 - thick / 2
    ends = [(beside, height - bottom, "end", low), (beside, edge + 8, "end", high)]
    ends += [(left, height - 4, "start", xs.min()), (width - edge, height - 4, "end", xs.max())]
    texts = "".join(_scale(*end) for end in ends)
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    return f'<svg {size} role="img" fill="currentColor" font-size="11">{line}{dot}{texts}</svg>'


def _with_the_mass(probabilities: NDArray[np.float64]) -> slice:
    """Return the range of bars with all but a negligible part of the mass at either end.

    Examples
    --------
    >>> _with_the_mass(np.array([1e-9, 1e-4, 0.5, 0.4999, 1e-9]))
    slice(1, 4, None)
    """
    below, above = probabilities.cumsum(), probabilities[::-1].cumsum()
    first, last = (int((tail < _NEGLIGIBLE).sum()) for tail in (below, above))
    return slice(first, len(probabilities) - last)


def _scale(x: float, y: float, anchor: str, value: float) -> str:
    return f'<text x="{x:g}" y="{y}" text-anchor="{anchor}">{value:.4g}</text>'
