"""Kernels compared with enumeration: on a GPU if there is one, and always as plain C++."""

from __future__ import annotations

import dataclasses
import itertools
from dataclasses import dataclass

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from tallytree.torch.gpu import chains as plain  # noqa: E402
from tallytree.torch.gpu import counted, decoding, findings, searching  # noqa: E402

INF = float("inf")


def named(value: object) -> str:
    """A name for a parameter that is the same in every process."""
    return getattr(value, "__name__", str(value))


@dataclass
class Drawn:
    """A batch of small chains, and all labellings of each sentence with their scores."""

    nodes: torch.Tensor
    weights: torch.Tensor
    lengths: torch.Tensor

    def chains(self, device: str) -> plain.Chains:
        return plain.Chains(self.nodes.to(device), self.weights.to(device), self.lengths.to(device))

    def labellings(self, b: int) -> list[tuple[int, ...]]:
        return list(itertools.product(range(self.nodes.shape[2]), repeat=int(self.lengths[b])))

    def score(self, b: int, y: tuple[int, ...]) -> torch.Tensor:
        """The score of a labelling, with its gradient."""
        total = self.nodes[b, 0, y[0]].double()
        for t in range(1, len(y)):
            weights = self.weights if self.weights.dim() == 2 else self.weights[b, t - 1]
            total = total + weights[y[t - 1], y[t]].double() + self.nodes[b, t, y[t]].double()
        return total


def drawn(seed: int, states: int, shared: bool, dtype: torch.dtype, scale: float, forbid: bool) -> Drawn:
    rng = np.random.default_rng(seed)
    sentences, positions = 4, 4
    nodes = scale * rng.integers(-4, 5, (sentences, positions, states)) * rng.choice([1.0, 0.37], states)
    shape = (states, states) if shared else (sentences, positions - 1, states, states)
    weights = scale * rng.normal(size=shape)
    if forbid:
        weights[rng.random(shape) < 0.2] = -INF
        nodes[rng.random(nodes.shape) < 0.1] = -INF
        nodes[2, 0] = -INF
    lengths = torch.tensor([positions, 1, 3, 2], dtype=torch.int32)
    return Drawn(torch.tensor(nodes, dtype=dtype), torch.tensor(weights, dtype=dtype), lengths)


CASES = [
    (0, 3, True, torch.float64, 1.0, False),
    (1, 3, False, torch.float32, 1.0, True),
    (2, 3, True, torch.float32, 400.0, True),
    (3, 3, False, torch.float64, 400.0, False),
    (4, 1, True, torch.float32, 1.0, False),
    (5, 5, True, torch.float64, 1.0, True),
]


@pytest.mark.parametrize("case", CASES, ids=named)
def test_plain(device: str, case: tuple[int, int, bool, torch.dtype, float, bool]) -> None:
    problem = drawn(*case)
    problem.nodes.requires_grad_()
    problem.weights.requires_grad_()
    chains = plain.Chains(*(x.detach().to(device) for x in (problem.nodes, problem.weights, problem.lengths)))
    upstream = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=torch.float64)
    partitions, wanted = plain.likelihood(chains)[0].cpu(), torch.zeros((), dtype=torch.float64)
    slot = findings.slot(chains.device)
    scores, labels = (x.cpu() for x in decoding.viterbi(chains, slot.telling(0)))
    assert bool(slot.read().flags) == bool((scores == -INF).any())
    for b in range(4):
        everything = torch.stack([problem.score(b, y) for y in problem.labellings(b)])
        allowed = everything[torch.isfinite(everything)]
        if not len(allowed):
            assert partitions[b] == scores[b] == -INF
            continue
        exact = torch.logsumexp(allowed, 0)
        torch.testing.assert_close(partitions[b], exact.detach(), rtol=1e-12, atol=1e-12)
        wanted = wanted + upstream[b] * exact
        assert scores[b] == everything.max()
        torch.testing.assert_close(
            problem.score(b, tuple(labels[b, : problem.lengths[b]].tolist())), everything.max()
        )
        assert not labels[b, problem.lengths[b] :].any()
    by_nodes, by_weights = torch.autograd.grad(wanted, (problem.nodes, problem.weights))
    _, sums = plain.likelihood(chains, None, upstream.to(chains.nodes), slopes=True)
    got_nodes, got_weights, *_ = plain.gathered(chains, sums)
    tolerance = 1e-11 if problem.nodes.dtype == torch.float64 else 1e-6
    torch.testing.assert_close(got_nodes.cpu(), by_nodes, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(got_weights.cpu(), by_weights, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("apart", [100.0, 138.0, 150.0, 299.0, 301.0, 745.0])
def test_scores_far_apart(device: str, dtype: torch.dtype, apart: float) -> None:
    """Labels that fall behind until only they may end a sentence: sums of products would be lost."""
    length = 6
    nodes = torch.zeros((2, length, 2), dtype=dtype)
    nodes[:, :, 0] = apart
    nodes[0, -1, 0] = -INF
    weights = torch.tensor([[0.0, -INF], [-INF, 0.25]], dtype=dtype)
    chains = plain.Chains(
        nodes.to(device), weights.to(device), torch.tensor([length] * 2, dtype=torch.int32).to(device)
    )
    values, sums = plain.likelihood(chains, slopes=True)
    assert sums is not None
    expected = torch.tensor([0.25 * (length - 1), length * apart], dtype=torch.float64)  # e^-600 is nothing
    torch.testing.assert_close(values.cpu(), expected, rtol=1e-12, atol=1e-12)
    by_nodes, by_weights = (one.cpu() for one in plain.gathered(chains, sums))
    torch.testing.assert_close(by_nodes, torch.eye(2, dtype=dtype)[[1, 0], None].expand(2, length, 2))
    torch.testing.assert_close(by_weights, (length - 1) * torch.eye(2, dtype=dtype))


def chunks_of(labels: tuple[int, ...]) -> list[tuple[int, int, int]]:
    """Chunks of labels 0: O, 1: B-a, 2: I-a, 3: B-b, 4: I-b, as CoNLL's scorer finds them."""
    chunks: list[tuple[int, int, int]] = []
    start, kind = -1, -1
    for t, label in enumerate((*labels, 0)):
        its = (label - 1) // 2 if label else -1
        if start >= 0 and (its != kind or label % 2 == 1):
            chunks.append((start, t - 1, kind))
            start = -1
        if label and start < 0:
            start, kind = t, its
    return chunks


def goes_on(states: int) -> list[tuple[int, int]]:
    return [(s, to) for s in range(1, states) for to in range(2, states, 2) if (s - 1) // 2 == (to - 1) // 2]


@dataclass
class Counts:
    """Tallies of a batch, and the tally of any labelling."""

    tallies: counted.Tallies
    truths: list[tuple[int, ...]]
    unit: int

    def tally(self, b: int, y: tuple[int, ...]) -> int:
        if self.tallies.chunks is None:
            return sum(int(self.tallies.shifts[b, t, s]) for t, s in enumerate(y))
        mine, right = chunks_of(y), chunks_of(self.truths[b])
        return len(mine) * self.unit + len({*mine} & {*right})

    def on(self, device: str) -> counted.Tallies:
        chunks = self.tallies.chunks
        if chunks is not None:
            its = chunks.marks, chunks.goes_on, chunks.pairs, chunks.before
            chunks = counted.Chunks(*(tensor.to(device) for tensor in its), chunks.outside, chunks.extra_rows)
        shifts, boxes = self.tallies.shifts.to(device), self.tallies.boxes.to(device)
        return dataclasses.replace(self.tallies, shifts=shifts, boxes=boxes, chunks=chunks)


def node_counts(problem: Drawn, seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    line = 4 * 2 + 1
    lines, within = (
        torch.tensor(rng.integers(0, 3, problem.nodes.shape), dtype=torch.int32) for _ in range(2)
    )
    boxes = 1 + torch.stack([x.amax(2).cumsum(1) for x in (lines, within)], 2)
    count = int(boxes[..., 0].max()) * line
    tallies = counted.Tallies(lines * line + within, *counted.placed(boxes), count, line)
    return Counts(tallies, [], 0)


def chunk_counts(problem: Drawn, seed: int) -> Counts:
    rng = np.random.default_rng(seed)
    sentences, positions, states = problem.nodes.shape
    truths = [tuple(map(int, rng.integers(0, states, int(n)))) for n in problem.lengths]
    unit = 1 + max(len(chunks_of(y)) for y in truths)
    marks = torch.full((sentences, positions, 3), -1, dtype=torch.int32)
    marks[..., 0] = 0
    for b, y in enumerate(truths):
        for first, last, kind in chunks_of(y):
            marks[b, first : last + 1, 1:] = torch.tensor([1 + 2 * kind, 2 + 2 * kind])
            marks[b, first, 0] += 1
            if last + 1 < positions:
                marks[b, last + 1, 0] += 2
    pairs = goes_on(states)
    bits = torch.tensor(
        [sum(1 << to for s, to in pairs if s == state) for state in range(states)], dtype=torch.int32
    )
    shifts = (
        torch.tensor([0, *[unit] * (states - 1)], dtype=torch.int32)
        .expand(sentences, positions, -1)
        .contiguous()
    )
    continued = [[s for s, to in pairs if to == state] for state in range(states)]
    before = torch.tensor([[*some, -1, -1][:2] for some in continued], dtype=torch.int32).T.contiguous()
    its = bits[:, None].contiguous(), torch.tensor(pairs, dtype=torch.int32), before
    chunks = counted.Chunks(marks, *its, outside=0, extra_rows=2)
    width = 1 + (marks[..., 0] >= 2).cumsum(1)
    boxes = torch.stack([torch.arange(2, positions + 2).expand_as(width), width], 2).int()
    tallies = counted.Tallies(shifts, *counted.placed(boxes), (positions + 1) * unit, unit, chunks=chunks)
    return Counts(tallies, truths, unit)


COUNTS = [(node_counts, case) for case in CASES] + [
    (chunk_counts, (*case[:1], 5, *case[2:])) for case in CASES[:4]
]


@pytest.mark.parametrize("real", [torch.float64, torch.float32], ids=named)
@pytest.mark.parametrize(("counts", "case"), COUNTS, ids=named)
def test_best(device: str, counts: object, case: tuple, real: torch.dtype) -> None:
    problem = drawn(*case)
    tally = counts(problem, case[0])  # type: ignore[operator]
    rng = np.random.default_rng(case[0])
    shape = (4, tally.tallies.count)
    slopes = torch.tensor(rng.choice([0.0, 0.5, 1.0], shape))
    offsets = torch.tensor(rng.choice([0.0, 1.0, -INF], shape, p=[0.5, 0.3, 0.2]))
    bases = torch.tensor(rng.normal(size=4))
    run = counted.Run(problem.chains(device), tally.on(device), real, most=True)
    which = torch.tensor([3, 0, 2, 0], dtype=torch.int32)
    asked = searching.Values(*(x.to(device) for x in (slopes, offsets, which, 1 - bases)), plus=1.0)
    got = searching.best(run, asked, want_profiles=True)
    slopes, offsets = slopes[which], offsets[which]
    scale = 1 + sum(float(x[torch.isfinite(x)].abs().max()) for x in (problem.nodes, problem.weights))
    slack = scale * (1e-13 if real == torch.float64 else 1e-5)
    for b in range(4):
        profile = torch.full((tally.tallies.count,), -INF, dtype=torch.float64)
        for y in problem.labellings(b):
            cell = tally.tally(b, y)
            profile[cell] = max(profile[cell], problem.score(b, y))
        mine = got.profiles[b].cpu().double()
        assert torch.equal(torch.isfinite(mine), torch.isfinite(profile))
        some = torch.isfinite(profile)
        assert bool(
            ((mine - profile)[some] <= slack).all() and ((mine - profile)[some] >= -1e-13 * scale).all()
        )
        values = torch.where(some & (offsets[b] > -INF), slopes[b] * (profile + bases[b]) + offsets[b], -INF)
        if values.max() == -INF:
            assert got.cells[b] == -1
            continue
        assert abs(float(values.max()) - float(got.values[b] + got.gaps[b])) <= slack
        assert 0 <= float(got.gaps[b]) <= slack
        assert float(got.slopes[b]) == float(slopes[b, got.cells[b]])
        y = tuple(got.labels[b, : problem.lengths[b]].tolist())
        assert tally.tally(b, y) == got.cells[b]
        assert float(values[got.cells[b]]) >= float(values.max()) - slack
        assert abs(float(problem.score(b, y)) - float(profile[got.cells[b]])) <= slack


@pytest.mark.parametrize(("counts", "case"), COUNTS, ids=named)
def test_sums(device: str, counts: object, case: tuple) -> None:
    problem = drawn(*case)
    tally = counts(problem, case[0])  # type: ignore[operator]
    problem.nodes.requires_grad_()
    problem.weights.requires_grad_()
    chains = plain.Chains(*(x.detach().to(device) for x in (problem.nodes, problem.weights, problem.lengths)))
    run = counted.Run(chains, tally.on(device), torch.float64)
    got = searching.log_tallies(run).cpu()
    upstream = torch.tensor(np.random.default_rng(case[0]).normal(size=got.shape))
    wanted = torch.zeros((), dtype=torch.float64)
    for b in range(4):
        of_tally: dict[int, list[torch.Tensor]] = {}
        for y in problem.labellings(b):
            if torch.isfinite(score := problem.score(b, y)):
                of_tally.setdefault(tally.tally(b, y), []).append(score)
        for cell in range(tally.tallies.count):
            if cell not in of_tally:
                assert got[b, cell] == -INF
                continue
            exact = torch.logsumexp(torch.stack(of_tally[cell]), 0)
            torch.testing.assert_close(got[b, cell], exact.detach(), rtol=1e-12, atol=1e-12)
            wanted = wanted + upstream[b, cell] * exact
    by_nodes, by_weights = torch.autograd.grad(wanted, (problem.nodes, problem.weights))
    got_nodes, got_weights = searching.tally_expectations(run, upstream.to(device))
    tolerance = 1e-11 if problem.nodes.dtype == torch.float64 else 1e-6
    torch.testing.assert_close(got_nodes.cpu(), by_nodes, rtol=tolerance, atol=tolerance)
    torch.testing.assert_close(got_weights.cpu(), by_weights, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("shared", [True, False])
def test_draws_have_the_right_frequencies(device: str, shared: bool) -> None:
    problem = drawn(7, 3, shared, torch.float64, 0.4, True)
    problem.nodes[2, 0] = 0.0
    count = 4000
    uniforms = torch.tensor(np.random.default_rng(0).random((count, 4, 4)))
    chains = problem.chains(device)
    slot = findings.slot(chains.device)
    labels = decoding.draw(chains, uniforms.to(device), slot.telling(0)).cpu()
    assert not slot.read().flags
    for b in range(4):
        length = int(problem.lengths[b])
        scores = torch.stack([problem.score(b, y) for y in problem.labellings(b)])
        expected = count * torch.softmax(scores, 0)
        places = 3 ** torch.arange(length - 1, -1, -1)
        seen = torch.bincount((labels[:, b, :length] * places).sum(1), minlength=len(scores))
        assert not seen[scores == -INF].any()
        some = expected > 0
        chi_square = float(((seen - expected)[some] ** 2 / expected[some]).sum())
        freedom = int(some.sum()) - 1
        assert chi_square < freedom + 6 * (2 * max(freedom, 1)) ** 0.5
        assert not labels[:, b, length:].any()
