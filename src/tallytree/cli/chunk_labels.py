"""Chunk labels in files: their scheme, and errors that name the position of an invalid label."""

from __future__ import annotations

from collections.abc import Iterable

from tallytree.cli.sentences import Format, Task
from tallytree.errors import ModelError
from tallytree.io.conll import Block
from tallytree.transducers.chunks import Scheme, tag_of


def scheme_of(labels: Iterable[str]) -> Scheme:
    """Return the scheme that labels are in: BIOES if any of them begins with E- or S-, otherwise BIO.

    Examples
    --------
    >>> scheme_of(["O", "S-NP", "B-NP", "E-NP"]), scheme_of(["O", "B-NP"])
    ('BIOES', 'BIO')
    """
    return "BIOES" if {label[:2] for label in labels} & {"E-", "S-"} else "BIO"


def chunk_labels(task: Task, block: Block, kind: Format) -> list[str]:
    """Return the labels of a sentence in a file; raise an error if one is not the label of a chunk."""
    labels = task.labels(block, kind)
    for token, label in enumerate(labels):
        try:
            tag_of(label, "BIOES")
        except ModelError:
            raise ModelError(
                f"{block.place(token)}: {label!r} in {task.place(kind)} is not a chunk label, such as B-NP, "
                "I-NP or O; set the column of the labels with `tallytree train --column`"
            ) from None
    return labels
