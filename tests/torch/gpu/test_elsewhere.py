"""What the CPU computes for tensors on a GPU."""

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402
from tallytree.torch.gpu import compiling  # noqa: E402


@pytest.mark.parametrize("reduction", ["sum", "none"])
def test_scores_of_ends_on_the_cpu_have_derivatives(emulated_gpu, monkeypatch, reduction):
    """Where there are too many tags for a kernel."""
    crf = ttt.CRF(5, batch_first=True).double()
    emissions, tags = torch.randn(3, 6, 5, dtype=torch.float64), torch.randint(0, 5, (3, 6))
    mask = torch.arange(6) < torch.tensor([[6], [1], [4]])

    def slopes():
        value = crf(emissions, tags, mask, reduction=reduction)
        gain = None if reduction == "sum" else torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64)
        return torch.autograd.grad(value, [*crf.parameters()], gain)

    wanted = slopes()
    monkeypatch.setattr(compiling, "block_memory", lambda _: 100)
    with pytest.warns(tt.PerformanceWarning):
        found = slopes()
    for mine, right in zip(found, wanted, strict=True):
        torch.testing.assert_close(mine, right, rtol=1e-10, atol=1e-10)
