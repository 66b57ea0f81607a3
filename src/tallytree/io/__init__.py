"""Reading and writing files: problem files, models in formats of other tools, and sentences in columns."""

from typing import TYPE_CHECKING

from tallytree.deprecation import renamed

from .cfn import read_cfn
from .cfn_writing import write_cfn
from .conll import Token, iter_conll, read_conll, read_conllu
from .files import Source
from .graphs import ContractionPath, from_networkx, to_networkx
from .network_writing import CostScale
from .pgmpy import from_pgmpy, to_pgmpy
from .problem_parts import Parameter
from .problem_reading import read_problem
from .problem_writing import problem_schema, write_problem
from .problems import ProblemFile
from .uai import read_uai, write_uai
from .wcsp import read_wcsp, write_wcsp

__all__ = [
    "ContractionPath",
    "CostScale",
    "Parameter",
    "ProblemFile",
    "Source",
    "Token",
    "from_networkx",
    "from_pgmpy",
    "iter_conll",
    "problem_schema",
    "read_cfn",
    "read_conll",
    "read_conllu",
    "read_problem",
    "read_uai",
    "read_wcsp",
    "to_networkx",
    "to_pgmpy",
    "write_cfn",
    "write_problem",
    "write_uai",
    "write_wcsp",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # type checkers only see the new names
    __getattr__ = renamed(__name__, {"Problem": "ProblemFile"})
