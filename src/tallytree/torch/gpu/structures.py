"""The arguments of kernels, in the form of C: numbers, packed in the order of the fields of a structure.

Fields are described by the letters of :mod:`struct`: ``P`` is an address, 0 if there is none, ``i`` an int,
``q`` an int64 and ``d`` a double.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct


def packing(*parts: str) -> Callable[..., bytes]:
    """Return the function that packs the numbers of a structure.

    Its parts are the fields of other structures, or its own ones. They begin and end where an address could:
    each structure has one.
    """
    return Struct("".join(f"0P{part}" for part in (*parts, ""))).pack


PADDED = "5P3i"
"""``Padded`` in ``kernels/sentences.cuh``: nodes, weights, start, end, lengths;
sentences, positions, shared."""
ENDS = "2P"
"""``Ends`` in ``kernels/looking.cuh``: mask, lengths."""
FINDINGS = "2Pi"
"""``Findings`` in ``kernels/words.cuh``: words, told; fatal."""
TOTAL = "Pd"
"""``Total`` in ``kernels/words.cuh``: total; divisor."""

Findings = tuple[int, int, int]
Total = tuple[int, float]
NO_FINDINGS: Findings = (0, 0, 0)
NO_TOTAL: Total = (0, 0.0)
