"""Networks compared with toulbar2 itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, reject, settings
from hypothesis import strategies as st
from networks import (
    as_cfn,
    as_wcsp,
    least,
    networks,
)
from strategies import problems

import tallytree as tt
from tallytree.io import ProblemFile, read_cfn, read_wcsp, write_cfn, write_wcsp

in_a_folder = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)

# --- toulbar2 itself ----------------------------------------------------------------------------------------


PEER = """
import sys
import pytoulbar2

for line in sys.stdin:
    network = pytoulbar2.CFN()
    try:
        network.Read(line.strip())
        found = network.Solve()
    except pytoulbar2.pytoulbar2.tb2.Contradiction:
        found = None
    print("cost", None if found is None else found[1], flush=True)
"""


class Peer:
    """toulbar2 in a process of its own; one for each format, which it remembers from file to file."""

    def __init__(self) -> None:
        self.processes: dict[str, subprocess.Popen[str]] = {}

    def __call__(self, path: Path) -> float | None:
        if path.suffix not in self.processes:
            self.processes[path.suffix] = subprocess.Popen(
                [sys.executable, "-c", PEER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
            )
        process = self.processes[path.suffix]
        process.stdin.write(f"{path}\n")
        process.stdin.flush()
        while not (line := process.stdout.readline()).startswith("cost"):
            if not line:  # it crashed, as it does on some networks without a solution
                self.processes.pop(path.suffix).communicate()
                reject()
        return None if line.split()[1] == "None" else float(line.split()[1])


@pytest.fixture(scope="module")
def toulbar2() -> Iterator[Peer]:
    pytest.importorskip("pytoulbar2")
    peer = Peer()
    yield peer
    for process in peer.processes.values():
        process.communicate()


@in_a_folder
@given(network=networks(without="knapsackp"))  # which toulbar2 does not read from .cfn files
def test_toulbar2_agrees_on_files_written_by_hand(network, tmp_path: Path, toulbar2: Peer):
    for suffix, text in ((".wcsp", as_wcsp(*network)), (".cfn", as_cfn(*network))):
        if suffix == ".cfn" and 'type: "<' in text:
            continue  # toulbar2 1.4 takes < of .cfn files for >, and < of .wcsp files for <
        path = tmp_path / f"network{suffix}"
        path.write_text(text)
        ours = {".wcsp": read_wcsp, ".cfn": read_cfn}[suffix](path)
        assert least(ours) == pytest.approx(toulbar2(path))


def simple_problem(drawn, data) -> ProblemFile:
    """A problem that cost function networks have words for, with scores on a lattice."""
    model, _ = drawn
    if len(model) == 0:
        model = tt.Model([2])
    rounded = tt.Model(
        model.cardinalities,
        [
            (scope, np.round(t, 2))
            for block in model.blocks
            for scope, t in zip(
                block.scopes.tolist(),
                np.broadcast_to(block.tables, (len(block), *block.tables.shape[1:])),
                strict=True,
            )
        ],
    )
    single = [
        tt.Statistic(
            [((v,), np.arange(n) % 3 - 1) for v, n in enumerate(rounded.cardinalities.tolist())], name="g"
        ),
        tt.count(rounded, state=0, name="zeros"),
    ]
    low = data.draw(st.integers(-2, 3))
    where = data.draw(
        st.sampled_from([None, f"g >= {low}", f"g - 2*zeros <= {low} and zeros >= 1", f"zeros == {low}"])
    )
    return ProblemFile(rounded, single, where=where)


@in_a_folder
@given(drawn=problems(largest=4), data=st.data())
def test_a_written_problem_has_the_same_optimum(drawn, data, tmp_path: Path):
    problem = simple_problem(drawn, data)
    for suffix, write, read in ((".wcsp", write_wcsp, read_wcsp), (".cfn", write_cfn, read_cfn)):
        path = tmp_path / f"problem{suffix}"
        scale = write(problem, path, decimals=3)
        back = read(path)
        try:
            expected = problem.solve().value
        except tt.InfeasibleError:
            assert least(back) is None
            continue
        assert scale.score(least(back)) == pytest.approx(expected, abs=1e-9)


@in_a_folder
@given(drawn=problems(largest=4), data=st.data())
def test_toulbar2_solves_what_is_written(drawn, data, tmp_path: Path, toulbar2: Peer):
    problem = simple_problem(drawn, data)
    for suffix, write in ((".wcsp", write_wcsp), (".cfn", write_cfn)):
        path = tmp_path / f"problem{suffix}"
        scale = write(problem, path, decimals=3)
        cost = toulbar2(path)
        try:
            expected = problem.solve().value
        except tt.InfeasibleError:
            assert cost is None
            continue
        assert scale.score(cost) == pytest.approx(expected, abs=1e-9)
