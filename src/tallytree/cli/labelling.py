"""Label sentences with a trained model: tag, chunk."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, Namespace
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import tallytree as tt
from tallytree.cli import reports
from tallytree.cli.chunk_labels import TO_SCORE, gold_labels, mention_unknown, scheme_of
from tallytree.cli.counts import constraint_of, counts_of
from tallytree.cli.exits import Exit, UsageError
from tallytree.cli.inputs import check_apart, learning, name_of
from tallytree.cli.options import Commands, count_options, filled, json_option, number, positive, refuse
from tallytree.cli.sentences import FORMATS, Task, Unanswered, blocks_of, format_of, labelled, written_to
from tallytree.errors import ModelError, TallytreeError
from tallytree.io.conll import Block
from tallytree.statistics.constraints import Constraint
from tallytree.statistics.statistic import Recipe
from tallytree.values import nearest

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


_NOT_A_LABEL = ""  # of any file: columns are separated by white space
_NAMES = "counts and labels, such as \"'B-NP' >= 2\""
_TOGETHER = 256  # sentences of a file that are labelled at once; those of a pipe come one by one


def _metric(text: str) -> str:
    """Read a metric: accuracy, or F of tokens or chunks with a beta."""
    if text != "accuracy" and not text.removeprefix("chunk-").startswith("f"):
        near = nearest(text, ("accuracy", "f1", "chunk-f1"))
        hint = f"; did you mean {near}?" if near else ""
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
        if where is not None:
            _check_best(options)
        blocks, together = blocks_of(options.file, kind), 1 if options.file == "-" else _TOGETHER
        labellings = _labellings(labeller, blocks, kind, decode, where, together)
        scores = Scores(name, [], [], constrained=where is not None)
        unanswered = Unanswered("labelling that satisfies the constraint")
        _write(options, labeller, kind, labellings, scores, unanswered)
        unanswered.report()
        if not options.score:
            return Exit.INFEASIBLE if unanswered.count else Exit.OK
        if not scores.truths:
            raise ModelError(f"there are no sentences in {name_of(options.file)}, so nothing can be scored")
        mention_unknown(scores.truths, known, name_of(options.file))
        reports.print_values(scores.values(), machine=options.json)
        return Exit.OK

    return run


def _write(
    options: Namespace,
    labeller: Labeller,
    kind: Any,
    labellings: Iterable[tuple[Block, Any]],
    scores: Scores,
    unanswered: Unanswered,
) -> None:
    """Write labelled sentences, and collect what is scored and what has no labelling."""
    with written_to(options.output, shown=not options.score) as write:
        for block, found in labellings:
            if not block.rows:
                write([*block.lines, ""])
                continue
            words = [row[0] for row in labeller.task.rows(block, kind)]
            best = unanswered.checked(found, words)
            likely = _probabilities(labeller, block, kind, best[0]) if options.marginals and best else None
            if options.score:
                scores.truths.append(gold_labels(labeller.task, block, kind, TO_SCORE))
                scores.found.append(best[0] if best else None)
            write(_lines(options, labeller, block, kind, words, best, likely))


def _labellings(
    labeller: Labeller,
    blocks: Iterator[Block],
    kind: Any,
    decode: Any,
    where: Constraint | None,
    together: int,
) -> Iterator[tuple[Block, list[list[str]] | TallytreeError | None]]:
    """Yield sentences with their labels, None for empty sentences; this many are predicted at once."""
    while some := list(islice(blocks, together)):
        sentences = [labeller.task.rows(block, kind) for block in some if block.rows]
        found = labeller.svm.predict(sentences, decode=decode, where=where, errors="return")
        predictions = iter(found)
        for block in some:
            yield block, _listed(next(predictions)) if block.rows else None


def _listed(found: Any) -> list[list[str]] | TallytreeError:
    """Return the labellings of a sentence as lists, or the error in place of them."""
    if isinstance(found, TallytreeError):
        return found
    return [labels.tolist() for labels in (found if isinstance(found, list) else [found])]


def _probabilities(labeller: Labeller, block: Block, kind: Any, labels: list[str]) -> list[float]:
    """Return the probability of each label of a labelling."""
    crf: Any = labeller.svm
    marginals = crf.predict_marginals([labeller.task.rows(block, kind)])[0]
    numbers = {label: number for number, label in enumerate(crf.classes_.tolist())}
    return [float(row[numbers[label]]) for row, label in zip(marginals, labels, strict=True)]


def _check_best(options: Namespace) -> None:
    """Raise an error for a constraint together with an expectation, which is over all labellings."""
    chosen = "--maximise" if options.maximise is not None else "--decode expected-f"
    if options.maximise is None and options.decode == "best":
        return
    given = [f"--{name}" for name in ("where", "valid") if getattr(options, name, None)]
    raise UsageError(f"{chosen} does not support constraints; remove {' and '.join(given)}, or {chosen}")


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
    words: list[str],
    best: list[list[str]],
    likely: list[float] | None,
) -> list[str]:
    if options.json:
        labels = {"labellings": best} if options.number else {"labels": best[0] if best else None}
        more = {} if likely is None else {"probabilities": likely}
        return [reports.as_json({"words": words, **labels, **more})]
    if likely is not None:
        best = [best[0], [f"{probability:.4f}" for probability in likely]]
        return [*labelled(block, kind, best, labeller.task.target), ""]
    columns = 2 if options.marginals else options.number or 1
    padded = best + [["_"] * len(block.rows)] * (columns - len(best))
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


class Scores(NamedTuple):
    """The scores of labellings: accuracy and, for chunks, F1 of whole chunks.

    A sentence without a labelling has no correct label and no chunks.
    """

    name: str  # of the task
    truths: list[list[str]]
    found: list[list[str] | None]
    constrained: bool = False  # whether there may be sentences without a labelling

    def values(self) -> dict[str, float]:
        """Return the scores."""
        truths, failed = self.truths, {"without a labelling": self.found.count(None)}
        part = {
            "sentences": len(truths),
            **(failed if self.constrained else {}),
            "words": sum(map(len, truths)),
            "accuracy": learning().accuracy(truths, self._filled(_NOT_A_LABEL)),
        }
        if self.name != "chunk":
            return part
        scheme = scheme_of(label for labels in truths for label in labels)
        chunks = learning().corpus_f(truths, self._filled("O"), tt.losses.ChunkFBeta(scheme=scheme))
        return {**part, "precision": chunks.precision, "recall": chunks.recall, "f1": chunks.f}

    def _filled(self, label: str) -> list[list[str]]:
        pairs = zip(self.truths, self.found, strict=True)
        return [[label] * len(truth) if found is None else found for truth, found in pairs]
