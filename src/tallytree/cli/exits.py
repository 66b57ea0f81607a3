"""What the exit code of the command means."""

from __future__ import annotations

from enum import IntEnum

from tallytree.cli.signals import Stopped, stop_code
from tallytree.errors import BudgetError, InfeasibleError, ModelError, ObjectiveError, TallytreeError


class Exit(IntEnum):
    """Exit codes, as ``tallytree --help`` lists them."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    MALFORMED = 3
    INFEASIBLE = 4
    BUDGET = 5
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


MEANINGS = {
    Exit.OK: "solved, or done",
    Exit.FAILURE: "something else went wrong",
    Exit.USAGE: "the command line is wrong, or a file cannot be read or written",
    Exit.MALFORMED: "the model, a formula, a constraint or a file of examples is malformed",
    Exit.INFEASIBLE: "no labelling satisfies the constraint",
    Exit.BUDGET: "the plan is beyond the memory or the operations that are allowed",
    Exit.HUNG_UP: "ended by SIGHUP: the terminal was closed",
    Exit.INTERRUPTED: "interrupted (Ctrl-C)",
    Exit.TERMINATED: "ended by SIGTERM",
}

_EXITS: tuple[tuple[type[BaseException], Exit], ...] = (
    (InfeasibleError, Exit.INFEASIBLE),
    (BudgetError, Exit.BUDGET),
    (ModelError, Exit.MALFORMED),
    (ObjectiveError, Exit.MALFORMED),
    (TallytreeError, Exit.FAILURE),
    (OSError, Exit.USAGE),
    (MemoryError, Exit.BUDGET),
    (KeyboardInterrupt, Exit.INTERRUPTED),
)


def exit_of(error: BaseException) -> Exit:
    """Return the exit code for an error."""
    if isinstance(error, Stopped):
        return Exit(stop_code())
    return next((code for kind, code in _EXITS if isinstance(error, kind)), Exit.FAILURE)
