"""Probabilities of a problem's labellings, ``p(y) ∝ exp(score)``: distribution, marginals, sample."""

from __future__ import annotations

from argparse import Namespace
from functools import partial

from tallytree.answers.distribution import Distribution
from tallytree.cli import reports
from tallytree.cli.exits import Exit
from tallytree.cli.forecasts import expected_sums
from tallytree.cli.inputs import condition_of, problem_of
from tallytree.cli.options import (
    Commands,
    budget,
    given_option,
    input_options,
    json_option,
    memory,
    natural,
    operations_option,
    print_lines,
    shown,
    terminal_width,
)
from tallytree.cli.text import progress
from tallytree.errors import ModelError
from tallytree.io import ProblemFile


def add(commands: Commands) -> None:
    """Declare the commands."""
    distribution = commands.add(
        "distribution",
        _distribution,
        "show the probability of every tally",
        "model.uai --count ones=1",
        "model.uai --count ones=1 --count twos=2 --given twos=4",
    )
    marginals = commands.add(
        "marginals",
        _marginals,
        "show the probability of each state of each variable",
        "model.uai",
        "model.uai --count ones=1 --given ones=3 --json",
    )
    sample = commands.add(
        "sample",
        _sample,
        "draw labellings at random",
        "model.uai -n 5 --seed 1",
        "model.uai --count ones=1 --given ones=3",
    )
    for command in (distribution, marginals, sample):
        input_options(command)
        json_option(command)
        operations_option(command)
        given_option(command)
    distribution.add_argument(
        "--limit",
        type=natural,
        default=reports.MOST_ROWS,
        metavar="ROWS",
        help=f"show only this many tallies, the most probable ones (default {reports.MOST_ROWS}; 0 for all)",
    )
    sample.add_argument(
        "-n", "--number", type=natural, default=1, metavar="N", help="the number of samples (default 1)"
    )
    sample.add_argument(
        "--seed", type=natural, help="random seed, for reproducible samples (default: random)"
    )


def _distribution(options: Namespace) -> int:
    problem, found = _computed(options)
    if options.json:
        print(reports.as_json(reports.distribution_json(problem, found)))
    else:
        print_lines(reports.distribution_lines(problem, found, options.limit or None))
    return Exit.OK


def _marginals(options: Namespace) -> int:
    problem, found = _computed(options)
    expected = partial(expected_sums, found.plan, marginals=True)
    with progress("marginals", shown=shown(options), expected=expected):
        tables = problem.model.by_variable(found.marginals())
    if options.json:
        print(reports.as_json([table.tolist() for table in tables]))
    else:
        print_lines(reports.marginal_lines(problem, tables))
    return Exit.OK


def _sample(options: Namespace) -> int:
    problem, found = _computed(options)
    drawn = found.sample(options.number, rng=options.seed)
    drawn = drawn.reshape(options.number, len(problem.model))
    if options.json:
        print(reports.as_json([reports.drawn_json(problem, labelling) for labelling in drawn]))
    else:
        print_lines(reports.drawn_lines(problem, drawn, terminal_width()))
    return Exit.OK


def _computed(options: Namespace) -> tuple[ProblemFile, Distribution]:
    """Return the distribution given the constraint and ``--given``; an objective does not change it."""
    problem = problem_of(options)
    if problem.objective is not None:
        raise ModelError(
            "probabilities are those of the score, so an objective does not apply; use --objective score to "
            "drop it"
        )
    where = condition_of(problem, options)

    def expected() -> float:
        made = problem.distribution_plan(where=where, **memory(options))
        return expected_sums(made, marginals=False)

    with progress("probabilities", shown=shown(options), expected=expected):
        return problem, problem.distribution(where=where, **budget(options))
