"""Learning: structural SVMs and CRFs for the loss that matters, with exact inference and a certified gap.

It has additional dependencies: ``pip install "tallytree[learn]"``.
"""

from typing import TYPE_CHECKING

try:
    import clarabel as _clarabel  # noqa: F401
    import scipy as _scipy  # noqa: F401
    import sklearn as _sklearn  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"tallytree.learning needs {error.name}; install it with pip install 'tallytree[learn]'",
        name=error.name,
    ) from error

from tallytree.deprecation import renamed
from tallytree.learning.bound_descent import Descent, minimise_bound
from tallytree.learning.corpus import sample_sentences
from tallytree.learning.cutting_planes import CuttingPlanes
from tallytree.learning.decoding import (
    BestDecoder,
    Decoder,
    ExpectedFBeta,
    KBestDecoder,
    MaxBrackets,
    MaxExpected,
)
from tallytree.learning.expected import Choice
from tallytree.learning.frank_wolfe import FrankWolfe
from tallytree.learning.graph_crf import GraphCRF
from tallytree.learning.graph_svm import GraphSVM
from tallytree.learning.graphs import Graph, GraphProblem, grid_graph, label_graphs
from tallytree.learning.inference import Diverse, TopTallies
from tallytree.learning.metrics import (
    CorpusScore,
    Scorer,
    accuracy,
    accuracy_scorer,
    chunk_f1_scorer,
    corpus_f,
    corpus_score,
    token_f1_scorer,
)
from tallytree.learning.oracle import ExactOracle, Oracle
from tallytree.learning.planes import Plane
from tallytree.learning.problem import TrainingProblem, check_problem
from tallytree.learning.progress import Progress, RunOptions
from tallytree.learning.sequence_crf import SequenceCRF
from tallytree.learning.sequence_svm import SequenceSVM
from tallytree.learning.sequences import SequenceProblem
from tallytree.learning.solver import Solver
from tallytree.learning.storage import load, save
from tallytree.learning.stored import StoredSequences, store_sequences
from tallytree.learning.subgradient import Subgradient
from tallytree.learning.templates import CHUNKING, TAGGING, WindowFeatures, templated, word_parts
from tallytree.learning.training import Trained, regularisation_path, train
from tallytree.learning.tree_crf import TreeCRF
from tallytree.learning.tree_features import TreeFeatures
from tallytree.learning.tree_grammar import Binarisation, TreebankGrammar
from tallytree.learning.tree_model import TreeModel
from tallytree.learning.tree_svm import TreeSVM
from tallytree.learning.trees import TreeProblem

__all__ = [
    "BestDecoder",
    "Binarisation",
    "CHUNKING",
    "Choice",
    "CorpusScore",
    "CuttingPlanes",
    "Decoder",
    "Descent",
    "Diverse",
    "ExactOracle",
    "ExpectedFBeta",
    "FrankWolfe",
    "Graph",
    "GraphCRF",
    "GraphProblem",
    "GraphSVM",
    "KBestDecoder",
    "MaxBrackets",
    "MaxExpected",
    "Oracle",
    "Plane",
    "Progress",
    "RunOptions",
    "Scorer",
    "SequenceCRF",
    "SequenceProblem",
    "SequenceSVM",
    "Solver",
    "StoredSequences",
    "Subgradient",
    "TAGGING",
    "TopTallies",
    "Trained",
    "TrainingProblem",
    "TreeCRF",
    "TreeFeatures",
    "TreeModel",
    "TreeProblem",
    "TreeSVM",
    "TreebankGrammar",
    "WindowFeatures",
    "accuracy",
    "accuracy_scorer",
    "check_problem",
    "chunk_f1_scorer",
    "corpus_f",
    "corpus_score",
    "grid_graph",
    "label_graphs",
    "load",
    "minimise_bound",
    "regularisation_path",
    "sample_sentences",
    "save",
    "store_sequences",
    "templated",
    "token_f1_scorer",
    "train",
    "word_parts",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:  # type checkers only see the new names
    __getattr__ = renamed(
        __name__,
        {
            "Best": "BestDecoder",
            "KBest": "KBestDecoder",
            "Problem": "TrainingProblem",
            "path": "regularisation_path",
        },
    )
