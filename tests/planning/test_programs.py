"""Programs are created once for each order, and shared."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.kernels import native
from tallytree.planning import orders, planner
from tallytree.planning.recent import Recent
from tallytree.planning.search_price import program_for
from tallytree.testing import check_bounds


@pytest.mark.parametrize("variables", [5, 900])
def test_no_program_is_made_twice(monkeypatch, variables):
    # a question is first priced by bounds; its table then takes the programs that are there
    monkeypatch.setattr(orders, "_RECENT", Recent(most=512, most_bytes=64e6))
    monkeypatch.setattr(planner, "_RECENT", Recent(most=512, most_bytes=64e6))
    made, program = [], orders._Search.program

    def noted(search, order, *more, **others):
        made.append(tuple(order.tolist()))
        return program(search, order, *more, **others)

    monkeypatch.setattr(orders._Search, "program", noted)
    model = tt.Model.chain(np.zeros((variables, 2)), np.eye(2))
    assert tt.solve(model, where=tt.count(model, state=1) == 2).tally == (2,)
    assert made and len(set(made)) == len(made)


def test_trees_whose_tables_nobody_computes_try_one_order(monkeypatch):
    """Plain passes are alike in all orders from the leaves inwards; the answer is that of the table."""
    rng = np.random.default_rng(0)
    parents = np.array([-1, *(int(rng.integers(0, i)) for i in range(1, 60))])
    model = tt.Model.tree(parents, rng.normal(size=(60, 3)), rng.normal(size=(3, 3)))
    where = (tt.count(model, state=1) == 20) & (tt.count(model, state=2) == 25)
    expected = tt.solve(model, where=where, strategy="full")
    program = orders._Search.program

    def narrow_programs(hopeless):
        made = []
        with monkeypatch.context() as patch:
            patch.setattr(orders, "_HOPELESS", hopeless)
            patch.setattr(orders, "_RECENT", Recent(most=512, most_bytes=64e6))
            patch.setattr(
                orders._Search, "program", lambda *a, **k: made.append(program(*a, **k)) or made[-1]
            )
            found = tt.solve(model, where=where, strategy="bounds")
        assert found.tally == expected.tally and found.score == pytest.approx(expected.score)
        return sum(one.width <= 1 for one in made)

    assert narrow_programs(hopeless=0.0) == 1 < narrow_programs(orders._HOPELESS)


def grown(rng, size, links):
    """A random graph of binary variables, connected along a path."""
    pairs = {tuple(sorted(p)) for p in rng.integers(0, size, (links, 2)).tolist() if p[0] != p[1]}
    pairs |= {(v, v + 1) for v in range(size - 1)}
    unary = [((v,), rng.standard_normal(2)) for v in range(size)]
    return tt.Model([2] * size, [*unary, *((p, 0.3 * rng.standard_normal((2, 2))) for p in sorted(pairs))])


def least_fill(size, pairs):
    """The order by definition: the variable with the fewest missing edges goes first."""
    near = {v: set() for v in range(size)}
    for u, v in pairs:
        near[u].add(v)
        near[v].add(u)
    order = []
    while near:
        missing = {v: sum(b not in near[a] for a, b in combinations(sorted(n), 2)) for v, n in near.items()}
        gone = min(missing, key=lambda v: (missing[v], v))
        neighbours = near.pop(gone)
        for u in neighbours:
            near[u] = (near[u] | neighbours) - {u, gone}
        order.append(gone)
    return order


@given(seed=st.integers(0, 2**32))
@settings(max_examples=60)
def test_min_fill_is_what_its_definition_says(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(1, 45))
    model = grown(rng, size, int(rng.integers(0, 3 * size)))
    pairs = [scope for block in model.blocks if block.arity == 2 for scope in block.scopes.tolist()]
    found = orders.Programs(model, []).shape.order(native.OrderMethod.MIN_FILL)
    assert found.tolist() == least_fill(size, pairs)


@pytest.mark.parametrize("hubs", [2, 10, 55])
def test_min_fill_orders_variables_around_hubs(hubs):
    """Fill is estimated where many variables meet; the order is still complete, and not much wider."""
    rng = np.random.default_rng(hubs)
    pairs = [(int(h), v) for v in range(hubs, 400) for h in rng.choice(hubs, 2, replace=False)]
    model = tt.Model([2] * 400, [(pair, np.zeros((2, 2))) for pair in pairs])
    shape = orders.Programs(model, []).shape
    for seed in range(3):
        order = shape.order(native.OrderMethod.MIN_FILL, seed)
        assert sorted(order.tolist()) == list(range(400))
        program = shape.program(order)
        assert not program.feasible or program.width <= hubs + 1


def test_a_question_by_bounds_takes_few_orders_and_its_table_many(monkeypatch):
    """Orders are tried as long as they are cheap compared with what is asked."""
    monkeypatch.setattr(orders, "_RECENT", Recent(most=512, most_bytes=64e6))
    tried, order = [], orders._Search.order
    monkeypatch.setattr(orders._Search, "order", lambda *asked: tried.append(asked[1:]) or order(*asked))
    model = grown(np.random.default_rng(0), 80, 60)
    ones = tt.count(model, state=1)
    by_bounds = program_for(model, [ones], None)
    few = len(tried)
    table = orders.skeleton(model, [ones])
    assert few <= 10 < len(tried) - few
    assert table.cost <= by_bounds.cost and by_bounds.pass_operations <= 3 * table.pass_operations
    before = len(tried)
    assert program_for(model, [ones], None) is by_bounds and orders.skeleton(model, [ones]) is table
    assert len(tried) == before


@given(seed=st.integers(0, 2**32))
@settings(max_examples=25)
def test_passes_over_rows_of_states_give_what_tables_do(seed):
    """Programs for passes have other layouts than those for tables, and longer rows."""
    rng = np.random.default_rng(seed)
    size = int(rng.integers(14, 24))
    model = grown(rng, size, int(rng.integers(size, 2 * size)))
    ones = tt.count(model, state=1)
    for where in (ones == int(rng.integers(0, size)), ones >= size // 2):
        found = tt.solve(model, where=where, strategy="bounds")
        assert found.score == pytest.approx(tt.solve(model, where=where, strategy="full").score, abs=1e-9)
        assert model.score(found.assignment) == pytest.approx(found.score, abs=1e-9)


def test_the_program_of_a_large_tree_stays_in_the_cache(monkeypatch):
    """Other orders are tried by drafts: whole programs would push each other out."""
    size = 30_000
    rng = np.random.default_rng(0)
    parents = np.array([-1, *(int(rng.integers(v)) for v in range(1, size))])
    model = tt.Model.tree(parents, np.zeros((size, 2)), np.eye(2))
    counts = [tt.count(model, state=0), tt.count(model, state=1)]
    monkeypatch.setattr(orders, "_RECENT", Recent(most=512, most_bytes=64e6))
    room = 1.5 * program_for(model, counts, None).bytes
    monkeypatch.setattr(orders, "_RECENT", Recent(most=512, most_bytes=room))
    assert program_for(model, counts, None) is program_for(model, counts, None)


def shapes(rng, size):
    """Return scopes of a random shape, and of statistics, with one count for each of these."""
    edges = [(int(rng.integers(v)), v) for v in range(1, size) if rng.random() < 0.9]
    if rng.random() < 0.5:
        edges += [tuple(rng.permutation(size)[:2]) for _ in range(int(rng.integers(0, 3)))]
    pairs = np.array(edges, dtype=np.int32).reshape(-1, 2)
    single = np.arange(size, dtype=np.int32)[:, None]
    return [single, pairs], [single, np.ascontiguousarray(pairs[:, ::-1])][: int(rng.integers(0, 3))]


def shape_of(cardinalities, scores, shifts):
    count = len(shifts)
    statistic_of, caps = np.arange(count, dtype=np.int32), np.full(count, native.UNCAPPED)
    return native.Shape(cardinalities, scores, shifts, statistic_of, caps, np.ones(count, np.int64))


@pytest.mark.sanitize
@given(seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_a_forest_has_no_cycles(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(3, 12))
    scores, shifts = shapes(rng, size)
    edges = {
        frozenset(pair) for block in (*scores, *shifts) if block.shape[1] == 2 for pair in block.tolist()
    }
    component = list(range(size))
    joined = 0
    for a, b in map(tuple, edges):
        joined += component[a] != component[b]
        component = [component[a] if c == component[b] else c for c in component]
    cardinalities = np.full(size, 2, dtype=np.int32)
    assert shape_of(cardinalities, scores, shifts).is_forest == (joined == len(edges))
    assert not shape_of(cardinalities, [np.array([[0, 1, size - 1]], dtype=np.int32)], []).is_forest


@pytest.mark.sanitize
@given(seed=st.integers(0, 2**32))
@settings(max_examples=50)
def test_a_draft_is_laid_out_as_its_program(seed):
    rng = np.random.default_rng(seed)
    size = int(rng.integers(2, 30))
    scores, shifts = shapes(rng, size)
    cardinalities = rng.integers(1, 4, size).astype(np.int32)
    shape = shape_of(cardinalities, scores, shifts)
    order = shape.order(native.OrderMethod(int(rng.integers(6))))
    draft, program = (shape.program(order, made) for made in (native.Purpose.OUTLINE, native.Purpose.TABLES))
    assert draft.bytes == 0
    laid_out = draft.laid_out()
    for name in ("steps", "scope_begin", "scope_data", "score_refs", "shift_refs", "order"):
        np.testing.assert_array_equal(getattr(laid_out, name), getattr(program, name))
    for name in ("bytes", "step_count", "width", "degree", "cost", "pass_operations", "feasible"):
        assert getattr(laid_out, name) == getattr(program, name)
    for other in (program, draft):
        with pytest.raises(ValueError, match="only a draft with an outline can be laid out, once"):
            other.laid_out()


@pytest.mark.parametrize("plain", [True, False])
def test_long_chains_are_searched_from_drafts(monkeypatch, plain):
    """Only a chain as it stands, of which single variables are counted, needs no more than its scopes."""
    monkeypatch.setattr(orders, "_RECENT", Recent(most=512, most_bytes=64e6))
    monkeypatch.setattr(orders, "_MANY", 10)
    drafts, program = [], orders._Search.program

    def noted(search, order, draft=False, steps=0):
        drafts.append(draft)
        return program(search, order, draft, steps)

    monkeypatch.setattr(orders._Search, "program", noted)
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.standard_normal((60, 3)), rng.standard_normal((3, 3)))
    changes = tt.Statistic([((v, v + 1), 1 - np.eye(3, dtype=int)) for v in range(59)], name="changes")
    where = (tt.count(model, state=1) if plain else changes) == 25
    found = tt.solve(model, where=where, strategy="bounds")
    assert all(drafts) == plain
    assert found.score == pytest.approx(tt.solve(model, where=where, strategy="full").score, abs=1e-9)
    check_bounds(found)
