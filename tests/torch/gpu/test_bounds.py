"""Searches by bounds compared with tables; ``test_kernels.py`` compares tables with enumeration."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
from tallytree.torch import cpu  # noqa: E402
from tallytree.torch.functions import Scores  # noqa: E402
from tallytree.torch.gpu import backend, counted, findings, searching  # noqa: E402
from tallytree.torch.inputs import Ends  # noqa: E402

INF = float("inf")
LOSSES = {
    "F1": tt.losses.FBeta(background=0),
    "F2": tt.losses.FBeta(background=0, beta=2.0),
    "Hamming": tt.losses.HammingDistance(),
}


def batch(device, states, seed, *, dtype=torch.float64, favour=0.0, whole=False, forbid=False, shared=True):
    """Scores, lengths and true tags of 24 sentences of up to 9 positions."""
    generator = torch.Generator().manual_seed(seed)
    sentences, positions = 24, 9

    def normal(*shape):
        drawn = torch.randn(*shape, generator=generator, dtype=torch.float64)
        drawn = drawn.round() if whole else drawn
        return drawn.masked_fill(torch.rand(shape, generator=generator) < 0.1, -INF) if forbid else drawn

    tags = torch.randint(states, (sentences, positions), generator=generator)
    lengths = torch.randint(1, positions + 1, (sentences,), generator=generator)
    lengths[0] = positions
    nodes = normal(sentences, positions, states)
    right = nodes.gather(2, tags[..., None]).clamp(min=-3) + favour
    nodes = nodes.scatter(2, tags[..., None], right)
    links = normal(states, states) if shared else normal(sentences, positions - 1, states, states)
    if shared:
        links = links.clamp(min=-3)  # true tags must be allowed
    else:
        rows = links.gather(2, tags[:, :-1, None, None].expand(-1, -1, 1, states))
        rows = rows.scatter(3, tags[:, 1:, None, None], rows.gather(3, tags[:, 1:, None, None]).clamp(min=-3))
        links = links.scatter(2, tags[:, :-1, None, None].expand(-1, -1, 1, states), rows)
    ends = Ends(lengths, None, sentences, positions)
    scores = Scores(nodes.to(device, dtype), links.to(device, dtype).contiguous(), ends)
    return scores, tags.to(device)


def asked(scores, tags, loss, slack):
    known = backend._Counted(scores, loss, None, tags).run(summed=False)
    assert known is not None
    truth, run = known
    values = (truth.losses, None) if slack else (None, truth.losses)
    return run, searching.Values(*values, truth.which, truth.right, float(slack))


def agree(run, values):
    """Both searches agree: in single precision up to the gaps."""
    assert run.layout.listed
    wanted, got = searching.best(run, values), searching.best(run, values, bounds=True)
    if run.real == torch.float64:
        assert torch.equal(got.labels, wanted.labels)
        assert torch.equal(got.cells, wanted.cells)
        assert torch.equal(got.slopes, wanted.slopes)
        torch.testing.assert_close(got.values, wanted.values, rtol=1e-13, atol=1e-13)
    finite = torch.isfinite(wanted.values)
    assert torch.equal(torch.isfinite(got.values), finite)
    got_values, wanted_values = got.values[finite], wanted.values[finite]
    assert bool((got.gaps >= 0).all())
    assert bool((got_values + got.gaps[finite] >= wanted_values - 1e-13).all())
    assert bool((wanted_values + wanted.gaps[finite] >= got_values - 1e-13).all())
    assert float(got.gaps.max()) <= (1e-12 if run.real == torch.float64 else 1e-4)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("slack", [True, False], ids=["slack", "margin"])
@pytest.mark.parametrize(
    "case",
    [
        {"favour": 0.0},
        {"favour": 2.0},
        {"favour": 5.0, "dtype": torch.float32},
        {"whole": True},
        {"whole": True, "dtype": torch.float32, "favour": 1.0},
        {"forbid": True, "favour": 1.0},
        {"forbid": True, "shared": False},
        {"shared": False, "favour": 1.0, "dtype": torch.float32},
    ],
    ids=lambda case: "-".join(f"{key}={value}" for key, value in case.items()),
)
def test_as_tables(device: str, loss: str, slack: bool, case: dict) -> None:
    for seed in range(4):
        agree(*asked(*batch(device, 4, seed, **case), LOSSES[loss], slack))


@pytest.mark.parametrize("states", [1, 25, 29, 33, 49])
def test_many_tags(device: str, states: int) -> None:
    agree(
        *asked(*batch(device, states, states, favour=3.0), LOSSES["Hamming" if states == 1 else "F1"], True)
    )


@pytest.mark.parametrize("states", [23, 28, 29, 33, 49])
def test_tables_with_many_tags(device: str, states: int) -> None:
    """All states of a column at once, or some of them."""
    scores, tags = batch(device, states, states, favour=1.0)
    run, values = asked(scores, tags, LOSSES["F1"], True)
    got = searching.best(run, values)
    wanted, _, _ = cpu.hinge(scores.on_cpu(), LOSSES["F1"], None, tags.cpu(), "slack")
    torch.testing.assert_close(got.values.cpu(), wanted, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("blocks", [1, 2, 5, 24])
def test_blocks_take_what_is_left(device: str, blocks: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever searches a sentence, the results are the same, also in the next launch with the same words."""
    monkeypatch.setattr(counted.Run, "blocks", blocks)
    run, values = asked(*batch(device, 4, blocks, favour=1.0), LOSSES["F1"], True)
    wanted, slot = searching.best(run, values), findings.slot(run.chains.device)
    for _ in range(3):
        got = searching.best(run, values, known=slot.quiet)
        for name in ("values", "gaps", "cells", "labels"):
            assert torch.equal(getattr(got, name), getattr(wanted, name))
    slot.free()


@pytest.mark.parametrize("seed", range(8))
def test_any_values(device: str, seed: int) -> None:
    """Slopes of 0 and below, offsets, and tallies that are not allowed."""
    run, values = asked(*batch(device, 4, seed, favour=seed % 3, whole=seed % 2 == 1), LOSSES["F1"], True)
    generator = torch.Generator().manual_seed(seed)
    shape = values.slopes.shape
    choices = torch.tensor([0.0, 0.5, 1.0] if seed < 6 else [-1.0, 0.5, 1.0], dtype=torch.float64)
    slopes = choices[torch.randint(3, shape, generator=generator)]
    offsets = torch.randn(shape, generator=generator, dtype=torch.float64).round()
    offsets[torch.rand(shape, generator=generator) < 0.2] = -INF
    offsets = offsets.to(device)
    agree(run, searching.Values(slopes.to(device), offsets, values.which, values.right, 1.0))


@pytest.mark.parametrize("slack", [True, False], ids=["slack", "margin"])
@pytest.mark.parametrize("favour", [0.0, 2.0, 4.0])
def test_most_sentences_are_settled(
    device: str, favour: float, slack: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, values = asked(*batch(device, 4, 1, favour=favour), LOSSES["F1"], slack)
    monkeypatch.setattr(counted.Run, "launch", lambda *_, **__: None)
    settled = searching.best(run, values, bounds=True).cells >= 0
    assert float(settled.double().mean()) >= 0.8


@pytest.mark.parametrize("slack", ["slack", "margin"])
def test_hinges_of_large_batches(emulated_gpu: None, slack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hinge uses bounds where tables are large, with the same value and gradient."""
    scores, tags = batch("cpu", 4, 3, favour=2.0)
    nodes, links = scores.emissions.requires_grad_(), scores.transitions.requires_grad_()
    lengths = torch.randint(1, 10, (24,), generator=torch.Generator().manual_seed(0))
    hinge = tt.torch.StructuredHinge(LOSSES["F1"], scaling=slack)
    asked, best = [], searching.best
    monkeypatch.setattr(
        searching, "best", lambda *given, **more: (asked.append(more["bounds"]), best(*given, **more))[1]
    )

    def found() -> list[torch.Tensor]:
        value = hinge(nodes, links, tags, lengths[:, None] > torch.arange(9))
        return [value.detach(), *torch.autograd.grad(value, (nodes, links))]

    by_tables = found()
    monkeypatch.setattr(counted, "_LARGE", 0.0)
    monkeypatch.setattr(counted, "_MANY", 0.0)
    by_bounds = found()
    assert asked == [False, True]
    for one, other in zip(by_tables, by_bounds, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-13, atol=1e-13)
