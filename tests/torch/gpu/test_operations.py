"""A step of training asks PyTorch for few operations on a GPU, in few launches, and waits for it once.

Each operation takes some microseconds of Python, more than a kernel does for a small batch.
"""

import pytest

torch = pytest.importorskip("torch")

import kernel_emulator  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402
from tallytree.torch.gpu import compiling  # noqa: E402

NAMES = ["O", "B-x", "I-x"]


class Counted(TorchDispatchMode):
    """Records all operations except allocations and views."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.removeprefix("aten::")
        if not function.is_view and "empty" not in name:
            self.names.append(name)
        return function(*args, **(kwargs or {}))


def counted(step, made):
    step()  # compiles kernels, and learns the losses of truths
    made.clear()
    with Counted() as seen:
        step()
    return seen.names


def likelihood(given, tags, mask):
    crf = ttt.CRF(3, batch_first=True)
    return lambda: torch.autograd.grad(crf(given, tags, mask, "mean"), [given, *crf.parameters()])


def log_prob(given, tags, mask):
    links = torch.zeros(3, 3, requires_grad=True)

    def step():
        value = -ttt.Chain(given, links, mask=mask).log_prob(tags).mean()
        return torch.autograd.grad(value, [given, links])

    return step


def loss(module):
    def made(given, tags, mask):
        links = torch.zeros(3, 3, requires_grad=True)
        return lambda: torch.autograd.grad(module(given, links, tags, mask), [given, links])

    return made


def decoding(given, tags, mask):
    links = torch.zeros(3, 3)
    return lambda: ttt.Chain(given.detach(), links, mask=mask).argmax


def tally(given, tags, mask):
    links = torch.zeros(3, 3, requires_grad=True)

    def step():
        value = ttt.Chain(given, links, mask=mask).tally(tt.count(state=1)).logits[:, 0].sum()
        return torch.autograd.grad(value, [given, links])

    return step


F1, CHUNKS = tt.losses.FBeta(background=0), tt.losses.ChunkFBeta(NAMES)


@pytest.mark.parametrize(
    ("what", "most", "launches"),
    [
        (likelihood, 1, 2),  # autograd makes the gradient of the loss itself
        (log_prob, 6, 2),
        (loss(ttt.NegativeLogLikelihood()), 1, 2),
        (loss(ttt.StructuredHinge(F1, scaling="slack")), 1, 3),
        (loss(ttt.StructuredHinge(CHUNKS, scaling="slack")), 1, 3),
        (loss(ttt.SoftmaxMargin(CHUNKS)), 1, 3),
        (loss(ttt.ExpectedLoss(F1)), 1, 3),
        (tally, 5, 4),
        (decoding, 0, 2),
    ],
    ids=["likelihood", "log_prob", "nll", "f1", "chunk-f1", "softmax-margin", "risk", "tally", "decoding"],
)
def test_few_operations(emulated_gpu, monkeypatch, what, most, launches):
    made, call = [], kernel_emulator.Emulated.__call__
    monkeypatch.setattr(compiling, "processors", lambda _: 4)  # a warp for each sentence
    monkeypatch.setattr(
        kernel_emulator.Emulated, "__call__", lambda self, *given: (made.append(self), call(self, *given))[1]
    )
    given = torch.randn(4, 5, 3, requires_grad=True)
    tags = torch.tensor([[0, 1, 2, 0, 1]]).repeat(4, 1)
    mask = torch.arange(5) < torch.tensor([[5], [2], [3], [1]])
    names = counted(what(given, tags, mask), made)
    assert len(names) <= most, names
    assert len(made) <= launches, made
