"""The order of names in the reference: by task, the most common task first."""

TASKS = {
    "tallytree": {
        "Models, statistics and single answers": (
            "Model Statistic Recipe count segments changes matches mismatches node_statistic Constraint "
            "solve profile Profile elementwise score_between Solution"
        ),
        "Patterns and machines": "regular valid_bio valid_bioes transduce Machine Reduction",
        "Several answers": "k_best iter_best exclude diverse_k_best",
        "Probabilities": "distribution Distribution",
        "Losses": "loss_augmented loss_augmented_path loss_augmented_corpus",
        "Batches": "profile_batch solve_batch loss_augmented_batch",
        "Cost and relaxation": "plan Plan relax Relaxation BoundedSolution",
        "Certificates": "Certificate BoundsCertificate SentenceCertificate",
        "Errors and warnings": (
            "TallytreeError ModelError ObjectiveError BudgetError InfeasibleError CertificateError "
            "PerformanceWarning"
        ),
        "From the paper": (
            "explicit_model ExplicitModel clique_tree CliqueTree sufficient_statistics SufficientStatistics"
        ),
    },
    "io": {
        "Problem files": "ProblemFile Parameter read_problem write_problem problem_schema",
        "Models in other formats": (
            "read_uai write_uai read_wcsp write_wcsp read_cfn write_cfn CostScale Source from_networkx "
            "to_networkx from_pgmpy to_pgmpy ContractionPath"
        ),
        "Sentences in columns": "read_conll iter_conll read_conllu Token",
    },
    "losses": {
        "Losses of labels": (
            "FBeta Precision Recall IntersectionOverUnion FalsePositives SymmetricDifference HammingLoss "
            "HammingDistance WeightedHamming LabelCount ZeroOne"
        ),
        "Losses of chunks and sentences": "ChunkFBeta chunks_of Bleu RougeN RougeL",
        "Losses of trees": "CrossingBrackets CrossingBracketsRate",
        "Names of losses": "LOSS_NAMES as_loss",
        "Results": "AugmentedSolution MarginPath CorpusSolution LossProfile objective scaled",
        "Custom losses": "Loss LabellingLoss NodeLoss SequenceLoss",
    },
    "learning": {
        "Sequences": (
            "SequenceSVM SequenceCRF WindowFeatures templated word_parts CHUNKING TAGGING sample_sentences"
        ),
        "Graphs": "GraphSVM GraphCRF Graph grid_graph label_graphs",
        "Trees": "TreeSVM TreeCRF TreeFeatures TreeModel TreebankGrammar Binarisation",
        "Prediction": (
            "Decoder BestDecoder MaxExpected ExpectedFBeta KBestDecoder Diverse TopTallies MaxBrackets Choice"
        ),
        "Evaluation": (
            "accuracy corpus_f corpus_score CorpusScore Scorer accuracy_scorer token_f1_scorer "
            "chunk_f1_scorer"
        ),
        "Saving and large data": "save load store_sequences StoredSequences",
        "Training in detail": (
            "RunOptions Progress regularisation_path Solver FrankWolfe CuttingPlanes Subgradient"
        ),
        "Custom training problems": (
            "train Trained TrainingProblem SequenceProblem GraphProblem TreeProblem check_problem Oracle "
            "ExactOracle Plane minimise_bound Descent"
        ),
    },
    "parsing": {
        "Trees and treebanks": (
            "Tree Constituent parse_tree read_treebank write_treebank without_functions without_traces "
            "binarise unbinarise labels_of"
        ),
        "Grammars and sentences": "Grammar read_grammar write_grammar Forest CountedWords TaggedWords",
        "Counts on trees": (
            "TreeStatistic count true_positives false_positives wrong_nodes crossing_brackets "
            "counted_loss CountedLoss"
        ),
        "Answers": (
            "solve profile TreeProfile k_best iter_best diverse_k_best distribution TreeDistribution "
            "Expectations loss_augmented loss_augmented_path Parse AugmentedParse TreeCertificate "
            "TreeBoundsCertificate"
        ),
        "Cost": "plan TreePlan ChartPrice",
        "Evaluation": "score_brackets BracketScores",
    },
    "bounds": {
        "Bounds": "pac_bayes PacBayesBound Maximum worst_within_margin softened_maxima SoftMaximum",
    },
    "testing": {
        "Brute force": (
            "brute_force Enumeration Best accepted tally_of score_of score_tolerance LABELLING_LIMIT"
        ),
        "Random problems": "random_model random_statistics factors_of SHAPES TREE_LOSSES",
        "Checks": (
            "check_profile check_solution check_distribution check_bounds check_loss check_machine "
            "check_reduction"
        ),
    },
    "torch": {
        "Distributions": "Chain Chart Tally Conditioned TopK Structured",
        "Losses": "NegativeLogLikelihood StructuredHinge SoftmaxMargin ExpectedLoss "
        "StructuredLoss SummedLoss TrainingLoss",
        "Layers": "CRF check_replays",
    },
}
"""For each package, headings and the names below them."""


OF_LOSSES = (
    "reduce reduce_all value linear bounds compare of_counts counted remedy measured counts nodes gold "
    "one_tally way"
)
HIDDEN = {
    "Model": "key",
    "Constraint": "mapped reducing",
    "Statistic": "key scale merged_from largest_entry",
    "Machine": "trellis check",
    "Reduction": "bound origin fold lift_all",
    "Plan": "without_room table_bytes kept_bytes threads need_double again check mode price",
    "Profile": "of released in_batches with_all_tables",
    "Solution": "claiming bounded asked_again retold",
    "losses.AugmentedSolution": "complete",
    "losses.LossProfile": "of released table row",
    "losses.Loss": "remedy",
    "losses.SequenceLoss": "measured counts",
    "parsing.ChartPrice": "of",
    "parsing.Forest": "sums derived",
    "parsing.Parse": "bounded claiming",
    "parsing.TaggedWords": "tables",
    "parsing.TreeDistribution": "step_counts",
    "parsing.TreePlan": "compiled check run root price names root_tallies every_table_bytes",
    "parsing.TreeStatistic": "weights content levels length signed key merged_from largest_entry",
}
"""Members that are for the library itself. Those of losses are explained with their base classes."""
BASES = (
    "Loss",
    "LabellingLoss",
    "NodeLoss",
    "SequenceLoss",
    "LossProfile",
    "AugmentedSolution",
    "MarginPath",
)


def filters(name: str) -> list[str]:
    """Return which members of a class are left out, in the form of mkdocstrings."""
    package, _, own = name.rpartition(".")
    hidden = HIDDEN.get(name, OF_LOSSES if package == "losses" and own not in BASES else "")
    return ["!^_", *(["!^(" + "|".join(hidden.split()) + ")$"] if hidden else [])]


def by_task(package: str, names: list[str]) -> dict[str, list[str]]:
    """Group the names of a package, with those that are not listed above at the end."""
    listed = TASKS.get(package, {})
    groups = {task: [name for name in line.split() if name in names] for task, line in listed.items()}
    rest = sorted(set(names) - {name for group in groups.values() for name in group})
    return groups | ({"More" if groups else "": rest} if rest else {})
