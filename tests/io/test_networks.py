"""Cost function networks in toulbar2's formats: the minimum agrees with the definition and with toulbar2."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from networks import (
    as_cfn,
    as_wcsp,
    cfn,
    least,
    networks,
    wcsp,
)

import tallytree as tt
from tallytree.io import ProblemFile, read_cfn, read_wcsp, write_cfn, write_wcsp


def by_definition(sizes, top, functions) -> float | None:
    costs = [
        sum(f.cost([y[v] for v in f.scope]) for f in functions) for y in product(*(range(n) for n in sizes))
    ]
    return min(costs) if min(costs) < top else None


@settings(deadline=None, max_examples=100)
@given(networks())
def test_the_least_cost_is_that_of_the_definition(network):
    expected = by_definition(*network)
    assert least(wcsp(as_wcsp(*network))) == pytest.approx(expected)
    assert least(cfn(as_cfn(*network))) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["week.cfn", "week.wcsp"])
def test_upper_limits_are_read_back_as_they_were_meant(tmp_path, name):
    model = tt.Model.chain([[0, 1.5], [0, -2.5], [0, 3], [0, 2]], [[1, 0], [0, 1]])
    problem = ProblemFile(model, [tt.count(state=1, name="ones")], where="ones == 2")
    write, read = (write_cfn, read_cfn) if name.endswith("cfn") else (write_wcsp, read_wcsp)
    write(problem, tmp_path / name)
    again = read(tmp_path / name)
    assert again.solve().assignment.tolist() == problem.solve().assignment.tolist()
    # names tell that both limits are of one count; never -2
    assert list(again.solve().tally) == ([2] if name.endswith("cfn") else [2, 2])
    assert len(again.plan().statistics) == 1


@pytest.mark.parametrize("relation", ["<=", ">=", "=="])
@pytest.mark.parametrize("seed", range(10))
def test_weights_of_both_signs_are_written_without_negative_ones(tmp_path, seed, relation):
    rng = np.random.default_rng(seed)
    model = tt.Model.chain(rng.normal(size=(5, 3)).round(2), rng.normal(size=(3, 3)).round(2))
    weights = tt.node_statistic(rng.integers(-9, 9, size=(5, 3)), name="w")
    bound = weights.tally(rng.integers(3, size=5))
    problem = ProblemFile(model, [weights], where=f"w {relation} {bound}")
    scale = tt.io.write_cfn(problem, tmp_path / "p.cfn")
    text = (tmp_path / "p.cfn").read_text(encoding="utf-8")
    assert not re.search(r'\["x\d+", \d, -', text)
    assert scale.score(least(read_cfn(tmp_path / "p.cfn"))) == pytest.approx(problem.solve().score)
