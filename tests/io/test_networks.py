"""Cost function networks in toulbar2's formats: the least cost is that of the definition, and toulbar2's."""

from __future__ import annotations

from itertools import product

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
