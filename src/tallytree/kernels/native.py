"""The compiled planner and executor: arrays in, arrays out.

All uses of ``tallytree._native`` go through this module, so that the layers stay visible and the
instruction set is chosen once: ``TALLYTREE_INSTRUCTION_SET`` overrides what the machine supports.
"""

import os

from tallytree._native import *  # noqa: F403 (its stub lists the names)
from tallytree._native import Algebra, use_instruction_set

MAX_PLUS, LOG_SUM_EXP, COUNTING = Algebra.MAX_PLUS, Algebra.LOG_SUM_EXP, Algebra.COUNTING

if os.environ.get("TALLYTREE_INSTRUCTION_SET"):
    use_instruction_set(os.environ["TALLYTREE_INSTRUCTION_SET"])
