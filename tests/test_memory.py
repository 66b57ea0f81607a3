"""Memory limits: forecasts compared with the growth of processes, and errors that allocate nothing."""

import textwrap

import pytest
from memory import grown, needs_proc
from memory_cases import PLANNED, SLACK

import tallytree as tt

# These are counted as they grow.
COUNTED = {
    "k_best": (
        """
        def asked(k):
            return lambda limit: len(tt.k_best(chain(100, 3), k, memory_limit=limit))
        small, call = asked(5), asked(12_000)
        """,
        r"best: together with .* takes|of which [\d,]+ have been found",
    ),
    "iter_best": (
        """
        from itertools import islice
        def asked(k):
            return lambda limit: sum(1 for _ in islice(tt.iter_best(chain(1500, 3), memory_limit=limit), k))
        small, call = asked(5), asked(4000)
        """,
        r"search for labellings in order, of which [\d,]+ have been found: .* takes .* the limit is .*",
    ),
    "trees": (
        """
        rng = np.random.default_rng(0)
        rules = {(a, b, c): rng.normal() for a in "NVP" for b in "NVP" for c in "NVP"}
        words = {name: {"a": rng.normal()} for name in "NVP"}
        grammar = parsing.Grammar(rules, {}, words, root="N")
        def asked(k):
            forest = parsing.Forest(grammar, "a " * 12)
            return lambda limit: len(parsing.k_best(forest, k, memory_limit=limit))
        small, call = asked(5), asked(2500)
        """,
        r"trees in order, of which|best: together|trees found so far",
    ),
    "corpus": (
        """
        def asked(count):
            rng = np.random.default_rng(0)
            models = [chain(18, 3, seed) for seed in range(count)]
            truths = [rng.integers(0, 3, 18) for _ in models]
            loss = tt.losses.FBeta(background=0)
            return lambda limit: tt.loss_augmented_corpus(models, truths, loss, memory_limit=limit).value
        small, call = asked(2), asked(250)
        """,
        "profiles of .* models|tallies of .* models|the plan needs|partial tallies",
    ),
    "relax": (
        """
        def asked(length):
            model = chain(length, 3)
            few = tt.count(model, state=1) <= length // 4
            return lambda limit: tt.relax(model, where=few, candidates=0, memory_limit=limit).upper_bound
        small, call = asked(10), asked(60_000)
        """,
        "the plan needs",
    ),
    "batch": (
        """
        def asked(count, length):
            rng = np.random.default_rng(0)
            models = [chain(length, 3, seed) for seed in range(count)]
            losses = [tt.losses.FBeta(background=0).against(rng.integers(0, 3, length)) for _ in models]
            return lambda limit: len(tt.loss_augmented_batch(models, losses, threads=1, memory_limit=limit))
        small, call = asked(2, 5), asked(3000, 40)
        """,
        r"a batch of 3,000 problems and answers: together",
    ),
    "profiles": (
        """
        def asked(count, length):
            models = [chain(length, 3, seed) for seed in range(count)]
            both = [tt.count(state=1), tt.count(state=2)]
            return lambda limit: sum(map(len, tt.profile_batch(models, both, threads=2, memory_limit=limit)))
        small, call = asked(2, 5), asked(400, 60)
        """,
        r"the profiles of a batch of 400 problems: together",
    ),
    "exclude": (
        """
        def asked(count):
            model = chain(300, 3)
            outputs = [found.assignment for found in tt.k_best(model, count)]
            return lambda limit: tt.exclude(model, outputs, memory_limit=limit).score
        small, call = asked(2), asked(2500)
        """,
        r"the search for labellings in order, of which",
    ),
}


@needs_proc
@pytest.mark.parametrize("name", sorted(PLANNED))
def test_plans_say_what_a_process_grows_by(name):
    found = grown(PLANNED[name])
    assert found["said"] > 15e6, "so that the rest of the process does not matter"
    assert found["growth"] == pytest.approx(found["said"], rel=0.2, abs=SLACK)
    refused = grown(PLANNED[name], limit=0.2 * found["said"])
    assert "the plan needs" in refused["refused"] and "the limit is" in refused["refused"]
    assert refused["growth"] < SLACK, "nothing is allocated"


@needs_proc
@pytest.mark.parametrize(
    ("name", "size", "whole"),
    [("chain(5, 3)", "chain(100_000, 10)", 70e6), ("star(5)", "star(100_000)", 157e6)],
)
@pytest.mark.parametrize("share", [0.67, 0.7, 0.8])
def test_refusals_just_below_the_limit_stay_within_it(name, size, whole, share):
    """While programs and lists are drawn up, hardly more is held than they take in the end."""
    code = f"""
        def star(leaves):
            parents = np.zeros(leaves + 1, dtype=int)
            parents[0] = -1
            return tt.Model.tree(parents, np.zeros((leaves + 1, 3)), np.zeros((3, 3)))
        def asked(model):
            return lambda limit: tt.solve(model, memory_limit=limit).certificate.peak_bytes
        small, call = asked({name}), asked({size})
    """
    found = grown(code, limit=share * whole, kept=False)
    assert (found["refused"] is None) == (share == 0.8)
    assert found["growth"] <= 1.02 * share * whole + SLACK


@needs_proc
@pytest.mark.parametrize("name", sorted(COUNTED))
def test_what_grows_on_the_way_is_counted(name):
    code, words = COUNTED[name]
    free = grown(code)
    enough = grown(code, limit=1.25 * free["growth"] + SLACK)
    assert enough["refused"] is None and enough["said"] == free["said"]
    limit = 0.5 * free["growth"]
    refused = grown(code, limit=limit)
    assert refused["growth"] <= 1.2 * limit + SLACK
    with pytest.raises(tt.BudgetError, match=words):
        raise tt.BudgetError(refused["refused"] or "nothing was refused")


@needs_proc
def test_answers_do_not_keep_the_lists_of_their_plans():
    found = grown(
        """
        def asked(k):
            return lambda limit: len(tt.diverse_k_best(chain(60, 3), k, 4, memory_limit=limit))
        small, call = asked(2), asked(14)
        """,
        limit=40e6,
    )
    assert found["growth"] <= 1.2 * 40e6 + SLACK


@needs_proc
def test_what_products_leave_behind_counts_towards_the_memory_limit():
    """The first chain is summed in products; the second one forbids a label, and needs nearly all memory."""
    code = """
        from tallytree.bulk import expectations
        from tallytree.bulk.chains import Chains

        def summed(first, second):
            expectations.default_memory_limit = lambda: 60e6
            rng = np.random.default_rng(0)
            scores = rng.normal(size=(first + second, 3))
            scores[first:, 2] = -np.inf
            some = Chains(scores, rng.normal(size=(3, 3)), [first, second], None)
            loss, truths = tt.losses.Precision(background=0), rng.integers(0, 2, first + second)
            expectations.objective_of_chains(some, loss, truths, "risk", threads=1)

        def small(limit):
            summed(5, 5)

        def call(limit):
            summed(180, 205)
    """
    found = grown(code)
    assert found["refused"] is None
    assert found["growth"] < 1.1 * 60e6  # 85e6 with what the first one has left


_BATCHES = """
    from tallytree.bulk import expectations
    from tallytree.bulk.chains import Chains

    both = [tt.count(state=1), tt.count(state=2)]
    loss = tt.losses.FBeta(background=0)

    def inputs(count, length):
        rng = np.random.default_rng(0)
        models = [chain(length, 3, seed) for seed in range(count)]
        return models, [rng.integers(0, 3, length) for _ in models]

    def profiles(count, length, **options):
        models, _ = inputs(count, length)
        return lambda limit: sum(map(len, tt.profile_batch(models, both, memory_limit=limit, **options)))

    def solutions(count, length, **options):
        models, _ = inputs(count, length)
        options["objective"] = lambda score, a, b: score - abs(a - b)
        return lambda limit: len(tt.solve_batch(models, both, memory_limit=limit, **options))

    def losses(count, length, **options):
        models, truths = inputs(count, length)
        options["truths"] = truths
        return lambda limit: len(tt.loss_augmented_batch(models, loss, memory_limit=limit, **options))

    def risks(count, length, of=tt.losses.Precision(background=0), labels=3, **options):
        rng = np.random.default_rng(0)
        sizes = [length] * count
        scores, links = rng.normal(size=(sum(sizes), labels)), rng.normal(size=(labels, labels))
        chains, truths = Chains(scores, links, sizes, None), rng.integers(0, labels, sum(sizes))
        def call(limit):
            expectations.default_memory_limit = lambda: limit or 1e9
            return float(expectations.objective_of_chains(chains, of, truths, "risk", **options).values.sum())
        return call
"""
_KEPT = 16e6  # of freed memory, by the heaps of threads, which do not give it back


@needs_proc
@pytest.mark.parametrize(
    ("asked", "options", "limit"),
    [
        ("profiles", "threads=1", 250e6),
        ("profiles", "threads=2", 60e6),
        ("profiles", "threads=8", 250e6),
        ("solutions", "threads=8", 150e6),
        ("losses", 'threads=8, strategy="full"', 60e6),
        ("losses", 'threads=2, strategy="full"', 100e6),
        ("losses", 'threads=8, strategy="bounds"', 40e6),
        ("losses", 'threads=8, strategy="bounds", scaling="slack"', 120e6),
        ("risks", "threads=1", 40e6),
        ("risks", "threads=8", 40e6),
    ],
)
def test_the_threads_of_a_batch_share_the_memory_limit(asked, options, limit):
    """Plans that are drawn up, searches and answers count as much as the tables of a run."""
    sizes = "16, 200" if asked == "risks" else "16, 800"
    calls = f"\nsmall, call = {asked}(2, 5, {options}), {asked}({sizes}, {options})"
    assert grown(textwrap.dedent(_BATCHES) + calls, limit=limit)["growth"] <= 1.1 * limit + _KEPT + SLACK


@needs_proc
def test_sums_without_tables_share_the_memory_limit():
    """Each thread would need 17 MB, and results take 6."""
    calls = """
    of = dict(of=loss, labels=40, threads=8)
    small, call = risks(2, 5, **of), risks(8, 2000, **of)
    """
    found = grown(textwrap.dedent(_BATCHES) + textwrap.dedent(calls), limit=20e6)
    assert found["refused"] is None
    assert found["growth"] <= 20e6 + 6e6 + _KEPT + SLACK
