"""Parse sentences with a grammar or a trained parser: parse."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from tallytree import parsing
from tallytree.cli import reports
from tallytree.cli.counts import constraint_of, counts_of
from tallytree.cli.exits import Exit, UsageError
from tallytree.cli.inputs import check_apart, learning, name_of, read_source
from tallytree.cli.options import Commands, count_options, json_option, number, refuse
from tallytree.cli.sentences import Unanswered, text_lines, written_to
from tallytree.errors import InfeasibleError, ModelError
from tallytree.parsing import Forest, Parse, Tree, TreeStatistic, read_treebank, score_brackets
from tallytree.parsing.treebank import tree_line


class Parser(NamedTuple):
    """Maps words to a forest, with the labels that its trees can have."""

    forest: Callable[[Sequence[str]], Forest]
    labels: Sequence[str]


_BRACKETS = {"(": "-LRB-", ")": "-RRB-"}
_ANY = "*"
_NAMES = 'counts and labels, such as "NP <= 3"'
_ARCHIVE = b"PK"
_OF_TREES = (".mrg", ".ptb", ".trees", ".parse")


def add(commands: Commands) -> None:
    """Declare the command."""
    command = commands.add(
        "parse",
        _parse,
        "parse sentences with a grammar or parser trained by `tallytree train parse`",
        "grammar.json sentences.txt",
        "parser.npz test.mrg --score",
        'grammar.json - --count nps=NP --where "nps <= 3" --pretty',
        "grammar.json sentences.txt --decode max-bracket --penalty 0.3 --json",
    )
    add = command.add_argument
    add("model", help="the grammar or trained parser")
    add(
        "file",
        nargs="?",
        default="-",
        help="one sentence per line, or trees; - (the default) is standard input",
    )
    add("--format", choices=("text", "trees"), help="words, or trees whose words are parsed")
    add("-o", "--output", metavar="FILE", help="write the trees to this file")
    add("--score", action="store_true", help="compare with the trees in the file and print the scores")
    add("--decode", choices=("best", "max-bracket"), default="best", help="what to predict (default best)")
    add("--penalty", type=float, help="the penalty per constituent for max-bracket (default 0)")
    add("-k", "--number", type=number, metavar="K", help="print the K best trees, one per line")
    add("--pretty", action="store_true", help="print each constituent on its own line")
    count_options(command, "NAME=LABEL[,LABEL]", "count the constituents with a label (* for all)", _NAMES)
    json_option(command, "print JSON, one object per sentence and line")


# --- the work -----------------------------------------------------------------------------------------------


class Question(NamedTuple):
    """What to predict for each sentence."""

    counts: list[TreeStatistic]
    where: Any
    number: int
    penalty: float | None

    @classmethod
    def of(cls, options: Namespace, labels: Sequence[str]) -> Question:
        """Read the options."""
        counts = counts_of(options, [*labels, _ANY], _count)
        where = constraint_of(options, counts, labels, _count, printed=options.json)
        if options.decode == "best":
            refuse(options, ["penalty"], "except with --decode max-bracket")
            return cls(counts, where, options.number or 1, None)
        if where is not None or options.number:
            raise UsageError("--decode max-bracket predicts a single tree; remove --where and -k")
        return cls(counts, where, 1, options.penalty or 0.0)

    def answers(self, forest: Forest) -> list[Parse]:
        """Return the trees of a sentence, best first; empty if there are none."""
        if self.penalty is not None:
            penalty = self.penalty
            return _or_none(lambda: [forest.max_bracket(penalty)])
        if self.number == 1 and self.where is None:
            return _or_none(lambda: [forest.best()])
        return parsing.k_best(forest, self.number, where=self.where)


def _count(labels: list[str], name: str) -> TreeStatistic:
    return parsing.count(None if _ANY in labels else labels, name=name)


def _or_none(ask: Callable[[], list[Parse]]) -> list[Parse]:
    try:
        return ask()
    except InfeasibleError:
        return []


def parser_of(path: str) -> Parser:
    """Read a grammar, or a trained parser."""
    with open(path, "rb") as file:
        archive = file.read(len(_ARCHIVE)) == _ARCHIVE
    if not archive:
        grammar = parsing.read_grammar(path)
        return Parser(lambda words: Forest(grammar, words), grammar.labels)
    svm: Any = learning().load(path)
    if not isinstance(svm, learning().TreeSVM):
        raise ModelError(
            f"{path} holds a {type(svm).__name__}, not a parser; train one with `tallytree train parse`"
        )
    return Parser(svm.forest, svm.grammar_.labels)


def _parse(options: Namespace) -> int:
    check_apart(options.output, options.model)
    parser = parser_of(options.model)
    question = Question.of(options, parser.labels)
    as_trees = options.format == "trees" or (
        options.format is None and (options.score or Path(options.file).suffix in _OF_TREES)
    )
    if options.score and not as_trees:
        raise ModelError("--score compares with trees, but raw text has none; give a treebank")
    gold = trees_of(options.file, some=options.score) if as_trees else []
    sentences = (tree.words for tree in gold) if as_trees else _of_text(options.file)
    parses: list[Tree | None] = []
    unanswered = Unanswered("tree" if question.where is None else "tree that satisfies the constraint")
    with written_to(options.output, shown=not options.score) as write:
        for words in sentences:
            answers = unanswered.checked(question.answers(parser.forest(words)) if words else [], words)
            parses += [answers[0].tree if answers else None] if options.score else []
            write(list(_lines(options, question, words, answers)))
    unanswered.report()
    if options.score:
        reports.print_values(scored_parses(gold, parses), machine=options.json)
    return Exit.INFEASIBLE if unanswered.count and not options.score else Exit.OK


def parsed(forest: Forest) -> Tree | None:
    """Return the best tree of a sentence, or None."""
    answers = _or_none(lambda: [forest.best()])
    return answers[0].tree if answers else None


# --- in and out ---------------------------------------------------------------------------------------------


def trees_of(path: str, *, some: bool = True) -> list[Tree]:
    """Read a treebank, or standard input; if ``some`` is set, an empty one is an error."""
    trees = read_treebank(read_source(path))
    if some and not trees:
        raise ModelError(f"there are no trees in {name_of(path)}")
    return trees


def _of_text(path: str) -> Iterator[tuple[str, ...]]:
    for line in text_lines(path):
        yield tuple(_BRACKETS.get(word, word) for word in line.split())


def _lines(
    options: Namespace, question: Question, words: Sequence[str], answers: Sequence[Parse]
) -> Iterator[str]:
    if options.json:
        trees = [_as_json(question, answer) for answer in answers]
        best = {"trees": trees} if options.number else trees[0] if trees else {"tree": None}
        yield reports.as_json({"words": list(words), **best})
    elif not answers:
        yield ""  # one line per sentence
    elif options.pretty:
        yield from chain.from_iterable((answer.tree.pretty(), "") for answer in answers)
    else:
        yield from (tree_line(answer.tree) for answer in answers)


def _as_json(question: Question, answer: Parse) -> dict[str, Any]:
    tally = {statistic.name: statistic.tally(answer.tree) for statistic in question.counts}
    return {"tree": tree_line(answer.tree), "score": answer.score, **({"tally": tally} if tally else {})}


def scored_parses(gold: Sequence[Tree], found: Sequence[Tree | None]) -> dict[str, Any]:
    """Return the scores of parses, by the conventions of EVALB."""
    scores = score_brackets(gold, found)
    return {
        "sentences": scores.sentences,
        "without a tree": scores.failed,
        "precision": scores.precision,
        "recall": scores.recall,
        "f1": scores.f1,
        "exact": scores.exact,
    }
