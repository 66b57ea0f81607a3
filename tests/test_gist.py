"""The code of docs/gist.md runs, and its functions serve as a reference."""

import re
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from strategies import problems

from tallytree.testing import brute_force, factors_of

PAGE = Path(__file__).parents[1] / "docs" / "gist.md"


def code_of_the_page() -> str:
    return "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))


@pytest.fixture(scope="module")
def gist():
    names: dict = {}
    exec(compile(code_of_the_page(), str(PAGE), "exec"), names)
    return names


def test_the_page_is_short():
    method, _, _ = code_of_the_page().partition("evidence =")
    lines = [line for line in method.splitlines() if line.strip() and not line.startswith("import")]
    assert len(lines) <= 70


def solve_with(gist, model, statistics, order=None):
    factors = list(factors_of(model.blocks))
    entries = [list(factors_of(statistic.blocks)) for statistic in statistics]
    return gist["profile"](len(model.cardinalities), factors, entries, order)


@given(problem=problems(capped=False))
def test_the_page_agrees_with_enumeration(gist, problem):
    model, statistics = problem
    everything = brute_force(model, statistics)
    tallies, scores = everything.profile()
    best, root = solve_with(gist, model, statistics)
    assert list(best) == [tuple(tally) for tally in tallies.tolist()]
    np.testing.assert_allclose(list(best.values()), scores, atol=1e-12)
    index = {tuple(y): row for row, y in enumerate(everything.labellings.tolist())}
    for tally, score in best.items():
        row = index[tuple(gist["decode"](root, tally, len(model.cardinalities)))]
        assert tuple(everything.tallies[row].tolist()) == tally
        assert everything.scores[row] == pytest.approx(score, abs=1e-12)


@given(problem=problems(capped=False, largest=4))
def test_every_order_gives_the_same_profile(gist, problem):
    model, statistics = problem
    wanted, _ = solve_with(gist, model, statistics)
    for order in permutations(range(len(model.cardinalities))):
        best, _ = solve_with(gist, model, statistics, order)
        assert best == pytest.approx(wanted, abs=1e-12)
