"""A step of training asks PyTorch for few operations on a GPU, and waits for it once.

Each operation takes some microseconds of Python, more than a kernel does for a small batch.
"""

import pytest

torch = pytest.importorskip("torch")

from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402

NAMES = ["O", "B-x", "I-x"]


class Counted(TorchDispatchMode):
    """Notes all operations but those that only take memory, or look at it in another way."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        name = function._schema.name.removeprefix("aten::")
        if not function.is_view and "empty" not in name:
            self.names.append(name)
        return function(*args, **(kwargs or {}))


def counted(step):
    step()  # compiles kernels, and learns the losses of truths
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


F1, CHUNKS = tt.losses.FBeta(background=0), tt.losses.ChunkFBeta(NAMES)


@pytest.mark.parametrize(
    ("what", "most"),
    [
        (likelihood, 4),
        (log_prob, 7),
        (loss(ttt.StructuredHinge(F1, scaling="slack")), 4),
        (loss(ttt.StructuredHinge(CHUNKS, scaling="slack")), 4),
        (loss(ttt.SoftmaxMargin(CHUNKS)), 22),
        (loss(ttt.ExpectedLoss(F1)), 20),
        (decoding, 1),
    ],
    ids=["likelihood", "log_prob", "f1", "chunk-f1", "softmax-margin", "risk", "decoding"],
)
def test_few_operations(emulated_gpu, what, most):
    given = torch.randn(4, 5, 3, requires_grad=True)
    tags = torch.tensor([[0, 1, 2, 0, 1]]).repeat(4, 1)
    mask = torch.arange(5) < torch.tensor([[5], [2], [3], [1]])
    names = counted(what(given, tags, mask))
    assert len(names) <= most, names
