"""The compiled planner and executor, behind one module: arrays in, arrays out.

Everything that touches ``tallytree._native`` goes through here, so that the layers stay visible and the
choice of the instruction set is made once: ``TALLYTREE_INSTRUCTION_SET`` overrides what the machine offers.
"""

import os

from tallytree._native import *  # noqa: F403 (its stub lists the names)
from tallytree._native import Algebra, use_instruction_set

MAX_PLUS, LOG_SUM_EXP, COUNTING = Algebra.MAX_PLUS, Algebra.LOG_SUM_EXP, Algebra.COUNTING

if os.environ.get("TALLYTREE_INSTRUCTION_SET"):
    use_instruction_set(os.environ["TALLYTREE_INSTRUCTION_SET"])
