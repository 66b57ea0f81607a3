"""Threads and memory of blocks: what they are, and that results do not depend on them."""

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402
from tallytree.torch.gpu import counted, layouts  # noqa: E402

FEW = layouts.Sized(23, 25, 6200, 676, 0, 0, 0, True, False, torch.float32, True, 2, 226 << 10)
"""64 sentences of 25 words with F1, on a device of 132 multiprocessors."""


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({}, (1, 1, 512)),
        ({"spare": 0}, (1, 1, 256)),  # many sentences
        ({"columns": 350, "tallies": 26}, (1, 3, 256)),  # one count
        ({"columns": 3283, "chunks": True, "extra_rows": 2, "ways": 2}, (1, 3, 1024)),
        ({"positions": 50, "columns": 43549, "tallies": 2601}, (2, 1, 512)),
        ({"positions": 50, "columns": 43549, "tallies": 2601, "spare": 1}, (1, 1, 512)),
        ({"positions": 50, "columns": 43549, "tallies": 2601, "spare": 8}, (8, 1, 512)),
        ({"positions": 50, "columns": 43549, "tallies": 2601, "most": False}, (1, 1, 256)),  # sums
        ({"states": 64}, (1, 4, 512)),
    ],
)
def test_teams_tiles_and_threads(changes, wanted):
    layout = layouts.Layout(FEW._replace(**changes))
    assert (layout.team, layout.tiles, layout.threads) == wanted
    assert layout.padded >= layout._size.states and layout.padded % (4 * layout.tiles) == 0


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("loss", [tt.losses.FBeta(background=0), tt.losses.ChunkFBeta()], ids=str)
@pytest.mark.parametrize("own", [False, True])
def test_teams_of_blocks_on_a_gpu(monkeypatch, loss, dtype, own):
    names, positions = ["O", *(f"{mark}-{kind}" for kind in "abc" for mark in "BI")], 60
    source = torch.Generator().manual_seed(1)
    emissions = torch.randn(5, positions, 7, generator=source, dtype=dtype).cuda()
    shape = (5, positions - 1, 7, 7) if own else (7, 7)
    links = torch.randn(shape, generator=source, dtype=dtype).cuda()
    tags = torch.randint(0, 7, (5, positions), generator=source).cuda()
    mask = (torch.arange(positions) < torch.tensor([[60], [59], [33], [1], [2]])).cuda()
    hinge = ttt.StructuredHinge(loss, scaling="slack", labels=names, reduction="none")

    def outcome(teams):
        monkeypatch.setattr(layouts, "TEAMS", teams)
        monkeypatch.setattr(counted, "TEAMS", teams)
        layouts.layout_of.cache_clear()
        given = [one.clone().requires_grad_() for one in (emissions, links)]
        value = hinge(*given, tags, mask)
        return value, *torch.autograd.grad(value.sum(), given)

    monkeypatch.setattr(layouts, "_WIDE_FOR_TEAMS", 0)
    wanted = outcome((1,))
    for teams in ((1, 2), (1, 2, 4), (1, 2, 4, 8)):
        for one, other in zip(outcome(teams), wanted, strict=True):
            assert torch.equal(one, other)
    layouts.layout_of.cache_clear()
