"""Train models: train tag, train chunk, train parse."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from typing import Any, NamedTuple

from tallytree.cli.chunk_labels import TO_TEST, TO_TRAIN, gold_labels, mention_unknown, scheme_of
from tallytree.cli.fitting import (
    ended,
    fitted,
    learned,
    learning_options,
    print_report,
    refuse_learning,
    settings,
)
from tallytree.cli.inputs import check_apart, learning, name_of
from tallytree.cli.labelling import Scores
from tallytree.cli.options import Commands, json_option, natural, quiet_option, refuse, shown
from tallytree.cli.parses import Parser, parsed, scored_parses, trees_of
from tallytree.cli.sentences import FORMATS, Format, Task, blocks_of, column_of, format_of
from tallytree.errors import ModelError
from tallytree.io.conll import Block, Row
from tallytree.io.files import check_writable
from tallytree.losses import ChunkFBeta
from tallytree.parsing import Forest, Grammar, Tree, write_grammar

TASKS = ("tag", "chunk", "parse")


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add(
        "train",
        _train,
        "train a tagger, a chunker or a parser from examples",
        "tag train.conllu -o tagger.npz",
        "chunk train.txt -o chunker.npz --loss chunk-f1 --scaling slack --C 0.1 --test test.txt",
        "chunk train.txt -o chunker.npz --checkpoint run.npz",
        "chunk train.txt -o chunker.npz --objective likelihood",
        "parse train.mrg -o grammar.json --horizontal 2 --vertical 2",
        "parse train.mrg -o parser.npz --loss f1 --passes 10",
    )
    command.description = f"""{command.description}

For `tag` and `chunk`, the examples are sentences in columns (one token per line, an empty line between
sentences) or CoNLL-U; for `parse`, a bracketed treebank. Training stops at a certified gap (--tolerance),
after --passes or after --seconds. Ctrl-C also stops it; the best weights so far are written. With
--checkpoint, the state is written after each pass, and the same command resumes from it."""
    add = command.add_argument
    command.set_defaults(usage_error=command.error)
    add("task", choices=TASKS, help="what to train")
    add("data", help="the file of examples, or - for standard input")
    add("-o", "--output", metavar="FILE", help="where to write the model (required)")
    add("--test", metavar="FILE", help="held-out examples to evaluate the model on")
    _sentence_options(command)
    _grammar_options(command)
    learning_options(command)
    json_option(command, "print the report as JSON")
    quiet_option(command)


def _sentence_options(command: ArgumentParser) -> None:
    add = command.add_argument_group("tag, chunk").add_argument
    add("--format", choices=FORMATS[:2], help="the format of the data (default: from its name)")
    add("--column", help="label column: a number, last, or a CoNLL-U name (tag: 2 or upos; chunk: last)")


def _grammar_options(command: ArgumentParser) -> None:
    add = command.add_argument_group("parse").add_argument
    add(
        "--horizontal",
        type=natural,
        metavar="N",
        help="the number of siblings a rule depends on (default 2; with --loss: 0)",
    )
    add(
        "--vertical",
        type=natural,
        metavar="N",
        help="1: plain labels, 2: annotated with parents (default 2; with --loss: 1)",
    )
    add("--tail", choices=("pair", "single"), help="how the last children are binarised (default pair)")


def _train(options: Namespace) -> int:
    if options.output is None:  # not required by the parser, which would not name a missing task then
        options.usage_error("the following arguments are required: -o/--output")
    check_writable(options.output)
    check_apart(options.output, options.data, options.test, options.checkpoint)
    if options.hashed is not None:
        refuse(options, ["min_count"], "with --hashed")
    return _train_parser(options) if options.task == "parse" else _train_labeller(options)


def _train_labeller(options: Namespace) -> int:
    refuse(options, ("horizontal", "vertical", "tail"), "except for parse")
    kind = format_of(options.format, options.data, "columns")
    column = column_of(options.column, options.task, kind)
    tagged = options.task == "chunk" and (kind == "conllu" or column != 1)
    task = Task(options.task, ("word", "tag") if tagged else ("word",), kind, column)
    blocks = _sentences(options.data, kind)
    if tagged and len(blocks[0].rows[0]) == 2:
        task = task._replace(reads=("word",))  # words and labels, without tags
    if kind == "columns":
        task = task._replace(columns=len(blocks[0].rows[0]))
    test = None if options.test is None else _Examples.read(options.test, kind, task)
    svm = _estimator(options, task)
    labels = _labels(svm, task, blocks, kind)
    # the first pass comes after the features, which can take a while
    if shown(options) and sys.stderr.isatty():
        sys.stderr.write(f"{len(blocks):,} sentences read; computing their features\n")
    fitted(svm, [task.rows(block, kind) for block in blocks], labels)
    learning().save(svm, options.output, notes=task._asdict())
    report = {"sentences": len(blocks), **learned(svm, options.output)}
    if test is not None:
        report |= {"test": test.judged(svm)}
    print_report(report, options)
    return ended(report)


def _estimator(options: Namespace, task: Task) -> Any:
    templates = learning().TAGGING if task.reads == ("word",) else learning().CHUNKING
    features = learning().WindowFeatures(templates, parts=True)
    kind = learning().SequenceSVM if options.objective is None else learning().SequenceCRF
    return kind(**settings(options), hashed=options.hashed, min_count=_least(options), features=features)


def _labels(svm: Any, task: Task, blocks: list[Block], kind: Format) -> list[list[str]]:
    """Return the labels to train on, and set the scheme of a chunk loss to theirs."""
    labels_of_blocks = [gold_labels(task, block, kind, TO_TRAIN) for block in blocks]
    if isinstance(svm.loss, ChunkFBeta):
        scheme = scheme_of(label for labels in labels_of_blocks for label in labels)
        svm.loss = svm.loss.replace(scheme=scheme)
    return labels_of_blocks


def _sentences(path: str, kind: Format) -> list[Block]:
    blocks = [block for block in blocks_of(path, kind) if block.rows]
    if not blocks:
        raise ModelError(f"there are no sentences in {name_of(path)}")
    return blocks


def _least(options: Namespace) -> int:
    return 1 if options.min_count is None else int(options.min_count)


class _Examples(NamedTuple):
    """Held-out sentences, read before training, so that unreadable files are reported at once."""

    task: Task
    path: str
    sentences: list[list[Row]]
    labels: list[list[str]]

    @classmethod
    def read(cls, path: str, kind: Format, task: Task) -> _Examples:
        file_kind = format_of(None, path, kind)
        blocks = _sentences(path, file_kind)
        labels = [gold_labels(task, block, file_kind, TO_TEST) for block in blocks]
        return cls(task, path, [task.rows(block, file_kind) for block in blocks], labels)

    def judged(self, svm: Any) -> dict[str, float]:
        mention_unknown(self.labels, svm.classes_.tolist(), self.path)
        predicted: list[list[str] | None] = [one.tolist() for one in svm.predict(self.sentences)]
        return Scores(self.task.name, self.labels, predicted).values()


def _train_parser(options: Namespace) -> int:
    refuse(options, ("format", "column"), "except for tag and chunk")
    counts = options.loss is None and options.objective is None
    if counts:
        refuse_learning(options)
    trees = trees_of(options.data)
    gold = None if options.test is None else trees_of(options.test)
    given = {"horizontal": options.horizontal, "vertical": options.vertical, "tail": options.tail}
    how = {name: value for name, value in given.items() if value is not None}
    parser, report = (_counted if counts else _learned)(options, trees, how)
    if gold is not None:
        report["test"] = scored_parses(gold, [parsed(parser.forest(tree.words)) for tree in gold])
    print_report(report, options)
    return ended(report)


def _counted(options: Namespace, trees: list[Tree], how: dict[str, Any]) -> tuple[Parser, dict[str, Any]]:
    grammar = Grammar.from_treebank(trees, **how)
    write_grammar(options.output, grammar)
    return Parser(lambda words: Forest(grammar, words), grammar.labels), {
        "trees": len(trees),
        "output": options.output,
        "symbols": len(grammar.symbols),
        "binary rules": len(grammar.binary),
        "unary rules": len(grammar.unary),
    }


def _learned(options: Namespace, trees: list[Tree], how: dict[str, Any]) -> tuple[Parser, dict[str, Any]]:
    kind = learning().TreeSVM if options.objective is None else learning().TreeCRF
    svm = kind(**settings(options), **how, hashed=options.hashed, min_count=_least(options))
    fitted(svm, [tree.words for tree in trees], trees)
    learning().save(svm, options.output, notes={"name": "parse"})
    return Parser(svm.forest, svm.grammar_.labels), {"trees": len(trees), **learned(svm, options.output)}
