"""The compiled planner and executor, behind one module: arrays in, arrays out.

Everything that touches ``tallytree._native`` goes through here, so that the layers stay visible and the
choice of the instruction set is made once: ``TALLYTREE_INSTRUCTION_SET`` overrides what the machine offers.
"""

import os

from tallytree._native import (
    NO_LIMIT,
    UNCAPPED,
    Algebra,
    Batch,
    BudgetExceededError,
    ChartGrammar,
    ChartKBest,
    ChartLayout,
    ChartRun,
    DerivationStep,
    KBest,
    Layout,
    LossTable,
    OrderMethod,
    Run,
    SingleRun,
    Skeleton,
    TallyMode,
    Truths,
    TruthTables,
    Verb,
    block_inner,
    elimination_order,
    evaluate,
    improve_block,
    instruction_set,
    instruction_sets,
    join,
    span_number,
    span_numbers,
    spans,
    use_instruction_set,
)

__all__ = [
    "COUNTING",
    "LOG_SUM_EXP",
    "MAX_PLUS",
    "NO_LIMIT",
    "UNCAPPED",
    "Algebra",
    "Batch",
    "BudgetExceededError",
    "ChartGrammar",
    "ChartKBest",
    "ChartLayout",
    "ChartRun",
    "DerivationStep",
    "KBest",
    "Layout",
    "LossTable",
    "OrderMethod",
    "Run",
    "SingleRun",
    "Skeleton",
    "TallyMode",
    "TruthTables",
    "Truths",
    "Verb",
    "block_inner",
    "elimination_order",
    "evaluate",
    "improve_block",
    "instruction_set",
    "instruction_sets",
    "join",
    "span_number",
    "span_numbers",
    "spans",
    "use_instruction_set",
]

MAX_PLUS, LOG_SUM_EXP, COUNTING = Algebra.MAX_PLUS, Algebra.LOG_SUM_EXP, Algebra.COUNTING

if os.environ.get("TALLYTREE_INSTRUCTION_SET"):
    use_instruction_set(os.environ["TALLYTREE_INSTRUCTION_SET"])
