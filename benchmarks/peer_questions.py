"""Answer a question with a general-purpose solver: ``python peer_questions.py SOLVER QUESTION.json LIMIT``.

A question is a pairwise model, linear rows over its indicators, a range for the score, and how many
labellings are wanted, how far apart. It prints the labellings, whether each is proven, and the seconds of
CPU time, with model building and without imports. The formulations are those of
``../shared/limit/peers.py``; every further labelling is one more row that keeps away from those before it;
toulbar2 has its own diverse solutions.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import peer_clock

SCALE = 1000  # scores have three decimals
Terms = list[tuple[int, int, int]]
"""(variable, state, coefficient)."""


def agreement(y: Sequence[int]) -> Terms:
    return [(v, a, 1) for v, a in enumerate(y)]


def rows_of(question: dict[str, Any], found: Sequence[Sequence[int]]) -> list[tuple[Terms, int, int]]:
    """The rows of the constraint, and those that keep away from labellings."""
    size = len(question["unary"])
    away = [(y, 1) for y in question["avoid"]] + [(y, question["distance"]) for y in found]
    rows = [(terms, low, high) for terms, low, high in question["rows"]]
    return [*rows, *((agreement(y), 0, size - distance) for y, distance in away)]


# --- HiGHS ------------------------------------------------------------------------------------------------


class Columns:
    """Columns with their costs, and rows over them."""

    def __init__(self) -> None:
        self.costs: list[float] = []
        self.entries: list[tuple[int, int, float]] = []
        self.low: list[float] = []
        self.high: list[float] = []

    def column(self, cost: float) -> int:
        self.costs.append(float(cost))
        return len(self.costs) - 1

    def row(self, terms: Sequence[tuple[int, float]], least: float, most: float) -> None:
        self.entries.extend((len(self.low), number, value) for number, value in terms)
        self.low.append(least)
        self.high.append(most)

    def keep(self, rows: int, entries: int) -> None:
        del self.low[rows:], self.high[rows:], self.entries[entries:]


class Binary(Columns):
    """One column for each variable, one for each product."""

    def __init__(self, question: dict[str, Any], inf: float) -> None:
        super().__init__()
        linear = [one - zero for zero, one in question["unary"]]
        products = []
        for i, j, t in question["pairs"]:
            linear[i] += t[1][0] - t[0][0]
            linear[j] += t[0][1] - t[0][0]
            products.append((i, j, t[1][1] - t[1][0] - t[0][1] + t[0][0]))
        x = self.x = [self.column(c) for c in linear]
        for i, j, q in products:
            z = self.column(q)
            if q > 0:
                self.row([(z, 1), (x[i], -1)], -inf, 0)
                self.row([(z, 1), (x[j], -1)], -inf, 0)
            else:
                self.row([(x[i], 1), (x[j], 1), (z, -1)], -inf, 1)
        self.integers = len(x)

    def expand(self, terms: Terms, least: float, most: float) -> None:
        constant = sum(c for _, a, c in terms if a == 0)
        self.row([(self.x[v], c if a else -c) for v, a, c in terms], least - constant, most - constant)

    def labels(self, solution: Any) -> list[int]:
        found: list[int] = np.rint(np.array(solution[: self.integers])).astype(int).tolist()
        return found


class Indicators(Columns):
    """One column for each state, one for each pair of states."""

    def __init__(self, question: dict[str, Any]) -> None:
        super().__init__()
        x = self.x = [[self.column(c) for c in states] for states in question["unary"]]
        self.integers = len(self.costs)
        for states in x:
            self.row([(number, 1) for number in states], 1, 1)
        for i, j, t in question["pairs"]:
            e = [[self.column(c) for c in line] for line in t]
            for a, line in enumerate(e):
                self.row([*((n, 1) for n in line), (x[i][a], -1)], 0, 0)
            for b in range(len(t[0])):
                self.row([*((line[b], 1) for line in e), (x[j][b], -1)], 0, 0)

    def expand(self, terms: Terms, least: float, most: float) -> None:
        self.row([(self.x[v][a], c) for v, a, c in terms], least, most)

    def labels(self, solution: Any) -> list[int]:
        ends = np.cumsum([len(states) for states in self.x])
        return [int(p.argmax()) for p in np.split(np.array(solution[: ends[-1]]), ends[:-1])]


def program(columns: Binary | Indicators) -> Any:
    import highspy
    import scipy.sparse as sp

    low, high, size = columns.low, columns.high, len(columns.costs)
    at, to, values = zip(*columns.entries, strict=True)
    matrix = sp.csc_matrix((values, (at, to)), shape=(len(low), size))
    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = size, len(low)
    lp.col_cost_, lp.col_lower_, lp.col_upper_ = np.array(columns.costs), np.zeros(size), np.ones(size)
    lp.row_lower_, lp.row_upper_ = np.array(low, float), np.array(high, float)
    lp.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    lp.a_matrix_.start_, lp.a_matrix_.index_ = matrix.indptr, matrix.indices
    lp.a_matrix_.value_ = matrix.data
    kinds = (highspy.HighsVarType.kInteger, highspy.HighsVarType.kContinuous)
    lp.integrality_ = [kinds[number >= columns.integers] for number in range(size)]
    lp.sense_ = highspy.ObjSense.kMaximize
    return lp


def highs(question: dict[str, Any], timeout: float) -> Callable[[Sequence[Sequence[int]]], Any]:
    import highspy

    binary = all(len(row) == 2 for row in question["unary"]) and not question["between"]
    columns = Binary(question, highspy.kHighsInf) if binary else Indicators(question)
    objective = list(enumerate(columns.costs))
    fixed = (len(columns.low), len(columns.entries))

    def solve(found: Sequence[Sequence[int]], left: float) -> tuple[list[int] | None, bool]:
        columns.keep(*fixed)
        for terms, least, most in rows_of(question, found):
            columns.expand(terms, least, most)
        if question["between"]:
            columns.row(objective, *question["between"])
        h = highspy.Highs()
        h.setOptionValue("output_flag", False)
        h.setOptionValue("mip_rel_gap", 0.0)
        h.setOptionValue("mip_abs_gap", question["gap"])
        h.setOptionValue("time_limit", left)
        h.passModel(program(columns))
        h.run()
        status = h.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            return columns.labels(list(h.getSolution().col_value)), True
        return None, status == highspy.HighsModelStatus.kInfeasible

    return solve


# --- CP-SAT -----------------------------------------------------------------------------------------------


def cpsat(question: dict[str, Any], timeout: float) -> Callable[[Sequence[Sequence[int]]], Any]:
    from ortools.sat.python import cp_model

    model = cp_model.CpModel()
    x = [[model.new_bool_var("") for _ in states] for states in question["unary"]]
    terms = []
    for variables, states in zip(x, question["unary"], strict=True):
        model.add_exactly_one(variables)
        terms += [round(c * SCALE) * v for c, v in zip(states, variables, strict=True)]
    for i, j, t in question["pairs"]:
        e = [[model.new_bool_var("") for _ in line] for line in t]
        for a, line in enumerate(e):
            model.add(sum(line) == x[i][a])
        for b in range(len(t[0])):
            model.add(sum(line[b] for line in e) == x[j][b])
        terms += [round(t[a][b] * SCALE) * v for a, line in enumerate(e) for b, v in enumerate(line)]
    objective = sum(terms)
    model.maximize(objective)
    if question["between"]:
        low, high = question["between"]
        model.add_linear_constraint(objective, round(low * SCALE), round(high * SCALE))
    done = 0

    def solve(found: Sequence[Sequence[int]], left: float) -> tuple[list[int] | None, bool]:
        nonlocal done
        rows = rows_of(question, found)
        for row, low, high in rows[done:]:
            model.add_linear_constraint(sum(c * x[v][a] for v, a, c in row), low, high)
        done = len(rows)
        solver = cp_model.CpSolver()
        solver.parameters.max_time_in_seconds = left
        solver.parameters.relative_gap_limit = 0
        solver.parameters.linearization_level = 2
        solver.parameters.num_workers = 1  # more of them take more CPU time
        status = solver.solve(model)
        if status == cp_model.OPTIMAL:
            return [int(np.argmax([solver.value(v) for v in variables])) for variables in x], True
        return None, status == cp_model.INFEASIBLE

    return solve


# --- toulbar2 ---------------------------------------------------------------------------------------------


def _network(question: dict[str, Any], found: Sequence[Sequence[int]]) -> Any:
    from pytoulbar2 import CFN

    network = CFN(None, resolution=3, verbose=-1)
    for v, states in enumerate(question["unary"]):
        network.AddVariable(f"y{v}", range(len(states)))
    for v, states in enumerate(question["unary"]):
        network.AddFunction([v], np.round(max(states) - np.array(states), 3).tolist())
    for i, j, t in question["pairs"]:
        table = np.array(t)
        network.AddFunction([i, j], np.round(table.max() - table, 3).ravel().tolist())
    for row, low, high in rows_of(question, found):
        terms = [tuple(term) for term in row]
        if low == high:
            network.AddGeneralizedLinearConstraint(terms, "==", low)
            continue
        if low > -(10**6):
            network.AddGeneralizedLinearConstraint(terms, ">=", low)
        if high < 10**6:
            network.AddGeneralizedLinearConstraint(terms, "<=", high)
    return network


def toulbar2(question: dict[str, Any], timeout: float) -> Callable[[Sequence[Sequence[int]]], Any]:
    def solve(found: Sequence[Sequence[int]], left: float) -> tuple[list[int] | None, bool]:
        start = time.perf_counter()
        network = _network(question, found)
        answer = network.Solve(timeLimit=int(max(1, left)))
        stopped = bool(getattr(network, "Limit", False)) or time.perf_counter() - start > left - 0.5
        if answer is None or stopped:
            return None, not stopped
        return [int(a) for a in answer[0][: len(question["unary"])]], True

    return solve


def toulbar2_diverse(question: dict[str, Any], timeout: float) -> tuple[list[list[int]], bool]:
    """All labellings in one call: toulbar2 keeps the distance itself.

    It lists what it meets on the way, too: the cost falls until a labelling is optimal, then the next begins.
    """
    network = _network(question, [])
    size = len(question["unary"])
    network.Solve(allSolutions=question["k"], diversityBound=question["distance"], timeLimit=int(timeout))
    met = [(cost, [int(a) for a in labels[:size]]) for cost, labels, *_ in network.GetSolutions()]
    after = [*(cost for cost, _ in met[1:]), float("inf")]
    found = [labels for (cost, labels), following in zip(met, after, strict=True) if following >= cost]
    return found, len(found) == question["k"] and not network.Limit


# --- one after the other ----------------------------------------------------------------------------------

SOLVERS = {"highs": highs, "cpsat": cpsat, "toulbar2": toulbar2}
IMPORTS = {
    "highs": ("highspy", "scipy.sparse"),
    "cpsat": ("ortools.sat.python.cp_model",),
    "toulbar2": ("pytoulbar2",),
}


def answer(solver: str, question: dict[str, Any], limit: float) -> dict[str, Any]:
    for module in IMPORTS[solver]:
        __import__(module)

    def work(left: float) -> tuple[list[list[int]], bool]:
        if solver == "toulbar2" and question["distance"] > 1:
            return toulbar2_diverse(question, left)
        in_turn = slack if question["slack"] else in_order
        return in_turn(solver, question, time.perf_counter() + left)

    (found, proven), seconds = peer_clock.timed(work, limit)
    return {"found": found, "proven": proven, "seconds": seconds}


def in_order(solver: str, question: dict[str, Any], end: float) -> tuple[list[list[int]], bool]:
    """Ask for one labelling after the other."""
    solve, found = SOLVERS[solver](question, end), []
    while len(found) < question["k"]:
        left = end - time.perf_counter()
        labelling, _ = solve(found, left) if left > 0 else (None, False)
        if labelling is None:
            return found, False
        found.append(labelling)
    return found, True


def slack(solver: str, question: dict[str, Any], end: float) -> tuple[list[list[int]], bool]:
    """Fix the counts to one tally after the other, while a score could still make up for a smaller loss."""
    truth_score, cells = question["slack"]

    def best(rows: Any) -> tuple[list[int] | None, bool]:
        left = end - time.perf_counter()
        return SOLVERS[solver](question | {"rows": rows}, left)([], left) if left > 0 else (None, False)

    first, proven = best([])
    if first is None:
        return [], False
    most, top, found = score(question, first), -np.inf, []
    for loss, rows in cells:
        if loss * (1 + most - truth_score) <= top:
            break
        labelling, proven = best(rows)
        if not proven:
            return [], False
        value = -np.inf if labelling is None else loss * (1 + score(question, labelling) - truth_score)
        if value > top:
            top, found = value, [labelling]
    return found, True


def score(question: dict[str, Any], y: Sequence[int]) -> float:
    own = sum(states[a] for states, a in zip(question["unary"], y, strict=True))
    return own + sum(t[y[i]][y[j]] for i, j, t in question["pairs"])


if __name__ == "__main__":
    with open(sys.argv[2], encoding="ascii") as file:
        print("\n" + json.dumps(answer(sys.argv[1], json.load(file), float(sys.argv[3]))))
