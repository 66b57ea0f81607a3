"""Expressions of statistics, and the constraints that comparing them builds.

An expression is ``Σ_p c_p · G_p + d`` with integer coefficients; a constraint compares one with an integer,
or joins constraints.
"""

from tallytree.core.expressions.constraints import And, Constraint, Or, Reducing, as_constraint, local_part
from tallytree.core.expressions.linear import (
    Comparison,
    Counted,
    Domain,
    Expression,
    Linear,
    Operand,
    Relation,
    Term,
)

__all__ = [
    "And",
    "Comparison",
    "Constraint",
    "Counted",
    "Domain",
    "Expression",
    "Linear",
    "Operand",
    "Or",
    "Reducing",
    "Relation",
    "Term",
    "as_constraint",
    "local_part",
]
