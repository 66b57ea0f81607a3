"""Plans as text and in notebooks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tallytree import html
from tallytree.planning.budget import listed, readable_bytes, readable_count
from tallytree.planning.program import step_at
from tallytree.values import counted

if TYPE_CHECKING:
    from tallytree.planning.plan import Plan


def printed(plan: Plan, *, search: bool = True) -> str:
    """Return the cost of a plan as text; `search`: also that of a single answer by bounds."""
    single = ", single precision" if plan.precision == "single" else ""
    lines = [
        f"plan for {counted(plan.skeleton.variables, 'variable')} and {listed(plan.names)}",
        f"  width τ = {plan.width}, degree ν = {plan.degree}, tallies R = {plan.tallies:,} ({plan.mode})",
        f"  {counted(plan.skeleton.step_count, 'step')}, "
        f"{counted(plan.operations, 'add-max operation', readable_count(plan.operations))}",
        f"  {_memory('at the peak (limit', plan)}{single}; decoding keeps {plan.kept}",
    ]
    if plan.layout.unrolled_bytes:
        everything = readable_bytes(plan.every_table_bytes)
        lines.append(f"  marginals, samples and labellings in order keep all tables: {everything}")
    if plan.pruned is None and plan.mode == "cells" and plan.most_listed_bytes < plan.limit:
        lines.append("  the constraint rules out most of the tallies in all tables")
    elif plan.pruned is None:
        lines.append("  the constraint makes it fit: all tallies would exceed the limit")
    elif plan.pruned:
        total = plan.pruned + int(plan.tables[:, 2].sum())
        lines.append(f"  the constraint rules out {plan.pruned:,} of {counted(total, 'tally')} in all tables")
    if plan.layout.costliest >= 0:
        lines.append(f"  costliest step: {_costliest(plan)}")
    if search and plan.search is not None:
        lines.append(f"  single answer by bounds: {plan.search}")
    return "\n".join(lines)


def _memory(words: str, plan: Plan) -> str:
    return f"{readable_bytes(plan.peak_bytes)} {words} {readable_bytes(plan.limit)})"


def _costliest(plan: Plan) -> str:
    costliest = plan.layout.costliest
    share = plan.layout.step_operations[costliest] / max(plan.operations, 1)
    states, _, tallies = plan.tables[costliest][:3].tolist()
    step, part = step_at(plan.skeleton, costliest), "less than 1%" if share < 0.005 else f"{share:.0%}"
    return f"{step}: {counted(states, 'state')} x {counted(tallies, 'tally')}, {part} of the operations"


def shown(plan: Plan) -> str:
    """Return the cost of a plan for a notebook."""
    rows: list[tuple[str, object]] = [
        ("width τ", plan.width),
        ("degree ν", plan.degree),
        ("tallies R", f"{plan.tallies:,} ({plan.mode})"),
        ("steps", f"{len(plan.steps):,}"),
        ("add-max operations", readable_count(plan.operations)),
        ("memory at the peak", _memory("(limit", plan)),
        ("decoding keeps", plan.kept),
    ]
    if plan.layout.unrolled_bytes:
        rows.append(("memory with all tables", readable_bytes(plan.every_table_bytes)))
    rows.append(("precision", plan.precision))
    if plan.search is not None:
        rows.append(("single answer by bounds", str(plan.search)))
    return html.described(f"Plan for {counted(len(plan.order), 'variable')} and {listed(plan.names)}", rows)
