"""An explorer for the browser: a self-contained page with every answer of a profile.

The profile has the best score for every tally, and the page has the labelling of each. So the optimum
under any objective and any constraint on the same statistics is a look-up in the page itself: formulas
are included as the same postfix instructions that run here. No server, no network.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from importlib import resources
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tallytree.answers.objective import Objective, values_to_show
from tallytree.answers.profile import Profile
from tallytree.colours import state_colour
from tallytree.errors import BudgetError, InfeasibleError, ModelError, ObjectiveError
from tallytree.io import Parameter, ProblemFile
from tallytree.io.files import PathLike, write_atomically
from tallytree.io.problems import MOST_OPERATIONS
from tallytree.planning.orders import Order
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.formulas import Formula
from tallytree.values import counted

__all__ = ["page", "write_page"]


def __dir__() -> list[str]:
    return sorted(__all__)


MOST_LABELS = 20_000_000
"""The maximum number of labels in a page, over all tallies; a page of about 20 MB."""

_MOST_COMBINED = 8  # sliders whose ends are checked in all combinations

DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def write_page(
    problem: ProblemFile | Profile,
    path: PathLike,
    *,
    objective: str | None = None,
    where: str | Constraint | None = None,
    parameters: Mapping[str, float | Parameter | Mapping[str, float]] | None = None,
    title: str = "tallytree explorer",
    memory_limit: float | None = None,
    operation_limit: float | None = MOST_OPERATIONS,
    order: Order | None = None,
) -> None:
    """Write the page of a profile or a problem; the file appears only once it is complete.

    Parameters
    ----------
    problem : Profile or ProblemFile
        Its statistics become axes and ranges, and the parameters of a problem become sliders.
    path : path
        The file to write. An existing file is replaced.
    objective, where, parameters
        For a profile only, because a problem has its own: as for :class:`tallytree.io.ProblemFile`. The
        constraint always applies, and readers of the page can restrict it further; parameters they change.
    title : str
        The title of the page.
    memory_limit, operation_limit, order
        As for :meth:`ProblemFile.plan`, for a problem.

    Raises
    ------
    InfeasibleError
        Every labelling is forbidden.
    BudgetError
        There are too many tallies for one page, or a limit is exceeded.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import tallytree as tt
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "ones.html"
    >>> model = tt.Model.chain([[0, 1], [0, 2], [0, -4]], [[0, 0], [0, 0]])
    >>> prof = tt.profile(model, [tt.count(state=1, name="ones")])
    >>> tt.explorer.write_page(prof, file, objective="score - weight*ones", parameters={"weight": 1})
    >>> file.read_text(encoding="utf-8").startswith("<!doctype html>")
    True
    """
    if isinstance(problem, Profile):
        problem_file = _problem_of(problem, objective, where, parameters)
        write_atomically(path, [page(problem_file, problem, title=title)])
        return
    if not isinstance(problem, ProblemFile):
        raise ModelError(
            f"write_page needs a Profile or a ProblemFile, got {type(problem).__name__}; pass "
            "tallytree.profile(model, statistics)"
        )
    if objective is not None or where is not None or parameters is not None:
        raise ModelError("a ProblemFile has its own objective, where and parameters; change them there")
    profile = problem.profile(memory_limit=memory_limit, operation_limit=operation_limit, order=order)
    write_atomically(path, [page(problem, profile, title=title)])


def _problem_of(
    profile: Profile,
    objective: str | None,
    where: str | Constraint | None,
    parameters: Mapping[str, float | Parameter | Mapping[str, float]] | None,
) -> ProblemFile:
    """Return the problem of a profile."""
    if not profile.reduction.trivial:
        raise ModelError(
            "this profile is of a reduction, whose statistics are not those of a model; the explorer needs "
            "the profile of a model"
        )
    if profile.precision == "single":
        raise ModelError("this profile has single precision, so its scores are bounds; remove precision=")
    named = [s.named(name) for s, name in zip(profile.statistics, profile.names, strict=True)]
    return ProblemFile(profile.model, named, objective, where=where, parameters=parameters)


def page(
    problem: ProblemFile | Profile, profile: Profile | None = None, *, title: str = "tallytree explorer"
) -> str:
    """Return the page of a profile, or of a problem and its profile, as text.

    Examples
    --------
    >>> import tallytree as tt
    >>> model = tt.Model.chain([[0, 1], [0, 2], [0, -4]], [[0, 0], [0, 0]])
    >>> problem = ProblemFile(model, [tt.count(state=1, name="ones")], where="ones >= 1")
    >>> text = page(problem, problem.profile())
    >>> text.startswith("<!doctype html>"), "http://" in text.replace("http://www.w3.org", "")
    (True, False)
    """
    if isinstance(problem, Profile):
        return page(_problem_of(problem, None, None, None), problem, title=title)
    if profile is None:
        profile = problem.profile()
    if not len(profile):
        raise InfeasibleError("every labelling is forbidden, so there is nothing to explore")
    _check_objective(problem, profile)
    labels = len(profile) * len(problem.model)
    if labels > MOST_LABELS:
        several = "use fewer statistics, or cap them with cap=…"
        advice = several if len(profile.names) > 1 else "cap the statistic with cap=…, or use a shorter model"
        raise BudgetError(
            f"{counted(len(profile), 'tally')} of {counted(len(problem.model), 'variable')} are {labels:,} "
            f"labels, but a page can hold at most {MOST_LABELS:,}; {advice}"
        )
    data = json.dumps(_data(problem, profile, title), allow_nan=False, separators=(",", ":"))
    parts = {name: _part(name) for name in ("style.css", "explorer.js")}
    text = _part("page.html").replace("/*STYLE*/", parts["style.css"])
    text = text.replace("/*SCRIPT*/", parts["explorer.js"])
    return text.replace("/*DATA*/", data.replace("<", "\\u003c"))  # so that no name can end the script


def _check_objective(problem: ProblemFile, profile: Profile) -> None:
    """Raise an error for an objective that decreases in the score, also at the ends of sliders.

    The page itself checks all other settings, and shows no optimum where the objective decreases.
    """
    table = profile.scores, profile.tallies
    for place in _places([_parameter(name, p) for name, p in problem.parameters.items()]):
        function = problem.with_parameters(**place).function(problem.statistics)
        if function is None:  # the score itself
            return
        try:
            shown, holds = (_as_in_page(function), None) if place else (function, problem.constraint)
            values_to_show(shown, *table, profile.names, _satisfied(profile, holds))
        except ObjectiveError as error:
            at = ", ".join(f"{name} = {value:g}" for name, value in place.items())
            if not place:
                raise
            raise ObjectiveError(
                f"with {at}, at the end of a slider, {error}; set other ends, for example "
                "Parameter(value, low, high)"
            ) from None


def _satisfied(profile: Profile, constraint: Constraint | None) -> NDArray[np.bool_]:
    """Return which tallies satisfy a constraint."""
    if constraint is None:
        return np.ones(len(profile), dtype=bool)
    columns = dict(zip(profile.statistics, profile.tallies.T, strict=True))
    return np.broadcast_to(constraint.holds(columns), len(profile))


def _as_in_page(function: Objective) -> Objective:
    """Return an objective that is -inf where it is nan or inf; the page says so there."""

    def shown(*arguments: Any) -> Any:
        values = function(*arguments)
        return np.where(values < np.inf, values, -np.inf)

    return shown


def _places(sliders: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
    """Return the settings to check: the given values, then all combinations of ends, or each end alone."""
    ends = [[(slider["name"], slider[end]) for end in ("low", "high")] for slider in sliders]
    alone = [{name: value} for pair in ends for name, value in pair]
    several = map(dict, product(*ends)) if 1 < len(ends) <= _MOST_COMBINED else ()
    return [{}, *alone, *several]


def _part(name: str) -> str:
    return resources.files("tallytree.explorer").joinpath(name).read_text("utf-8")


def _data(problem: ProblemFile, profile: Profile, title: str) -> dict[str, Any]:
    model = problem.model
    sizes = model.cardinalities.tolist()
    most = max(sizes, default=1)
    return {
        "title": title,
        "statistics": list(problem.names),
        "tallies": profile.tallies.tolist(),
        "scores": profile.scores.tolist(),
        "labellings": _labellings(profile, most),
        "digits": DIGITS if most <= len(DIGITS) else None,
        "colours": [state_colour(state) for state in range(most)],
        "shape": list(model.shape),
        "variables": list(model.variables) if model.variables is not None else None,
        "states": [list(model.states_of(v) or map(str, range(n))) for v, n in enumerate(sizes)]
        if model.alike is None
        else [list(model.states_of(0) or map(str, range(model.alike)))]
        if sizes
        else [],
        "parameters": [_parameter(name, p) for name, p in problem.parameters.items()],
        "objective": _formula(problem.objective),
        "where": _formula(problem.where),
    }


def _labellings(profile: Profile, states: int) -> list[Any]:
    """Return the best labelling of each tally, in the order of the profile; one character per variable."""
    labellings: list[Any] = [None] * len(profile)
    rows = {tuple(tally): row for row, tally in enumerate(profile.tallies.tolist())}
    for solution in profile.with_all_tables().top(len(profile)):
        codes: Sequence[int] = solution.assignment.ravel().tolist()
        row = rows[tuple(map(int, solution.tally))]
        labellings[row] = "".join(DIGITS[code] for code in codes) if states <= len(DIGITS) else codes
    return labellings


def _formula(formula: Formula | None) -> dict[str, Any] | None:
    if formula is None:
        return None
    code = [[operation, _plain(argument)] for operation, argument in formula.code]
    return {"text": formula.text, "code": code}


def _plain(argument: Any) -> Any:
    """Replace infinities, which JSON does not support, by words."""
    return "inf" if argument == math.inf else argument


def _parameter(name: str, parameter: Parameter) -> dict[str, Any]:
    """Describe a slider: its ends are as given, or leave room around the value."""
    value = parameter.value
    low = min(0.0, 2 * value) if parameter.low is None else parameter.low
    high = max(1.0, 2 * value) if parameter.high is None else parameter.high
    low, high = min(low, value), max(high, value)
    whole = all(float(number).is_integer() for number in (value, low, high)) and high - low >= 4
    step = 1.0 if whole else float(f"{np.maximum((high - low) / 200, 1e-12):.1g}")
    return {"name": name, "value": value, "low": low, "high": high, "step": step}
