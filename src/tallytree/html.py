"""Small pieces of HTML for notebooks: tables, coloured labels and curves, with everything escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from tallytree.colours import INK, state_colour

_MOST = 400
_CELL = f"padding:1px 5px;border-radius:3px;color:{INK};text-align:center;"


def described(title: str, pairs: Iterable[tuple[str, object]]) -> str:
    """Return a title above a table of names and values.

    Examples
    --------
    >>> described("Model", [("variables", 3)])
    '<b>Model</b><table><tr><th style="text-align:left">variables</th><td>3</td></tr></table>'
    """
    lines = (
        f'<tr><th style="text-align:left">{escape(name)}</th><td>{escape(str(value))}</td></tr>'
        for name, value in pairs
    )
    return f"<b>{escape(title)}</b><table>{''.join(lines)}</table>"


def rows(heads: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """Return a table with a header row."""
    top = "".join(f"<th>{escape(head)}</th>" for head in heads)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(c))}</td>' for c in line)}</tr>" for line in lines)
    return f"<table><tr>{top}</tr>{body}</table>"


def cells(codes: Sequence[int], labels: Sequence[object], names: Sequence[str] | None, columns: int) -> str:
    """Return up to a few hundred labels on coloured backgrounds in ``columns`` columns (0: whatever fits)."""
    drawn = []
    for i, (code, label) in enumerate(zip(codes[:_MOST], labels[:_MOST], strict=True)):
        title = f' title="{escape(names[i])}"' if names is not None else ""
        drawn.append(
            f'<span{title} style="{_CELL}background:{state_colour(code)}">{escape(str(label))}</span>'
        )
    if len(codes) > _MOST:
        drawn.append(f"<span>… {len(codes) - _MOST} more</span>")
    style = (
        f"display:inline-grid;grid-template-columns:repeat({columns},auto)" if columns else "line-height:1.9"
    )
    return f'<div style="{style};gap:2px">{" ".join(drawn)}</div>'


def curve(xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return an SVG curve through the points."""
    width, height, edge = 320, 120, 8
    left, right, low, high = min(xs), max(xs), min(ys), max(ys)
    places = [
        (
            edge + (x - left) / ((right - left) or 1) * (width - 2 * edge),
            height - edge - (y - low) / ((high - low) or 1) * (height - 2 * edge),
        )
        for x, y in zip(xs, ys, strict=True)
    ]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    best = places[max(range(len(ys)), key=lambda i: ys[i])]
    return (
        f'<svg width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img">'
        f'<polyline points="{line}" fill="none" stroke="#0b6cb8" stroke-width="1.5"/>'
        f'<circle cx="{best[0]:.1f}" cy="{best[1]:.1f}" r="4" fill="#d1495b"/></svg>'
    )
