"""Chains searched in place: the same answers as other programs and full tables."""

import os
import threading
import time
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from interrupts import bits, interrupted, looks_of, some_looks
from memory import grown, needs_proc

import tallytree as tt
from tallytree import _native as native
from tallytree.running.bounds import ModelSearcher, Search, Wanted

MEGABYTE = 1e6


def swapped(model):
    """The same model with its blocks in another order: the tables are read by steps of a program."""
    return tt.Model.from_blocks(model.cardinalities, model.blocks[::-1])


def counts_of(rng, variables, states, kinds):
    """Counts of few kinds, or of a kind for each variable."""
    if kinds == "shared":
        return np.broadcast_to(rng.integers(-1, 2, states), (variables, states))
    if kinds == "few":
        return rng.integers(-1, 2, (3, states))[rng.integers(0, 3, variables)]
    return rng.integers(-2, 3, (variables, states))


def scores_of(rng, shape, ties):
    scores = rng.integers(-2, 3, shape).astype(float) if ties else rng.normal(size=shape)
    return np.where(rng.random(shape) < 0.08, -np.inf, scores) if rng.random() < 0.5 else scores


@st.composite
def chains(draw, most):
    """A chain with one to three statistics of its variables; every second one has more than a stretch."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    variables, states = draw(st.integers(1, most)), draw(st.integers(2, 26))
    ties, kinds = draw(st.booleans()), draw(st.sampled_from(["shared", "few", "own"]))
    unary = scores_of(rng, (variables, states), ties)
    shape = (states, states) if draw(st.booleans()) else (max(variables - 1, 0), states, states)
    pairs = scores_of(rng, shape, ties)
    layout = draw(st.sampled_from(["plain", "reversed", "columns"]))
    if layout == "reversed":
        unary, pairs = unary[::-1], pairs[..., ::-1]
    if layout == "columns":
        unary, pairs = np.asfortranarray(unary), np.asfortranarray(pairs)
    model = tt.Model.chain(unary, pairs)
    number = draw(st.integers(1, 3))
    statistics = [
        tt.node_statistic(counts_of(rng, variables, states, kinds), name=f"s{p}").on(model)
        for p in range(number)
    ]
    start = rng.integers(0, states, variables)
    return model, statistics, start, rng


def answer(model, statistics, wanted, **options):
    found = ModelSearcher(model, statistics)(Search(wanted, **options))
    if found is None:
        return None
    return found.finished, found.impossible, found.value


def states_of(found):
    """The scores and the labellings of what was found."""
    return [found.scores, *(found.labelling(row) for row in range(len(found.scores)))]


def box_near(statistics, start, rng):
    """A box around the tally of a labelling, or next to it."""
    tally = [s.tally(start) for s in statistics]
    low = [t - int(rng.integers(0, 3)) for t in tally]
    return low, [a + int(rng.integers(0, 3)) for a in low]


@pytest.mark.sanitize
@given(chain=chains(most=160), scaling=st.sampled_from(["none", "margin", "slack"]))
@settings(max_examples=120, deadline=None)
def test_chains_in_place_are_answered_as_other_programs(chain, scaling):
    model, statistics, start, rng = chain
    low, high = box_near(statistics, start, rng)
    losses = None
    if scaling != "none":
        losses = rng.integers(0, 4, [b - a + 1 for a, b in zip(low, high, strict=True)]).astype(float)
    wanted = Wanted(low, high, scaling, 1.0, float(rng.normal()), losses=losses)
    here = answer(model, statistics, wanted, most_work=2e7)
    other = answer(swapped(model), statistics, wanted, most_work=2e7)
    if here is None or other is None:
        assert here is other
        return
    if here[0] and other[0]:
        assert here[2] == pytest.approx(other[2], rel=1e-12, abs=1e-12)
    if here[0] or other[0]:
        assert not here[1] and not other[1]


@pytest.mark.sanitize
@given(chain=chains(most=90))
@settings(max_examples=50, deadline=None)
def test_chains_in_place_are_answered_as_whole_tables(chain):
    model, statistics, start, _ = chain
    first = statistics[0]
    where = first == first.tally(start)
    try:
        whole = tt.solve(model, where=where, strategy="full")
    except tt.InfeasibleError:
        with pytest.raises(tt.InfeasibleError):
            tt.solve(model, where=where, strategy="bounds")
        return
    found = tt.solve(model, where=where, strategy="bounds")
    assert found.score == pytest.approx(whole.score, rel=1e-12, abs=1e-12)
    assert model.score(found.labels) == pytest.approx(found.score) and first.tally(
        found.labels
    ) == first.tally(start)


@pytest.mark.sanitize
@given(seed=st.integers(0, 10**6), variables=st.integers(1, 6), states=st.integers(2, 3))
@settings(max_examples=60, deadline=None)
def test_short_chains_are_answered_as_enumeration_answers(seed, variables, states):
    rng = np.random.default_rng(seed)
    ties = bool(rng.random() < 0.5)
    model = tt.Model.chain(scores_of(rng, (variables, states), ties), scores_of(rng, (states, states), ties))
    statistics = [
        tt.node_statistic(rng.integers(-1, 2, (variables, states)), name=f"s{p}").on(model) for p in range(2)
    ]
    low, high = box_near(statistics, rng.integers(0, states, variables), rng)
    best = -np.inf
    for labels in product(range(states), repeat=variables):
        tally = [s.tally(labels) for s in statistics]
        if all(a <= t <= b for a, t, b in zip(low, tally, high, strict=True)):
            best = max(best, model.score(labels))
    found = ModelSearcher(model, statistics)(Search(Wanted(low, high)))
    assert found is None or found.value == pytest.approx(best, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("states", [2, 5, 8, 9, 16, 17, 24, 26])
def test_every_instruction_set_reads_chains_alike(states):
    rng = np.random.default_rng(states)
    model = tt.Model.chain(rng.integers(-3, 4, (200, states)), rng.integers(-3, 4, (states, states)))
    statistics = [tt.count(model, state=0), tt.count(model, state=1)]
    before, found = native.instruction_set(), []
    try:
        for name in native.instruction_sets():
            native.use_instruction_set(name)
            one = ModelSearcher(model, statistics)(Search(Wanted([70, 40], [71, 41])))
            found.append(bits([*states_of(one), one.tallies, one.cells, one.bands, one.value]))
    finally:
        native.use_instruction_set(before)
    assert len(set(found)) == 1


@pytest.mark.parametrize("states", [3, 12, 26])
def test_an_interrupt_leaves_nothing_behind(states):
    rng = np.random.default_rng(states)
    model = tt.Model.chain(rng.normal(size=(1000, states)), rng.normal(size=(states, states)))
    statistics = [tt.count(model, state=0), tt.count(model, state=1)]

    def work():
        found = ModelSearcher(model, statistics)(Search(Wanted([450, 250], [451, 251])))
        return bits([*states_of(found), found.cells, found.bands, found.value])

    expected, looks = work(), looks_of(work)
    assert looks > 10
    for look in some_looks(looks, 20):
        assert interrupted(work, look)
        assert work() == expected


def test_chains_of_several_threads():
    rng = np.random.default_rng(7)
    sizes = [(130, 3), (70, 26), (300, 9), (66, 17)]
    models = [tt.Model.chain(rng.normal(size=size), rng.normal(size=(size[1],) * 2)) for size in sizes]

    def work(number):
        model = models[number % len(models)]
        found = ModelSearcher(model, [tt.count(model, state=0)])(Search(Wanted([30], [32])))
        return bits(states_of(found))

    expected = [work(number) for number in range(4)]
    found = [[] for _ in range(4)]

    def many(number):
        found[number] = [work(number + i) for i in range(12)]

    threads = [threading.Thread(target=many, args=(number,)) for number in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for number in range(4):
        assert found[number] == [expected[(number + i) % 4] for i in range(12)]


@needs_proc
def test_tables_of_neighbours_do_not_wait_for_the_next_chain():
    code = """
        def asked(length):
            def call(limit):
                rng = np.random.default_rng(0)
                model = tt.Model.chain(rng.normal(size=(length, 26)), rng.normal(size=(length - 1, 26, 26)))
                tt.solve(model, where=tt.count(model, state=0) == length // 26, strategy="bounds")
                del model
                gc.collect()
                ctypes.CDLL(None).malloc_trim(0)
                return status("VmRSS")
            return call
        before = asked(100)(None)
        small, call = asked(100), lambda limit: asked(8000)(limit) - before
    """
    assert grown(code)["said"] < 25 * MEGABYTE


@needs_proc
def test_rows_of_counts_stay_within_the_memory_limit():
    code = """
        from tallytree.running.bounds import ModelSearcher, Search, Wanted
        def asked(length):
            rng = np.random.default_rng(0)
            model = tt.Model.chain(rng.normal(size=(length, 26)), rng.normal(size=(26, 26)))
            counts = [rng.integers(0, 9, (length, 26)) for _ in range(3)]
            some = [tt.node_statistic(one, name=f"s{p}").on(model) for p, one in enumerate(counts)]
            wanted = Wanted([4 * length] * 3, [4 * length] * 3)
            ModelSearcher(model, some)(Search(wanted, most_work=1, memory_limit=1))  # which makes the program
            ask = ModelSearcher(model, some)
            return lambda limit: ask(Search(wanted, most_work=1, memory_limit=limit)) is not None
        small, call = lambda limit: asked(10)(1e12), asked(30_000)
    """
    for limit in (40 * MEGABYTE, 60 * MEGABYTE, 1000 * MEGABYTE):
        found = grown(code, limit=limit)
        assert found["growth"] <= limit and found["said"] == (limit > 50 * MEGABYTE)


def test_small_chains_after_a_large_one_touch_no_fresh_memory():
    resource = pytest.importorskip("resource")
    rng = np.random.default_rng(0)
    large, small = (
        tt.Model.chain(rng.normal(size=(m, 20)), rng.normal(size=(20, 20))) for m in (40_000, 800)
    )

    def faults(model, calls):
        count = tt.count(model, state=0)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        for _ in range(calls):
            ModelSearcher(model, [count])(Search(Wanted([len(model) // 3], [len(model) // 3])))
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

    faults(large, 1)
    faults(small, 3)
    assert faults(small, 20) < 20 * 50  # the messages of one call take 150 pages


@pytest.mark.parametrize("size", [0.0, 1e-310, 1e-30, 1e280])
@pytest.mark.parametrize("both", [70, 71])
def test_scores_that_are_tiny_or_huge(size, both):
    rng = np.random.default_rng(1)
    model = tt.Model.chain(size * rng.uniform(-1, 1, (70, 3)), size * rng.uniform(-1, 1, (3, 3)))
    statistics = [tt.count(model, state=0), tt.count(model, state=1)]
    found = ModelSearcher(model, statistics)(Search(Wanted([3, both - 3], [3, both - 3]), most_work=1e8))
    assert (found.finished, found.impossible) == (both == 70, both == 71)


@pytest.mark.sanitize
@pytest.mark.parametrize("number", [1, 2, 3])
@pytest.mark.parametrize("large", [2**20, 2**29, 2**30 - 2, 2**30])
def test_counts_that_are_large_at_every_variable(number, large):
    rng = np.random.default_rng(number)
    model = tt.Model.chain(rng.normal(size=(70, 4)), rng.normal(size=(4, 4)))
    sides = rng.choice([-1, 1], size=(number, 70, 1))
    counts = rng.integers(-1, 2, (number, 70, 4)) + large * sides
    statistics = [tt.node_statistic(one, name=f"s{p}").on(model) for p, one in enumerate(counts)]
    start = rng.integers(0, 4, 70)
    tally = [one.tally(start) for one in statistics]
    here = ModelSearcher(model, statistics)(Search(Wanted(tally, tally)))
    other = ModelSearcher(swapped(model), statistics)(Search(Wanted(tally, tally)))
    assert (here is None) == (other is None)
    if here is not None:
        assert here.finished and here.value == pytest.approx(other.value, rel=1e-12)
        assert [one.tally(here.labelling(0)) for one in statistics] == tally


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_process_that_was_forked_searches_on():
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(200, 9)), rng.normal(size=(9, 9)))
    statistics, wanted = [tt.count(model, state=0)], Wanted([40], [40])
    expected = ModelSearcher(model, statistics)(Search(wanted)).value
    child = os.fork()
    if child == 0:
        os._exit(0 if ModelSearcher(model, statistics)(Search(wanted)).value == expected else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert ModelSearcher(model, statistics)(Search(wanted)).value == expected


def test_prices_of_one_count_are_found_in_few_passes():
    """The count changes evenly with the price: halving the distance each time would take 13 passes."""
    rng = np.random.default_rng(3)
    model = tt.Model.chain(rng.normal(size=(3000, 5)), rng.normal(size=(5, 5)))
    found = ModelSearcher(model, [tt.count(model, state=1)])(Search(Wanted((1500,), (1500,))))
    assert found.finished
    assert len(found.passes) <= 9


def test_bands_with_one_way_from_state_to_state_take_time_in_proportion():
    """Room for each list of cells was made by moving all cells, which took 100 times as long."""
    model = tt.Model.chain(np.random.default_rng(1).normal(size=(18_000, 4)), 100 * np.eye(4))
    ones, took = tt.count(model, state=1), {}
    for _ in range(2):
        for way in ("full", "auto"):
            began = time.process_time()
            tt.solve(model, where=ones == 9_000, strategy=way)
            took[way] = min(took.get(way, np.inf), time.process_time() - began)
    assert took["auto"] < 10 * took["full"]
