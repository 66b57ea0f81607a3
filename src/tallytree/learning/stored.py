"""Sequences on disk, for training sets larger than memory.

A folder holds the features of all positions as raw arrays, concatenated, and a header that is
written last. Training reads the examples of each batch when needed and does not keep them. Among the solvers,
:class:`Subgradient` has a state that does not grow with the number of examples.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from tallytree.bulk.expectations import SparseRows
from tallytree.errors import BudgetError, ModelError
from tallytree.io.documents import document
from tallytree.io.files import source, write_atomically
from tallytree.learning.files import DAMAGE, array_of
from tallytree.learning.planes import Features, Integers
from tallytree.learning.problem import TrainingProblem
from tallytree.learning.sequences import Entries, SequenceProblem
from tallytree.losses import Loss

_HEADER = "header.json"
_INTEGERS, _FLOATS = np.dtype("<i4"), np.dtype("<f8")
_TYPES: dict[str, np.dtype[Any]] = {
    "sizes": _INTEGERS,  # the number of entries of each position
    "columns": _INTEGERS,
    "values": _FLOATS,
    "labels": _INTEGERS,
}


def store_sequences(
    folder: str | os.PathLike[str], examples: Iterable[tuple[sparse.csr_matrix, Sequence[int]]]
) -> None:
    """Write sequences to a new folder, one at a time.

    Parameters
    ----------
    folder : path
        The folder to create; it must not exist.
    examples : iterable of (rows, labels)
        The features of the positions, as returned by encoders, and the numbers of their labels. May be a
        generator that reads a corpus.

    Examples
    --------
    >>> import tempfile
    >>> import tallytree as tt
    >>> from tallytree.learning.attributes import Hashed
    >>> encoder = Hashed(16)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     store_sequences(f"{folder}/corpus", [(encoder.rows([["a"], ["b"]]), [0, 1])])
    ...     problem = StoredSequences(f"{folder}/corpus", labels=2, loss=tt.losses.HammingDistance())
    ...     len(problem), problem.truth(0)
    (1, array([0, 1]))
    """
    place = Path(folder)
    place.mkdir()
    digest, positions, entries, width = hashlib.sha256(), [0], [0], 0
    files = {name: (place / name).open("xb") for name in _TYPES}
    try:
        for rows, labels in examples:
            if rows.shape[0] != len(labels):
                raise ModelError(f"a sequence has {rows.shape[0]} positions but {len(labels)} labels")
            width = max(width, rows.shape[1])
            parts = dict(zip(_TYPES, (np.diff(rows.indptr), rows.indices, rows.data, labels), strict=True))
            for name, part in parts.items():
                data = np.ascontiguousarray(part, dtype=_TYPES[name]).tobytes()
                digest.update(data)
                files[name].write(data)
            positions.append(positions[-1] + rows.shape[0])
            entries.append(entries[-1] + rows.nnz)
    finally:
        for file in files.values():
            file.close()
    np.save(place / "positions.npy", np.array(positions))
    np.save(place / "entries.npy", np.array(entries))
    header = {"kind": "sequences", "width": width, "digest": digest.hexdigest()}
    write_atomically(place / _HEADER, [json.dumps(header)])


class _Example(NamedTuple):
    rows: sparse.csr_matrix
    labels: Integers


class StoredSequences(SequenceProblem):
    """Sequences in a folder written by :func:`store_sequences`.

    Parameters
    ----------
    folder : path
        The folder.
    labels : int
        N, the number of labels.
    loss : Loss
        A recipe.
    states : sequence of str, optional
        The names of the labels, if the loss uses them.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str],
        labels: int,
        loss: Loss,
        states: Sequence[str] | None = None,
    ) -> None:
        self.folder = Path(folder)
        try:
            header = document(source(self.folder / _HEADER)).object(("kind", "width", "digest"))
            self._width = header["width"].whole("the number of features", 0, 2**31 - 1)
            self._written = header["digest"].text()
            self._positions = self._ends_of("positions.npy", ("sizes", "labels"))
            self._ends = self._ends_of("entries.npy", ("columns", "values"))
            if len(self._positions) != len(self._ends):
                raise ModelError("its files have different numbers of sequences")
        except (*DAMAGE, BudgetError) as error:
            raise ModelError(
                f"{str(folder)!r} has no complete set of sequences ({error}); write one with store_sequences"
            ) from error
        self._recent: dict[int, _Example] = {}
        self._configure(self._width, labels, loss, states)

    def _ends_of(self, name: str, parts: tuple[str, ...]) -> Integers:
        """Return where sequences start and end in some of the files, after checking their lengths."""
        ends = array_of(source(self.folder / name, expansion=2).data)
        if (
            ends.ndim != 1
            or ends.dtype.kind != "i"
            or not len(ends)
            or ends[0] != 0
            or (np.diff(ends) < 0).any()
        ):
            raise ModelError(f"{name} should have ascending numbers from 0")
        for part in parts:
            length = (self.folder / part).stat().st_size
            if length != int(ends[-1]) * _TYPES[part].itemsize:
                raise ModelError(f"{part} has {length} bytes, which do not match {name}")
        return ends.astype(np.int64)

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self._positions) - 1

    def truth(self, example: int) -> Integers:
        """Return the true labels of a sequence."""
        return self._example(example).labels

    def _stacked(self, examples: Sequence[int]) -> tuple[SparseRows, list[int]]:
        """Read these examples, drop others, and return their features."""
        self._recent = {example: self._read(example) for example in examples}
        rows = [self._recent[example].rows for example in examples]
        return SparseRows.of(sparse.vstack(rows, format="csr")), [matrix.shape[0] for matrix in rows]

    def differences(self, examples: Sequence[int], labellings: Sequence[Integers]) -> list[Features]:
        """Return the differences, read one after the other."""
        return TrainingProblem.differences(self, examples, labellings)

    def _example(self, example: int) -> _Example:
        known = self._recent.get(example)
        return self._read(example) if known is None else known

    def _entries(self, example: int) -> Entries:
        rows = self._example(example).rows
        return rows.indptr, rows.indices, rows.data

    def _read(self, example: int) -> _Example:
        first, last = self._positions[example : example + 2].tolist()
        begin, end = self._ends[example : example + 2].tolist()
        sizes, columns, values, labels = (
            self._part(name, *span)
            for name, span in (
                ("sizes", (first, last)),
                ("columns", (begin, end)),
                ("values", (begin, end)),
                ("labels", (first, last)),
            )
        )
        if (
            (sizes < 0).any()
            or sizes.sum() != end - begin
            or not _within(columns, self._width)
            or not _within(labels, self.labels)
            or not np.isfinite(values).all()
        ):
            raise ModelError(
                f"sequence {example} of {str(self.folder)!r} is damaged, or has labels beyond {self.labels}"
            )
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        rows = sparse.csr_matrix((values, columns, indptr), shape=(last - first, self._width))
        return _Example(rows, labels.astype(np.int64))

    def _part(self, name: str, first: int, last: int) -> NDArray[Any]:
        kind = _TYPES[name]
        with (self.folder / name).open("rb") as file:
            return _taken(file, kind, first, last)

    def fingerprint(self) -> str:
        """Return a digest of the features, the sequence boundaries, the truths and the loss."""
        return self._digest(without=("folder", "_recent"))  # the header has a digest of the files


def _within(numbers: NDArray[Any], count: int) -> bool:
    return not len(numbers) or (int(numbers.min()) >= 0 and int(numbers.max()) < count)


def _taken(file: BinaryIO, kind: np.dtype[Any], first: int, last: int) -> NDArray[Any]:
    """Read a range of an array. Not mapped: pages of a mapping would count as memory of the process."""
    file.seek(first * kind.itemsize)
    entries = np.fromfile(file, dtype=kind, count=last - first)
    if len(entries) != last - first:
        raise ModelError(f"{file.name!r} is truncated; the set of sequences is damaged")
    return entries
