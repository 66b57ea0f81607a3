"""The module, compared with enumeration, and in typical use."""

import copy

import pytest

torch = pytest.importorskip("torch")

from torch_chains import enumerated, padded, random_chain  # noqa: E402

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402


def made(seed, device):
    """A module, emissions, a mask, tags; and the log-likelihoods of the tags by enumeration."""
    emissions, transitions, lengths = random_chain(seed, device)
    crf = ttt.CRF(emissions.shape[2], batch_first=True).double().to(device)
    with torch.no_grad():
        crf.transitions.copy_(transitions)
        crf.start_transitions.normal_()
        crf.end_transitions.normal_()
    whole, rows = emissions.clone(), torch.arange(3)
    whole[:, 0] += crf.start_transitions.detach()
    whole[rows, lengths - 1] += crf.end_transitions.detach()
    every = enumerated(whole, transitions, lengths)
    tags = padded([tags[len(tags) // 2] for tags, _ in every], emissions.shape[1])
    wanted = torch.stack([s[len(s) // 2] - torch.logsumexp(s, 0) for _, s in every])
    mask = (torch.arange(emissions.shape[1]) < lengths[:, None]).to(device)
    return crf, emissions, mask, tags, wanted, every


@pytest.mark.parametrize("seed", range(8))
def test_likelihoods_and_decoding(seed, device):
    crf, emissions, mask, tags, wanted, every = made(seed, device)
    for first in (True, False):
        crf.batch_first = first
        given = [emissions, tags, mask] if first else [one.transpose(0, 1) for one in (emissions, tags, mask)]
        torch.testing.assert_close(crf(*given, reduction="none"), wanted)
        torch.testing.assert_close(crf(*given), wanted.sum())
        torch.testing.assert_close(crf(*given, reduction="mean"), wanted.mean())
        torch.testing.assert_close(crf(*given, reduction="token_mean"), wanted.sum() / mask.sum())
        best = [tags[scores.argmax()].tolist() for tags, scores in every]
        assert crf.decode(given[0], given[2]) == best
    assert crf.batch_first is False
    chain = crf.distribution(given[0], given[2])
    torch.testing.assert_close(chain.log_partition, torch.stack([torch.logsumexp(s, 0) for _, s in every]))
    assert repr(crf) == f"CRF(num_tags={emissions.shape[2]})"


def test_gradients_by_all_parameters(device):
    crf, emissions, mask, tags, _, _ = made(1, device)
    emissions = torch.nan_to_num(emissions).requires_grad_()

    def likelihood(scores, *parameters):
        names = dict(zip(dict(crf.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(crf, names, (scores, tags, mask), {"reduction": "none"})

    parameters = [one.detach().clone().requires_grad_() for one in crf.parameters()]
    assert torch.autograd.gradcheck(likelihood, [emissions, *parameters])


def test_transforms_of_functions_are_refused(device):
    crf, emissions, mask, tags, _, _ = made(1, device)
    with pytest.raises(RuntimeError, match="functorch transforms"):
        torch.func.grad(lambda scores: crf(scores, tags, mask))(torch.nan_to_num(emissions))


def test_without_a_mask_all_positions_count(device):
    crf, emissions, mask, _, _, _ = made(2, device)
    emissions, tags = torch.nan_to_num(emissions), torch.zeros(mask.shape, dtype=torch.int64, device=device)
    assert torch.equal(crf(emissions, tags), crf(emissions, tags, torch.ones_like(mask)))


def test_a_copy_and_its_weights(device):
    crf = made(0, device)[0]
    other = ttt.CRF(crf.num_tags).double().to(device)
    other.load_state_dict(copy.deepcopy(crf).state_dict())
    assert all(torch.equal(a, b) for a, b in zip(crf.parameters(), other.parameters(), strict=True))


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # PyTorch hides it from itself, but not as an error
def test_a_compiled_model_gives_the_same(device):
    crf, emissions, mask, tags, wanted, _ = made(3, device)
    layer = torch.nn.Linear(emissions.shape[2], emissions.shape[2]).double().to(device)

    def loss(scores):
        return -crf(layer(scores), tags, mask, reduction="mean")

    given = torch.nan_to_num(emissions)
    plain = loss(given)
    plain.backward()
    slope = layer.weight.grad.clone()
    layer.zero_grad()
    compiled = torch.compile(loss, backend="aot_eager")(given)
    compiled.backward()
    torch.testing.assert_close(compiled, plain)
    torch.testing.assert_close(layer.weight.grad, slope)
    assert wanted.isfinite().all()


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")
def test_a_scripted_module_gives_the_same(device):
    crf, emissions, mask, tags, *_ = made(3, device)
    scripted = torch.jit.script(crf)
    assert scripted.decode(emissions, mask) == crf.decode(emissions, mask)
    for reduction in ("sum", "mean", "token_mean", "none"):
        torch.testing.assert_close(
            scripted(emissions, tags, mask, reduction), crf(emissions, tags, mask, reduction)
        )
    scripted(emissions, tags, mask).backward()
    assert crf.transitions.grad is not None


def test_errors_have_the_words_of_pytorch_crf(device):
    crf = ttt.CRF(3, batch_first=True).to(device)
    scores, tags = torch.zeros(2, 4, 3, device=device), torch.zeros(2, 4, dtype=torch.int64, device=device)
    empty = torch.tensor([[1, 1, 1, 1], [0, 0, 0, 0]], dtype=torch.bool, device=device)
    wrong = [
        (scores[0], tags, None, "emissions must have dimension of 3, got 2"),
        (scores.tolist(), tags, None, "emissions must be a tensor, got list; use torch.as_tensor"),
        (scores[..., :2], tags, None, "expected last dimension of emissions is 3, got 2"),
        (scores, tags, empty[:, 1:], "dimensions of emissions and mask must match, got (2, 4) and (2, 3)"),
        (scores, tags, empty, "mask of the first timestep must all be on"),
    ]
    for emissions, right, mask, words in wrong:
        for call in (lambda: crf(emissions, right, mask), lambda: crf.decode(emissions, mask)):  # noqa: B023
            with pytest.raises(ValueError) as caught:
                call()
            assert words in str(caught.value)
    with pytest.raises(
        ValueError, match=r"tags must be a tensor of integers, got list; use torch\.as_tensor"
    ):
        crf(scores, tags.tolist())
    with pytest.raises(ValueError) as caught:
        crf(scores, tags[:, 1:])
    assert "dimensions of emissions and tags must match, got (2, 4) and (2, 3)" in str(caught.value)
    with pytest.raises(ValueError, match="invalid reduction: foo"):
        crf(scores, tags, reduction="foo")


class Sentences(torch.utils.data.Dataset):
    """Worker processes compute answers themselves."""

    def __len__(self):
        return 4

    def __getitem__(self, number):
        emissions = torch.full((1, 3, 2), float(number))
        return ttt.Chain(emissions, torch.zeros(2, 2)).log_partition[0]


def test_workers_of_a_loader():
    loader = torch.utils.data.DataLoader(Sentences(), batch_size=2, num_workers=2)
    found = torch.cat(list(loader))
    torch.testing.assert_close(found, 3 * (torch.arange(4.0) + torch.log(torch.tensor(2.0))))


@pytest.mark.parametrize("seed", range(4))
def test_first_and_last_tags_may_be_forbidden(seed, device):
    crf = ttt.CRF(3, batch_first=True).double().to(device)
    with torch.no_grad():
        crf.start_transitions[1] = -torch.inf
        crf.end_transitions[2] = -torch.inf
    source = torch.Generator().manual_seed(seed)
    emissions = torch.randn(3, 4, 3, generator=source, dtype=torch.float64).to(device)
    mask = (torch.arange(4) < torch.tensor([[4], [1], [2]])).to(device)
    chain, best = crf.distribution(emissions, mask), crf.decode(emissions, mask)
    assert [tags[:size].tolist() for tags, size in zip(chain.argmax, (4, 1, 2), strict=True)] == best
    assert not chain.marginals[:, 0, 1].any() and not chain.marginals[0, 3, 2].any()
    tags = torch.zeros(3, 4, dtype=torch.int64, device=device)
    torch.testing.assert_close(chain.log_prob(tags), crf(emissions, tags, mask, reduction="none"))
    chain.log_partition.sum().backward()
    for one in (crf.start_transitions, crf.end_transitions):
        assert one.grad.isfinite().all() and one.grad.any()


def test_names_of_tags(device):
    crf = ttt.CRF(3, batch_first=True, states=["O", "B-NP", "I-NP"]).to(device)
    chain = crf.distribution(torch.tensor([[[0.0, 1, 5], [0, 3, 2], [1, 0, 2]]], device=device))
    assert chain.topk(1, where=tt.valid_bio()).labels[0, 0].tolist() == [1, 1, 2]
    with pytest.raises(tt.ModelError, match="there are 3 tags, but states has 2 names"):
        ttt.CRF(3, states=["O", "B-NP"])
    with pytest.raises(tt.ModelError, match="states has 'O' twice, but the names of tags must differ"):
        ttt.CRF(2, states=["O", "O"])


def test_losses_of_a_distribution_reach_all_parameters(device):
    crf = ttt.CRF(3, batch_first=True).to(device)
    chain = crf.distribution(torch.zeros(2, 4, 3, device=device))
    loss = ttt.StructuredHinge(tt.losses.HammingDistance())
    tags = torch.tensor(
        [[0, 1, 2, 0], [0, 1, 0, 0]], device=device
    )  # the worst tagging starts with another tag
    loss(chain.emissions, chain.transitions, tags, chain.mask).backward()
    assert crf.start_transitions.grad is not None and crf.start_transitions.grad.any()
