"""Label sentences with a trained model: tag, chunk."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterator
from difflib import get_close_matches
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import tallytree as tt
from tallytree.cli import reports
from tallytree.cli.chunk_labels import chunk_labels, scheme_of
from tallytree.cli.counts import constraint_of, counts_of
from tallytree.cli.exits import Exit, UsageError
from tallytree.cli.inputs import check_apart, learning, name_of
from tallytree.cli.options import Commands, count_options, filled, json_option, number, positive, refuse
from tallytree.cli.sentences import FORMATS, Task, blocks_of, format_of, labelled, written_to
from tallytree.errors import InfeasibleError, ModelError
from tallytree.io.conll import Block
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe

if TYPE_CHECKING:
    from tallytree.learning import SequenceSVM


def add(commands: Commands) -> None:
    """Declare the commands."""
    tag = commands.add(
        "tag",
        _run("tag"),
        "tag the words of sentences with a model trained by `tallytree train tag`",
        "tagger.npz sentences.txt --format text",
        "tagger.npz test.conllu --score",
        'tagger.npz - --count verbs=VERB,AUX --where "verbs >= 1"',
    )
    chunk = commands.add(
        "chunk",
        _run("chunk"),
        "find chunks or names in tagged sentences with a model trained by `tallytree train chunk`",
        "chunker.npz test.txt --valid bio -o chunks.txt",
        "chunker.npz test.txt --score",
        "chunker.npz test.txt --maximise chunk-f2 --marginals",
    )
    for one in (tag, chunk):
        _options(one)
    chunk.add_argument(
        "--valid", choices=tuple(_VALID), help="predict only labellings that are valid in this scheme"
    )


def _options(command: ArgumentParser) -> None:
    add = command.add_argument
    add("model", help="the trained model")
    add("file", nargs="?", default="-", help="sentences; - (the default) is standard input")
    add("--format", choices=FORMATS, help="columns, CoNLL-U, or raw text with one sentence per line")
    add("-o", "--output", metavar="FILE", help="write the labelled sentences to this file")
    add("--score", action="store_true", help="compare with the labels in the file and print the scores")
    add("--decode", choices=("best", "expected-f"), default="best", help="what to predict (default best)")
    add(
        "--maximise",
        type=_metric,
        metavar="METRIC",
        help="predict the labels with the best expected accuracy, f1, f2, chunk-f1, chunk-f0.5, ...",
    )
    add(
        "--marginals",
        action="store_true",
        help="also print the probability of each label among all labellings, regardless of --where and "
        "--valid (for models trained with --objective)",
    )
    add("--background", metavar="LABEL", help="the negative label for expected F (default O)")
    add(
        "--scale",
        type=positive,
        help="multiply scores by this factor for expected metrics (default 1; required for an SVM)",
    )
    add("-k", "--number", type=number, metavar="K", help="print the K best labellings, one per column")
    count_options(command, "NAME=LABEL[,LABEL]", "count the words with a label", _NAMES)
    json_option(command, "print JSON, one object per sentence and line")


_NAMES = "counts and labels, such as \"'B-NP' >= 2\""
_TOGETHER = 256  # sentences of a file that are labelled at once; those of a pipe come one by one


def _metric(text: str) -> str:
    """Read a metric: accuracy, or F of tokens or chunks with a beta."""
    if text != "accuracy" and not text.removeprefix("chunk-").startswith("f"):
        near = get_close_matches(text, ("accuracy", "f1", "chunk-f1"), n=1)
        hint = f"; did you mean {near[0]}?" if near else ""
        raise ArgumentTypeError(f"expected accuracy, f1, f2, chunk-f1, ..., got {text!r}{hint}")
    try:
        tt.losses.as_loss(text)
    except ModelError:
        raise ArgumentTypeError(
            f"expected a number from 1e-6 to 1e6 after f, as in f0.5, got {text!r}"
        ) from None
    return text


_VALID: dict[str, Callable[[str], Any]] = {"bio": tt.valid_bio, "bioes": tt.valid_bioes}


# --- the work -----------------------------------------------------------------------------------------------


class Labeller(NamedTuple):
    """A trained model, and the task it was trained for."""

    svm: SequenceSVM
    task: Task


def loaded(path: str, name: str) -> Labeller:
    """Read a model for a task."""
    svm: Any = learning().load(path)
    features = getattr(svm, "features", None)
    if "name" not in svm.notes_ and features is not None:  # saved in Python
        return Labeller(svm, Task.of_columns(name, features.columns, path))
    task = Task.of(svm.notes_, path)
    if task.name != name:
        raise ModelError(f"{path} was trained to {task.name}; use `tallytree {task.name}`")
    if features is None:
        raise ModelError(f"{path} does not say how to compute features of sentences; train it again")
    return Labeller(svm, task)


def _run(name: str) -> Callable[[Namespace], int]:
    def run(options: Namespace) -> int:
        check_apart(options.output, options.model, options.file)
        if options.score and options.output is None:
            refuse(options, ("marginals",), "with --score", "remove it, or use -o")
            if options.number is not None:
                raise UsageError("-k has no effect with --score; remove it, or use -o")
        labeller = loaded(options.model, name)
        kind = format_of(options.format, options.file, labeller.task.format)
        known = labeller.svm.classes_.tolist()
        decode, where = _decoder(options, known), _constraint(options, known)
        _check_probabilities(options, labeller, kind)
        truths: list[list[str]] = []
        predicted: list[list[str]] = []
        with written_to(options.output, shown=not options.score) as write:
            blocks, together = blocks_of(options.file, kind), 1 if options.file == "-" else _TOGETHER
            for block, best in _labellings(labeller, blocks, kind, decode, where, together):
                if not best:
                    write([*block.lines, ""])
                    continue
                likely = _probabilities(labeller, block, kind, best[0]) if options.marginals else None
                if options.score:
                    truths.append(gold_labels(labeller.task, block, kind))
                    predicted.append(best[0])
                write(_lines(options, labeller, block, kind, best, likely))
        if options.score and not truths:
            raise ModelError(f"there are no sentences in {name_of(options.file)}, so nothing can be scored")
        if options.score:
            reports.print_values(scored(name, truths, predicted), machine=options.json)
        return Exit.OK

    return run


def _labellings(
    labeller: Labeller,
    blocks: Iterator[Block],
    kind: Any,
    decode: Any,
    where: Constraint | None,
    together: int,
) -> Iterator[tuple[Block, list[list[str]]]]:
    """Yield sentences with their labels, none for empty sentences; this many are predicted at once."""
    number = 1
    while some := list(islice(blocks, together)):
        sentences = [labeller.task.rows(block, kind) for block in some if block.rows]
        try:
            predictions = iter(
                labeller.svm.predict(sentences, decode=decode, where=where) if sentences else []
            )
        except InfeasibleError:  # find out which one it is
            predictions = (labeller.svm.predict([one], decode=decode, where=where)[0] for one in sentences)
        for block in some:
            yield block, _listed(predictions, block, number) if block.rows else []
            number += 1


def _listed(found: Iterator[Any], block: Block, number: int) -> list[list[str]]:
    """Return the labellings of the next sentence."""
    place = f"sentence {number} ({block.rows[0][0]} …)"
    try:
        one = next(found)
    except InfeasibleError as error:
        raise InfeasibleError(f"{place}: {error.__cause__ or error}") from None
    if isinstance(one, list) and not one:
        raise InfeasibleError(f"{place}: no labelling satisfies the constraint")
    return [labels.tolist() for labels in (one if isinstance(one, list) else [one])]


def _probabilities(labeller: Labeller, block: Block, kind: Any, labels: list[str]) -> list[float]:
    """Return the probability of each label of a labelling."""
    crf: Any = labeller.svm
    marginals = crf.predict_marginals([labeller.task.rows(block, kind)])[0]
    numbers = {label: number for number, label in enumerate(crf.classes_.tolist())}
    return [float(row[numbers[label]]) for row, label in zip(marginals, labels, strict=True)]


def _check_probabilities(options: Namespace, labeller: Labeller, kind: Any) -> None:
    has_scores_only = not hasattr(labeller.svm, "predict_marginals")
    chosen = "--decode expected-f" if options.decode == "expected-f" else "--maximise"
    expected = options.maximise is not None or options.decode == "expected-f"
    if has_scores_only and expected and options.scale is None:
        raise ModelError(
            f"{options.model} gives scores, not probabilities; train it with --objective to use {chosen}, or "
            "give the factor that makes its scores log-probabilities with --scale, chosen on held-out data"
        )
    if not options.marginals:
        return
    if has_scores_only:
        raise ModelError(
            f"{options.model} gives scores, not probabilities; train it with --objective to use --marginals"
        )
    if options.number is not None or (kind == "conllu" and not options.json):
        raise UsageError("--marginals needs a single labelling, in columns or with --json")


def _lines(
    options: Namespace,
    labeller: Labeller,
    block: Block,
    kind: Any,
    best: list[list[str]],
    likely: list[float] | None,
) -> list[str]:
    if options.json:
        words = [row[0] for row in labeller.task.rows(block, kind)]
        labels = {"labellings": best} if options.number else {"labels": best[0]}
        more = {} if likely is None else {"probabilities": likely}
        return [reports.as_json({"words": words, **labels, **more})]
    if likely is not None:
        best = [best[0], [f"{probability:.4f}" for probability in likely]]
        return [*labelled(block, kind, best, labeller.task.target), ""]
    padded = best + [["_"] * len(block.rows)] * ((options.number or 1) - len(best))
    return [*labelled(block, kind, padded, labeller.task.target), ""]


def _decoder(options: Namespace, labels: list[str]) -> Any:
    if options.number is not None and (options.decode != "best" or options.maximise is not None):
        raise UsageError("-k prints the labellings with the best scores; remove --decode and --maximise")
    if options.maximise is not None:
        return _maximising(options, labels)
    if options.decode == "best":
        refuse(options, ("background", "scale"), "except with --decode expected-f and --maximise")
        return learning().BestDecoder() if options.number is None else learning().KBestDecoder(options.number)
    chosen = filled(options, {"background": "O", "scale": 1.0})
    return learning().ExpectedFBeta(background=chosen.background, scale=chosen.scale)


def _maximising(options: Namespace, labels: list[str]) -> Any:
    chosen = filled(options, {"background": "O", "scale": 1.0})
    if options.maximise == "accuracy":
        refuse(options, ("background",), "with --maximise accuracy")
    scheme = {"scheme": scheme_of(labels)} if options.maximise.startswith("chunk-") else {}
    loss = tt.losses.as_loss(options.maximise, chosen.background, **scheme)
    return learning().MaxExpected(loss, scale=chosen.scale)


def _count(labels: list[str], name: str) -> Recipe:
    return tt.count(state=labels, name=name)


def _constraint(options: Namespace, labels: list[str]) -> Constraint | None:
    where = constraint_of(options, counts_of(options, labels, _count), labels, _count)
    scheme = getattr(options, "valid", None)
    if scheme is None:
        return where
    valid: Constraint = _VALID[scheme]("O")
    return valid if where is None else valid & where


# --- how good it is -----------------------------------------------------------------------------------------


def gold_labels(task: Task, block: Block, kind: Any) -> list[str]:
    """Return the labels in a file to compare with."""
    return (chunk_labels if task.name == "chunk" else Task.labels)(task, block, kind)


def scored(name: str, truths: list[list[str]], found: list[list[str]]) -> dict[str, float]:
    """Return the scores of labellings: accuracy and, for chunks, F1 of whole chunks."""
    part = {
        "sentences": len(truths),
        "words": sum(map(len, truths)),
        "accuracy": learning().accuracy(truths, found),
    }
    if name != "chunk":
        return part
    scheme = scheme_of(label for labels in truths for label in labels)
    chunks = learning().corpus_f(truths, found, tt.losses.ChunkFBeta(scheme=scheme))
    return {**part, "precision": chunks.precision, "recall": chunks.recall, "f1": chunks.f}
