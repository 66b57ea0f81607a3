"""Batches whose threads share little memory: items that need more than a share are put off."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tallytree as tt
from tallytree.bulk import expectations
from tallytree.bulk.chains import Chains
from tallytree.errors import BudgetError

_LENGTHS = (400, 60, 250, 5, 330, 120, 1, 280, 200, 90)
_BOTH = [tt.count(state=1), tt.count(state=2)]
_LOSS = tt.losses.FBeta(background=0)


def _inputs(lengths):
    rng = np.random.default_rng(1)
    models = [tt.Model.chain(rng.normal(size=(n, 3)), rng.normal(size=(3, 3))) for n in lengths]
    return models, [rng.integers(0, 3, n) for n in lengths]


def _profiles(**options):
    found = tt.profile_batch(_inputs(_LENGTHS)[0], _BOTH, **options)
    return [(profile.tallies.tolist(), profile.scores.tolist()) for profile in found]


def _solutions(**options):
    models, _ = _inputs(_LENGTHS)
    found = tt.solve_batch(models, _BOTH, objective=lambda score, a, b: score - abs(a - b), **options)
    return [(solution.score, solution.labels.tolist()) for solution in found]


def _losses(strategy):
    def ask(**options):
        models, truths = _inputs(_LENGTHS)
        found = tt.loss_augmented_batch(models, _LOSS, truths=truths, strategy=strategy, **options)
        return [(solution.value, solution.labels.tolist()) for solution in found]

    return ask


_ASKED = {
    "profiles": _profiles,
    "solutions": _solutions,
    "full": _losses("full"),
    "bounds": _losses("bounds"),
}
_KNOWN = {}


@pytest.mark.filterwarnings(
    "ignore::tallytree.errors.PerformanceWarning"
)  # of items that are solved on their own
@pytest.mark.parametrize("asked", _ASKED)
@settings(max_examples=6, deadline=None)
@given(megabytes=st.integers(3, 150), threads=st.integers(2, 8))
def test_answers_depend_neither_on_the_limit_nor_on_threads(asked, megabytes, threads):
    """Or else the batch is refused; it always ends."""
    known = _KNOWN.get(asked) or _KNOWN.setdefault(asked, _ASKED[asked](threads=1))
    try:
        assert _ASKED[asked](memory_limit=1e6 * megabytes, threads=threads) == known
    except BudgetError:
        assert megabytes < 140


def test_a_batch_with_small_and_large_items_is_solved_within_a_limit_that_fits_the_largest():
    """On any number of threads, and not only where all of them fit next to each other."""
    models, truths = _inputs(_LENGTHS)
    options = {"strategy": "full", "memory_limit": 80e6}
    alone = tt.loss_augmented_batch(models[:1], _LOSS, truths=truths[:1], threads=1, **options)
    for threads in (2, 4, 8):
        found = tt.loss_augmented_batch(models, _LOSS, truths=truths, threads=threads, **options)
        assert found[0].value == alone[0].value


@pytest.mark.parametrize("megabytes", [35, 70, 200])
def test_derivatives_are_added_in_the_same_order_in_all_rounds(megabytes, monkeypatch):
    """A group of items that is put off goes on where it was."""
    rng = np.random.default_rng(2)
    lengths = [20, 100, 30, 180, 40, 140, 10, 120] * 2
    chains = Chains(rng.normal(size=(sum(lengths), 3)), rng.normal(size=(3, 3)), lengths, tuple("OAB"))
    truths, loss = rng.integers(0, 3, sum(lengths)), tt.losses.FBeta(background="O")
    monkeypatch.setattr(expectations, "default_memory_limit", lambda: 1e6 * megabytes)
    one, many = (
        expectations.objective_of_chains(chains, loss, truths, "risk", threads=threads) for threads in (1, 8)
    )
    for known, found in zip(one, many, strict=True):
        np.testing.assert_array_equal(known, found)
