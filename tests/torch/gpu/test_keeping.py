"""What calls on a GPU keep between calls: graphs, memory that kernels write to, layouts of counts."""

import gc
import weakref

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402
from tallytree.torch import cpu  # noqa: E402
from tallytree.torch.functions import Scores  # noqa: E402
from tallytree.torch.gpu import backend, compiling, counting, findings  # noqa: E402
from tallytree.torch.inputs import Ends  # noqa: E402

HAMMING = tt.losses.HammingDistance()


def likelihood(emissions, links, tags, reduction):
    return ttt.CRF(5, batch_first=True).double()(emissions, tags, reduction=reduction)


def tally(emissions, links, tags, reduction):
    return ttt.Chain(emissions, links).tally(tt.count(state=1)).logits


def loss(kind):
    return lambda emissions, links, tags, reduction: kind(HAMMING, reduction=reduction)(
        emissions, links, tags
    )


@pytest.mark.parametrize("reduction", ["none", "mean"])
@pytest.mark.parametrize(
    "what",
    [likelihood, tally, loss(ttt.StructuredHinge), loss(ttt.SoftmaxMargin), loss(ttt.ExpectedLoss)],
    ids=["likelihood", "tally", "hinge", "softmax-margin", "risk"],
)
def test_a_graph_is_freed_with_its_loss(emulated_gpu, what, reduction):
    """Without the garbage collector, as PyTorch's own functions."""
    first = torch.randn(3, 6, 5, dtype=torch.float64, requires_grad=True)
    links = torch.randn(5, 5, dtype=torch.float64, requires_grad=True)
    emissions, tags = first * 2, torch.randint(0, 5, (3, 6))
    there = weakref.ref(emissions)
    gc.disable()
    try:
        value = what(emissions, links, tags, reduction)
        value.sum().backward()
        del value, emissions
        assert there() is None
    finally:
        gc.enable()


def test_memory_stays_while_a_kernel_may_write_to_it(emulated_gpu, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    slot = findings.slot(torch.device("cpu"))
    there = weakref.ref(slot._host)
    monkeypatch.setattr(compiling, "is_idle", lambda *_: False)
    monkeypatch.setattr(findings, "_rest", stop)
    with pytest.raises(KeyboardInterrupt):
        slot.read()
    del slot
    gc.collect()
    assert there() is not None


def test_another_default_device(emulated_gpu):
    crf, tags = ttt.CRF(5, batch_first=True), torch.randint(0, 5, (3, 6))
    emissions = torch.randn(3, 6, 5)
    wanted = crf(emissions, tags)
    findings._FREE.clear()
    try:
        torch.set_default_device("meta")
        found = crf(emissions, tags)
    finally:
        torch.set_default_device(None)
    assert torch.equal(found, wanted)


@pytest.mark.parametrize("most", [0, 1 << 20])
def test_counts_are_laid_out_for_all_lengths_or_for_those_of_the_batch(emulated_gpu, monkeypatch, most):
    monkeypatch.setattr(counting, "_MOST_CELLS", most)
    source = torch.Generator().manual_seed(1)
    emissions = torch.randn(4, 6, 3, generator=source, dtype=torch.float64)
    links = torch.randn(3, 3, generator=source, dtype=torch.float64)
    for lengths in ([5, 3, 4, 3], [6, 1, 6, 2]):
        scores = Scores(emissions, links, Ends(lengths, None, 4, 6))
        for statistics in ((tt.count(state=1),), (tt.count(state=1), tt.count(state=0))):
            ours, theirs = (one.tallied(scores, statistics, None) for one in (backend, cpu))
            assert ours[2] == theirs[2]
            gain = torch.randn(ours[0].shape, generator=source, dtype=torch.float64)
            for mine, its in zip((ours[0], *ours[1](gain)), (theirs[0], *theirs[1](gain)), strict=True):
                torch.testing.assert_close(mine, its, rtol=1e-10, atol=1e-10)
