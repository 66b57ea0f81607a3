"""The best labels of chains, found without plans, compared with plans and with enumeration."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk.chains import Chains, best_labels
from tallytree.kernels import native

pytestmark = pytest.mark.sanitize


@st.composite
def plain_chains(draw, most_labels, longest):
    """Chains of many ties: some of them exact, others up to rounding."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    values = draw(st.sampled_from([[0.0], [-1.0, 0.0, 2.0], [0.1, 0.2, 0.3, 0.7, 1 / 3], [1e200, 0.3, -1e9]]))
    labels = draw(st.integers(1, most_labels))
    lengths = draw(st.lists(st.integers(1, longest), min_size=1, max_size=5))
    emissions, links = rng.choice(values, (sum(lengths), labels)), rng.choice(values, (labels, labels))
    return Chains(emissions, links, lengths, None)


@settings(max_examples=60)
@given(plain_chains(3, 4))
def test_labels_without_plans_are_the_best(chains):
    found = np.split(best_labels(chains), np.cumsum(chains.lengths)[:-1])
    for labels, model in zip(found, chains.models(), strict=True):
        scores = [model.score(y) for y in product(range(chains.emissions.shape[1]), repeat=len(labels))]
        assert model.score(labels) == pytest.approx(max(scores), rel=1e-12)


@settings(max_examples=100)
@given(plain_chains(26, 9), st.integers(1, 3))
def test_labels_without_plans_are_those_of_plans_also_among_equals(chains, threads):
    planned = [one.assignment for one in tt.solve_batch(chains.models(), threads=1)]
    for name in native.instruction_sets():
        native.use_instruction_set(name)
        found = best_labels(chains, threads)
        native.use_instruction_set()
        assert found.tolist() == np.concatenate(planned).tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"emissions": np.full((3, 2), -np.inf)},
        {"links": np.zeros((2, 2, 2))},
        {"lengths": [3, 0]},
        {"emissions": np.full((3, 2), np.nan)},
    ],
)
def test_labels_that_need_plans_are_left_to_them(change):
    chains = Chains(np.zeros((3, 2)), np.zeros((2, 2)), [3], None)._replace(**change)
    assert best_labels(chains) is None


def test_labels_that_do_not_fit_are_left_to_plans(monkeypatch):
    chains = Chains(np.zeros((300, 2)), np.zeros((2, 2)), [300], None)
    assert best_labels(chains).tolist() == [0] * 300
    monkeypatch.setattr("tallytree.bulk.chains.default_memory_limit", lambda: 1000)
    assert best_labels(chains) is None
