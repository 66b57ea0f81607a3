"""Tallies and conditions on them, compared with enumeration."""

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch_chains import enumerated, padded, random_chain  # noqa: E402

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402

CASES = [
    (seed, own, forbidden, scale)
    for seed in range(8)
    for own in (False, True)
    for forbidden, scale in ((0.0, 1.0), (0.3, 30.0))
]
cases = pytest.mark.parametrize(("seed", "own", "forbidden", "scale"), CASES)
zeros = tt.count(state=0, name="zeros")


def close(one, other, scale=1.0):
    torch.testing.assert_close(one, other, rtol=1e-10 * scale, atol=1e-10 * scale)


def summed(scores, allowed):
    """The log of a sum over some taggings: -inf, with derivatives that are 0, over none."""
    some = scores[allowed & (scores > -torch.inf)]
    return torch.logsumexp(some, 0) if len(some) else scores.new_tensor(-torch.inf)


def slopes(value, tensors):
    if not value.requires_grad:
        return [torch.zeros_like(tensor) for tensor in tensors]
    found = torch.autograd.grad(value, tensors, allow_unused=True)
    return [
        torch.zeros_like(t) if g is None else torch.nan_to_num(g, nan=0.0)
        for g, t in zip(found, tensors, strict=True)
    ]


@cases
def test_logits_and_their_derivatives(seed, own, forbidden, scale, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden, scale=scale)
    ours, theirs = ([t.clone().requires_grad_() for t in (emissions, transitions)] for _ in range(2))
    tally = ttt.Chain(*ours, lengths).tally(zeros)
    wanted = torch.stack(
        [
            torch.stack([summed(scores, (tags == 0).sum(1) == k) for k in tally.values.tolist()])
            for tags, scores in enumerated(*theirs, lengths)
        ]
    )
    assert tally.low == (0,) or emissions.shape[2] == 1
    close(tally.logits, wanted, scale)
    gains = torch.randn(wanted.shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    gains = gains.to(device).masked_fill(wanted == -torch.inf, 0.0)
    found = torch.autograd.grad(tally.logits, ours, gains)
    total = (torch.where(wanted > -torch.inf, wanted, 0.0) * gains).sum()
    for one, other in zip(found, slopes(total, theirs), strict=True):
        close(one, other, scale)


@cases
def test_probabilities_and_expectations(seed, own, forbidden, scale, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden, scale=scale)
    ours, theirs = ([t.clone().requires_grad_() for t in (emissions, transitions)] for _ in range(2))
    tally = ttt.Chain(*ours, lengths).tally(zeros)
    means, seconds, twos = [], [], []
    for tags, scores in enumerated(*theirs, lengths):
        shares, count = torch.softmax(scores, 0), (tags == 0).sum(1)
        means.append(shares @ count.double())
        seconds.append(shares @ count.double() ** 2)
        twos.append(summed(scores, count == 2) - torch.logsumexp(scores, 0))
    means, seconds = torch.stack(means), torch.stack(seconds)
    close(tally.mean, means, scale)
    close(tally.variance, seconds - means**2, scale)
    close(tally.expect(lambda k: k**2), seconds, scale)
    close(tally.expect(tally.values), means, scale)
    close(tally.log_prob(2), torch.stack(twos), scale)
    assert (tally.log_prob(99) == -torch.inf).all()
    for one, other in zip(
        torch.autograd.grad(tally.mean.sum(), ours), slopes(means.sum(), theirs), strict=True
    ):
        close(one, other, scale)


@cases
def test_what_is_given(seed, own, forbidden, scale, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden, scale=scale)
    ours, theirs = ([t.clone().requires_grad_() for t in (emissions, transitions)] for _ in range(2))
    chain = ttt.Chain(*ours, lengths)
    t = chain.tally(zeros)
    given = chain.given((t >= 1) & (t != 2))
    every = enumerated(*theirs, lengths)
    held = [((tags == 0).sum(1) >= 1) & ((tags == 0).sum(1) != 2) for tags, _ in every]
    wanted = torch.stack([summed(s, allowed) for (_, s), allowed in zip(every, held, strict=True)])
    close(given.log_partition, wanted, scale)
    close(given.log_condition, wanted - torch.stack([torch.logsumexp(s, 0) for _, s in every]), scale)
    total = wanted[wanted > -torch.inf].sum()
    by_emissions, by_transitions = slopes(total, theirs)
    found = torch.autograd.grad(given.log_partition.sum(), ours)
    close(found[0], by_emissions, scale)
    close(found[1], by_transitions, scale)
    close(given.marginals, by_emissions, scale)
    chosen = padded([tags[-1] for tags, _ in every], emissions.shape[1], fill=0)
    likely = torch.stack(
        [
            s[-1] if allowed[-1] else s.new_tensor(-torch.inf)
            for (_, s), allowed in zip(every, held, strict=True)
        ]
    )
    close(given.log_prob(chosen), (likely - wanted).masked_fill(likely == -torch.inf, -torch.inf), scale)


def test_labellings_and_draws_given_a_tally(device):
    emissions, transitions, lengths = random_chain(3, device)
    chain = ttt.Chain(emissions, transitions, lengths)
    given = chain.given(chain.tally(zeros) == 1)
    draws = given.sample((500,), generator=torch.Generator().manual_seed(0))
    again = given.sample((500,), generator=torch.Generator().manual_seed(0))
    assert torch.equal(draws, again)
    for number, (tags, scores) in enumerate(enumerated(emissions, transitions, lengths)):
        allowed = (tags == 0).sum(1) == 1
        best = tags[torch.where(allowed, scores, -torch.inf).argmax()]
        assert torch.equal(given.argmax[number, : lengths[number]], best)
        shares = torch.softmax(torch.where(allowed, scores, -torch.inf), 0)
        codes = {tuple(row): code for code, row in enumerate(tags.tolist())}
        seen = np.zeros(len(tags))
        for row in draws[:, number, : lengths[number]].tolist():
            seen[codes[tuple(row)]] += 1
        often = shares.cpu().numpy() * 500
        assert not seen[often == 0].any()
        some = often > 5
        if some.sum() > 1:
            stats = pytest.importorskip("scipy.stats")
            wanted = often[some] * seen[some].sum() / often[some].sum()
            assert stats.chisquare(seen[some], wanted).pvalue > 1e-4
    assert given.topk(2).labels.shape == (2, *emissions.shape[:2])
    assert repr(given).endswith("given zeros == 1")


@pytest.mark.parametrize("seed", range(4))
def test_several_statistics_together(seed, device):
    emissions, transitions, lengths = random_chain(seed, device)
    changes = tt.count(state=0, name="zeros"), tt.count(state=[0, emissions.shape[2] - 1], name="ends")
    chain = ttt.Chain(emissions, transitions, lengths)
    tally = chain.tally(*changes)
    given = chain.given(changes[1] >= 2).tally(changes[0])
    for number, (tags, scores) in enumerate(enumerated(emissions, transitions, lengths)):
        zero, end = (tags == 0).sum(1), ((tags == 0) | (tags == emissions.shape[2] - 1)).sum(1)
        for i, a in enumerate(tally.grids[0][:, 0].tolist()):
            for j, b in enumerate(tally.grids[1][0].tolist()):
                close(tally.logits[number, i, j], summed(scores, (zero == a) & (end == b)))
            close(given.logits[number, i], summed(scores, (zero == a) & (end >= 2)))
    assert [grid.shape for grid in tally.grids] == 2 * [tally.logits.shape[1:]]
    first = [grid.flatten()[0].item() for grid in tally.grids]
    close(tally.log_prob(*first), tally.log_probs[:, 0, 0])
    close(tally.expect(lambda a, b: a + b).sum(), tally.expect(tally.grids[0] + tally.grids[1]).sum())
    assert repr(tally).startswith("Tally(zeros, ends: ")
    with pytest.raises(tt.ModelError, match="there are 2 statistics"):
        _ = tally == 3


def test_statistics_of_neighbours(device):
    """A statistic with tables of two variables, made for sentences of one length."""
    emissions = torch.randn(2, 3, 2, dtype=torch.float64, device=device)
    transitions = torch.randn(2, 2, dtype=torch.float64, device=device)
    steps = tt.Statistic([((i, i + 1), [[0, 1], [-1, 0]]) for i in range(2)], name="steps")
    tally = ttt.Chain(emissions, transitions).tally(steps)
    assert tally.low == (-2,)
    for number, (tags, scores) in enumerate(enumerated(emissions, transitions, torch.tensor([3, 3]))):
        counted = (tags[:, 1:] - tags[:, :-1]).sum(1)
        for place, value in enumerate(tally.values.tolist()):
            close(tally.logits[number, place], summed(scores, counted == value))


def test_what_is_wrong_is_said(device):
    chain = ttt.Chain(torch.zeros(1, 2, 2, device=device), torch.zeros(2, 2, device=device))
    tally = chain.tally(zeros)
    with pytest.raises(tt.ModelError, match="expected a statistic"):
        chain.tally(3)
    with pytest.raises(tt.ModelError, match="needs at least one statistic"):
        chain.tally()
    with pytest.raises(tt.ModelError, match="a condition must compare tallies"):
        chain.given(3)
    with pytest.raises(tt.ModelError, match="not a condition on tallies alone"):
        chain.given(tt.regular("[01]*"))
    with pytest.raises(tt.ModelError, match="2 tallies were given"):
        tally.log_prob(1, 2)
    with pytest.raises(tt.ModelError, match=r"values of shape \(7,\)"):
        tally.expect(torch.zeros(7, device=device))
    with pytest.raises(tt.InfeasibleError, match=r"nothing in sentence 0 satisfies .zeros == 9"):
        _ = chain.given(tally == 9).argmax
    with pytest.raises(tt.InfeasibleError, match="nothing in sentence 0"):
        chain.given(tally == 9).sample((2,))


def test_tallies_may_be_tensors(device):
    chain = ttt.Chain(torch.randn(2, 4, 2, device=device), torch.zeros(2, 2, device=device))
    tally, two = chain.tally(zeros), torch.tensor(2, device=device)
    assert [str(a) == str(b) for a, b in ((tally == two, tally == 2), (tally != two, tally != 2))] == [
        True
    ] * 2
    assert torch.equal(chain.given(tally == two).marginals, chain.given(tally == 2).marginals)
    for other in (two, np.int64(2), 2.0, two.expand(2)):
        assert torch.equal(tally.log_prob(other), tally.log_prob(2))
    assert (tally.log_prob(torch.tensor([1, 2**40], device=device))[1] == -torch.inf).all()
    assert (tally.log_prob(2**80) == -torch.inf).all()
    for wrong in (torch.tensor([1, 2]), torch.tensor(1.5)):
        with pytest.raises(tt.ModelError, match="tallies can be compared with one integer, got a tensor"):
            _ = tally == wrong
    for wrong in (torch.tensor([1, 2, 3]), torch.tensor([1.0, 2.0])):
        with pytest.raises(tt.ModelError, match=r"integers of shape \(2,\), got a tensor"):
            tally.log_prob(wrong.to(device))
    for wrong in (1.5, "1", None, True):
        with pytest.raises(tt.ModelError, match="a tally must consist of integers"):
            tally.log_prob(wrong)
    both = chain.tally(zeros, tt.count(state=1))
    for statistic in ("mean", "variance"):
        with pytest.raises(tt.ModelError, match="there are 2 statistics"):
            getattr(both, statistic)


def test_no_samples_at_all(device):
    emissions = torch.zeros(2, 3, 2, device=device)
    chain = ttt.Chain(emissions, torch.zeros(2, 2, device=device))
    assert chain.sample((0,)).shape == chain.given(zeros == 1).sample((0,)).shape == (0, 2, 3)
    assert ttt.Chart(torch.zeros(2, 3, 3)).sample((0,)).shape == (0, 2, 3, 3)


def test_probabilities_are_copies():
    tally = ttt.Chain(torch.zeros(2, 3, 2), torch.zeros(2, 2)).tally(tt.count(state=1))
    before = tally.log_prob(1).clone()
    tally.log_prob(1).exp_()
    assert torch.equal(tally.log_prob(1), before)
