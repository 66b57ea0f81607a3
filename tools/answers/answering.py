"""Answers as plain data, and their digests: floats by their bits, wording apart from everything else."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

import tallytree as tt
from tallytree import parsing


class Text(str):
    """Wording, such as a plan as a string; it may change where no answer does."""

    __slots__ = ()


class Failure(NamedTuple):
    """An error in the place of an answer: its type is part of the answer, its text is wording."""

    kind: str
    text: Text


class Digests(NamedTuple):
    """What is stored of one case."""

    answer: str
    text: str


def asked(question: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """Return what a question answers, or the error it raises."""
    try:
        return plain(question(*arguments, **options))
    except Exception as error:  # an unexpected one is an answer too, and shows in the summary
        return failure(error)


def failure(error: BaseException) -> Failure:
    return Failure(type(error).__name__, Text("\n".join([str(error), *getattr(error, "__notes__", ())])))


# --- plain data ---------------------------------------------------------------------------------------------


def plain(value: Any) -> Any:
    """Turn an answer into numbers, strings, lists and dictionaries, going through iterators."""
    if value is None or isinstance(value, (bool, int, float, str, bytes, Failure)):
        return value
    if isinstance(value, BaseException):
        return failure(value)
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist() if value.size else f"an empty array of shape {value.shape}"
    if isinstance(value, dict):
        return {str(plain(key)): plain(item) for key, item in value.items()}
    for kind, reader in _READERS:
        if isinstance(value, kind):
            return plain(reader(value))
    if hasattr(value, "__iter__"):
        return [plain(item) for item in value]
    raise TypeError(f"no plain form of {value!r}")


def _solution(found: tt.Solution) -> dict[str, Any]:
    extra = {
        name: getattr(found, name) for name in ("loss", "truth_score", "upper_bound") if hasattr(found, name)
    }
    return {
        **_certified(found),
        **extra,
        "assignment": found.assignment.reshape(-1),
        "labels": found.labels,
        "gap": found.gap,
    }


def _parse(found: parsing.Parse) -> dict[str, Any]:
    extra = {name: getattr(found, name) for name in ("loss", "truth_score") if hasattr(found, name)}
    return {**_certified(found), **extra, "tree": found.tree}


def _certified(found: Any) -> dict[str, Any]:
    certificate = found.certificate
    checked = certificate and [certificate.optimal, certificate.promised]
    return {
        "value": found.value,
        "score": found.score,
        "tally": tuple(found.tally),
        "names": Text(found.tally),
        "certificate": checked,
        "explained": Text(found.explain() if certificate else ""),
    }


def _plan(plan: tt.Plan) -> dict[str, Any]:
    names = "width degree tallies operations order pruned mode precision names"
    return {**{name: getattr(plan, name) for name in names.split()}, "text": Text(plan)}


def _tree_plan(plan: parsing.TreePlan) -> dict[str, Any]:
    names = "tallies items operations floor prices root_tallies"
    return {**{name: getattr(plan, name) for name in names.split()}, "text": Text(plan)}


def _relaxation(found: tt.Relaxation) -> dict[str, Any]:
    names = "upper_bound solution gap multipliers iterations optimal"
    return {**{name: getattr(found, name) for name in names.split()}, "text": Text(found.explain())}


def _distribution(found: Any) -> dict[str, Any]:
    names = "tallies log_partition log_partitions probabilities"
    return {name: getattr(found, name) for name in names.split()}


def _profile(found: Any) -> dict[str, Any]:
    return {"names": Text(found.names), "tallies": found.tallies, "scores": found.scores}


def _corpus(found: Any) -> dict[str, Any]:
    names = "value loss score truth_score tally solutions"
    return {**{name: getattr(found, name) for name in names.split()}, "report": Text(found.report)}


def _model(model: tt.Model) -> list[Any]:
    """Read a model by what it says: the scores of some labellings, spread over all of them."""
    cards = model.cardinalities
    spread = [[(7 * k + 3 * v + k * v) % n for v, n in enumerate(cards.tolist())] for k in range(12)]
    return [cards, [model.score(y) for y in spread], Text(repr(model))]


_READERS: list[tuple[type | tuple[type, ...], Callable[[Any], Any]]] = [
    (tt.Solution, _solution),
    (parsing.Parse, _parse),
    (parsing.Tree, str),
    (tt.Plan, _plan),
    (parsing.TreePlan, _tree_plan),
    (tt.Relaxation, _relaxation),
    ((tt.Distribution, parsing.TreeDistribution), _distribution),
    ((tt.Profile, parsing.TreeProfile), _profile),
    (tt.losses.CorpusSolution, _corpus),
    (tt.Model, _model),
]


# --- digests ------------------------------------------------------------------------------------------------


def digests(answer: Any) -> Digests:
    """Return the digests of a plain answer and of the wording in it."""
    parts, texts = blake2b(digest_size=8), blake2b(digest_size=8)
    for item in _leaves(answer):
        if isinstance(item, Text):
            texts.update(_coded(str(item)))
            parts.update(b"t")
        else:
            parts.update(_coded(item))
    return Digests(parts.hexdigest(), texts.hexdigest())


def failures(answer: Any) -> list[str]:
    """Return the types of all errors in a plain answer."""
    return [item.kind for item in _walk(answer) if isinstance(item, Failure)]


def _walk(value: Any) -> Iterator[Any]:
    yield value
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _walk(item)


def _leaves(value: Any) -> Iterator[Any]:
    """Go through the leaves of an answer, with marks that say where lists begin and how long they are."""
    if isinstance(value, dict):
        yield f"{{{len(value)}"
        for key, item in value.items():
            yield key
            yield from _leaves(item)
    elif isinstance(value, (list, tuple)):
        yield f"[{len(value)}"
        for item in value:
            yield from _leaves(item)
    else:
        yield value


def _coded(leaf: Any) -> bytes:
    if isinstance(leaf, float):
        return b"f" + struct.pack("<d", leaf)
    content = leaf if isinstance(leaf, bytes) else str(leaf).encode()
    return f"{type(leaf).__name__}{len(content)}:".encode() + content
