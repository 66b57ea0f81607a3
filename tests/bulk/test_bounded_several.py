"""The best labellings of several tallies by bounds, compared with full tables."""

import numpy as np
import pytest
from bounded_cases import KINDS, scores_of
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk.chains import Chains, best_of_chains
from tallytree.bulk.truth_tables import Search

NAMES = ("O", "B-X", "I-X", "B-Y", "I-Y")
RECIPES = (
    tt.losses.ChunkFBeta(),
    tt.losses.FBeta(background="O"),
    tt.losses.IntersectionOverUnion(background="O"),
)


def problem(rng, kind, count, longest, trained):
    """Return chains and truths, which are their best labellings if they have been trained."""
    lengths = rng.integers(1, longest + 1, count).tolist()
    emissions, links = scores_of(rng, (sum(lengths), 5), kind), scores_of(rng, (5, 5), kind)
    if kind == "forbidden":  # any truth is allowed
        emissions, links = np.maximum(emissions, -20.0), np.maximum(links, -20.0)
    chains = Chains(emissions, links, lengths, NAMES)
    if trained:
        return chains, [labels for ((labels, _),) in best_of_chains(chains)]
    return chains, [rng.integers(0, 5, n) for n in lengths]


def assert_same(full, found):
    for one, other in zip(full, found, strict=True):
        assert [cost for _, cost in one] == [cost for _, cost in other]
        for (labels, _), (others, _) in zip(one, other, strict=True):
            np.testing.assert_array_equal(labels, others)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 2**32 - 1),
    KINDS,
    st.sampled_from(RECIPES),
    st.sampled_from(["margin", "slack"]),
    st.integers(2, 6),
    st.booleans(),
)
def test_labellings_are_those_of_full_tables(seed, kind, recipe, scaling, count, trained):
    """If rounding or ties could change the order, the table decides."""
    rng = np.random.default_rng(seed)
    chains, truths = problem(rng, kind, 4, 12, trained)
    full = best_of_chains(chains, recipe, truths, scaling, count, search=Search("full"))
    for way in ("auto", "bounds"):
        prices = float(rng.choice([0.1, 1.0, 100.0])) * rng.normal(size=(4, 2))
        assert_same(full, best_of_chains(chains, recipe, truths, scaling, count, search=Search(way, prices)))


@pytest.mark.parametrize("scaling", ["margin", "slack"])
def test_prices_are_kept_for_the_next_time(scaling):
    rng = np.random.default_rng(1)
    chains, truths = problem(rng, "any", 20, 30, True)
    full = best_of_chains(chains, RECIPES[0], truths, scaling, 3, search=Search("full"))
    prices = np.full((20, 2), np.nan)
    for _ in range(2):
        assert_same(
            full, best_of_chains(chains, RECIPES[0], truths, scaling, 3, search=Search("auto", prices))
        )
        assert np.isfinite(prices).sum() >= 20
