"""Arrays and names as data scientists have them: pandas, objects, transposed arrays, batches of samples."""

import re
from pathlib import Path

import numpy as np
import pytest

import tallytree as tt

PAIRS = np.eye(2)
UNARY = np.array([[0, 1.5], [0, -2.5], [0, 3.0]])


def test_unary_scores_that_are_transposed():
    with pytest.raises(tt.ModelError) as caught:
        tt.Model.chain(np.zeros((2, 4)), PAIRS)
    assert str(caught.value).endswith(
        "unary has shape (2, 4): 2 variables of 4 states, while pairwise has 2 states. Is unary transposed? "
        "It has one row per variable and one column per state"
    )
    with pytest.raises(tt.ModelError, match="2 variables of 4 states, while pairwise has 2 states"):
        tt.Model.tree([-1, 0], np.zeros((2, 4)), np.zeros((2, 2, 2)))
    with pytest.raises(tt.ModelError, match=r"3 variables of 4 states, while pairwise has 2 states$"):
        tt.Model.chain(np.zeros((3, 4)), PAIRS)


def test_grids_with_channels_first():
    with pytest.raises(
        tt.ModelError, match=r"a 2 x 5 grid of 7 states, while vertical has 2 states\. Is una"
    ):
        tt.Model.grid(np.zeros((2, 5, 7)), PAIRS, PAIRS)
    with pytest.raises(tt.ModelError, match=r"np\.moveaxis\(unary, 0, -1\) moves them there"):
        tt.Model.grid(np.zeros((2, 5, 7)), PAIRS, PAIRS)
    with pytest.raises(
        tt.ModelError, match=r"\(R, C, N\), one entry per row and column .* got shape \(5, 2\)"
    ):
        tt.Model.grid(np.zeros((5, 2)), PAIRS, PAIRS)


def test_one_number_per_variable():
    with pytest.raises(
        tt.ModelError, match=r"one row per variable and one column per state; got shape \(4,\)"
    ):
        tt.Model.chain(np.zeros(4), PAIRS)


def test_numbers_as_objects():
    model = tt.Model.chain(UNARY.astype(object), [[1, 0], [0, np.float32(1)]])
    assert model.score([1, 0, 1]) == 4.5
    counts = tt.node_statistic(np.array([[0, 2**40 - 1]], dtype=object))
    assert counts.tally([1]) == 2**40 - 1
    with pytest.raises(tt.ModelError, match=r"got None at \[0, 0\]; replace it by a number"):
        tt.Model.chain([[None, 1.0]], PAIRS)


@pytest.mark.parametrize(
    ("unary", "text"),
    [
        ([[0, 1, 2], [0, 1], [0, 1, 1]], "array of numbers: row 1 has 2 numbers, row 0 has 3"),
        ([["0", "1"], ["2", "1"]], "got '0' at [0, 0]; convert text with np.array(…).astype(float)"),
        (np.array([["0", "1"]]), "got '0' at [0, 0]; convert text with .astype(float)"),
        ([[0, 1], [2, "x"]], "got 'x' at [1, 1]; replace it by a number"),
        ([[0, 1j]], "got an array of dtype complex128"),
    ],
)
def test_what_is_no_number_is_named(unary, text):
    with pytest.raises(tt.ModelError, match=re.escape(text)):
        tt.Model.chain(unary, PAIRS)


def test_what_is_no_number_in_pandas_is_named():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"dry": [0.0, 1.0], "wet": ["1", "2"]})
    for table, text in (
        (frame, "got '1' at [0, 1], in the column 'wet'; convert text with .astype(float)"),
        (frame.assign(wet=[1, "x"]), "got 'x' at [1, 1], in the column 'wet'; replace it by a number"),
    ):
        with pytest.raises(tt.ModelError, match=re.escape(text)):
            tt.Model.chain(table, PAIRS)
    model = tt.Model.chain(frame.astype(float), PAIRS)
    with pytest.raises(tt.ModelError, match=r"pass states= or variables= .* states=df\.columns for a Data"):
        tt.count(model, state="wet")


def test_names_of_states_are_counted():
    with pytest.raises(tt.ModelError, match="states has 1 name, but each variable has 2 states"):
        tt.Model.chain(UNARY, PAIRS, states=["dry"])


def test_variables_named_by_numbers_and_dates():
    days = np.array(["2026-11-01", "2026-11-02", "2026-11-03"], dtype="datetime64[D]")
    assert tt.Model.chain(UNARY, PAIRS, variables=days).variables[1] == "2026-11-02"
    assert tt.Model.chain(UNARY, PAIRS, variables=range(10, 13)).variables == ("10", "11", "12")
    with pytest.raises(tt.ModelError, match="variables must hold strings, got None"):
        tt.Model.chain(UNARY, PAIRS, variables=["a", None, "b"])


class Items:
    def items(self):
        return [(0, "dry"), (2, "dry")]


def test_anything_with_items_fixes_variables():
    model = tt.Model.chain(UNARY, PAIRS, states=["dry", "wet"])
    assert tt.solve(model.restricted(fixed=Items())).labels.tolist() == ["dry"] * 3
    with pytest.raises(tt.ModelError, match="fixed must map variables to states"):
        model.restricted(fixed=[0, 1])


def test_tables_of_pandas():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(UNARY, columns=["dry", "wet"], index=pd.date_range("2026-11-01", periods=3))
    for table in (frame, frame.astype("Float64"), frame.astype(object)):
        model = tt.Model.chain(table, PAIRS, states=table.columns, variables=table.index)
        assert np.array_equal(model.blocks[0].tables, UNARY)
        assert model.variables[0] == "2026-11-01"
    best = tt.solve(model, fixed=pd.Series({1: "wet"}))
    assert frame.assign(state=best.labels)["state"].tolist() == ["wet", "wet", "wet"]
    with pytest.raises(tt.ModelError, match=r"got <NA> at \[2, 1\], in the column 'wet'; replace it"):
        tt.Model.chain(frame.astype("Float64").mask(frame > 2), PAIRS)


def test_labels_of_tables_must_agree():
    """Tables are taken by position, so labels in another order are an error rather than a wrong answer."""
    pd = pytest.importorskip("pandas")
    states = ["dry", "wet"]
    scores = pd.DataFrame(UNARY, columns=states)
    pairs = pd.DataFrame(PAIRS, index=states, columns=states)
    assert tt.solve(tt.Model.chain(scores, pairs, states=states)).labels.tolist() == ["wet", "dry", "wet"]
    assert tt.Model.chain(scores.set_axis([7, 8], axis=1), pairs, states=states).states == ("dry", "wet")
    swapped = scores[["wet", "dry"]]
    message = r"the columns of unary are 'wet', 'dry', .* 'dry', 'wet'; .* same order"
    with pytest.raises(tt.ModelError, match=message):
        tt.Model.chain(swapped, pairs, states=states)
    with pytest.raises(tt.ModelError, match="the index of pairwise is 'wet', 'dry'"):
        tt.Model.chain(scores, pairs.iloc[::-1], states=states)
    with pytest.raises(tt.ModelError, match=r"the columns of pairwise are 'wet', 'dry', .* columns of unary"):
        tt.Model.tree([-1, 0, 1], scores, pairs.iloc[::-1, ::-1].set_axis(states))
    with pytest.raises(tt.ModelError, match="the columns of vertical are 'wet', 'dry'"):
        tt.Model.grid(np.zeros((2, 2, 2)), pairs.iloc[:, ::-1], PAIRS, states=states)


def test_dates_as_variables():
    pd = pytest.importorskip("pandas")
    days = pd.date_range("2026-11-01", periods=3)
    model = tt.Model.chain(UNARY, PAIRS, states=["dry", "wet"], variables=days)
    assert model.variables == ("2026-11-01", "2026-11-02", "2026-11-03")
    assert tt.Model.chain(UNARY, PAIRS, variables=days.values).variables == model.variables
    for first in (days[0], days.values[0], days[0].date(), "2026-11-01", 0):
        assert tt.solve(model, fixed={first: "dry"}).labels[0] == "dry"
    assert tt.solve(model, fixed=pd.Series(["dry"], index=days[:1])).labels[0] == "dry"
    hours = pd.date_range("2026-11-01", periods=3, freq="6h")
    assert tt.Model.chain(UNARY, PAIRS, variables=hours).variables[1] == "2026-11-01 06:00:00"


def test_tables_with_other_columns_and_missing_values():
    pd = pytest.importorskip("pandas")
    scores = pd.DataFrame(UNARY, columns=["dry", "wet"], index=pd.date_range("2026-11-01", periods=3))
    with pytest.raises(tt.ModelError, match="the column 'index'; this column holds no numbers; leave it out"):
        tt.Model.chain(scores.reset_index(), np.zeros((3, 3)))
    model = tt.Model.chain(scores, PAIRS, states=scores.columns)
    with pytest.raises(tt.ModelError, match=r"fixed\[1\] is nan.*\. Leave out missing values.*dropna"):
        tt.solve(model, fixed=pd.Series(["dry", None, "wet"]))


def test_classes_of_numbers():
    with pytest.raises(tt.ModelError, match=r"the names of states are strings, got .*0.* leave out states="):
        tt.Model.chain(UNARY, PAIRS, states=np.array([0, 1]))


# --- results as arrays --------------------------------------------------------------------------------------


def test_marginals_are_one_array_if_all_sizes_are_equal():
    wet = tt.count(state=1, name="wet")
    chain = tt.Model.chain(UNARY, PAIRS)
    names = tt.Model([2, 2], [((0, 1), PAIRS)], states=[["a", "b"], ["c", "d"]])
    mixed = tt.Model([2, 3], [((0, 1), np.zeros((2, 3)))])
    for model, shape in ((chain, (3, 2)), (names, (2, 2))):
        spread, profile = tt.distribution(model, [wet] if model is chain else []), tt.profile(model)
        assert spread.marginals().shape == profile.max_marginals().shape == shape
        np.testing.assert_allclose(spread.marginals().sum(axis=-1), 1.0)
    assert tt.distribution(tt.Model.chain(np.zeros((0, 2)), PAIRS)).marginals().shape == (0, 2)
    assert [table.shape for table in tt.distribution(mixed).marginals()] == [(2,), (3,)]
    assert [table.shape for table in tt.profile(mixed).max_marginals()] == [(2,), (3,)]


def test_labels_of_many_samples():
    named = {"states": ["dry", "wet"]}
    chain = tt.Model.chain(UNARY, PAIRS, **named)
    grid = tt.Model.grid(np.zeros((2, 3, 2)), PAIRS, PAIRS, **named)
    each = tt.Model([2, 2, 2], states=[["a", "b"], ["c", "d"], ["e", "f"]])
    for model in (chain, grid, each):
        samples = tt.distribution(model).sample(5, rng=0)
        labels = model.labels(samples)
        assert labels.shape == samples.shape
        assert labels.tolist() == [model.labels(one).tolist() for one in samples]
        assert model.labels(samples[:0]).shape == (0, *model.shape)
        with pytest.raises(tt.ModelError, match="a labelling of this model has shape"):
            model.labels(samples[:, :1])
    assert tt.Model.chain(UNARY, PAIRS).labels(np.ones((2, 3), dtype=int)).tolist() == [[1] * 3] * 2


def test_the_recipe_for_pandas():
    pd = pytest.importorskip("pandas")
    page = (Path(__file__).parents[2] / "docs" / "how-to.md").read_text(encoding="utf-8")
    code = page.partition("## Use pandas")[2].partition("```py\n")[2].partition("```")[0]
    names = {"pd": pd, "np": np, "tt": tt}
    exec(code, names)
    assert names["days"]["state"].tolist() == ["wet", "dry", "wet"]
    assert names["best"].loc[2] == 4.5
    assert names["best"].index.name == "wet"
    assert names["chances"].shape == (3, 2)
