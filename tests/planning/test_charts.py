"""Programs of charts: correct by definition, and printed like those of models."""

import numpy as np
import pytest
from treebanks import toy

import tallytree as tt
from tallytree import parsing
from tallytree.planning.charts import ChartLayout, spans


@pytest.mark.parametrize("words", [1, 2, 5])
def test_the_program_of_a_chart_goes_through_all_splits(words):
    steps = ChartLayout.plain(toy(words).compiled.rules, words, np.inf).steps
    assert [step.number for step in steps] == list(range(words * (words + 1)))
    made = {}
    for step in steps:
        start, end = step.span
        assert all(table < step.number for table in step.inputs)
        if step.verb == "unary":
            assert step.inputs == (made["open", start, end],)
        elif step.verb == "word":
            assert end == start + 1 and not step.inputs
        else:
            splits = range(start + 1, end)
            parts = [made["closed", *part] for split in splits for part in ((start, split), (split, end))]
            assert step.verb == "combine" and end > start + 1 and list(step.inputs) == parts
        made["closed" if step.verb == "unary" else "open", start, end] = step.number
    places = list(zip(*(ends.tolist() for ends in spans(words)), strict=True))
    assert set(made) == {(layer, *place) for layer in ("open", "closed") for place in places}
    assert (steps[-1].verb, steps[-1].span) == ("unary", (0, words))


def test_steps_read_well():
    steps = parsing.plan(toy(2), [parsing.count()]).steps
    assert [str(step) for step in steps] == [
        "tags of word 0",
        "tags of word 1",
        "unary rules over words 0 to 1",
        "unary rules over words 1 to 2",
        "combine splits of words 0 to 2",
        "unary rules over words 0 to 2",
    ]


def test_the_costliest_step_is_the_one_with_the_most_operations():
    layout = parsing.plan(toy(6), [parsing.count(), parsing.count("M")]).layout
    operations = layout.native.step_operations
    assert operations.sum() == layout.operations
    assert operations[layout.costliest] == operations.max()
    states, tallies = layout.table(layout.costliest)
    assert (
        layout.steps[layout.costliest].verb == "combine"
        and states == 2
        and 1 < tallies <= layout.most_tallies
    )
    alone = parsing.plan(toy(1)).layout
    assert alone.costliest == 1 and str(alone.steps[1]) == "unary rules over words 0 to 1"


def test_a_chart_that_does_not_fit_says_where_it_grew_too_large():
    with pytest.raises(tt.BudgetError, match=r"chart of 9 words needs .* the limit is 1,000 bytes"):
        ChartLayout.plain(toy(9).compiled.rules, 9, 1000)
    with pytest.raises(tt.BudgetError, match=r"needs more than .* \(planning stopped at words \d to \d\)"):
        parsing.plan(toy(9), [parsing.count(), parsing.count("M")], memory_limit=12_000)
