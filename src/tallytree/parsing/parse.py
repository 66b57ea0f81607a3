"""A parse: a tree, its value, and the proof that it is optimal.

Every tree decoded from a chart is checked: its score, added up from the steps of its derivation, equals
that of the chart, and its tally, counted on the tree by definition, is the requested one. That
nothing better exists follows from the chart, which covers every tree, or every relevant tree, as its
certificate says.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace
from html import escape
from typing import Any, NamedTuple, Self

from tallytree import html
from tallytree.answers.certificate import AnyCertificate, Claim
from tallytree.answers.tallies import tally_type
from tallytree.planning.budget import readable_bytes, readable_count
from tallytree.planning.charts import ChartLayout
from tallytree.trees import Tree
from tallytree.values import counted


class ChartPrice(NamedTuple):
    """The cost of a chart; print it to read it.

    Attributes
    ----------
    words, symbols : int
        Of the sentence and the grammar.
    items : int
        The number of symbols over spans.
    tallies : int
        The largest number of tallies of a span.
    operations : float
        The number of additions and comparisons of the upward pass.
    peak_bytes : int
        The memory of the chart and its plan.
    """

    words: int
    symbols: int
    items: int
    tallies: int
    operations: float
    peak_bytes: int

    @classmethod
    def of(cls, layout: ChartLayout, symbols: int) -> ChartPrice:
        """Return the cost of a layout."""
        return cls(layout.words, symbols, layout.items, layout.most_tallies, layout.operations, layout.bytes)

    def __str__(self) -> str:
        return (
            f"{counted(self.symbols, 'symbol')}, {counted(self.items, 'item')}, "
            f"tallies R = {self.tallies:,}, {readable_count(self.operations)} add-max operations, "
            f"{readable_bytes(self.peak_bytes)}"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeCertificate(AnyCertificate):
    """Why a tree is optimal; print it to read it.

    Attributes
    ----------
    optimal, claim, score, promised, allowance, tally
        As for :class:`tallytree.Certificate`.
    price : ChartPrice
        The cost of the chart.
    """

    price: ChartPrice

    def __str__(self) -> str:
        trees = f"every tree of {counted(self.price.words, 'word')}"
        lines = self.attained("added up again from its rules and words", "chart's")
        return "\n".join((*lines, f"  the chart covers {trees}: {self.price}"))


def tree_certificate(
    claim: Claim,
    score: float,
    promised: float,
    allowance: float,
    tally: Any,
    price: ChartPrice,
) -> TreeCertificate:
    """Assemble the certificate of a tree."""
    return TreeCertificate(
        optimal=True,
        claim=claim.words("tree"),
        score=score,
        promised=promised,
        allowance=allowance,
        tally=dict(zip(tally._fields, tally, strict=True)),
        price=price,
    )


@dataclass(frozen=True)
class Parse:
    """A tree with its certificate.

    Attributes
    ----------
    value : float
        The value of the objective at the optimum; the score if there is no objective.
    score : float
        The score of the tree.
    tally : named tuple of int
        The tally of each statistic, by name and in order: ``tally.nouns``, ``tally["PP$"]``, ``tally[0]``.
    tree : Tree
        The tree.
    certificate : TreeCertificate, TreeBoundsCertificate or None
        Why it is optimal: by a chart of all tallies, or by bounds.

    Examples
    --------
    >>> import tallytree as tt
    >>> rules = {("N", "N", "N"): -1.0}
    >>> forest = tt.parsing.Forest(tt.parsing.Grammar(rules, {}, {"N": {"a": 0.0}}, root="N"), "a a a")
    >>> print(forest.best().explain())
    optimal: no tree has a higher score
      added up again from its rules and words, it has the score -2;
      the chart's score is the same
      the chart covers every tree of 3 words: 1 symbol, 12 items, tallies R = 1, ...
    """

    value: float
    score: float
    tally: Any
    tree: Tree
    certificate: AnyCertificate | None = field(default=None, repr=False, compare=False)

    def explain(self) -> str:
        """Explain in a few lines why it is optimal."""
        return str(self.certificate or "no certificate: this tree was not found by inference")

    def bounded(self, value: float, gap: float) -> Self:
        """Return the same tree with its own value, which may be below the optimum by a gap."""
        assert self.certificate is not None
        return replace(self, value=value, certificate=replace(self.certificate, gap=gap))

    def claiming(self, text: str) -> Self:
        """Return the same tree, found in the same way, with another claim."""
        assert self.certificate is not None
        return replace(self, certificate=replace(self.certificate, claim=Claim(text).words("tree")))

    def _repr_html_(self) -> str:
        """Show the parse in a notebook."""
        parts = self.shown()
        return html.described(type(self).__name__, parts.about) + parts.drawn

    def shown(self) -> html.Parts:
        """Return what a notebook shows: value, score and tally, and the tree in brackets."""
        about: list[tuple[str, object]] = html.scored(self.value, self.score)
        about += zip(self.tally._fields, self.tally, strict=True)
        return html.Parts(about, f"<pre>{escape(self.tree.pretty())}</pre>")

    def __reduce__(self) -> tuple[Any, ...]:
        content = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "tally"}
        names = getattr(self.tally, "_fields", ())  # tally types are created on demand, not by name
        return _restored, (type(self), names, tuple(self.tally), content)


def _restored(kind: type[Parse], names: tuple[str, ...], tally: tuple[int, ...], content: Any) -> Parse:
    return kind(tally=tally_type(tuple(names))(*tally), **content)


def no_tally() -> Any:
    """Return the tally of no statistics."""
    return tally_type(())()
