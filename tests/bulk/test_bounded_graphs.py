"""Trees and graphs in batches by bounds, compared with full tables."""

from itertools import product

import numpy as np
import pytest
from bounded_cases import KINDS, MARGINS, allowance, ask, graph
from hypothesis import given, settings
from hypothesis import strategies as st
from memory import grown, needs_proc

import tallytree as tt
from tallytree.bounding import BoundsCertificate
from tallytree.bulk.loss_batch import most_violated
from tallytree.kernels import native
from tallytree.testing import check_bounds
from tallytree.testing.problems import SHAPES

losses = tt.losses


class Squared(losses.FBeta, by_size=True):
    """A loss of no linear form."""

    def of_counts(self, tp, fp, size):
        return super().of_counts(tp, fp, size) ** 2

    def compare(self, found, gold):
        return super().compare(found, gold) ** 2


RECIPES = (
    losses.FBeta(background=0),
    losses.FBeta(),
    losses.FBeta(background=0, beta=2.0),
    losses.IntersectionOverUnion(background=0),
    losses.Precision(background=0),
    losses.Recall(background=0),
    losses.HammingLoss(),
    Squared(background=0),
)


def graphs(rng, kind, count, most, states):
    """Return models of any shape with truths that they allow."""
    pairs = []
    while len(pairs) < count:
        shape = str(rng.choice(list(SHAPES)))
        wide = shape in ("grid", "triples", "cycle")
        variables = int(rng.integers(1, (min(most, 9) if wide else most) + 1))
        model = graph(rng, shape, variables, states, kind)
        truth = np.where(rng.random(variables) < 0.4, 0, rng.integers(0, states, variables))
        if model.score(truth) > -np.inf:
            pairs.append((model, truth))
    return pairs


def by_bounds(found):
    """Return whether an answer was found by bounds in the batch itself."""
    return getattr(found.proof.plan, "func", None).__name__ == "_shown"


def check_same(one, other):
    assert (one.value, one.score, one.tally) == (other.value, other.score, other.tally)
    np.testing.assert_array_equal(one.assignment, other.assignment)


SEEDS = st.integers(0, 2**32 - 1)
SCALINGS = st.sampled_from(["margin", "slack"])


@settings(max_examples=60, deadline=None)
@given(SEEDS, KINDS, st.sampled_from(RECIPES), SCALINGS, MARGINS)
def test_values_are_those_of_whole_tables(seed, kind, recipe, scaling, margin):
    rng = np.random.default_rng(seed)
    pairs = graphs(rng, kind, 4, 9, int(rng.integers(1, 5)))
    full = ask(pairs, recipe, scaling, "full", margin=margin)
    for one, other in zip(full, ask(pairs, recipe, scaling, "bounds", margin=margin), strict=True):
        assert abs(one.value - other.value) <= allowance(one)
        assert other.model.score(other.assignment) == pytest.approx(other.score, rel=1e-12, abs=1e-12)
        if isinstance(other.certificate, BoundsCertificate):
            check_bounds(other)


@settings(max_examples=40, deadline=None)
@given(SEEDS, KINDS, st.sampled_from(RECIPES), SCALINGS, MARGINS)
def test_values_are_those_of_all_labellings(seed, kind, recipe, scaling, margin):
    rng = np.random.default_rng(seed)
    states = int(rng.integers(2, 4))
    ((model, truth),) = pairs = graphs(rng, kind, 1, 5, states)
    (found,) = ask(pairs, recipe, scaling, "bounds", margin=margin)
    loss, right = recipe.against(truth).on(model), model.score(truth)
    values = []
    for labelling in product(range(states), repeat=len(model)):
        cost, ahead = float(loss(labelling)), model.score(labelling) - right
        if ahead > -np.inf:
            values.append(cost * (margin + ahead) if scaling == "slack" else margin * cost + ahead)
    assert abs(max(values) - found.value) <= allowance(found)


@settings(max_examples=40, deadline=None)
@given(SEEDS, KINDS, st.sampled_from(RECIPES), SCALINGS)
def test_auto_gives_the_labelling_of_the_whole_table(seed, kind, recipe, scaling):
    """If several labellings are equally good, the table decides, so the same one is returned."""
    rng = np.random.default_rng(seed)
    pairs = graphs(rng, kind, 4, 18, int(rng.integers(2, 6)))
    full = ask(pairs, recipe, scaling, "full")
    for threads in (1, 2):
        for one, other in zip(full, ask(pairs, recipe, scaling, "auto", threads=threads), strict=True):
            check_same(one, other)


@settings(max_examples=25, deadline=None)
@given(SEEDS, st.sampled_from(["any", "ties", "strong"]), SCALINGS)
def test_prices_of_the_last_time_change_no_answer(seed, kind, scaling):
    rng = np.random.default_rng(seed)
    models, truths = zip(*graphs(rng, kind, 4, 18, 4), strict=True)
    loss, prices = losses.FBeta(background=0), np.full((4, 2), np.nan)
    most_violated(models, loss, truths, scaling, prices=prices)
    blocks = [[b.with_tables(b.tables + 0.1 * np.round(b.tables)) for b in m.blocks] for m in models]
    moved = [tt.Model.from_blocks(m.cardinalities, b) for m, b in zip(models, blocks, strict=True)]
    full = ask(list(zip(moved, truths, strict=True)), loss, scaling, "full")
    for start in (prices, 3 * rng.normal(size=(4, 2)), np.full((4, 2), np.inf)):
        for one, (other,) in zip(
            full, most_violated(moved, loss, truths, scaling, prices=start), strict=True
        ):
            check_same(one, other)


def test_auto_searches_where_it_is_worth_it():
    rng = np.random.default_rng(3)
    large = [
        (graph(rng, "tree", 30, 6), rng.integers(0, 6, 30)),
        (graph(rng, "star", 40, 5), rng.integers(0, 5, 40)),
    ]
    large.append(
        (tt.Model.grid(rng.normal(size=(4, 12, 2)), np.eye(2), np.eye(2)), rng.integers(0, 2, (4, 12)))
    )
    small = [(graph(rng, "tree", 5, 2), rng.integers(0, 2, 5))]
    for scaling in ("margin", "slack"):
        found = ask(large + small, RECIPES[0], scaling, "auto")
        assert [by_bounds(one) for one in found] == [True, True, True, False]
        assert all("plain pass" in one.explain() for one in found[:3])
        check_bounds(found[0])


def test_equals_are_left_to_the_table():
    """Two labellings with the same tally and score, in one part of a graph or over two that are joined."""
    rng = np.random.default_rng(4)
    truth = np.zeros(30, dtype=int)
    for twins in ((7, 8), (3, 29)):
        unary = rng.normal(size=(30, 4))
        unary[list(twins)] = [[0.0, 5.0, 5.0, -9.0]] * 2
        edges = [(int(rng.integers(v)), v) for v in range(1, 30) if v not in twins and v - 1 not in twins]
        factors = [((v,), unary[v]) for v in range(30)] + [(edge, rng.normal(size=(4, 4))) for edge in edges]
        model = tt.Model([4] * 30, factors)
        full, auto, bounds = (
            ask([(model, truth)], RECIPES[0], "slack", way)[0] for way in ("full", "auto", "bounds")
        )
        check_same(full, auto)
        assert not by_bounds(auto) and by_bounds(bounds)
        assert bounds.value == full.value and bounds.tally == full.tally


def test_a_truth_that_nothing_violates():
    """Under slack scaling the value is 0, and the truth itself the answer."""
    rng = np.random.default_rng(5)
    truth = rng.integers(0, 5, 24)
    edges = [(int(rng.integers(v)), v) for v in range(1, 24)]
    right = [((v,), 50.0 * np.eye(5)[truth[v]]) for v in range(24)]
    model = tt.Model([5] * 24, right + [(edge, np.zeros((5, 5))) for edge in edges])
    for strategy in ("full", "auto", "bounds"):
        (found,) = ask([(model, truth)], losses.FBeta(background=0), "slack", strategy)
        assert found.value == 0.0 and found.loss == 0.0
        np.testing.assert_array_equal(found.assignment, truth)


@pytest.mark.sanitize
def test_models_one_after_the_other_on_one_thread():
    """Of the same shape and of others, larger and smaller, with chains in between."""
    rng = np.random.default_rng(6)
    pairs = []
    for shape, variables, states in product(("tree", "grid", "chain", "triples"), (9, 4, 9), (2, 5, 10)):
        pairs += graphs_of(rng, shape, variables, min(states, 3 if shape == "triples" else 10))
    for scaling in ("margin", "slack"):
        found = ask(pairs, RECIPES[0], scaling, "bounds", threads=1)
        alone = [ask([one], RECIPES[0], scaling, "full", threads=1)[0] for one in pairs]
        for one, other in zip(alone, found, strict=True):
            check_same(one, other)
        assert sum(map(by_bounds, found)) > len(pairs) // 2


def graphs_of(rng, shape, variables, states):
    """Return two models of one shape, and truths."""
    model = graph(rng, shape, variables, states)
    other = [block.with_tables(rng.normal(size=block.tables.shape)) for block in model.blocks]
    models = model, tt.Model.from_blocks(model.cardinalities, other)
    return [(one, rng.integers(0, states, variables)) for one in models]


@pytest.mark.parametrize("name", native.instruction_sets())
def test_the_same_bits_on_every_instruction_set(name):
    """This includes the final prices, which are sums over passes."""
    rng = np.random.default_rng(8)
    asked = [graphs(rng, "any", 5, 20, states) for states in (3, 8, 13, 23)]
    found = {}
    for instructions in ("baseline", name):
        native.use_instruction_set(instructions)
        try:
            prices = [np.full((5, 2), np.nan) for _ in asked]
            labels = [
                [one.assignment.tolist() for (one,) in most_violated(*with_truths(pairs), prices=start)]
                for pairs, start in zip(asked, prices, strict=True)
            ]
        finally:
            native.use_instruction_set()
        found[instructions] = labels, [p.tobytes() for p in prices]
    assert found["baseline"] == found[name]


def with_truths(pairs):
    models, truths = zip(*pairs, strict=True)
    return models, losses.FBeta(background=0), truths, "slack"


@needs_proc
def test_memory_that_waits_is_counted():
    asked = """
        def asked(count, rows):
            rng = np.random.default_rng(0)
            pair = rng.normal(size=(2, 2))
            models = [tt.Model.grid(rng.normal(size=(rows, 12, 2)), pair, pair) for _ in range(count)]
            truths = [rng.integers(0, 2, (rows, 12)) for _ in range(count)]
            ask = {"truths": truths, "threads": 1, "strategy": "bounds"}
            f1 = tt.losses.FBeta(background=0)
            return lambda limit: len(tt.loss_augmented_batch(models, f1, memory_limit=limit, **ask))
        small, call = asked(2, 2), asked(60, 6)
    """
    found = grown(asked, limit=6e6)
    assert (found["refused"], found["said"]) == (None, 60)
    assert found["growth"] < 6e6


def test_learning_from_graphs_starts_at_the_last_prices():
    rng = np.random.default_rng(9)
    edges = [(int(rng.integers(v)), v) for v in range(1, 25)]
    examples = [tt.learning.Graph(rng.normal(size=(25, 3)), edges) for _ in range(6)]
    truths = [rng.integers(0, 4, 25) for _ in examples]
    problem = tt.learning.GraphProblem(examples, truths, 4, losses.FBeta(background=0))
    weights = rng.normal(size=problem.dimension)
    oracle = tt.learning.ExactOracle(problem, "slack")
    first = oracle.planes(range(6), weights)
    assert oracle._prices.shape == (6, 2) and np.abs(oracle._prices).max() > 0
    again = oracle.planes(range(6), weights)
    for one, other in zip(first, again, strict=True):
        assert one[0].offset == other[0].offset
        np.testing.assert_array_equal(one[0].indices, other[0].indices)
