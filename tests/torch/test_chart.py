"""Charts compared with the enumeration of all labelled binary trees."""

import gc
import weakref
from functools import cache
from itertools import product

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402


@cache
def brackets(first, last):
    """All binary trees over words, each a tuple of spans."""
    if first == last:
        return (((first, last),),)
    return tuple(
        ((first, last), *left, *right)
        for split in range(first, last)
        for left in brackets(first, split)
        for right in brackets(split + 1, last)
    )


def random_chart(seed, device, labels, forbidden=0.0, dtype=torch.float64):
    """Scores and lengths of a few short sentences; nan where nothing is to be looked at."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 5 if labels < 3 else 4, (3,), generator=generator)
    size = int(lengths.max())
    scores = torch.randn(3, size, size, max(labels, 1), generator=generator, dtype=torch.float64)
    if forbidden:
        scores[torch.rand(scores.shape, generator=generator) < forbidden] = -torch.inf
        scores[..., 0] = 0.0
    for number, length in enumerate(lengths.tolist()):
        scores[number, length:] = scores[number, :, length:] = torch.nan
        scores[number][torch.ones(size, size).tril(-1) > 0] = torch.nan
    return (scores if labels else scores[..., 0]).to(device, dtype), lengths


def enumerated(scores, lengths):
    """For each sentence all trees, as ones in tensors, and their scores, part of the graph."""
    whole = scores if scores.ndim == 4 else scores.unsqueeze(-1)
    found = []
    for number, length in enumerate(lengths.tolist()):
        trees, sums = [], []
        for spans in brackets(0, length - 1):
            for labels in product(range(whole.shape[3]), repeat=len(spans)):
                ones = torch.zeros(whole.shape[1:], dtype=torch.int64, device=scores.device)
                for (i, j), label in zip(spans, labels, strict=True):
                    ones[i, j, label] = 1
                trees.append(ones)
                sums.append(sum(whole[number, i, j, c] for (i, j), c in zip(spans, labels, strict=True)))
        found.append((torch.stack(trees).view(-1, *scores.shape[1:]), torch.stack(sums)))
    return found


def close(one, other):
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


cases = pytest.mark.parametrize(
    ("seed", "labels", "forbidden"), [(s, c, f) for s in range(4) for c in (0, 1, 2) for f in (0.0, 0.3)]
)


def both(seed, labels, forbidden, device):
    scores, lengths = random_chart(seed, device, labels, forbidden)
    ours, theirs = scores.clone().requires_grad_(), scores.clone().requires_grad_()
    return ttt.Chart(ours, lengths), ours, theirs, enumerated(theirs, lengths)


def slope(value, tensor):
    return torch.nan_to_num(torch.autograd.grad(value, tensor, retain_graph=True)[0], nan=0.0)


@cases
def test_sums(seed, labels, forbidden, device):
    chart, ours, theirs, every = both(seed, labels, forbidden, device)
    wanted = torch.stack([torch.logsumexp(scores, 0) for _, scores in every])
    close(chart.log_partition, wanted)
    gains = torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64, device=device)
    close(slope(chart.log_partition @ gains, ours), slope(wanted @ gains, theirs))
    close(chart.marginals, slope(wanted.sum(), theirs))
    shares = [torch.log_softmax(scores, 0) for _, scores in every]
    entropies = [-torch.where(one > -torch.inf, one.exp() * one, 0.0).sum() for one in shares]
    close(chart.entropy(), torch.stack(entropies))
    trees = torch.stack([trees[-1] for trees, _ in every])
    likely = torch.stack([scores[-1] for _, scores in every]) - wanted
    close(chart.log_prob(trees), likely)
    if likely.isfinite().all():
        close(slope(chart.log_prob(trees).sum(), ours), slope(likely.sum(), theirs))


@cases
def test_trees(seed, labels, forbidden, device):
    chart, _, _, every = both(seed, labels, forbidden, device)
    top = chart.topk(3)
    for number, (trees, scores) in enumerate(every):
        wanted = scores[scores > -torch.inf].sort(descending=True).values[:3]
        close(top.scores[: len(wanted), number], wanted)
        assert (top.scores[len(wanted) :, number] == -torch.inf).all()
        assert torch.equal(chart.argmax[number], trees[scores.argmax()]) or forbidden
        close(chart.max[number], scores.max())


@cases
def test_tallies(seed, labels, forbidden, device):
    chart, ours, theirs, every = both(seed, labels, forbidden, device)
    statistic = tt.parsing.count("0", min_length=2, name="zeros")
    tally = chart.tally(statistic)
    counted = []
    for trees, _ in every:
        zeros = trees if labels == 0 else trees[..., 0]
        counted.append(zeros.flatten(1).sum(1) - zeros.diagonal(dim1=1, dim2=2).sum(1))
    rows = []
    for (_, scores), count in zip(every, counted, strict=True):
        rows.append([scores[(count == k) & (scores > -torch.inf)] for k in tally.values.tolist()])
    wanted = [[torch.logsumexp(some, 0) if len(some) else None for some in row] for row in rows]
    gains = torch.randn(tally.logits.shape, generator=torch.Generator().manual_seed(seed)).double().to(device)
    total = theirs.new_zeros(())
    for number, row in enumerate(wanted):
        for place, one in enumerate(row):
            found = tally.logits[number, place]
            if one is None:
                assert found == -torch.inf
            else:
                close(found, one)
                total = total + gains[number, place] * one
    used = torch.where(tally.logits > -torch.inf, gains, 0.0)
    close(torch.autograd.grad(tally.logits, ours, used)[0], slope(total, theirs))
    given = chart.given(tally <= 1)
    allowed = [scores[count <= 1] for (_, scores), count in zip(every, counted, strict=True)]
    kept = torch.stack([torch.logsumexp(some, 0) for some in allowed if len(some)])
    close(given.log_partition[given.log_partition > -torch.inf], kept[kept > -torch.inf])


@pytest.mark.parametrize("seed", range(8))
def test_among_equals_the_best_tree_is_the_first_of_the_list(seed, device):
    scores = torch.randint(2, (2, 6, 6, 3), generator=torch.Generator().manual_seed(seed)).double().to(device)
    chart = ttt.Chart(scores, [6, 4])
    assert torch.equal(chart.argmax, chart.topk(1).labels[0])


@pytest.mark.parametrize("wrong", [torch.nan, torch.inf, 1e300])
def test_invalid_scores_are_errors(wrong, device):
    scores = torch.zeros(2, 3, 3, dtype=torch.float64, device=device)
    scores[1, 0, 1] = wrong
    for use in (lambda c: c.log_partition, lambda c: c.marginals, lambda c: c.argmax, lambda c: c.sample()):
        with pytest.raises(tt.ModelError, match=r"sentence 1: .* contains nan, \+inf or a score above"):
            use(ttt.Chart(scores))


def test_results_are_no_views_of_each_other(device):
    scores = torch.zeros(1, 3, 3, dtype=torch.float64, device=device, requires_grad=True)
    chart = ttt.Chart(scores)
    with torch.no_grad():
        first = chart.log_partition
    assert chart.log_partition.requires_grad and not first.requires_grad
    chart.marginals.zero_()
    assert torch.autograd.grad(chart.log_partition.sum(), scores)[0].sum() == 5


def test_draws(device):
    stats = pytest.importorskip("scipy.stats")
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(2, 3, 3, 2, generator=generator, dtype=torch.float64).to(device)
    chart = ttt.Chart(scores, [3, 2], labels=["A", "B"])
    for whole, least in ((chart, 0), (chart.given(tt.parsing.count("A") >= 2), 2)):
        draws = whole.sample((2000,), generator=torch.Generator().manual_seed(3))
        assert torch.equal(draws, whole.sample((2000,), generator=torch.Generator().manual_seed(3)))
        for number, (trees, sums) in enumerate(enumerated(scores, torch.tensor([3, 2]))):
            kept = trees[..., 0].flatten(1).sum(1) >= least
            expected = 2000 * torch.softmax(torch.where(kept, sums, -torch.inf), 0).cpu()
            codes = {tuple(tree.flatten().tolist()): code for code, tree in enumerate(trees)}
            seen = torch.zeros(len(trees))
            for tree in draws[:, number]:
                seen[codes[tuple(tree.flatten().tolist())]] += 1
            assert not seen[expected == 0].any()
            often = expected > 5
            wanted = (expected[often] * seen[often].sum() / expected[often].sum()).numpy()
            assert stats.chisquare(seen[often].numpy(), wanted).pvalue > 1e-4


def test_given_a_condition(device):
    scores, lengths = random_chart(1, device, 2)
    chart = ttt.Chart(scores, lengths, labels=["A", "B"])
    given = chart.given(tt.parsing.count("A") == 1)
    assert torch.equal(given.argmax, chart.given("A == 1").argmax)
    for number, (trees, sums) in enumerate(enumerated(scores, lengths)):
        kept = trees[..., 0].flatten(1).sum(1) == 1
        shares = torch.softmax(torch.where(kept, sums, -torch.inf), 0)
        close(given.marginals[number], torch.einsum("n,nijc->ijc", shares, trees.double()))
        assert torch.equal(given.argmax[number], trees[torch.where(kept, sums, -torch.inf).argmax()])
    close(given.log_prob(given.argmax), given.topk(1).scores[0] - given.log_partition)
    others = chart.given(tt.parsing.count("A") == 0)
    assert (others.log_prob(given.argmax) == -torch.inf).all()


def test_trees_of_the_library(device):
    scores, lengths = random_chart(2, device, 2)
    chart = ttt.Chart(scores, lengths, labels=["A", "B"])
    for tree, forest, score in zip(chart.trees(chart.argmax), chart.subjects(), chart.max, strict=True):
        assert forest.score(tree) == pytest.approx(score.item())
    with pytest.raises(tt.ModelError, match="do not form a binary tree"):
        chart.trees(torch.zeros_like(chart.argmax))


def test_gradcheck(device):
    scores, lengths = random_chart(3, device, 2)
    given = torch.nan_to_num(scores).requires_grad_()
    assert torch.autograd.gradcheck(lambda s: ttt.Chart(s, lengths).log_partition, given)
    count = tt.parsing.count("1", min_length=2)
    assert torch.autograd.gradcheck(lambda s: ttt.Chart(s, lengths).tally(count).mean, given)


def test_nothing_that_is_allowed(device):
    scores = torch.zeros(2, 2, 2, device=device)
    scores[1, 0, 1] = -torch.inf
    scores.requires_grad_()
    chart = ttt.Chart(scores)
    assert chart.log_partition.tolist() == [0.0, -float("inf")]
    assert torch.autograd.grad(chart.log_partition.sum(), scores)[0][1].abs().sum() == 0
    for use in (lambda: chart.argmax, lambda: chart.sample()):
        with pytest.raises(tt.InfeasibleError, match="forbid every tree of sentence 1"):
            use()


def test_answers_have_the_dtype_of_the_scores(device):
    scores, lengths = random_chart(0, device, 2, dtype=torch.float32)
    chart = ttt.Chart(scores, lengths)
    assert chart.log_partition.dtype == chart.max.dtype == chart.marginals.dtype == torch.float32
    assert repr(chart).startswith("Chart(3 sentences, up to ")


def test_what_is_wrong_is_said(device):
    chart = ttt.Chart(torch.zeros(1, 2, 2, device=device))
    for bad, text in (
        (lambda: ttt.Chart(torch.zeros(1, 2, 3)), "one row and one column per word"),
        (lambda: ttt.Chart(torch.zeros(2, 2)), "scores must have shape"),
        (lambda: ttt.Chart(torch.zeros(1, 2, 2, 2), labels=["A"]), "labels must have 2 distinct names"),
        (lambda: chart.tally(tt.count(state=1)), "expected a statistic"),
        (lambda: chart.tally(), "needs at least one statistic"),
        (lambda: chart.score(torch.zeros(1, 3, 3)), "trees must be tensors of ones of shape"),
    ):
        with pytest.raises(tt.ModelError, match=text):
            bad()


@pytest.mark.parametrize("use", [lambda c: c.log_partition, lambda c: c.marginals, lambda c: c.entropy()])
def test_a_chart_goes_with_its_last_reference(use):
    chart = ttt.Chart(2 * torch.zeros(1, 3, 3, requires_grad=True))
    use(chart)
    reference = weakref.ref(chart)
    gc.disable()
    try:
        del chart
        assert reference() is None
    finally:
        gc.enable()
