"""The one table of all kinds of cases, and how one of them is answered."""

from __future__ import annotations

import warnings
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import on_batches
import on_files
import on_learning
import on_losses
import on_models
import on_paper
import on_trees
from answering import asked, digests, failures


class Kind(NamedTuple):
    """A function of a source of randomness, and how many cases are drawn for it."""

    answer: Callable[[np.random.Generator], Any]
    cases: int


KINDS = {
    "sequence_svm": Kind(on_learning.sequence_svm, 200),
    "graph_svm": Kind(on_learning.graph_svm, 140),
    "tree_svm": Kind(on_learning.tree_svm, 140),
    "training": Kind(on_learning.training, 80),
    "decoders": Kind(on_learning.decoders, 80),
    "window_features": Kind(on_learning.window_features, 30),
    "stored": Kind(on_learning.stored, 30),
    "commands": Kind(on_files.commands, 40),
    "large": Kind(on_models.large, 140),
    "wide": Kind(on_models.wide, 160),
    "threads": Kind(on_models.threads, 100),
    "segments": Kind(on_models.segments, 120),
    "map": Kind(on_models.best_labelling, 400),
    "profile": Kind(on_models.profile, 500),
    "objective": Kind(on_models.with_objective, 300),
    "where": Kind(on_models.with_constraint, 500),
    "pattern": Kind(on_models.with_pattern, 250),
    "restricted": Kind(on_models.restricted, 200),
    "plan": Kind(on_models.plans, 300),
    "storage": Kind(on_models.storage, 150),
    "single": Kind(on_models.single_precision, 250),
    "reference": Kind(on_models.reference, 150),
    "distribution": Kind(on_models.distribution, 350),
    "k_best": Kind(on_models.k_best, 250),
    "diverse": Kind(on_models.diverse, 150),
    "exclude": Kind(on_models.excluded, 150),
    "relax": Kind(on_models.relaxed, 150),
    "score_between": Kind(on_models.score_range, 200),
    "sufficient": Kind(on_models.sufficient, 80),
    "augment": Kind(on_paper.augmented, 120),
    "clique_tree": Kind(on_paper.clique_trees, 150),
    "enumerated": Kind(on_models.enumerated, 80),
    "refused": Kind(on_models.refused, 100),
    "solve_batch": Kind(on_batches.solve_batches, 150),
    "profile_batch": Kind(on_batches.profile_batches, 120),
    "node_loss": Kind(on_losses.nodes, 350),
    "position_loss": Kind(on_losses.positions, 250),
    "chunk_loss": Kind(on_losses.chunks, 150),
    "sentence_loss": Kind(on_losses.sentences, 150),
    "margins": Kind(on_losses.margins, 200),
    "loss_batch": Kind(on_losses.batches, 150),
    "chunk_batch": Kind(on_losses.chunk_batches, 80),
    "corpus": Kind(on_losses.corpora, 100),
    "within_margin": Kind(on_losses.within_margin, 150),
    "machine": Kind(on_trees.machines, 200),
    "parse": Kind(on_trees.parses, 150),
    "tree_profile": Kind(on_trees.tree_profiles, 200),
    "tree_where": Kind(on_trees.tree_constraints, 150),
    "tree_ranking": Kind(on_trees.tree_ranking, 120),
    "tree_distribution": Kind(on_trees.tree_distributions, 120),
    "tree_loss": Kind(on_trees.tree_losses, 150),
    "tree_path": Kind(on_trees.tree_paths, 100),
    "treebank": Kind(on_trees.treebanks, 100),
    "word_scores": Kind(on_trees.word_scores, 80),
    "uai": Kind(on_files.uai, 80),
    "networks": Kind(on_files.networks, 100),
    "global_costs": Kind(on_files.global_costs, 40),
    "problem_file": Kind(on_files.problems, 120),
    "grammar_file": Kind(on_files.grammars, 40),
    "conll": Kind(on_files.rows, 40),
    "graph": Kind(on_files.graphs, 40),
}


class Answered(NamedTuple):
    """A case with its digests and the types of the errors in it."""

    case: str
    answer: str
    text: str
    errors: list[str]


def answer_of(case: str) -> Any:
    """Answer one case, named by its kind and its number."""
    kind, _, number = case.partition(":")
    rng = np.random.default_rng([zlib.crc32(kind.encode()), int(number)])
    with warnings.catch_warnings(action="ignore"):
        return asked(KINDS[kind].answer, rng)


def answered(case: str) -> Answered:
    answer = answer_of(case)
    return Answered(case, *digests(answer), failures(answer))
