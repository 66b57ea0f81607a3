"""Files: models and problems of our own, and in the formats that other tools write."""

from .problem_reading import read_problem
from .problem_writing import problem_schema, write_problem
from .problems import Parameter, Problem
from .uai import read_uai, write_uai

__all__ = [
    "Parameter",
    "Problem",
    "problem_schema",
    "read_problem",
    "read_uai",
    "write_problem",
    "write_uai",
]
