"""Several answers: a list that notebooks show as a table, with labels or trees."""

from __future__ import annotations

from typing import Protocol, TypeVar

from tallytree import html


class Shown(Protocol):
    """An answer that notebooks can show."""

    def shown(self) -> html.Parts:
        """Return its parts as HTML."""


Answer = TypeVar("Answer", bound=Shown)

_MOST = 10


class Answers(list[Answer]):
    """A list of solutions or parses, best first. A notebook shows the first ten as a table."""

    def _repr_html_(self) -> str:
        if not self:
            return "<i>an empty list</i>"
        parts = [one.shown() for one in self[:_MOST]]
        shown = [(dict(one.about), one.drawn) for one in parts]
        if any("value" in about for about, _ in shown):  # it is left out where it is the score
            shown = [({"value": about["score"], **about}, drawn) for about, drawn in shown]
        legend = {name: colour for one in parts for name, colour in one.legend.items()}
        return html.listing(shown, len(self), legend)
