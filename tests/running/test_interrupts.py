"""Ctrl-C at any moment: afterwards, the same call gives the same bits."""

from functools import partial

import numpy as np
import pytest
from interrupts import bits, interrupt_often, interrupted, looks_of, some_looks
from memory import little, rolled

import tallytree as tt
from tallytree import _native
from tallytree.bulk.chunk_tables import truth_tables
from tallytree.bulk.truth_tables import Search
from tallytree.kernels import native
from tallytree.planning.options import PlanOptions
from tallytree.planning.orders import skeleton
from tallytree.planning.plan import Plan


@pytest.fixture(autouse=True)
def no_interrupt_is_left():
    yield
    _native.interrupt_at(0)


def check_usable(make, ask, most=40):
    """Interrupt a question about an object again and again: it is answered afterwards as it was before."""
    expected, subject = bits(ask(make())), make()
    interrupt_often(lambda: subject, ask, lambda one: bits(ask(one)) == expected, most)


# ---------------------------------------------------------------- what there is


def planned(segments=1, states=3, **options):
    options["order"] = "natural"
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(60, states)), rng.normal(size=(states, states)))
    statistics = [tt.count(model, state=1, name="ones")]
    whole = Plan(model, statistics, PlanOptions(**options))
    if segments == 1:
        return model, whole
    plan = Plan(model, statistics, PlanOptions(memory_limit=little(whole, 0.45), **options))
    assert plan.segments >= segments
    return model, plan


def run_of(algebra=native.MAX_PLUS, prime=0, segments=1, threads=1, **options):
    model, plan = planned(segments, **options)
    return native.Run(plan.layout, [b.tables for b in model.blocks], algebra, prime, threads, 1.0)


def rolling(threads=1, precision="double"):
    rng = np.random.default_rng(0)
    model = tt.Model.chain(rng.normal(size=(60, 3)), rng.normal(size=(3, 3)))
    options = PlanOptions(layout="rows", precision=precision)
    plan = rolled(Plan(model, [tt.count(model, state=1, name="ones")], options), 8)
    tables = [block.tables for block in model.blocks]
    if precision == "single":
        return native.SingleRun(plan.layout, tables, threads, 1.0)
    return native.Run(plan.layout, tables, native.MAX_PLUS, 0, threads, 1.0)


def single_run(threads=1):
    model, plan = planned(2, layout="rows", precision="single")
    return native.SingleRun(plan.layout, [b.tables for b in model.blocks], threads, 1.0)


def some_cells(run):
    return run.root()[0][::7].astype(np.int64)


def decoded(run):
    return [run.decode(int(cell)) for cell in some_cells(run)]


def sampled(run):
    cells = some_cells(run)
    return run.sample(cells, np.random.default_rng(1).random((len(cells), len(planned()[1].tables))))


def forest():
    rules = {("S", "S", "S"): -1.0, ("S", "A", "S"): -0.5, ("A", "S", "A"): -0.25, ("A", "A", "A"): -1.5}
    words = {"S": {"a": 0.0, "b": -1.0}, "A": {"a": -0.5, "b": 0.0}}
    grammar = tt.parsing.Grammar(rules, {("A", "S"): -2.0}, words, root="S")
    return tt.parsing.Forest(grammar, "a b a a b b a b")


def chart(verb=tt.parsing.profile):
    """Return the native run of a chart."""
    return verb(forest(), [tt.parsing.count("A", name="as")])._loaded()._run


def plain_chart(algebra=native.MAX_PLUS):
    """Return a run without statistics."""
    rules, words = np.array([[0, 0, 0], [0, 1, 0], [1, 0, 1]], dtype=np.int32), 9
    paths = np.array([[0, 0, -1, -1, 0], [1, 1, -1, -1, 0], [1, 0, -1, -1, 0]], dtype=np.int32)
    layout = native.ChartLayout.plain(native.ChartGrammar(2, 0, 0, rules, paths), words, 1e9)
    rng = np.random.default_rng(0)
    return native.ChartRun(
        layout, rng.normal(size=(words, 2)), rng.normal(size=(3, 1)), rng.normal(size=(3, 1)), algebra
    )


def chart_samples(run):
    cells = np.repeat(run.root()[0], 3).astype(np.int64)
    return run.sample(cells, np.random.default_rng(1).random((len(cells), run.choices)))


def expected_counts(run):
    cells = np.zeros(run.root()[0].max() + 1)
    cells[run.root()[0]] = 1 / len(run.root()[0])
    return run.expectations_of(cells)


def batch():
    rng = np.random.default_rng(0)
    made = native.Batch(native.TallyMode.AUTO, 1e9)
    for size in (3, 20, 9):
        model = tt.Model.chain(rng.normal(size=(size, 3)), rng.normal(size=(3, 3)))
        ones = tt.count(model, state=1)
        tables, skeleton = [b.tables for b in model.blocks], tt.plan(model, [ones]).skeleton
        shifts, free = (
            [b.tables for b in ones.blocks],
            ([native.UNCAPPED], [-native.NO_LIMIT], [native.NO_LIMIT]),
        )
        made.add(skeleton, shifts, *free, tables, [], [], True)
    return made


def bounded_batch():
    rng = np.random.default_rng(1)
    lengths, names = [5, 20, 12, 16], ("O", "B-X", "I-X")
    labels = rng.integers(0, 3, sum(lengths))
    tables = truth_tables(tt.losses.ChunkFBeta(), 3, names)
    truths, _ = tables.truths(labels, lengths, "slack", search=Search("bounds"))
    made = native.Batch(native.TallyMode.AUTO, 1e9)
    skeletons = [tables.chain(length, True) for length in lengths]
    made.add_chains(skeletons, rng.normal(size=(sum(lengths), 3)), rng.normal(size=(3, 3)), truths)
    return made


def bounded_graphs():
    rng = np.random.default_rng(2)
    scopes = [(int(rng.integers(v)), v) for v in range(1, 16)] + [(0, 15)]
    blocks = np.arange(16, dtype=np.int32)[:, None], np.array(scopes, dtype=np.int32)
    tables = truth_tables(tt.losses.FBeta(background=0), 3, None)
    truths, _ = tables.truths(rng.integers(0, 3, 64), [16] * 4, "slack", search=Search("bounds"))
    model = tt.Model(
        [3] * 16, [((v,), np.zeros(3)) for v in range(16)] + [(s, np.zeros((3, 3))) for s in scopes]
    )
    program = skeleton(model, tables.shapes(model))
    scores = [rng.normal(size=(len(rows), *[3] * rows.shape[1])) for _ in range(4) for rows in blocks]
    made = native.Batch(native.TallyMode.AUTO, 1e9)
    made.add_models([program] * 4, scores, truths)
    return made


def bounded_answers(made, threads=1):
    made.run(threads)
    assignments, tallies, _, known = made.labellings()
    assert known["bounded"].all()
    return assignments, tallies, known["score"]


def batch_answers(made, threads=1):
    made.run(threads, lambda item, tallies, scores: [int(scores.argmax())])
    assignments, tallies, _, known = made.labellings()
    return assignments, tallies, known["score"]


# ---------------------------------------------------------------- native objects

QUESTIONS = {
    "decoding from checkpoints": (partial(run_of, segments=2), decoded),
    "decoding from checkpoints of cells": (partial(run_of, segments=2, layout="cells", states=24), decoded),
    "decoding from checkpoints on two threads": (partial(run_of, segments=2, threads=2), decoded),
    "decoding rolling tables": (rolling, decoded),
    "decoding rolling tables on two threads": (partial(rolling, 2), decoded),
    "decoding rolling tables in single precision": (partial(rolling, 2, "single"), decoded),
    "decoding in single precision": (single_run, decoded),
    "decoding in single precision on two threads": (partial(single_run, 2), decoded),
    "sampling": (partial(run_of, native.LOG_SUM_EXP), sampled),
    "sampling from checkpoints": (partial(run_of, native.LOG_SUM_EXP, segments=2), sampled),
    "sampling from checkpoints on two threads": (
        partial(run_of, native.LOG_SUM_EXP, segments=2, threads=2),
        sampled,
    ),
    "max-marginals": (run_of, lambda run: run.downward(np.zeros(len(run.values)))),
    "marginals": (partial(run_of, native.LOG_SUM_EXP), lambda run: run.downward(np.zeros(len(run.values)))),
    "trees": (chart, lambda run: [run.decode(int(cell)) for cell in run.root()[0]]),
    "trees at random": (partial(chart, tt.parsing.distribution), chart_samples),
    "marginals of trees": (plain_chart, lambda run: run.marginals()),
    "expectations of trees without statistics": (
        partial(plain_chart, native.LOG_SUM_EXP),
        lambda run: run.expectations(),
    ),
    "expectations of trees": (partial(chart, tt.parsing.distribution), expected_counts),
    "batch": (batch, batch_answers),
    "batch on two threads": (batch, partial(batch_answers, threads=2)),
    "batch by bounds": (bounded_batch, bounded_answers),
    "batch by bounds on two threads": (bounded_batch, partial(bounded_answers, threads=2)),
    "batch of graphs by bounds": (bounded_graphs, bounded_answers),
    "batch of graphs by bounds on two threads": (bounded_graphs, partial(bounded_answers, threads=2)),
}


@pytest.mark.parametrize("name", QUESTIONS)
@pytest.mark.sanitize
def test_an_object_answers_as_if_nothing_had_happened(name):
    check_usable(*QUESTIONS[name])


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.sanitize
def test_all_tables_of_a_rolling_run_can_be_asked_for_again(threads):
    """They are computed once: every interrupt before that must leave the run as it was."""

    def ask(run):
        return run.downward(np.zeros(len(run.values))), decoded(run)

    expected = bits(ask(rolling()))
    interrupt_often(partial(rolling, threads), ask, lambda run: bits(ask(run)) == expected)


MADE = {
    "max-plus": run_of,
    "max-plus on two threads": partial(run_of, threads=2),
    "log-sum-exp": partial(run_of, native.LOG_SUM_EXP),
    "log-sum-exp on two threads": partial(run_of, native.LOG_SUM_EXP, threads=2),
    "counting": partial(run_of, native.COUNTING, 97),
    "counting on two threads": partial(run_of, native.COUNTING, 97, threads=2),
    "cells": partial(run_of, layout="cells"),
    "checkpoints": partial(run_of, segments=2),
    "rolling tables": rolling,
    "rolling tables on two threads": partial(rolling, 2),
    "single precision": single_run,
    "trees": chart,
    "sums of trees": partial(chart, tt.parsing.distribution),
}


@pytest.mark.parametrize("name", MADE)
@pytest.mark.sanitize
def test_a_run_that_was_interrupted_can_be_made_again(name):
    make = MADE[name]
    expected = bits(make().root())
    interrupt_often(lambda: make, lambda made: made(), lambda made: bits(made().root()) == expected, most=30)


# ---------------------------------------------------------------- searches in order

SEARCHES = {
    "labellings": lambda: (run := run_of(), native.KBest(run, run.root()[0])),
    "trees": lambda: (run := chart(), native.ChartKBest(run, run.root()[0])),
}


@pytest.mark.parametrize("name", SEARCHES)
@pytest.mark.sanitize
def test_a_search_leaves_nothing_out_and_gives_nothing_twice(name):
    _, search = SEARCHES[name]()
    expected = [bits(search.next(5)) for _ in range(6)]
    looks = looks_of(lambda: SEARCHES[name]()[1].next(5))
    assert looks > 8
    for look in some_looks(looks, 25):
        assert found_with_interrupts(SEARCHES[name]()[1], look, len(expected)) == expected


def found_with_interrupts(search, look, times):
    """Ask a search so many times for what comes next, with an interrupt before each answer or none."""
    found = []
    while len(found) < times:
        if interrupted(lambda: found.append(bits(search.next(5))), look):
            found.append(bits(search.next(5)))
    return found


def test_an_iteration_that_was_broken_off_says_so():
    model, _ = planned()
    labellings = tt.iter_best(model)
    first = next(labellings)
    assert interrupted(lambda: next(labellings), 3)
    with pytest.raises(tt.TallytreeError, match=r"interrupted by a KeyboardInterrupt.*start a new one"):
        next(labellings)
    np.testing.assert_array_equal(next(tt.iter_best(model)).assignment, first.assignment)
