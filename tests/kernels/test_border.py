"""The interface to the extension: named constants, errors with fields, structured results."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning.orders import METHODS, Programs

pytestmark = pytest.mark.sanitize


def grid_layout(limit, mode=native.TallyMode.AUTO):
    model = tt.Model.grid(np.zeros((6, 6, 3)), np.zeros((3, 3)), np.zeros((3, 3)))
    plan = tt.plan(model, [tt.count(model, state=1)])
    tables = [block.tables for statistic in plan.statistics for block in statistic.blocks]
    ends = (np.array([end], dtype=np.int64) for end in (native.UNCAPPED, -native.NO_LIMIT, native.NO_LIMIT))
    return plan, native.Layout(plan.skeleton, tables, *ends, mode, limit)


def test_a_refusal_names_the_step_and_the_bytes():
    plan, _ = grid_layout(1e9)
    for limit in (1e4, 1e5):
        with pytest.raises(native.BudgetExceededError, match="memory limit") as caught:
            grid_layout(limit)
        error = caught.value
        assert 0 <= error.step < len(plan.steps)
        assert limit < error.bytes < np.inf


def test_a_refusal_that_is_no_single_step_says_so():
    model = tt.Model([2] * 80, [((i, j), np.zeros((2, 2))) for i in range(80) for j in range(i)])
    skeleton = Programs(model, []).shape.program(np.arange(80, dtype=np.int32))
    none = np.zeros(0, dtype=np.int64)
    with pytest.raises(native.BudgetExceededError) as caught:
        native.Layout(skeleton, [], none, none, none, native.TallyMode.AUTO, 1e9)
    assert (caught.value.step, caught.value.bytes) == (-1, np.inf)


def test_modes_by_name_are_the_layouts_they_name():
    for mode, rows in ((native.TallyMode.ROWS, True), (native.TallyMode.CELLS, False)):
        assert grid_layout(1e9, mode)[1].rows is rows


@pytest.mark.parametrize("number", [-1, 7, 99])
def test_a_number_without_a_name_is_refused(number):
    shape = Programs(tt.Model([2, 2], [((0, 1), np.zeros((2, 2)))]), []).shape
    with pytest.raises(TypeError):
        shape.order(number)
    with pytest.raises(TypeError):
        native.Batch(number, 1e9)
    with pytest.raises(TypeError, match="incompatible function arguments"):
        grid_layout(1e9, number)


def test_every_heuristic_has_the_name_that_users_give():
    assert list(METHODS) == [
        "min-fill",
        "min-degree",
        "min-weight",
        "natural",
        "sweep",
        "min-tally",
        "min-open",
    ]


def test_verbs_of_a_program_are_those_that_are_named():
    plan, _ = grid_layout(1e9)
    names = [native.Verb(verb).name.lower() for verb in plan.skeleton.steps[:, 0].tolist()]
    assert names == [step.verb for step in plan.steps]


@pytest.mark.parametrize("words", [1, 2, 7])
def test_spans_are_numbered_by_width_and_then_by_start(words):
    every = [(start, start + width) for width in range(1, words + 1) for start in range(words - width + 1)]
    starts, ends = native.spans(words)
    assert list(zip(starts.tolist(), ends.tolist(), strict=True)) == every
    assert native.span_numbers(words, starts, ends - starts).tolist() == list(range(len(every)))
    assert [native.span_number(words, start, end - start) for start, end in every] == list(range(len(every)))


def test_spans_need_a_word_and_a_width_for_each_start():
    with pytest.raises(ValueError, match="a chart needs a word"):
        native.spans(0)
    with pytest.raises(ValueError, match="one width per start"):
        native.span_numbers(2, np.zeros(2, dtype=np.int64), np.ones(1, dtype=np.int64))


def test_answers_of_a_batch_have_named_columns():
    model = tt.Model.chain(np.array([[0.0, 1.0], [0.0, 2.0]]), np.zeros((2, 2)))
    forbidden = tt.Model([2], [((0,), [-np.inf, -np.inf])])
    batch = native.Batch(native.TallyMode.AUTO, 1e9)
    for one in (model, forbidden):
        tables = [block.tables for block in one.blocks]
        batch.add(tt.plan(one).skeleton, [], [], [], [], tables, [], [], False)
    batch.run(1)
    *_, known = batch.labellings()
    assert known["item"].tolist() == [0]  # the other one has no labelling
    assert known["promised"].tolist() == known["score"].tolist() == known["magnitude"].tolist() == [3.0]
    assert known["terms"].tolist() == [3] and known["certified"].tolist() == [True]
    for name in ("value", "loss", "truth_score"):
        assert known[name].tolist() == [0.0]
    assert len(batch.refused) == 0


def test_a_refused_item_is_told_with_what_it_needs():
    model = tt.Model.chain(np.zeros((50, 4)), np.zeros((4, 4)))
    batch = native.Batch(native.TallyMode.AUTO, 100.0)
    for _ in range(2):
        batch.add(tt.plan(model).skeleton, [], [], [], [], [b.tables for b in model.blocks], [], [], False)
    batch.run(1)
    assert len(batch.labellings()[-1]) == 0
    assert batch.refused["item"].tolist() == [0, 1] and (batch.refused["bytes"] > 100.0).all()


def test_an_empty_batch_has_no_answers():
    batch = native.Batch(native.TallyMode.AUTO, 1e9)
    batch.run(1, lambda item, tallies, scores: [0])
    assert len(batch.labellings()[-1]) == 0
