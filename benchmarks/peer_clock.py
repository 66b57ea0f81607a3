"""The clock of programs that run one solver each: CPU time of all threads, and a limit on it.

Imports are not counted: a program imports its solver first. Only the standard library is used here, because
solvers may be installed for another interpreter.
"""

from __future__ import annotations

import math
import resource
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PATIENCE = 3.0  # seconds by the clock for each second of CPU time: the machine may be busy


def timed(work: Callable[[float], T], limit: float) -> tuple[T, float]:
    """Run a solver; return its answer and the seconds of CPU time that it took.

    The system ends the process after `limit` seconds of CPU time. `work` gets the seconds that it may take by
    the clock.
    """
    start = time.process_time()
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(start + limit), most))
    answer = work(PATIENCE * limit)
    return answer, time.process_time() - start
