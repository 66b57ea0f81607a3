"""Expected losses that are quotients of counts: without tables, but equal to those of the CPU."""

from dataclasses import replace

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402
from tallytree.torch import cpu  # noqa: E402
from tallytree.torch.functions import Scores  # noqa: E402
from tallytree.torch.gpu import backend, compiling, findings  # noqa: E402
from tallytree.torch.inputs import Ends  # noqa: E402

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")
BIOES = ("O", "B-x", "I-x", "E-x", "S-x")
QUOTIENTS = [
    (tt.losses.HammingDistance(), NAMES),
    (tt.losses.HammingLoss(), NAMES),
    (tt.losses.FBeta(background="O"), NAMES),
    (tt.losses.FBeta(background="O", beta=0.2), NAMES),
    (tt.losses.FBeta(beta=2.0), NAMES),
    (tt.losses.Recall(background="O"), NAMES),
    (tt.losses.Recall(), NAMES),
    (tt.losses.IntersectionOverUnion(background="O"), NAMES),
    (tt.losses.IntersectionOverUnion(), NAMES),
    (tt.losses.ChunkFBeta(), NAMES),
    (tt.losses.ChunkFBeta(beta=3.0), NAMES),
    (tt.losses.ChunkFBeta(scheme="IO"), ("O", "a", "b", "c", "d")),
    (tt.losses.ChunkFBeta(scheme="BIOES"), BIOES),
]
TABLES = [
    tt.losses.Precision(background="O"),
    tt.losses.FBeta(background="O", beta=1e-3),
    tt.losses.ChunkFBeta(beta=100.0),
]


def batch(seed, scale=1.0, shared=True, forbid=0.0, states=5):
    """Sentences whose tags are random, or all outside; as tensors and scores."""
    source = torch.Generator().manual_seed(seed)
    shape = (states, states) if shared else (6, 8, states, states)
    emissions = scale * torch.randn(6, 9, states, generator=source, dtype=torch.float64)
    transitions = scale * torch.randn(shape, generator=source, dtype=torch.float64)
    emissions[torch.rand(emissions.shape, generator=source) < forbid] = -torch.inf
    transitions[torch.rand(shape, generator=source) < forbid] = -torch.inf
    emissions[..., 0] = torch.nan_to_num(emissions[..., 0], neginf=0.0)  # something is allowed
    transitions[..., 0, 0] = 0.0
    tags = torch.randint(0, states, (6, 9), generator=source)
    tags[3], tags[4, ::2] = 0, 0
    return Scores(emissions, transitions, Ends([9, 1, 5, 9, 9, 2], None, 6, 9)), tags


def there(scores, device):
    """The same scores on a device."""
    return replace(scores, emissions=scores.emissions.to(device), transitions=scores.transitions.to(device))


def agree(scores, tags, loss, names, device, tolerance=1e-10):
    """Compare with the CPU: values and derivatives, for gains that differ, and for one that all share."""
    theirs = cpu.objective(scores, loss, names, tags, "risk")
    ours = backend._risk(there(scores, device), loss, names, tags.to(device))
    close = {"rtol": tolerance, "atol": tolerance}
    torch.testing.assert_close(ours[0].cpu(), theirs[0], **close)
    for gain in (torch.linspace(-1.0, 2.0, 6, dtype=torch.float64), torch.tensor(1.5, dtype=torch.float64)):
        for mine, its in zip(ours[1](gain.to(device)), theirs[1](gain), strict=True):
            torch.testing.assert_close(mine.cpu(), its, **close)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("loss", "names"), QUOTIENTS, ids=str)
def test_values_and_derivatives(device, loss, names, shared):
    for seed, forbid in ((1, 0.0), (2, 0.3)):
        agree(*batch(seed, shared=shared, forbid=forbid), loss, names, device)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("scale", "forbid"), [(60.0, 0.0), (60.0, 0.2), (4000.0, 0.0), (4000.0, 0.2)])
@pytest.mark.parametrize(("loss", "names"), [QUOTIENTS[2], QUOTIENTS[9]], ids=str)
def test_scores_that_lie_far_apart(device, loss, names, scale, forbid, shared):
    """Some sentences need numbers of any size, others do not."""
    scores, tags = batch(3, scale, shared, forbid)
    scores.emissions[:3] /= scale
    agree(scores, tags, loss, names, device, 1e-9)


@pytest.mark.parametrize(("loss", "names"), [QUOTIENTS[2], QUOTIENTS[9]], ids=str)
def test_small_losses_have_all_digits(device, loss, names):
    """Errors are counted, not what is right: nothing cancels if nearly everything is."""
    scores, tags = batch(4)
    scores.emissions.scatter_add_(2, tags[..., None], torch.full((*tags.shape, 1), 40.0, dtype=torch.float64))
    theirs = cpu.objective(scores, loss, names, tags, "risk")
    ours = backend._risk(there(scores, device), loss, names, tags.to(device))
    assert float(theirs[0].max()) < 1e-12
    torch.testing.assert_close(ours[0].cpu(), theirs[0], rtol=1e-9, atol=0.0)
    gain = torch.tensor(1.0, dtype=torch.float64)
    for mine, its in zip(ours[1](gain.to(device)), theirs[1](gain), strict=True):
        torch.testing.assert_close(mine.cpu(), its, rtol=1e-8, atol=1e-10 * float(its.abs().max()))


@pytest.mark.parametrize("states", [1, 2, 23, 32, 33, 50])
@pytest.mark.parametrize("shared", [True, False])
def test_numbers_of_tags(device, states, shared):
    agree(*batch(states, shared=shared, states=states), tt.losses.FBeta(background=0), None, device)


@pytest.mark.parametrize(("loss", "names"), [QUOTIENTS[2], QUOTIENTS[9]], ids=str)
@pytest.mark.parametrize("shared", [True, False])
def test_sentences_of_one_position(device, loss, names, shared):
    """Nothing is known of steps."""
    scores, tags = batch(1, shared=shared)
    transitions = scores.transitions if shared else scores.transitions[:, :0].contiguous()
    alone = replace(
        scores,
        emissions=scores.emissions[:, :1].contiguous(),
        transitions=transitions,
        ends=Ends(None, None, 6, 1),
    )
    agree(alone, tags[:, :1].contiguous(), loss, names, device)


def test_memory_is_told_and_kept_to(emulated_gpu, monkeypatch):
    scores, tags = batch(6)
    loss = tt.losses.FBeta(background="O")
    monkeypatch.setattr(compiling, "processors", lambda _: 6)
    expected = backend._risk(scores, loss, NAMES, tags)[0]
    need = backend.loss_bytes(scores, loss, NAMES, tags, "risk")
    for room in (need, need // 3, need // 6 + 8):
        monkeypatch.setattr(compiling, "room", lambda _, room=room: room)
        assert backend.loss_bytes(scores, loss, NAMES, tags, "risk") <= room
        torch.testing.assert_close(backend._risk(scores, loss, NAMES, tags)[0], expected)
    monkeypatch.setattr(compiling, "room", lambda _: need // 6 - 8)
    with pytest.raises(tt.BudgetError, match="sums of one sentence need"):
        backend._risk(scores, loss, NAMES, tags)


@pytest.mark.parametrize("loss", TABLES, ids=str)
def test_other_losses_need_tables(emulated_gpu, loss):
    scores, tags = batch(5)
    assert backend._risk(scores, loss, NAMES, tags) is None
    ours, theirs = (one.objective(scores, loss, NAMES, tags, "risk") for one in (backend, cpu))
    torch.testing.assert_close(ours[0], theirs[0], rtol=1e-10, atol=1e-10)


def test_findings_that_nobody_waits_for(emulated_gpu):
    """Without scores of -inf, every sentence has an allowed tagging; the words are used again later."""
    emissions, links = torch.randn(2, 4, 5, requires_grad=True), torch.zeros(5, 5)
    tags, risk = torch.zeros(2, 4, dtype=torch.int64), ttt.ExpectedLoss(tt.losses.FBeta(background=0))
    for _ in range(3):
        risk(emissions, links, tags).backward()
    every = len(findings._EVERY)
    for _ in range(5):
        risk(emissions, links, tags).backward()
    assert len(findings._EVERY) == every
    with torch.no_grad():
        emissions[1, 2] = -torch.inf
    with pytest.raises(tt.InfeasibleError, match="sentence 1"):
        risk(emissions, links, tags)
    slot = findings.slot(torch.device("cpu"))
    slot.leave()
    assert findings._left(torch.device("cpu"), 0) is not slot  # nothing has been told yet
    slot._told[4] = 1
    assert findings._LEFT[torch.device("cpu"), 0].pop() is slot
