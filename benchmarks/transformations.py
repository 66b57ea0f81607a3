"""The paper's transformations: tallies as variables, clique trees reshaped and cloned, and how tallies grow.

*Explicit* is the construction of section 3.1 (``explicit_model``): a plain model with an auxiliary variable
for each clique, solved by our own core and by toulbar2; *messages* is ``solve``, whose messages carry the
tallies. Both maximise the same objective. For slack scaling the explicit one solves a model for each tally.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
import time
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import peer_times
from common import Row, interleaved, show

import tallytree as tt

PATIENCE = 15  # seconds, for toulbar2
MOST_STEPS = 300_000  # of the paper's algorithm as it is written, in Python

Problem = tuple[tt.Model, list[tt.Statistic], Callable[..., Any]]


# ---------------------------------------------------------------- tallies as variables


def counted(model: tt.Model) -> Problem:
    ones = tt.count(model, state=[1, 2])
    return model, [ones], lambda k: -np.abs(k - len(model) / 3)


def chain(length: int) -> tt.Model:
    rng = np.random.default_rng(length)
    return tt.Model.chain(rng.normal(size=(length, 3)), rng.normal(size=(3, 3)))


def tree(size: int) -> tt.Model:
    rng = np.random.default_rng(size)
    parents = [-1, *(int(rng.integers(0, i)) for i in range(1, size))]
    return tt.Model.tree(parents, rng.normal(size=(size, 3)), rng.normal(size=(3, 3)))


def f1(length: int) -> Problem:
    rng = np.random.default_rng(length)
    model = tt.Model.chain(rng.normal(size=(length, 3)), rng.normal(size=(3, 3)))
    loss = tt.losses.FBeta(rng.integers(0, 3, length), background=0)
    return model, list(loss.reduce(model).statistics), loss.value


def problems(quick: bool) -> dict[str, Problem]:
    lengths = (20, 40) if quick else (20, 40, 80, 120)
    return {
        **{f"chain M = {m}, one count": counted(chain(m)) for m in lengths},
        **{f"tree M = {m}, one count": counted(tree(m)) for m in lengths[:-1]},
        **{f"chain M = {m}, F1": f1(m) for m in (8, 16, 24)[: 2 if quick else 3]},
    }


def explicit(quick: bool) -> list[Row]:
    return [_explicit(title, *problem, 0.5 if quick else 2.0) for title, problem in problems(quick).items()]


def _explicit(
    title: str, model: tt.Model, statistics: list[tt.Statistic], eta: Callable[..., Any], budget: float
) -> Row:
    def objective(score: Any, *tallies: Any) -> Any:
        return score + eta(*tallies)

    built = tt.explicit_model(model, statistics, eta)
    times = interleaved(
        {
            "messages": lambda: tt.solve(model, statistics, objective),
            "explicit": lambda: tt.solve(built.model),
            "build": lambda: tt.explicit_model(model, statistics, eta),
        },
        budget=budget,
    )
    ours = tt.solve(model, statistics, objective)
    found = built.solution(tt.solve(built.model).assignment)
    assert abs(found.value - ours.value) < 1e-9 * max(1, abs(ours.value))
    return {
        "case": title,
        "R": len(built.tallies),
        "messages ms": times["messages"] * 1e3,
        "operations": tt.plan(built.model).operations / tt.plan(model, statistics).operations,
        "time": times["explicit"] / times["messages"],
        "with building": (times["explicit"] + times["build"]) / times["messages"],
        "toulbar2": toulbar2(built, ours.value) / times["messages"],
    }


def toulbar2(built: tt.ExplicitModel, value: float) -> float:
    """Return the seconds that toulbar2 takes on the exported model; nan if absent, inf if too long."""
    if "toulbar2" not in peer_times.available():
        return np.nan
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "built.uai"
        tt.io.write_uai(built.model, path)
        command = [peer_times.PYTHON, str(Path(__file__).parent / "peer_uai.py"), str(path), str(PATIENCE)]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=2 * PATIENCE)
        except subprocess.TimeoutExpired:
            return np.inf
    record = json.loads(done.stdout.splitlines()[-1])
    if not record["proven"]:
        return np.inf
    assert abs(built.solution(record["assignment"]).value - value) < 1e-3
    return float(record["seconds"])


def slack(quick: bool) -> list[Row]:
    """Slack scaling: one pass of messages, or one plain model for each tally of the hub."""
    rows = []
    for length in (8, 12) if quick else (8, 12, 16):
        model, statistics, eta = f1(length)
        built = tt.explicit_model(model, statistics)

        def clamped(built: Any = built, eta: Any = eta) -> float:
            best = -np.inf
            for tally in built.tallies.tolist():
                try:
                    score = tt.solve(built.clamp(*tally)).score
                except tt.InfeasibleError:
                    continue
                best = max(best, float(eta(*tally)) * (1 + score))
            return best

        def objective(score: Any, *tallies: Any, eta: Any = eta) -> Any:
            return eta(*tallies) * (1 + score)

        assert abs(clamped() - tt.solve(model, statistics, objective).value) < 1e-9
        runs = {"messages": lambda m=model, s=statistics, h=objective: tt.solve(m, s, h), "explicit": clamped}
        times = interleaved(runs, rounds=3, budget=2.0)
        rows.append(
            {
                "case": f"chain M = {length}, F1, slack",
                "R": len(built.tallies),
                "messages ms": times["messages"] * 1e3,
                "time": times["explicit"] / times["messages"],
            }
        )
    return rows


# ---------------------------------------------------------------- clique trees


def algorithm_1(clique_tree: tt.CliqueTree, model: tt.Model, statistic: tt.Statistic) -> float:
    """Count the steps of the paper's Algorithm 1: at each clique, all states and tallies of all children.

    The tallies of a child are those of its own part of the tree, as in our tables.
    """
    sizes = model.cardinalities.tolist()
    upwards = [clique_tree.root]
    for i in upwards:
        upwards.extend(clique_tree.children[i])
    count, steps = {}, 0.0
    held = {tuple(scope) for block in statistic.blocks for scope in block.scopes.tolist()}
    for i in reversed(upwards):
        children = [count[k] for k in clique_tree.children[i]]
        own = sum(scope in held for scope in clique_tree.scopes[i])
        count[i] = 1 + own + sum(k - 1 for k in children)
        steps += prod(sizes[v] for v in clique_tree.cliques[i]) * float(prod(children))
    return steps


def star(size: int) -> tt.Model:
    return tt.Model.tree([-1] + [0] * (size - 1), np.zeros((size, 2)), np.zeros((2, 2)))


def clique_trees(quick: bool) -> list[Row]:
    sizes = (8, 16) if quick else (8, 16, 32, 64)
    graphs = {f"star M = {m}": star(m) for m in sizes}
    graphs |= {f"random tree M = {m}": tree(m) for m in sizes}
    rows = []
    for title, model in graphs.items():
        statistic = tt.count(model, state=1)
        built = tt.clique_tree(model, [statistic])
        forms = {"as built": built, "reshaped": built.reshaped(), "cloned": built.cloned()}
        ours, found = tt.plan(model, [statistic]).operations, tt.profile(model, [statistic])
        row: Row = {"case": title, "our operations": ours}
        for name, form in forms.items():
            steps = algorithm_1(form, model, statistic)
            row |= {f"{name} ν": form.degree, name: steps / ours}
            if steps <= MOST_STEPS:
                start = time.perf_counter()
                _, scores = form.profile(model, [statistic])
                row[f"{name} s"] = time.perf_counter() - start
                assert np.allclose(scores, found.scores)
        rows.append(row)
    return rows


# ---------------------------------------------------------------- Theorem 3


def theorem_3(quick: bool) -> list[Row]:
    """R against T·M: entries drawn from -T to T on a chain."""
    rows = []
    for length in (10, 40) if quick else (10, 20, 40, 80):
        for largest in (1, 4, 16, 64):
            rng = np.random.default_rng(length)
            model = chain(length)
            tables = [((i,), rng.integers(-largest, largest + 1, 3)) for i in range(length)]
            statistic = tt.Statistic(tables, name="g")
            tallies = len(tt.profile(model, [statistic]))
            rows.append({"M": length, "T": largest, "R": tallies, "R / (T·M)": tallies / (largest * length)})
    return rows


def main(quick: bool = False) -> dict[str, list[Row]]:
    data = {
        "explicit": explicit(quick),
        "slack": slack(quick),
        "clique trees": clique_trees(quick),
        "theorem 3": theorem_3(quick),
    }
    show("tallies as variables: how many times the operations and the time of messages", data["explicit"])
    show("the same, slack scaling: the hub fixed to each tally", data["slack"])
    show(
        "steps of Algorithm 1 on clique trees, in multiples of our operations",
        data["clique trees"],
        "seconds: the same in Python, to the letter",
    )
    show("Theorem 3: tallies of a chain with entries from -T to T", data["theorem 3"])
    return data


if __name__ == "__main__":
    main()
