"""Models in the UAI format of the inference competitions.

A file is a sequence of words, with arbitrary line breaks::

    MARKOV                    or BAYES
    3                         variables
    2 2 3                     their cardinalities
    2                         factors
    1 0                       a scope: its size, then its variables
    2 1 2                     (for BAYES the last one is the child)

    2   0.4 0.6               a table: its length, then its entries,
    6   1 2 3 4 5 6           the last variable of the scope changing fastest

Entries are non-negative weights ``w``; a score is ``f = log w`` and ``w = 0`` forbids. Files are
not trusted: every declared size is compared with the number of remaining words before memory is
allocated.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from itertools import accumulate

import numpy as np

from tallytree.errors import ModelError
from tallytree.io.factors import LARGEST_SCORE, MOST_AXES, Factor, Table, each_factor
from tallytree.io.files import PathLike, Readable, write_atomically
from tallytree.io.words import Words
from tallytree.model.model import Model

MOST_STATES = 2**31 - 1
# A variable in no table may declare any number of states, but evidence would need a table of them.
MOST_OBSERVED_STATES = 2**24
MOST_COPIES = 1000


def read_uai(path: Readable, evidence: Readable | Mapping[int, int] | None = None) -> Model:
    """Read a model, and optionally condition it on evidence.

    Parameters
    ----------
    path : path
        A UAI file, MARKOV or BAYES.
    evidence : path or dict, optional
        The observed variables: an evidence file (``k v1 s1 … vk sk``, with or without a leading count of one
        sample, or nothing at all), or a dictionary ``{variable: state}``.

    Returns
    -------
    Model
        All variables of the file, including observed ones. An observed variable keeps its states, but all but
        one of them are forbidden by a separate factor, and it is removed from all other factors, so that it
        adds no cost to inference.

    Raises
    ------
    ModelError
        The text does not follow the format: the message gives line and column, what was expected and
        what was found. Weights that are negative, not finite, or positive but too small for a double are
        also rejected.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "two.uai"
    >>> _ = file.write_text("MARKOV 2  2 2  2  1 0  2 0 1   2 0.25 0.75   4 1 0 0 1")
    >>> model = read_uai(file)
    >>> model.cardinalities.tolist()
    [2, 2]
    >>> round(float(np.exp(model.score([1, 1]))), 12)
    0.75
    >>> model = read_uai(file, evidence={1: 0})
    >>> round(float(np.exp(model.score([0, 0]))), 12), float(model.score([1, 1]))
    (0.25, -inf)
    """
    words = Words(path)
    cardinalities = _preamble(words)
    factors = _factors(words, cardinalities)
    observed = _observed(evidence, cardinalities)
    states = sum(cardinalities[v] for v in observed)
    if states > MOST_OBSERVED_STATES + len(words.words):
        raise ModelError(
            f"the observed variables have {states} states, far more than {words.path} has entries"
        )
    if observed:
        factors = [*_conditioned(factors, observed), *_indicators(cardinalities, observed)]
    return Model(cardinalities, factors=factors)


def write_uai(model: Model, path: PathLike) -> None:
    """Write a model as a MARKOV file whose weights are the exponentials of the scores.

    The file appears only once it is complete. Names of variables and states are not part of
    the format and are lost. Weights are written with enough digits to read the same doubles
    back, so a score ``f`` is preserved up to rounding, about ``1e-16 · max(1, |f|)``.

    A table with scores beyond ±700, where ``exp`` leaves the range of doubles, is written as several factors
    with the same scope, each with an equal share of its scores: their sum is the same model.

    Parameters
    ----------
    model : Model
        The model.
    path : path
        The file to write. An existing file is replaced.

    Raises
    ------
    ModelError
        A score is beyond ±700 000, which would take more than a thousand such shares.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "one.uai"
    >>> write_uai(Model([2], factors=[((0,), np.log([0.25, 0.75]))]), file)
    >>> print(file.read_text())
    MARKOV
    1
    2
    1
    1 0
    <BLANKLINE>
    2
    0.25 0.75
    <BLANKLINE>
    """
    factors = [share for factor in each_factor(model) for share in _shares(*factor)]
    write_atomically(path, _lines(model.cardinalities.tolist(), factors), encoding="ascii")


# Reading


def _preamble(words: Words) -> list[int]:
    """Read the kind of network, which is ignored (both are products of tables), and cardinalities."""
    if words.word("MARKOV or BAYES") not in (b"MARKOV", b"BAYES"):
        words.refuse(0, "MARKOV or BAYES")
    variables = range(words.length("variables"))
    expected = f"a number of states from 1 to {MOST_STATES}"
    return [words.whole(f"{expected} for variable {v}", 1, MOST_STATES) for v in variables]


def _factors(words: Words, cardinalities: list[int]) -> list[Factor]:
    """Read the scopes, then the tables: all entries are converted at once, and the tables are views."""
    # A factor has at least the size of its scope, the length of its table, and one entry.
    scopes = [_scope(words, t, cardinalities) for t in range(words.length("factors", each=3))]
    shapes = [tuple(cardinalities[v] for v in scope) for scope in scopes]
    starts = [_skip_table(words, t, math.prod(shape)) for t, shape in enumerate(shapes)]
    words.finish()
    lengths = [math.prod(shape) for shape in shapes]
    scores = _scores(
        words, [at for start, n in zip(starts, lengths, strict=True) for at in range(start, start + n)]
    )
    ends = accumulate(lengths)
    tables = (scores[end - n : end].reshape(s) for end, n, s in zip(ends, lengths, shapes, strict=True))
    return list(zip(scopes, tables, strict=True))


def _scope(words: Words, factor: int, cardinalities: list[int]) -> tuple[int, ...]:
    """Read the size of a scope and its distinct variables."""
    start = words.at
    size = words.length(f"variables of factor {factor}")
    if size > MOST_AXES:
        words.refuse(start, f"at most {MOST_AXES} variables in factor {factor}")
    high = len(cardinalities) - 1
    scope = tuple(words.whole(f"a variable of factor {factor}, 0 to {high}", 0, high) for _ in range(size))
    for i, variable in enumerate(scope):
        if variable in scope[:i]:
            words.refuse(start + 1 + i, f"a variable that factor {factor} does not have yet")
    return scope


def _skip_table(words: Words, factor: int, entries: int) -> int:
    """Check the length of a table and skip its entries; returns where they start."""
    at = words.at
    if words.whole(f"the length of table {factor}, {entries}") != entries:
        words.refuse(at, f"the length of table {factor}, {entries}")
    if entries > words.left:
        words.refuse(len(words.words), f"all {entries} entries of table {factor} ({words.left} are present)")
    words.at += entries
    return at + 1


def _scores(words: Words, places: list[int]) -> Table:
    """Take the logarithms of the weights at these places."""
    taken = [words.words[at] for at in places]
    convert = _plain_float if b"_" in words.data else float
    try:
        weights = np.fromiter(map(convert, taken), np.float64, len(taken))
    except ValueError:
        words.refuse(next(at for at in places if not _is_number(words.words[at])), "a number")
    _check_weights(words, places, weights)
    with np.errstate(divide="ignore"):
        return np.log(weights)


def _plain_float(word: bytes) -> float:
    """Convert a word to a float; Python's ``1_000`` is not a number in this format."""
    if b"_" in word:
        raise ValueError(word)
    return float(word)


def _is_number(word: bytes) -> bool:
    try:
        _plain_float(word)
    except ValueError:
        return False
    return True


def _check_weights(words: Words, places: list[int], weights: Table) -> None:
    """Check weights: zero forbids, so a positive weight must not be rounded to zero."""
    wrong = np.flatnonzero(~((weights >= 0) & (weights < np.inf)))
    if wrong.size:
        words.refuse(places[wrong[0]], "a finite, non-negative weight")
    zeros = [places[i] for i in np.flatnonzero(weights == 0).tolist()]
    tiny = {word for word in {words.words[at] for at in zeros} if _has_digits(word)}
    if tiny:
        at = next(at for at in zeros if words.words[at] in tiny)
        words.refuse(at, "a weight that fits in a double, or 0 to forbid")


def _has_digits(word: bytes) -> bool:
    """Whether a number has non-zero digits before its exponent."""
    return bool(word.lower().partition(b"e")[0].strip(b"+-0."))


# Evidence


def _observed(evidence: Readable | Mapping[int, int] | None, cardinalities: list[int]) -> dict[int, int]:
    if evidence is None:
        return {}
    if isinstance(evidence, Mapping):
        return _checked_evidence(evidence, cardinalities)
    return _read_evidence(Words(evidence), cardinalities)


def _checked_evidence(evidence: Mapping[int, int], cardinalities: list[int]) -> dict[int, int]:
    for variable, state in evidence.items():
        if not _is_index(variable, len(cardinalities)):
            raise ModelError(
                f"evidence has variable {variable!r}, but variables are 0 to {len(cardinalities) - 1}"
            )
        if not _is_index(state, cardinalities[int(variable)]):
            states = f"its states are 0 to {cardinalities[int(variable)] - 1}"
            raise ModelError(f"evidence sets variable {variable} to state {state!r}; {states}")
    return {int(variable): int(state) for variable, state in evidence.items()}


def _is_index(value: object, length: int) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and 0 <= int(value) < length


def _read_evidence(words: Words, cardinalities: list[int]) -> dict[int, int]:
    """Read ``k v s …``, an odd number of words; a leading count of samples makes it even."""
    if not words.left:
        return {}
    if words.left % 2 == 0 and words.whole("one sample of evidence") != 1:
        words.refuse(0, "one sample of evidence (pass the one you want as a dictionary)")
    observed: dict[int, int] = {}
    for _ in range(words.length("observed variables", each=2)):
        high = len(cardinalities) - 1
        variable = words.whole(f"an observed variable, 0 to {high}", 0, high)
        high = cardinalities[variable] - 1
        state = words.whole(f"a state of variable {variable}, 0 to {high}", 0, high)
        if observed.setdefault(variable, state) != state:
            words.refuse(words.at - 1, f"the state {observed[variable]} that variable {variable} already has")
    words.finish()
    return observed


def _conditioned(factors: Iterable[Factor], observed: Mapping[int, int]) -> Iterator[Factor]:
    """Fix the observed variables and remove them from the scopes."""
    for scope, table in factors:
        index = tuple(observed.get(v, slice(None)) for v in scope)
        yield tuple(v for v in scope if v not in observed), np.asarray(table[index])


def _indicators(cardinalities: list[int], observed: Mapping[int, int]) -> Iterator[Factor]:
    """Return one factor per observed variable, which forbids its other states."""
    for variable, state in observed.items():
        table = np.full(cardinalities[variable], -np.inf)
        table[state] = 0.0
        yield (variable,), table


# Writing


def _shares(scope: tuple[int, ...], table: Table) -> list[Factor]:
    """Split a factor into equal shares whose weights are doubles; usually one, the factor itself."""
    largest = float(np.max(np.abs(table), where=np.isfinite(table), initial=0.0))
    shares = max(1, math.ceil(largest / LARGEST_SCORE))
    if shares > MOST_COPIES:
        limit = f"±{MOST_COPIES * LARGEST_SCORE:.0f}"
        raise ModelError(
            f"the factor over {scope} has a score of magnitude {largest:.3g}, but the UAI format stores "
            f"exp(score), so scores must be within {limit}; divide all scores by a constant first"
        )
    return [(scope, table / shares)] * shares


def _lines(cardinalities: list[int], factors: list[Factor]) -> Iterator[str]:
    yield "MARKOV"
    yield str(len(cardinalities))
    yield " ".join(map(str, cardinalities))
    yield str(len(factors))
    for scope, _ in factors:
        yield " ".join(map(str, (len(scope), *scope)))
    for _, table in factors:
        yield f"\n{table.size}"
        yield " ".join(map(repr, np.exp(table).ravel().tolist()))
