"""Programs are created once for each order, and shared."""

import numpy as np
import pytest

import tallytree as tt
from tallytree.planning import orders, planner
from tallytree.planning.recent import Recent


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
