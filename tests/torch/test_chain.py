"""Chains compared with enumeration: values, derivatives, labellings and samples."""

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch_chains import enumerated, padded, random_chain  # noqa: E402

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402

CASES = [
    (seed, own, forbidden, scale)
    for seed in range(12)
    for own in (False, True)
    for forbidden, scale in ((0.0, 1.0), (0.3, 1.0), (0.3, 400.0), (0.0, 400.0))
]
cases = pytest.mark.parametrize(("seed", "own", "forbidden", "scale"), CASES)


def close(one, other, scale=1.0):
    torch.testing.assert_close(one, other, rtol=1e-11 * scale, atol=1e-11 * scale)


def clean(gradient):
    """Derivatives by enumeration: those of the padding, and of what is forbidden, are 0."""
    return torch.nan_to_num(gradient, nan=0.0)


def leaves(*tensors):
    return [tensor.clone().requires_grad_() for tensor in tensors]


def slopes(value, tensors):
    found = torch.autograd.grad(value, tensors, allow_unused=True, retain_graph=True)
    return [torch.zeros_like(t) if g is None else clean(g) for g, t in zip(found, tensors, strict=True)]


@cases
def test_log_partition_and_its_derivatives(seed, own, forbidden, scale, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden, scale=scale)
    weights = torch.randn(3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64).to(device)
    for gain in (weights, torch.full_like(weights, 0.5)):
        ours, theirs = leaves(emissions, transitions), leaves(emissions, transitions)
        found = ttt.Chain(*ours, lengths).log_partition
        wanted = torch.stack([torch.logsumexp(scores, 0) for _, scores in enumerated(*theirs, lengths)])
        close(found, wanted, scale)
        both = torch.autograd.grad(found @ gain, ours), slopes(wanted @ gain, theirs)
        for one, other in zip(*both, strict=True):
            close(one, other, scale)


@cases
def test_log_prob_and_its_derivatives(seed, own, forbidden, scale, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden, scale=scale)
    generator = torch.Generator().manual_seed(seed)
    for _ in range(3):
        ours, theirs = leaves(emissions, transitions), leaves(emissions, transitions)
        every = enumerated(*theirs, lengths)
        chosen = [int(torch.randint(len(tags), (), generator=generator)) for tags, _ in every]
        tags = padded([tags[i] for (tags, _), i in zip(every, chosen, strict=True)], emissions.shape[1])
        found = ttt.Chain(*ours, lengths).log_prob(tags)
        wanted = torch.stack([s[i] - torch.logsumexp(s, 0) for (_, s), i in zip(every, chosen, strict=True)])
        close(found, wanted, scale)
        possible = wanted > -torch.inf
        if possible.any():
            derivatives = slopes(wanted[possible].sum(), theirs)
        else:
            derivatives = [torch.zeros_like(one) for one in theirs]
        for one, other in zip(torch.autograd.grad(found.sum(), ours), derivatives, strict=True):
            close(one, other, scale)


@cases
def test_marginals(seed, own, forbidden, scale, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden, scale=scale)
    chain = ttt.Chain(emissions, transitions, lengths)
    wanted = torch.zeros_like(emissions)
    for number, (tags, scores) in enumerate(enumerated(emissions, transitions, lengths)):
        shares = torch.softmax(scores, 0)
        for t in range(tags.shape[1]):
            wanted[number, t].index_add_(0, tags[:, t], shares)
    close(chain.marginals, wanted, scale)
    assert not chain.pair_marginals.requires_grad
    shares = [torch.log_softmax(scores, 0) for _, scores in enumerated(emissions, transitions, lengths)]
    entropies = [-torch.where(one > -torch.inf, one.exp() * one, 0.0).sum() for one in shares]
    close(chain.entropy(), torch.stack(entropies), scale * scale)
    close(chain.pair_marginals.sum(), (lengths - 1).sum().double().to(device), scale)


@pytest.mark.parametrize("forbidden", [0.0, 0.3])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_derivatives_of_marginals_and_entropies(seed, own, forbidden, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden)
    ours, theirs = leaves(emissions, transitions), leaves(emissions, transitions)
    chain, total = ttt.Chain(*ours, lengths), 0.0
    gains = torch.randn(emissions.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    gains, entropies = gains.to(device), []
    for number, (tags, scores) in enumerate(enumerated(*theirs, lengths)):
        possible = scores > -torch.inf
        tags, shares = tags[possible], torch.softmax(scores[possible], 0)
        for t in range(tags.shape[1]):
            total = total + shares @ gains[number, t, tags[:, t]]
        entropies.append(-(shares * shares.log()).sum())
    inside = chain.mask.unsqueeze(-1)
    found = torch.autograd.grad((chain.marginals * gains.masked_fill(~inside, 0.0)).sum(), ours)
    for one, other in zip(found, slopes(total, theirs), strict=True):
        close(one, other)
    weights = torch.tensor([1.0, -0.5, 2.0], dtype=torch.float64, device=device)
    close(chain.entropy(), torch.stack(entropies))
    found = torch.autograd.grad(chain.entropy() @ weights, ours)
    for one, other in zip(found, slopes(torch.stack(entropies) @ weights, theirs), strict=True):
        close(one, other)


def test_scores_too_far_apart_for_second_derivatives(device):
    emissions = torch.tensor([[[0.0, 2000.0], [3000.0, 0.0]]], dtype=torch.float64, device=device)
    chain = ttt.Chain(emissions.requires_grad_(), torch.zeros(2, 2, dtype=torch.float64, device=device))
    entropy = chain.entropy()
    assert entropy.item() == pytest.approx(0.0, abs=1e-9)
    with pytest.raises(tt.ModelError, match="chain 0 are too far apart"):
        entropy.sum().backward()


@cases
def test_labellings(seed, own, forbidden, scale, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden, scale=scale)
    chain = ttt.Chain(emissions, transitions, mask=torch.arange(emissions.shape[1]) < lengths[:, None])
    few = tt.count(state=0) <= 2
    found, some = chain.topk(4), chain.topk(3, where=few)
    for number, (tags, scores) in enumerate(enumerated(emissions, transitions, lengths)):
        for top, allowed in ((found, scores > -torch.inf), (some, (tags == 0).sum(1) <= 2)):
            wanted = scores[allowed & (scores > -torch.inf)].sort(descending=True).values[: len(top.scores)]
            close(top.scores[: len(wanted), number], wanted, scale)
            assert (top.scores[len(wanted) :, number] == -torch.inf).all()
        close(chain.max[number], scores.max(), scale)
        assert not chain.argmax[number, lengths[number] :].any()
    repeated = torch.stack([chain.argmax, chain.argmax])
    close(chain.log_prob(repeated)[1], chain.log_prob(chain.argmax), scale)


@pytest.mark.parametrize(("own", "scale"), [(False, 1.0), (True, 1.0), (False, 500.0)])
def test_draws_have_the_right_frequencies(own, scale, device):
    stats = pytest.importorskip("scipy.stats")
    emissions, transitions, lengths = random_chain(3, device, own, forbidden=0.2)
    if scale > 1:  # far apart, but not more than a little where it matters
        emissions[:, :, -1] -= 2000.0
        emissions[:, 0] += 2000.0
    chain = ttt.Chain(emissions, transitions, lengths)
    draws = chain.sample((4000,), generator=torch.Generator().manual_seed(5))
    assert draws.shape == (4000, *emissions.shape[:2])
    for number, (tags, scores) in enumerate(enumerated(emissions, transitions, lengths)):
        codes = {tuple(row): code for code, row in enumerate(tags.tolist())}
        seen = torch.zeros(len(tags))
        for row in draws[:, number, : lengths[number]].tolist():
            seen[codes[tuple(row)]] += 1
        expected = 4000 * torch.softmax(scores, 0).cpu()
        assert not seen[expected == 0].any()
        often = expected > 5
        observed = torch.cat((seen[often], seen[~often].sum()[None])).numpy()
        wanted = torch.cat((expected[often], expected[~often].sum()[None])).numpy()
        if wanted[-1] < 1e-6:
            observed, wanted = observed[:-1], wanted[:-1]
        if len(wanted) > 1:
            assert stats.chisquare(observed, wanted * observed.sum() / wanted.sum()).pvalue > 1e-4
        assert not draws[:, number, lengths[number] :].any()


def test_draws_are_the_same_for_one_seed(device):
    emissions, transitions, lengths = random_chain(0, device)
    chain = ttt.Chain(emissions, transitions, lengths)
    one, other = (chain.sample((2, 3), torch.Generator().manual_seed(1)) for _ in range(2))
    assert one.shape == (2, 3, *emissions.shape[:2])
    assert torch.equal(one, other)
    assert chain.sample().shape == emissions.shape[:2]


@pytest.mark.parametrize("own", [False, True])
def test_gradcheck(own, device):
    emissions, transitions, lengths = random_chain(1, device, own)
    emissions, transitions = torch.nan_to_num(emissions), torch.nan_to_num(transitions)
    tags = torch.zeros(emissions.shape[:2], dtype=torch.int64, device=device)
    tensors = leaves(emissions, transitions)
    assert torch.autograd.gradcheck(lambda *t: ttt.Chain(*t, lengths).log_partition, tensors)
    assert torch.autograd.gradcheck(lambda *t: ttt.Chain(*t, lengths).log_prob(tags), tensors)
    assert torch.autograd.gradcheck(lambda *t: ttt.Chain(*t, lengths).marginals, tensors)
    assert torch.autograd.gradcheck(lambda *t: ttt.Chain(*t, lengths).entropy(), tensors)


def test_second_derivatives_are_refused_in_words(device):
    emissions, transitions, lengths = random_chain(1, device)
    ours = leaves(torch.nan_to_num(emissions), transitions)
    value = ttt.Chain(*ours, lengths).log_partition.sum()
    (slope,) = torch.autograd.grad(value, ours[0], create_graph=True)
    assert slope.requires_grad
    with pytest.raises(NotImplementedError, match="only supports first derivatives"):
        slope.square().sum().backward()


half = pytest.param(
    torch.float16,
    marks=pytest.mark.skipif(
        not Path("/proc/cpuinfo").exists(), reason="PyTorch reads /proc/cpuinfo for half precision"
    ),
)


@pytest.mark.parametrize("dtype", [half, torch.bfloat16, torch.float32])
def test_answers_have_the_dtype_of_the_scores(dtype, device):
    emissions, transitions, lengths = random_chain(2, device, dtype=dtype)
    (ours,) = leaves(emissions)
    found = ttt.Chain(ours, transitions, lengths).log_partition
    wanted = ttt.Chain(emissions.double(), transitions.double(), lengths).log_partition
    assert found.dtype == dtype
    assert torch.equal(found.detach(), wanted.to(dtype))
    assert torch.autograd.grad(found.sum(), ours)[0].dtype == dtype
    assert ttt.Chain(emissions, transitions.float(), lengths).log_partition.dtype == torch.float32


def test_strides_do_not_matter(device):
    emissions, transitions, lengths = random_chain(4, device, own=True)
    wanted = ttt.Chain(emissions, transitions, lengths)
    turned = emissions.permute(2, 1, 0).contiguous().permute(2, 1, 0)
    moved = transitions.transpose(2, 3).contiguous().transpose(2, 3)
    assert not turned.is_contiguous() or turned.shape[2] == 1
    found = ttt.Chain(turned, moved, lengths)
    assert torch.equal(found.log_partition, wanted.log_partition)
    assert torch.equal(found.argmax, wanted.argmax)


def test_threads_change_nothing(device):
    emissions = torch.randn(70, 9, 5, device=device, dtype=torch.float64)
    transitions, before, found = torch.randn(5, 5, device=device).double(), torch.get_num_threads(), []
    try:
        for threads in (1, 2, 5):
            torch.set_num_threads(threads)
            ours = leaves(emissions, transitions)
            chain = ttt.Chain(*ours)
            value = chain.log_partition
            found.append([value, *torch.autograd.grad(value.sum(), ours), chain.argmax])
    finally:
        torch.set_num_threads(before)
    assert all(torch.equal(a, b) for one in found[1:] for a, b in zip(one, found[0], strict=True))


def test_nothing_that_is_allowed(device):
    emissions = torch.zeros(2, 2, 2, device=device)
    emissions[1, 1] = -torch.inf
    ours = leaves(emissions, torch.zeros(2, 2, device=device))
    chain = ttt.Chain(*ours)
    assert chain.log_partition.tolist() == pytest.approx([1.3862944, -float("inf")])
    by_emissions, by_transitions = torch.autograd.grad(chain.log_partition.sum(), ours)
    assert by_emissions[1].abs().sum() == 0
    assert float(by_transitions.sum()) == pytest.approx(1.0)
    with pytest.raises(tt.InfeasibleError, match="chain 1"):
        _ = chain.argmax
    with pytest.raises(tt.InfeasibleError):
        chain.sample((1,))


def test_names_of_states(device):
    emissions = torch.tensor([[[0.0, 1.0], [0.0, 2.0]]], device=device)
    chain = ttt.Chain(emissions, torch.zeros(2, 2, device=device), states=["O", "B"])
    assert chain.topk(1, where=tt.count(state="B") == 1).labels.tolist() == [[[0, 1]]]
    assert repr(chain) == "Chain(1 sentences, up to 2 positions, 2 tags)"


def test_conditions_as_text_count_tags_by_name(device):
    emissions, links = torch.randn(2, 4, 2, device=device), torch.randn(2, 2, device=device)
    chain = ttt.Chain(emissions, links, [4, 3], states=["O", "B-NP"])
    text, condition = "'B-NP' == 1 or O == 0", (tt.count(state=1) == 1) | (tt.count(state=0) == 0)
    assert torch.equal(chain.topk(2, where=text).labels, chain.topk(2, where=condition).labels)
    torch.testing.assert_close(chain.given(text).marginals, chain.given(condition).marginals)
    with pytest.raises(tt.ModelError, match="where uses 'B-PN', which is not a label; did you mean 'B-NP'"):
        chain.topk(1, where="'B-PN' == 1")
    with pytest.raises(tt.ModelError, match="the condition uses 'x', which is not a label; the names are O"):
        chain.given("x == 1")
    with pytest.raises(tt.ModelError, match=r"tags by name, but they have no names; pass states=, or use"):
        ttt.Chain(emissions, links).given("B == 1")


def test_what_was_asked_without_gradients_has_them_later(device):
    ours = leaves(torch.randn(2, 3, 2, device=device), torch.randn(2, 2, device=device))
    chain = ttt.Chain(*ours)
    given = chain.given(tt.count(state=1) == 1)
    with torch.no_grad():
        assert not chain.log_partition.requires_grad
        assert not given.log_partition.requires_grad
    with torch.inference_mode():
        assert not chain.marginals.requires_grad
    assert chain.log_partition is chain.log_partition
    for value in (chain.log_partition, chain.marginals, given.log_partition):
        assert torch.autograd.grad(value.sum(), ours[0])[0].shape == ours[0].shape
