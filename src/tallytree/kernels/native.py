"""The compiled planner and executor, behind one module: arrays in, arrays out.

Everything that touches ``tallytree._native`` goes through here, so that the layers stay visible and the
choice of the instruction set is made once: ``TALLYTREE_INSTRUCTION_SET`` overrides what the machine offers.
"""

import os

from tallytree._native import (
    Batch,
    BudgetExceededError,
    ChainKinds,
    ChartGrammar,
    ChartKBest,
    ChartLayout,
    ChartRun,
    KBest,
    Layout,
    LossTable,
    Run,
    SingleRun,
    Skeleton,
    augmented_chains,
    block_inner,
    elimination_order,
    evaluate,
    improve_block,
    instruction_set,
    instruction_sets,
    join,
    use_instruction_set,
)

__all__ = [
    "COUNTING",
    "LOG_SUM_EXP",
    "MAX_PLUS",
    "Batch",
    "BudgetExceededError",
    "ChainKinds",
    "ChartGrammar",
    "ChartKBest",
    "ChartLayout",
    "ChartRun",
    "KBest",
    "Layout",
    "LossTable",
    "Run",
    "SingleRun",
    "Skeleton",
    "augmented_chains",
    "block_inner",
    "elimination_order",
    "evaluate",
    "improve_block",
    "instruction_set",
    "instruction_sets",
    "join",
    "use_instruction_set",
]

MAX_PLUS, LOG_SUM_EXP, COUNTING = 0, 1, 2

if os.environ.get("TALLYTREE_INSTRUCTION_SET"):
    use_instruction_set(os.environ["TALLYTREE_INSTRUCTION_SET"])
