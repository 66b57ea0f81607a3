"""Modes of PyTorch, dtypes, and memory: the same results, and nothing that outlives its use."""

import weakref

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402

ONES = tt.count(state=1)
NAMES = ["O", "B-x", "I-x"]


def batch(dtype=torch.float64, device="cpu", seed=0):
    source = torch.Generator().manual_seed(seed)
    emissions = torch.randn(3, 6, 3, generator=source, dtype=torch.float64)
    transitions = torch.randn(3, 3, generator=source, dtype=torch.float64)
    tags = torch.randint(0, 3, (3, 6), generator=source)
    return emissions.to(device, dtype), transitions.to(device, dtype), tags.to(device)


# --- precision ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
@pytest.mark.parametrize("seed", range(3))
def test_results_are_rounded_once(dtype, seed, device):
    """Each is as near to the one in float64 as its dtype allows, although sums are much larger."""
    emissions, transitions, tags = batch(dtype, device, seed)
    emissions = emissions + 50.0
    ours = ttt.Chain(emissions, transitions)
    theirs = ttt.Chain(emissions.double(), transitions.double())
    several = torch.stack([tags, theirs.argmax])

    def results(chain):
        tally, given = chain.tally(ONES), chain.given(ONES <= 3)
        yield from (tally.log_probs, tally.probs, tally.mean, tally.variance, tally.log_prob(2))
        yield from (given.log_condition, given.marginals, given.log_prob(several), given.tally(ONES).probs)
        yield from (chain.log_prob(several), chain.marginals, chain.log_partition, chain.pair_marginals)
        yield from (given.entropy(), chain.entropy(), given.max, chain.given(ONES == 2).log_partition)

    for mine, right in zip(results(ours), results(theirs), strict=True):
        assert mine.dtype == dtype
        close = 2 * torch.finfo(dtype).eps
        torch.testing.assert_close(mine.double(), right.to(dtype).double(), rtol=close, atol=1e-7)


def test_results_have_the_common_dtype_of_scores(device):
    emissions, transitions, tags = batch(torch.float32, device)
    chain = ttt.Chain(emissions.bfloat16(), transitions)
    given = chain.given(ONES <= 2)
    for found in (chain.marginals, given.marginals, chain.log_partition, given.log_prob(tags), given.max):
        assert found.dtype == torch.float32


@pytest.mark.parametrize(
    "make", [lambda s: ttt.Chart(s), lambda s: ttt.Chart(s).given(tt.parsing.count("0") >= 1)]
)
def test_trees_are_rounded_once(make):
    scores = (torch.randn(2, 5, 5) + 20).bfloat16()
    ours, theirs = make(scores), make(scores.double())
    trees = torch.stack([theirs.argmax, theirs.argmax])
    for mine, right in ((d.log_prob(trees), d.marginals) for d in (ours, theirs)):
        assert mine.shape[0] == 2 and right.shape == scores.shape
    torch.testing.assert_close(ours.log_prob(trees), theirs.log_prob(trees).bfloat16())
    torch.testing.assert_close(ours.marginals, theirs.marginals.bfloat16())


# --- forbidden structures ----------------------------------------------------------------------------------


@pytest.mark.parametrize("leading", [(), (1,), (2, 1)])
def test_forbidden_taggings_have_no_derivatives(leading, device):
    emissions = torch.zeros(1, 2, 2, dtype=torch.float64, device=device)
    emissions[0, 0, 0] = -torch.inf
    emissions.requires_grad_()
    tags = torch.tensor([[0, 1]], device=device).expand(*leading, 1, 2)
    chain = ttt.Chain(emissions, torch.zeros(2, 2, dtype=torch.float64, device=device))
    for found in (chain.log_prob(tags), chain.given(ONES >= 1).log_prob(tags)):
        assert (found == -torch.inf).all()
        (slopes,) = torch.autograd.grad(found.sum(), emissions)
        assert not slopes.any()


def test_sentences_without_any_tagging(device):
    emissions = torch.zeros(2, 2, 2, dtype=torch.float64, device=device)
    emissions[1, 0] = -torch.inf
    chain = ttt.Chain(emissions, torch.zeros(2, 2, dtype=torch.float64, device=device))
    tags = torch.zeros(1, 2, 2, dtype=torch.int64, device=device)
    tally, given = chain.tally(ONES), chain.given(ONES == 0)
    assert chain.log_prob(tags)[0, 1] == given.log_prob(tags)[0, 1] == -torch.inf
    assert tally.log_prob(0)[1] == -torch.inf and not tally.probs[1].any() and tally.mean[1] == 0
    assert tally.probs[0].sum() == pytest.approx(1.0)
    with pytest.raises(tt.InfeasibleError, match="sentence 1"):
        given.sample((2,))
    with pytest.raises(tt.InfeasibleError, match="-inf forbid all labellings of chain 1"):
        chain.sample((2,))


def test_charts_without_any_tree():
    """Other sentences of the batch keep their results."""
    scores = torch.randn(3, 3, 3, 2, dtype=torch.float64)
    scores[1, 0, 2] = -torch.inf
    scores.requires_grad_()
    count = tt.parsing.count("B")
    tally = ttt.Chart(scores, labels=["A", "B"]).tally(count)
    (slopes,) = torch.autograd.grad(tally.logits.masked_fill(tally.logits == -torch.inf, 0.0).sum(), scores)
    assert not slopes[1].any() and (tally.logits[1] == -torch.inf).all()
    for number in (0, 2):
        alone = ttt.Chart(scores[number : number + 1], labels=["A", "B"]).tally(count)
        assert torch.equal(alone.logits[0], tally.logits[number])
    given = ttt.Chart(scores, labels=["A", "B"]).given(count >= 1)
    assert given.log_partition[1] == -torch.inf and not given.marginals[1].any()
    none = ttt.Chart(scores[1:2], labels=["A", "B"]).tally(count)
    assert none.low == (0,) and (none.logits == -torch.inf).all()
    with pytest.raises(tt.InfeasibleError, match="sentence 1"):
        given.sample()


# --- conditions --------------------------------------------------------------------------------------------


def test_conditions_have_the_methods_of_distributions(device):
    emissions, transitions, tags = batch(device=device)
    chain = ttt.Chain(emissions, transitions, lengths=[6, 4, 1], states=NAMES)
    given = chain.given("O >= 1 and O <= 3")
    assert isinstance(given, ttt.Structured)
    assert torch.equal(given.max, given.topk(1).scores[0])
    assert torch.equal(given.score(tags), chain.score(tags))
    assert given.lengths.tolist() == [6, 4, 1] and given.device == emissions.device
    once = chain.given("O >= 1 and O <= 3 and 'B-x' <= 1")
    twice = given.given("'B-x' <= 1")
    torch.testing.assert_close(twice.log_partition, once.log_partition)
    torch.testing.assert_close(twice.marginals, once.marginals)
    assert torch.equal(given.topk(2, where="'B-x' <= 1").labels, once.topk(2).labels)
    draws = given.sample((20_000,), generator=torch.Generator().manual_seed(0))
    surprise = -given.log_prob(draws).mean(0)
    torch.testing.assert_close(given.entropy(), surprise, rtol=0.02, atol=0.02)


# --- modes -------------------------------------------------------------------------------------------------


def test_inference_mode(device):
    emissions, transitions, tags = batch(device=device)
    chain = ttt.Chain(emissions, transitions)
    wanted = [chain.given(ONES == 1).marginals, chain.pair_marginals, chain.marginals, chain.max]
    with torch.inference_mode():
        for inputs in ((emissions, transitions), (emissions * 1, transitions * 1)):
            other = ttt.Chain(*inputs)
            found = [other.given(ONES == 1).marginals, other.pair_marginals, other.marginals, other.max]
            for mine, right in zip(found, wanted, strict=True):
                assert torch.equal(mine, right)
            assert other.tally(ONES).log_prob(2).shape == (3,) and other.log_prob(tags).shape == (3,)


def test_what_inference_mode_has_computed_is_of_use_outside(device):
    emissions, transitions, tags = batch(device=device)
    emissions.requires_grad_()
    weight = torch.ones((), dtype=torch.float64, device=device, requires_grad=True)
    chain = ttt.Chain(emissions, transitions)
    chart = ttt.Chart(torch.randn(2, 3, 3, dtype=torch.float64))
    given, tally = chain.given(ONES == 1), chain.tally(ONES)
    with torch.inference_mode():
        _ = chain.argmax, chain.mask, given.marginals, given.argmax, tally.log_probs, tally.grids, tally.mean
        _ = chart.marginals, chart.argmax, chart.log_partition
    total = chain.max.sum() + (weight * given.marginals).sum() + tally.mean.sum() + given.max.sum()
    (total + (weight * chart.marginals).sum() + chain.score(tags).sum()).backward()
    assert emissions.grad.any() and weight.grad > 0


@pytest.mark.parametrize("kind", [ttt.StructuredHinge, ttt.SoftmaxMargin, ttt.ExpectedLoss])
def test_another_default_device(kind):
    emissions, transitions, tags = batch()
    crf = ttt.CRF(3, batch_first=True)
    source = torch.Generator()

    def results():
        chain, chart = ttt.Chain(emissions, transitions), ttt.Chart(emissions[:, :3].contiguous())
        own = transitions.expand(3, 5, 3, 3)
        yield from (chain.log_partition, chain.argmax, chain.marginals, chart.log_partition, chart.argmax)
        yield from (kind("f1", labels=NAMES)(emissions, one, tags) for one in (transitions, own))
        yield crf(emissions.float(), tags)
        yield torch.tensor(crf.decode(emissions.float()), device="cpu")
        yield from (chain.sample((2,), source.manual_seed(0)), chart.sample((2,), source.manual_seed(0)))
        yield from chain.topk(2)

    wanted = list(results())
    try:
        torch.set_default_device("meta")
        found = list(results())
    finally:
        torch.set_default_device(None)
    for mine, right in zip(found, wanted, strict=True):
        assert torch.equal(mine, right)


# --- memory ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "value",
    [
        lambda e, t, y: ttt.NegativeLogLikelihood()(e, t, y),
        lambda e, t, y: ttt.StructuredHinge("chunk-f1", labels=NAMES)(e, t, y),
        lambda e, t, y: ttt.ExpectedLoss("chunk-f1", labels=NAMES)(e, t, y),
        lambda e, t, y: ttt.Chain(e, t).tally(ONES).mean.sum(),
        lambda e, t, y: ttt.CRF(3, batch_first=True).double()(e, y),
    ],
)
def test_memory_is_freed_by_backward(value, device):
    """As PyTorch's own functions do, even if the loss itself is kept."""
    emissions, transitions, tags = batch(device=device)
    first = emissions.requires_grad_()
    hidden = first * 2
    there = weakref.ref(hidden)
    total = value(hidden, transitions, tags)
    del hidden
    total.backward(retain_graph=True)
    assert there() is not None
    total.backward()
    assert there() is None
    with pytest.raises(RuntimeError, match="second time"):
        total.backward()
