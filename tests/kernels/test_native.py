"""The compiled executor: identical results with every instruction set; signals, threads and memory."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import problems

import tallytree as tt
from tallytree.kernels import native


@pytest.fixture(autouse=True)
def same_instruction_set_afterwards():
    before = native.instruction_set()
    yield
    native.use_instruction_set(before)


def test_the_instruction_set_can_be_chosen():
    assert "baseline" in native.instruction_sets()
    for name in native.instruction_sets():
        native.use_instruction_set(name)
        assert native.instruction_set() == name
    native.use_instruction_set()
    assert native.instruction_set() == native.instruction_sets()[-1]
    with pytest.raises(ValueError, match="no such instruction set"):
        native.use_instruction_set("abacus")


# ---------------------------------------------------------------- the same bits


def outcome(model, statistics, tallies):
    """Everything that a run gives, as bytes."""
    profile = tt.profile(model, statistics, layout=tallies)
    d = tt.distribution(model, statistics, plan=profile.plan)
    rows = range(0, len(profile), 1 + len(profile) // 4)
    return [
        profile.tallies.tobytes(),
        profile.scores.tobytes(),
        *(profile.at(*profile.tallies[row].tolist()).assignment.tobytes() for row in rows),
        d.log_partitions.tobytes(),
        *(m.tobytes() for m in d.marginals()),
        d.sample(2, rng=0).tobytes(),
    ]


def check_all_sets(model, statistics, tallies="auto"):
    outcomes = []
    for name in native.instruction_sets():
        native.use_instruction_set(name)
        outcomes.append(outcome(model, statistics, tallies))
    assert all(other == outcomes[0] for other in outcomes[1:])


@given(problem=problems(largest=10, states=4, local=True), tallies=st.sampled_from(["auto", "rows", "cells"]))
@settings(max_examples=150)
def test_every_instruction_set_gives_the_same_bits(problem, tallies):
    check_all_sets(*problem, tallies)


@pytest.mark.parametrize("states", [2, 5, 9])
@pytest.mark.parametrize("shape", ["chain", "star"])
def test_every_instruction_set_gives_the_same_bits_on_long_rows(shape, states):
    rng = np.random.default_rng(states)
    size = 280
    parents = np.arange(-1, size - 1) if shape == "chain" else np.r_[-1, np.zeros(size - 1, dtype=int)]
    model = tt.Model.tree(parents, rng.normal(size=(size, states)), rng.normal(size=(states, states)))
    check_all_sets(model, [tt.count(state=1)])
    check_all_sets(model, [tt.count(state=1, cap=7), tt.count(state=0, variables=range(200), cap=150)])


@pytest.mark.parametrize("seed", range(3))
def test_every_instruction_set_gives_the_same_bits_on_ragged_rows(seed):
    """Joins of rows of all lengths that begin at different tallies: two statistics that go together."""
    rng = np.random.default_rng(seed)
    size = 24
    parents = np.r_[-1, [rng.integers(max(0, i - 6), i) for i in range(1, size)]]
    model = tt.Model.tree(parents, rng.normal(size=(size, 3)), rng.normal(size=(3, 3)))
    weights = [rng.integers(0, 3, (size, 3)) for _ in range(2)]
    weights[1] += 2 * weights[0]
    check_all_sets(model, [tt.Statistic([((v,), w[v]) for v in range(size)]) for w in weights])


# ---------------------------------------------------------------- joins against NumPy


def joined(a, b):
    """``c[s, i + k, j + l] = max a[s, i, j] + b[s, k, l]``, one cell of `a` after the other."""
    states, rows, columns = a.shape
    out = np.full((states, rows + b.shape[1] - 1, columns + b.shape[2] - 1), -np.inf)
    for i in range(rows):
        for j in range(columns):
            part = out[:, i : i + b.shape[1], j : j + b.shape[2]]
            np.maximum(part, a[:, i, j, None, None] + b, out=part)
    return out


def boxes(rng, states, a, b, forbidden=0.1):
    tables = [rng.normal(size=(states, *shape)) for shape in (a, b)]
    return [np.where(rng.random(t.shape) < forbidden, -np.inf, t) for t in tables]


LINES = [(1, 1), (1, 2), (2, 1), (7, 8), (8, 8), (9, 17), (15, 33), (64, 5), (1, 300), (127, 128), (128, 128)]

LONG_LINES = [(129, 400), (130, 700), (255, 257), (700, 500), (500, 700)]

RECTANGLES = [
    ((2, 3), (3, 2)),
    ((1, 40), (9, 1)),
    ((5, 17), (4, 9)),
    ((3, 140), (2, 150)),
    ((12, 12), (13, 11)),
]


@pytest.mark.parametrize("name", native.instruction_sets())
def test_join_equals_its_numpy_twin(name):
    native.use_instruction_set(name)
    rng = np.random.default_rng(0)
    shapes = [((1, n), (1, m)) for n, m in LINES] + RECTANGLES
    for a_shape, b_shape in shapes:
        for states in (1, 3):
            a, b = boxes(rng, states, a_shape, b_shape)
            np.testing.assert_array_equal(native.join(a, b), joined(a, b), err_msg=f"{a_shape} {b_shape}")
            np.testing.assert_array_equal(native.join(b, a), joined(a, b), err_msg=f"{b_shape} {a_shape}")
    for n, m in LONG_LINES:
        a, b = boxes(rng, 1, (1, n), (1, m))
        np.testing.assert_array_equal(native.join(a, b), joined(a, b), err_msg=f"{n} {m}")


@pytest.mark.parametrize("name", native.instruction_sets())
@given(
    a=st.tuples(st.integers(1, 4), st.integers(1, 40)),
    b=st.tuples(st.integers(1, 4), st.integers(1, 40)),
    states=st.integers(1, 3),
    forbidden=st.sampled_from([0.0, 0.3, 1.0]),
    seed=st.integers(0, 2**32 - 1),
)
@settings(max_examples=60)
def test_join_of_any_shape_equals_its_numpy_twin(name, a, b, states, forbidden, seed):
    native.use_instruction_set(name)
    left, right = boxes(np.random.default_rng(seed), states, a, b, forbidden)
    np.testing.assert_array_equal(native.join(left, right), joined(left, right))


# ---------------------------------------------------------------- nothing falls back


@given(problem=problems(), tallies=st.sampled_from(["rows", "cells"]))
@settings(max_examples=100)
def test_every_step_of_every_algebra_is_native(problem, tallies):
    model, statistics = problem
    plan = tt.plan(model, statistics, layout=tallies)
    profile, d = tt.profile(model, statistics, plan=plan), tt.distribution(model, statistics, plan=plan)
    runs = [profile._messages, d._messages]
    runs.append(native.Run(plan.layout, [b.tables for b in model.blocks], native.COUNTING, 2**31 - 1))
    assert all(type(run) is native.Run for run in runs)
    assert [run.native_steps for run in runs] == [len(plan.steps)] * 3


# ---------------------------------------------------------------- wrong arguments
# Run in a process of their own, each call in a fork of it: a crash is a result like any other.

HOSTILE = """
import json, os, signal, sys
import numpy as np
import tallytree as tt
from tallytree.kernels import native

i32 = lambda *x: np.array(x, dtype=np.int32)
i64 = lambda *x: np.array(x, dtype=np.int64)
f64 = lambda *x: np.array(x, dtype=np.float64)
none = np.zeros(0, dtype=np.int64)
sizes, scopes, order = i32(2, 3), np.array([[0, 1]], dtype=np.int32), i32(0, 1)
single = np.array([[0], [1]], dtype=np.int32)
table, shift = np.zeros((1, 2, 3)), np.ones((1, 2, 3), dtype=np.int64)
low, high, free = i64(-2**62), i64(2**62), i64(2**63 - 1)

def skeleton(sizes=sizes, scores=[scopes], shifts=[scopes], of=i32(0), caps=free, scales=i64(1), order=order):
    return native.Shape(sizes, scores, shifts, of, caps, scales).program(order)

def layout(skeleton=skeleton(), shifts=[shift], caps=free, low=low, high=high, mode=0, limit=1e9):
    return native.Layout(skeleton, shifts, caps, low, high, mode, limit)

def run(layout=layout(), tables=[table], algebra=0, prime=0):
    return native.Run(layout, tables, algebra, prime)

def evaluate(
    sizes=sizes, scopes_=[scopes], tables=[table], shift_scopes=[scopes], shifts=[shift], y=i64(0, 0)
):
    return native.evaluate(sizes, scopes_, tables, shift_scopes, shifts, y)

steps = len(skeleton().steps)
CALLS = {
    "skeleton: sizes int64": lambda: skeleton(sizes=i64(2, 3)),
    "skeleton: sizes negative": lambda: skeleton(sizes=i32(-2, 3)),
    "skeleton: sizes zero": lambda: skeleton(sizes=i32(0, 3)),
    "skeleton: scopes int64": lambda: skeleton(scores=[scopes.astype(np.int64)]),
    "skeleton: scopes flat": lambda: skeleton(scores=[scopes[0]]),
    "skeleton: scopes strided": lambda: skeleton(scores=[np.array([[0, 9, 1, 9]], dtype=np.int32)[:, ::2]]),
    "skeleton: scope beyond": lambda: skeleton(scores=[scopes + 1]),
    "skeleton: scope negative": lambda: skeleton(scores=[scopes - 1]),
    "skeleton: scope twice": lambda: skeleton(scores=[np.array([[1, 1]], dtype=np.int32)]),
    "skeleton: no list": lambda: skeleton(scores=None),
    "skeleton: statistic_of long": lambda: skeleton(of=i32(0, 0)),
    "skeleton: statistic_of beyond": lambda: skeleton(of=i32(5)),
    "skeleton: statistic_of negative": lambda: skeleton(of=i32(-1)),
    "skeleton: caps missing": lambda: skeleton(caps=none),
    "skeleton: scales missing": lambda: skeleton(scales=none),
    "skeleton: order short": lambda: skeleton(order=i32(0)),
    "skeleton: order twice": lambda: skeleton(order=i32(0, 0)),
    "skeleton: order beyond": lambda: skeleton(order=i32(0, 2)),
    "order: no method": lambda: native.Shape(sizes, [], [], i32(), none, none).order(None),
    "layout: no skeleton": lambda: layout(skeleton=None),
    "layout: shifts int32": lambda: layout(shifts=[shift.astype(np.int32)]),
    "layout: shifts float": lambda: layout(shifts=[shift.astype(float)]),
    "layout: shifts strided": lambda: layout(shifts=[np.ones((1, 2, 6), dtype=np.int64)[:, :, ::2]]),
    "layout: shifts transposed": lambda: layout(shifts=[np.ones((1, 3, 2), dtype=int).transpose(0, 2, 1)]),
    "layout: shifts missing": lambda: layout(shifts=[]),
    "layout: shifts small": lambda: layout(shifts=[np.ones((1, 2), dtype=np.int64)]),
    "layout: shifts many": lambda: layout(shifts=[np.ones((2, 2, 3), dtype=np.int64)]),
    "layout: shifts empty": lambda: layout(shifts=[np.ones((0, 2, 3), dtype=np.int64)]),
    "layout: shifts scalar": lambda: layout(shifts=[np.array(1, dtype=np.int64)]),
    "layout: caps missing": lambda: layout(caps=none),
    "layout: window short": lambda: layout(low=none),
    "run: no layout": lambda: run(layout=None),
    "run: tables float32": lambda: run(tables=[table.astype(np.float32)]),
    "run: tables integer": lambda: run(tables=[shift]),
    "run: tables missing": lambda: run(tables=[]),
    "run: tables small": lambda: run(tables=[table[:, :1].copy()]),
    "run: tables scalar": lambda: run(tables=[np.array(1.0)]),
    "run: tables strided": lambda: run(tables=[np.zeros((1, 2, 6))[:, :, ::2]]),
    "run: algebra unknown": lambda: run(algebra=9),
    "run: counting without a prime": lambda: run(algebra=2),
    "run: counting with a large prime": lambda: run(algebra=2, prime=2**40),
    "decode: beyond": lambda: run().decode(10**6),
    "decode: just beyond": lambda: run().decode(len(run().values)),
    "decode: negative": lambda: run().decode(-1),
    "sample: cell beyond": lambda: run(algebra=1).sample(i64(10**6), np.zeros((1, steps))),
    "sample: cell negative": lambda: run(algebra=1).sample(i64(-1), np.zeros((1, steps))),
    "sample: uniforms short": lambda: run(algebra=1).sample(i64(0), np.zeros((1, 1))),
    "sample: uniforms few": lambda: run(algebra=1).sample(i64(0, 0), np.zeros((1, steps))),
    "sample: uniforms strided": lambda: run(algebra=1).sample(i64(0), np.zeros((1, 2 * steps))[:, ::2]),
    "ranking: cell beyond": lambda: native.KBest(run(), i64(10**6)),
    "ranking: cell negative": lambda: native.KBest(run(), i64(-1)),
    "ranking: cells int32": lambda: native.KBest(run(), i32(0)),
    "ranking: not max-plus": lambda: native.KBest(run(algebra=1), i64(0)),
    "ranking: no run": lambda: native.KBest(None, i64(0)),
    "ranking: negative count": lambda: native.KBest(run(), i64(0)).next(-1),
    "downward: short": lambda: run(algebra=1).downward(none.astype(float)),
    "downward: integer": lambda: run(algebra=1).downward(none),
    "evaluate: labelling short": lambda: evaluate(y=i64(0)),
    "evaluate: state beyond": lambda: evaluate(y=i64(0, 3)),
    "evaluate: state negative": lambda: evaluate(y=i64(0, -1)),
    "evaluate: labelling int32": lambda: evaluate(y=i32(0, 0)),
    "evaluate: scope beyond": lambda: evaluate(scopes_=[scopes + 1]),
    "evaluate: tables small": lambda: evaluate(tables=[np.zeros((1, 1, 3))], y=i64(1, 2)),
    "evaluate: tables few": lambda: evaluate(
        sizes=i32(2, 2), scopes_=[np.zeros((4000000, 1), dtype=np.int32)], tables=[np.zeros((2, 2))],
        shift_scopes=[], shifts=[]),
    "evaluate: tables scalar": lambda: evaluate(tables=[np.array(1.0)]),
    "join: flat": lambda: native.join(f64(1, 2), f64(1, 2)),
    "join: float32": lambda: native.join(np.zeros((1, 1, 2), dtype=np.float32), np.zeros((1, 1, 2))),
    "join: states differ": lambda: native.join(np.zeros((2, 1, 2)), np.zeros((1, 1, 2))),
    "join: empty": lambda: native.join(np.zeros((1, 0, 2)), np.zeros((1, 1, 2))),
    "join: strided": lambda: native.join(np.zeros((1, 1, 4))[:, :, ::2], np.zeros((1, 1, 2))),
    "join: no repeats": lambda: native.join(np.zeros((1, 1, 2)), np.zeros((1, 1, 2)), 0),
}

def attempt(call):
    try:
        call()
    except (TypeError, ValueError, IndexError) as error:
        return type(error).__name__ + ": " + str(error).splitlines()[0]
    except Exception as error:
        return "wrong error: " + repr(error)
    return "accepted"

for name, call in CALLS.items():
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        signal.alarm(10)
        os.write(writer, attempt(call).encode())
        os._exit(0)
    os.close(writer)
    _, status = os.waitpid(child, 0)
    text = os.read(reader, 10000).decode()
    os.close(reader)
    print(json.dumps([name, text or f"crashed with status {os.waitstatus_to_exitcode(status)}"]), flush=True)
"""

NAMES = [line.split('"')[1] for line in HOSTILE.splitlines() if line.startswith('    "')]


@pytest.fixture(scope="module")
def refusals():
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", HOSTILE],
        capture_output=True, text=True, env=environment, timeout=120, check=True,
    )  # fmt: skip
    return dict(map(json.loads, done.stdout.splitlines()))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("name", NAMES)
def test_wrong_arguments_are_refused(refusals, name):
    assert refusals[name].startswith(("TypeError", "ValueError", "IndexError"))
