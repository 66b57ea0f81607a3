"""Finite-state machines over the labels of a chain: regular constraints, and statistics that count patterns.

A statistic that does not decompose over neighbours (whole chunks, n-grams, subsequences) is a machine that
reads the labels and outputs integers (``machine.py``). Unrolled over the positions (``trellis.py``), it is
compiled into a model with more labels and local statistics (``encodings.py``), which the rest of the library
solves like any other. Patterns and automata (``patterns.py``, ``automata.py``) are machines that accept or
reject, and serve as constraints (``constraints.py``).
"""

from tallytree.transducers.automata import Automaton, Labels, Nfa, dfa
from tallytree.transducers.constraints import Regular, regular, transduce, valid_bio, valid_bioes
from tallytree.transducers.machine import Complement, Machine, Product

__all__ = [
    "Automaton",
    "Complement",
    "Labels",
    "Machine",
    "Nfa",
    "Product",
    "Regular",
    "dfa",
    "regular",
    "transduce",
    "valid_bio",
    "valid_bioes",
]


def __dir__() -> list[str]:
    return sorted(__all__)
