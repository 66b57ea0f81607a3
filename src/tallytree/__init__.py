"""Exact MAP inference on discrete models with global dependencies.

Maximise ``H(F(y), G(y))``: a factor-graph score ``F``, integer statistics ``G`` counted over the whole
labelling, and any ``H`` that is non-decreasing in the score.

>>> import numpy as np
>>> import tallytree as tt
>>> model = tt.Model.chain(np.array([[0., 1], [0, 2], [0, 4]]), np.zeros((2, 2)))
>>> ones = tt.count(model, state=1)
>>> tt.profile(model, [ones]).at(2).assignment
array([0, 1, 1])
"""

from tallytree import startup as startup  # first, before the slow imports

# isort: split
from typing import TYPE_CHECKING

from tallytree.answers.certificate import Certificate
from tallytree.answers.distribution import Distribution
from tallytree.answers.objective import elementwise
from tallytree.answers.profile import Profile
from tallytree.answers.solution import Solution
from tallytree.bounding.certificate import BoundsCertificate
from tallytree.bounding.sentences import SentenceCertificate
from tallytree.deprecation import renamed
from tallytree.errors import (
    BudgetError,
    CertificateError,
    InfeasibleError,
    ModelError,
    ObjectiveError,
    PerformanceWarning,
    TallytreeError,
)
from tallytree.model.model import Model
from tallytree.planning.plan import Plan
from tallytree.reductions.reduction import Reduction
from tallytree.solving import distribution, plan, profile, solve
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.recipes import count, matches, mismatches, node_statistic
from tallytree.statistics.segments import changes, segments
from tallytree.statistics.statistic import Recipe, Statistic

__version__ = "0.2.0"

__all__ = [
    "BoundedSolution",
    "BudgetError",
    "BoundsCertificate",
    "Certificate",
    "CertificateError",
    "CliqueTree",
    "Constraint",
    "Distribution",
    "ExplicitModel",
    "InfeasibleError",
    "Machine",
    "Model",
    "ModelError",
    "ObjectiveError",
    "PerformanceWarning",
    "Plan",
    "Profile",
    "Recipe",
    "Reduction",
    "Relaxation",
    "SentenceCertificate",
    "Solution",
    "Statistic",
    "SufficientStatistics",
    "TallytreeError",
    "bounds",
    "changes",
    "clique_tree",
    "count",
    "distribution",
    "diverse_k_best",
    "elementwise",
    "exclude",
    "explicit_model",
    "io",
    "iter_best",
    "k_best",
    "loss_augmented",
    "loss_augmented_batch",
    "loss_augmented_corpus",
    "loss_augmented_path",
    "losses",
    "matches",
    "mismatches",
    "node_statistic",
    "parsing",
    "plan",
    "profile",
    "profile_batch",
    "regular",
    "relax",
    "score_between",
    "segments",
    "solve",
    "solve_batch",
    "sufficient_statistics",
    "transduce",
    "valid_bio",
    "valid_bioes",
]

_LAZY = ("bounds", "explorer", "io", "learning", "losses", "parsing", "plot", "testing", "torch")
"""Packages that not every program needs: loaded on first use."""

_LAZY_NAMES = {
    "bulk.batch": "profile_batch solve_batch",
    "bulk.loss_batch": "loss_augmented_batch",
    "kbest": "diverse_k_best exclude iter_best k_best",
    "losses.augmented": "loss_augmented loss_augmented_path",
    "losses.corpus": "loss_augmented_corpus",
    "paper.cliquetree": "CliqueTree clique_tree",
    "paper.explicit": "ExplicitModel explicit_model",
    "relaxation": "Relaxation relax",
    "score_ranges": "BoundedSolution SufficientStatistics score_between sufficient_statistics",
    "transducers": "Machine regular transduce valid_bio valid_bioes",
}
"""The same for functions and classes: for each module, the names that are taken from it."""

if TYPE_CHECKING:
    from tallytree import bounds as bounds
    from tallytree import explorer as explorer
    from tallytree import io as io
    from tallytree import learning as learning
    from tallytree import losses as losses
    from tallytree import parsing as parsing
    from tallytree import plot as plot
    from tallytree import testing as testing
    from tallytree import torch as torch
    from tallytree.bulk.batch import profile_batch, solve_batch
    from tallytree.bulk.loss_batch import loss_augmented_batch
    from tallytree.kbest import diverse_k_best, exclude, iter_best, k_best
    from tallytree.losses.augmented import loss_augmented, loss_augmented_path
    from tallytree.losses.corpus import loss_augmented_corpus
    from tallytree.paper.cliquetree import CliqueTree, clique_tree
    from tallytree.paper.explicit import ExplicitModel, explicit_model
    from tallytree.relaxation import Relaxation, relax
    from tallytree.score_ranges import (
        BoundedSolution,
        SufficientStatistics,
        score_between,
        sufficient_statistics,
    )
    from tallytree.transducers import Machine, regular, transduce, valid_bio, valid_bioes
else:  # type checkers only see the new names
    __getattr__ = renamed(
        __name__,
        {"AugmentedModel": "ExplicitModel", "augment": "explicit_model"},
        _LAZY,
        {name: module for module, names in _LAZY_NAMES.items() for name in names.split()},
    )


def __dir__() -> list[str]:
    return sorted({*__all__, *_LAZY, "__version__"})
