"""Labels in files: the scheme of chunks, and errors that name the position of an invalid label."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable

from tallytree.cli.sentences import Format, Task, hint
from tallytree.cli.text import visible
from tallytree.errors import ModelError
from tallytree.io.conll import Block
from tallytree.transducers.chunks import Scheme, tag_of

TO_TRAIN = "set the column of the labels with --column"
TO_TEST = "this is the file of --test, whose labels must be in the same column as in the training data"
TO_SCORE = "--score needs the labels in the column that the model was trained on"

_NAMED = 5  # unknown labels


def scheme_of(labels: Iterable[str]) -> Scheme:
    """Return the scheme that labels are in: BIOES if any of them begins with E- or S-, otherwise BIO.

    Examples
    --------
    >>> scheme_of(["O", "S-NP", "B-NP", "E-NP"]), scheme_of(["O", "B-NP"])
    ('BIOES', 'BIO')
    """
    return "BIOES" if {label[:2] for label in labels} & {"E-", "S-"} else "BIO"


def gold_labels(task: Task, block: Block, kind: Format, advice: str) -> list[str]:
    """Return the labels of a sentence in a file; raise an error if one is not the label of a chunk."""
    labels = task.labels(block, kind, advice)
    if task.name != "chunk":
        return labels
    for token, label in enumerate(labels):
        try:
            tag_of(label, "BIOES")
        except ModelError:
            alone = "; there is only one column" if len(block.rows[token]) == 1 else ""
            raise ModelError(
                f"{block.place(token)}: {label!r} in {task.place(kind)} is not a chunk label, such as B-NP, "
                f"I-NP or O{alone}{hint(block.rows[token], advice)}"
            ) from None
    return labels


def mention_unknown(truths: Iterable[list[str]], known: Collection[str], name: str) -> None:
    """Say on standard error that a model knows few of the labels that it is compared with, if so."""
    labels = [label for truth in truths for label in truth]
    unknown = [label for label in labels if label not in known]
    if 2 * len(unknown) <= len(labels):
        return
    different = list(dict.fromkeys(unknown))
    named = ", ".join(different[:_NAMED]) + (", …" if len(different) > _NAMED else "")
    sys.stderr.write(
        f"tallytree: the model does not know {len(unknown):,} of the {len(labels):,} labels in "
        f"{visible(name)}: {visible(named)}; its labels are {visible(', '.join(known))}\n"
    )
