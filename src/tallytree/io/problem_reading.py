"""Reading problem files: a model, statistics, a constraint and an objective in one JSON document.

The format is described by ``problem.schema.json`` in this folder and in ``docs/problem-files.md``. Nothing in
a file is executed, and declared sizes are compared with the memory limit before anything is allocated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tallytree.errors import ModelError
from tallytree.io.documents import At, document
from tallytree.io.files import Readable, source
from tallytree.io.problem_parts import Parameter
from tallytree.io.problem_tables import Tables, afford, array, integer, score
from tallytree.io.problems import ProblemFile
from tallytree.kernels.limits import NO_LIMIT
from tallytree.model.model import Model
from tallytree.planning.options import PlanOptions
from tallytree.statistics.formulas import is_number, name_in_formula
from tallytree.statistics.recipes import count, matches, mismatches
from tallytree.statistics.statistic import Statistic

VERSION = 1
MOST_STATES = 2**31 - 1
DEEPEST_CONSTRAINT = 15

OPTIONAL = ("$schema", "title", "statistics", "parameters", "objective", "where", "fixed", "allowed")


def read_problem(path: Readable, *, memory_limit: float | None = None) -> ProblemFile:
    """Read a problem file.

    Parameters
    ----------
    path : path
        A JSON document, as described in ``docs/problem-files.md``.
    memory_limit : float, optional
        The memory limit for tables in bytes; by default half of the machine's memory. Solving has a separate
        limit.

    Raises
    ------
    ModelError
        The file is malformed; the message gives the path to the error in the document.
    BudgetError
        The file declares more than fits in the limit.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "week.json"
    >>> _ = file.write_text('''{
    ...   "tallytree": 1,
    ...   "model": {"chain": {"unary": [[0, 1.5], [0, -2.5], [0, 3]], "pairwise": [[1, 0], [0, 1]]},
    ...             "states": ["dry", "wet"]},
    ...   "statistics": [{"name": "wet", "count": {"state": "wet"}}],
    ...   "where": "wet <= 1"
    ... }''')
    >>> problem = read_problem(file)
    >>> problem
    ProblemFile(Model(3 variables of 2 states, 5 factors), statistics=(wet), where='wet <= 1')
    >>> problem.solve().labels
    array(['dry', 'dry', 'wet'], dtype=object)
    """
    limit = PlanOptions(memory_limit=memory_limit).limit
    whole = document(source(path))
    top = whole.object(("tallytree", "model"), OPTIONAL, {"tallytree": VERSION})
    top["tallytree"].whole("the version of the format", VERSION, VERSION)
    for key in {"$schema", "title"} & top.keys():
        top[key].text()
    model = _model(top["model"], limit)
    given = top["statistics"].items() if "statistics" in top else []
    afford(int(model.cardinalities.sum()) * (1 + len(given)), limit, top["model"])
    statistics = [_statistic(at, model, limit) for at in given]
    where = _where(top["where"]) if "where" in top else None
    objective = top["objective"].text("a formula") if "objective" in top else None
    parameters = {name: _parameter(at) for name, at in _members(top, "parameters").items()}
    model = _restricted(model, top)
    with whole.blamed():
        problem = ProblemFile(model, statistics, objective, where=where, parameters=parameters)
        _ = problem.constraint  # raise errors now rather than later
    return problem


def _members(top: dict[str, At], key: str) -> dict[str, At]:
    return top[key].members() if key in top else {}


# --- the model ----------------------------------------------------------------------------------------------

_COMPACT: dict[str, tuple[str, ...]] = {
    "chain": ("unary", "pairwise"),
    "tree": ("parents", "unary", "pairwise"),
    "grid": ("unary", "vertical", "horizontal"),
}


def _model(at: At, limit: float) -> Model:
    kind = at.choice(("cardinalities", *_COMPACT))
    further = ("factors", "shape") if kind == "cardinalities" else ()
    parts = at.object((kind,), ("variables", "states", *further))
    names: dict[str, Any] = {key: _names(parts[key]) for key in ("variables", "states") if key in parts}
    if kind == "cardinalities":
        return _general(at, parts, names, limit)
    plain = _compact(parts[kind], kind)
    with at.blamed():
        return Model.from_blocks(plain.cardinalities, plain.blocks, shape=plain.shape, **names)


def _general(place: At, parts: dict[str, At], names: dict[str, Any], limit: float) -> Model:
    sizes = parts["cardinalities"].items()
    cardinalities = [at.whole("a number of states", 1, MOST_STATES) for at in sizes]
    reader = Tables(cardinalities, names.get("variables", ()), score, limit)
    blocks = [reader.block(at) for at in (parts["factors"].items() if "factors" in parts else [])]
    shape = None
    if "shape" in parts:
        shape = tuple(at.whole("a length", 0, MOST_STATES) for at in parts["shape"].items(2))
    with place.blamed():
        return Model.from_blocks(np.array(cardinalities, dtype=np.int64), blocks, shape=shape, **names)


def _compact(at: At, kind: str) -> Model:
    parts = at.object(_COMPACT[kind])
    arrays = {key: array(part, integer if key == "parents" else score) for key, part in parts.items()}
    make: Callable[..., Model] = getattr(Model, kind)
    with at.blamed():
        return make(**arrays)


def _names(at: At) -> list[Any]:
    """Take a list of names, or a list of such lists."""
    items = at.items(what="a list of names")
    if items and isinstance(items[0].value, list):
        return [[name.text("a name") for name in one.items(what="a list of names")] for one in items]
    return [one.text("a name") for one in items]


def _restricted(model: Model, top: dict[str, At]) -> Model:
    place = top.get("fixed", top.get("allowed"))
    if place is None:
        return model
    fixed = {_key(model, name): at.label("a state") for name, at in _members(top, "fixed").items()}
    allowed = {
        _key(model, name): [one.label("a state") for one in at.items(what="a list of states")]
        for name, at in _members(top, "allowed").items()
    }
    with place.blamed():
        return model.restricted(fixed, allowed)


def _key(model: Model, name: str) -> str | int:
    """Return a key of JSON, which is a string, as a name, or as a number if it has digits only."""
    plain = name.isascii() and name.isdigit() and len(name) < 12 and name == str(int(name))
    return int(name) if plain and name not in (model.variables or ()) else name


# --- statistics ---------------------------------------------------------------------------------------------


def _statistic(at: At, model: Model, limit: float) -> Statistic:
    kind = at.choice(tuple(_KINDS))
    parts = at.object(("name", kind), ("cap",))
    name = parts["name"].text("a name")
    least = 1 - NO_LIMIT if kind == "tables" else 0  # counts are never negative
    cap = parts["cap"].whole("a cap", least, NO_LIMIT - 1) if "cap" in parts else None
    statistic = _KINDS[kind](parts[kind], model, limit)
    with at.blamed():
        return statistic.named(name).capped(cap)


def _count(at: At, model: Model, limit: float) -> Statistic:
    parts = at.object(("state",), ("variables",))
    state = parts["state"]
    states = [one.label("a state") for one in (state.items() if isinstance(state.value, list) else [state])]
    variables = None
    if "variables" in parts:
        variables = [one.label("a variable") for one in parts["variables"].items(what="a list of variables")]
    with at.blamed():
        return count(model, state=states, variables=variables)


def _agreement(make: Callable[..., Statistic]) -> Callable[[At, Model, float], Statistic]:
    def read(at: At, model: Model, limit: float) -> Statistic:
        parts = at.object(("labelling",), ("background",))
        labelling = _labels(parts["labelling"])
        background = parts["background"].label("a state") if "background" in parts else None
        with at.blamed():
            return make(model, labelling, background)

    return read


def _labels(at: At) -> list[Any]:
    items = at.items(what="a list of states")
    if not items or not isinstance(items[0].value, list):
        return [one.label("a state") for one in items]
    rows = [[one.label("a state") for one in row.items(what="a list of states")] for row in items]
    if len({len(row) for row in rows}) > 1:
        at.refuse("rows of equal length")
    return rows


def _tables(at: At, model: Model, limit: float) -> Statistic:
    reader = Tables(model.cardinalities.tolist(), model.variables or (), integer, limit)
    blocks = [block for block in map(reader.block, at.items(what="a list of tables")) if len(block)]
    return Statistic.from_blocks(blocks, cardinalities=model.cardinalities, shape=model.shape)


_KINDS: dict[str, Callable[[At, Model, float], Statistic]] = {
    "count": _count,
    "matches": _agreement(matches),
    "mismatches": _agreement(mismatches),
    "tables": _tables,
}


# --- the question -------------------------------------------------------------------------------------------


def _parameter(at: At) -> Parameter:
    if not isinstance(at.value, dict):
        return Parameter(_number(at))
    parts = at.object(("value",), ("low", "high"))
    return Parameter(**{key: _number(part) for key, part in parts.items()})


_WORDS = {"all": " and ", "any": " or "}


def _where(at: At, depth: int = 0) -> str:
    """Convert a structured constraint to text; text is returned unchanged."""
    if isinstance(at.value, str):
        return at.value if depth == 0 else f"({at.value})"
    if depth > DEEPEST_CONSTRAINT:
        raise at.error(f"the constraint is nested more than {DEEPEST_CONSTRAINT} levels deep")
    if isinstance(at.value, list):
        at.refuse('text or an object, such as {"all": […]} for a list of constraints')
    kind = at.choice(("terms", "not", *_WORDS))
    if kind == "terms":
        return _comparison(at)
    (part,) = at.object((kind,)).values()
    if kind == "not":
        return f"(not {_where(part, depth + 1)})"
    parts = part.items(what="a list of constraints")
    if not parts:
        part.refuse("at least one constraint")
    return "(" + _WORDS[kind].join(_where(one, depth + 1) for one in parts) + ")"


def _comparison(at: At) -> str:
    """Convert ``{"terms": {"a": 2, "b": -1}, "relation": "<=", "bound": 4}`` to text."""
    parts = at.object(("terms", "relation", "bound"))
    relation = parts["relation"].text()
    if relation not in ("<", "<=", ">", ">=", "==", "!="):
        parts["relation"].refuse("one of <, <=, >, >=, == and !=")
    terms = parts["terms"].members()
    left = " + ".join(f"{_factor(one)}*{_name(name, at)}" for name, one in terms.items()) or "0"
    return f"({left} {relation} {_factor(parts['bound'])})"


def _factor(at: At) -> str:
    """Take a number, or the name of a parameter."""
    if at.value == "inf":
        return "inf"
    if isinstance(at.value, str) and not is_number(at.value):
        return _name(at.value, at)
    number = _number(at)
    return repr(int(number)) if number == int(number) and abs(number) < 2**53 else repr(number)


def _name(name: str, at: At) -> str:
    try:
        return name_in_formula(name, "the name")
    except ModelError as error:
        raise at.error(str(error)) from None


def _number(at: At) -> float:
    """Take a finite number: a double, or an integer if no double has its value."""
    number = at.number()
    return at.value if isinstance(at.value, int) and at.value != number else number
