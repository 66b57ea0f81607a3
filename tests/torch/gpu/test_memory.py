"""The device memory of losses compared with its forecast."""

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402

LABELS = ("O", *(f"{place}-{kind}" for kind in range(11) for place in "BI"))
POSITIONS, CHUNKS = tt.losses.FBeta(background=0), tt.losses.ChunkFBeta()
LOSSES = {
    "Hamming hinge": ttt.StructuredHinge(tt.losses.HammingLoss()),
    "F1 hinge": ttt.StructuredHinge(POSITIONS, scaling="slack"),
    "chunk-F1 hinge": ttt.StructuredHinge(CHUNKS, scaling="slack", labels=LABELS),
    "softmax margin": ttt.SoftmaxMargin(POSITIONS),
    "expected F1": ttt.ExpectedLoss(POSITIONS),
    "expected chunk F1": ttt.ExpectedLoss(CHUNKS, labels=LABELS),
}


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("sentences", "positions"), [(8, 50), (64, 25), (1024, 25)])
@pytest.mark.parametrize("name", LOSSES)
def test_a_call_takes_the_memory_that_was_forecast(name, sentences, positions, dtype):
    shape, source = (sentences, positions), torch.Generator("cuda").manual_seed(0)
    options = {"device": "cuda", "generator": source}
    emissions = torch.randn(*shape, len(LABELS), dtype=dtype, **options).requires_grad_()
    transitions = torch.randn(len(LABELS), len(LABELS), dtype=dtype, **options).requires_grad_()
    tags = torch.randint(len(LABELS), shape, **options)
    lengths = torch.randint(1, positions + 1, (sentences, 1), **options)
    inputs = emissions, transitions, tags, torch.arange(positions, device="cuda") < lengths
    LOSSES[name](*inputs)  # what is computed once for all calls
    forecast = LOSSES[name].device_bytes(*inputs)

    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    LOSSES[name](*inputs).backward()
    torch.cuda.synchronize()
    grown = torch.cuda.max_memory_allocated() - before
    assert grown == pytest.approx(forecast + emissions.grad.nbytes + transitions.grad.nbytes, rel=0.2)
