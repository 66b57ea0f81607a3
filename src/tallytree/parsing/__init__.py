"""Constituency parsing: grammars, forests of parses, and trees with global statistics."""

import tallytree.parsing.engine  # noqa: F401 (with it, the verbs know forests)
from tallytree.kbest import k_best
from tallytree.kbest import ranked as iter_best
from tallytree.losses.augmented import loss_augmented, loss_augmented_path
from tallytree.parsing.binarise import binarise, labels_of, unbinarise
from tallytree.parsing.bounded import TreeBoundsCertificate
from tallytree.parsing.counts import count, crossing_brackets, false_positives, true_positives, wrong_nodes
from tallytree.parsing.distribution import TreeDistribution
from tallytree.parsing.expected import Expectations
from tallytree.parsing.forest import Forest
from tallytree.parsing.grammar import Grammar
from tallytree.parsing.grammar_files import read_grammar, write_grammar
from tallytree.parsing.lexicon import CountedWords, TaggedWords
from tallytree.parsing.loss_query import AugmentedParse, CountedLoss, counted_loss
from tallytree.parsing.parse import ChartPrice, Parse, TreeCertificate
from tallytree.parsing.plan import TreePlan
from tallytree.parsing.profile import TreeProfile
from tallytree.parsing.ranking import diverse_k_best
from tallytree.parsing.scoring import BracketScores, score_brackets
from tallytree.parsing.statistics import TreeStatistic
from tallytree.parsing.treebank import (
    parse_tree,
    read_treebank,
    without_functions,
    without_traces,
    write_treebank,
)
from tallytree.solving import distribution, plan, profile, solve
from tallytree.trees import Constituent, Tree

__all__ = [
    "AugmentedParse",
    "BracketScores",
    "ChartPrice",
    "Constituent",
    "CountedLoss",
    "CountedWords",
    "Expectations",
    "Forest",
    "Grammar",
    "Parse",
    "TaggedWords",
    "Tree",
    "TreeBoundsCertificate",
    "TreeCertificate",
    "TreeDistribution",
    "TreePlan",
    "TreeProfile",
    "TreeStatistic",
    "binarise",
    "count",
    "counted_loss",
    "crossing_brackets",
    "distribution",
    "diverse_k_best",
    "false_positives",
    "iter_best",
    "k_best",
    "labels_of",
    "loss_augmented",
    "loss_augmented_path",
    "parse_tree",
    "plan",
    "profile",
    "read_grammar",
    "read_treebank",
    "score_brackets",
    "solve",
    "true_positives",
    "unbinarise",
    "without_functions",
    "without_traces",
    "write_grammar",
    "write_treebank",
    "wrong_nodes",
]


def __dir__() -> list[str]:
    return sorted(__all__)
