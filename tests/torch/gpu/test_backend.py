"""The GPU compared with the CPU: batches with padding and forbidden scores, and all kinds of losses."""

import threading
from dataclasses import replace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402
from tallytree.torch import cpu  # noqa: E402
from tallytree.torch.functions import Scores  # noqa: E402
from tallytree.torch.gpu import backend, compiling, findings, truths  # noqa: E402
from tallytree.torch.inputs import Ends  # noqa: E402

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")
LOSSES = [
    tt.losses.HammingDistance(),
    tt.losses.HammingLoss(),
    tt.losses.FBeta(background="O"),
    tt.losses.FBeta(beta=2.0),
    tt.losses.Precision(background="O"),
    tt.losses.Recall(background="O"),
    tt.losses.FalsePositives(background="O"),
    tt.losses.IntersectionOverUnion(background="O"),
    tt.losses.ChunkFBeta(),
    tt.losses.ChunkFBeta(scheme="IO", background="O", beta=0.5),
]


def batch(seed, shared=True, positions=7):
    source = torch.Generator().manual_seed(seed)
    states = len(NAMES)
    shape = (states, states) if shared else (5, positions - 1, states, states)
    emissions = torch.randn(5, positions, states, generator=source, dtype=torch.float64)
    transitions = torch.randn(shape, generator=source, dtype=torch.float64)
    transitions[..., 0, 2] = -torch.inf
    tags = torch.randint(0, 2, (5, positions), generator=source) * 3
    ends = Ends([positions, 1, 4, 2, positions], None, 5, positions)
    return Scores(emissions, transitions, ends), tags


def names_of(loss):
    io = isinstance(loss, tt.losses.ChunkFBeta) and loss.scheme == "IO"
    return ("O", "a", "b", "c", "d") if io else NAMES


def same(one, other):
    torch.testing.assert_close(one, other, rtol=1e-10, atol=1e-10)


def same_slopes(ours, theirs):
    """For gains that differ, and for one that all share."""
    for gain in (torch.linspace(-1.0, 2.0, 5, dtype=torch.float64), torch.tensor(1.5, dtype=torch.float64)):
        for mine, its in zip(ours(gain)[:2], theirs(gain)[:2], strict=True):
            same(mine, its)


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=str)
def test_losses(emulated_gpu, loss, shared):
    scores, tags = batch(3, shared)
    names = names_of(loss)
    for kind in ("risk", "softmax-margin"):
        ours, theirs = (one.objective(scores, loss, names, tags, kind) for one in (backend, cpu))
        same(ours[0], theirs[0])
        same_slopes(ours[1], theirs[1])
    for scaling in ("margin", "slack"):
        ours, theirs = (one.hinge(scores, loss, names, tags, scaling) for one in (backend, cpu))
        same(ours[0], theirs[0])
        assert float(ours[1].max()) < 1e-12
        same_slopes(ours[2], theirs[2])


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("slopes", [True, False])
@pytest.mark.parametrize("processors", [1, 5])
def test_likelihoods(emulated_gpu, monkeypatch, shared, slopes, processors):
    """With few processors, a warp has several sentences, else one, whose derivatives it keeps apart."""
    monkeypatch.setattr(compiling, "processors", lambda _: processors)
    scores, tags = batch(3, shared)
    scores = replace(scores, slopes=slopes)
    tags[4, :2] = torch.tensor([0, 2])  # forbidden
    for name, arguments in (("log_partition", ()), ("log_prob", (tags,))):
        ours, theirs = (getattr(one, name)(scores, *arguments) for one in (backend, cpu))
        same(ours[0], theirs[0])
        same_slopes(ours[1], theirs[1])
    assert ours[0][4] == -torch.inf


def test_a_loss_without_tables_is_answered_on_the_cpu(emulated_gpu):
    scores, tags = batch(4)
    loss = tt.losses.ZeroOne()
    with pytest.warns(tt.PerformanceWarning, match="no kernel for this loss"):
        ours = backend.hinge(scores, loss, NAMES, tags, "margin")
    theirs = cpu.hinge(scores, loss, NAMES, tags, "margin")
    assert torch.equal(ours[0], theirs[0])
    same_slopes(ours[2], theirs[2])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_gap_of_a_hinge(emulated_gpu, dtype):
    scores, tags = batch(8)
    emissions, transitions = scores.emissions.to(dtype), scores.transitions.to(dtype)
    tags[:, 1] = 0
    hinge = ttt.StructuredHinge(tt.losses.ChunkFBeta(NAMES), scaling="slack", reduction="none")
    values = hinge(emissions, transitions, tags)
    best = hinge(emissions.double(), transitions.double(), tags)
    assert bool((hinge.gap <= 1e-12).all())
    assert bool((best - values.double() >= -1e-6).all())
    hinge(emissions, transitions, tags)
    assert bool((best <= values.double() + hinge.gap + 1e-6).all())
    assert bool((hinge.gap <= (1e-4 if dtype == torch.float32 else 1e-12)).all())
    assert hinge.device_bytes(emissions, transitions, tags) > 0


def test_memory_is_told_and_kept_to(emulated_gpu, monkeypatch):
    scores, tags = batch(6)
    loss = tt.losses.FBeta(background="O")
    expected = backend.hinge(scores, loss, NAMES, tags, "slack")
    need = backend.loss_bytes(scores, loss, NAMES, tags, "hinge")
    each = need // 5  # one block for each sentence, where the device has room
    for room in (need, 2 * each, each):
        monkeypatch.setattr(compiling, "room", lambda _, room=room: room)
        monkeypatch.setattr(compiling, "processors", lambda _: 5)
        assert backend.loss_bytes(scores, loss, NAMES, tags, "hinge") <= room
        found = backend.hinge(scores, loss, NAMES, tags, "slack")
        assert torch.equal(found[0], expected[0])
        same_slopes(found[2], expected[2])
    monkeypatch.setattr(compiling, "room", lambda _: each - 1)
    with pytest.raises(tt.BudgetError, match="tables of one sentence need"):
        backend.hinge(scores, loss, NAMES, tags, "slack")


@pytest.mark.parametrize("states", [27, 50])
def test_more_tags_than_a_thread_takes_at_once(emulated_gpu, states):
    source = torch.Generator().manual_seed(states)
    emissions = torch.randn(3, 5, states, generator=source, dtype=torch.float64)
    transitions = torch.randn(states, states, generator=source, dtype=torch.float64)
    scores = Scores(emissions, transitions, Ends([5, 2, 4], None, 3, 5))
    tags = torch.randint(0, states, (3, 5), generator=source)
    loss, gain = tt.losses.FBeta(background=0), torch.ones(3, dtype=torch.float64)
    ours, theirs = (one.objective(scores, loss, None, tags, "risk") for one in (backend, cpu))
    for mine, its in zip((ours[0], *ours[1](gain)), (theirs[0], *theirs[1](gain)), strict=True):
        same(mine, its)
    ours, theirs = (one.hinge(scores, loss, None, tags, "slack") for one in (backend, cpu))
    for mine, its in zip((ours[0], *ours[2](gain)[:2]), (theirs[0], *theirs[2](gain)), strict=True):
        same(mine, its)
    ours, theirs = (one.log_prob(scores, tags) for one in (backend, cpu))
    for mine, its in zip((ours[0], *ours[1](gain)[:2]), (theirs[0], *theirs[1](gain)), strict=True):
        same(mine, its)


def test_more_tags_than_a_block_has_memory_for(emulated_gpu, monkeypatch):
    """They are computed on the CPU, with a warning on the first call."""
    scores, tags = batch(9)
    monkeypatch.setattr(compiling, "block_memory", lambda _: 200)
    loss, uniforms = tt.losses.FBeta(background="O"), torch.full((2, 5, 7), 0.5, dtype=torch.float64)
    questions = {
        "log_partition": (),
        "marginals": (),
        "sample": (uniforms,),
        "tallied": ((tt.count(state="O"),), NAMES),
        "objective": (loss, NAMES, tags, "risk"),
        "hinge": (loss, NAMES, tags, "slack"),
        "log_prob": (tags,),
    }
    for name, arguments in questions.items():
        with pytest.warns(tt.PerformanceWarning, match="there is no kernel for"):
            ours = getattr(backend, name)(scores, *arguments)
        theirs = getattr(cpu, name)(scores, *arguments)
        first = [one[0] if isinstance(one, tuple) else one for one in (ours, theirs)]
        assert torch.equal(*first)
    assert torch.equal(backend.viterbi(scores), cpu.viterbi(scores))


def test_very_long_sentences_are_answered_on_the_cpu():
    """Before a table of all their tallies, of some gigabytes, is made."""
    for loss in (tt.losses.FBeta(background="O"), tt.losses.ChunkFBeta()):
        assert truths.rules_of(loss, NAMES, len(NAMES), 60_000, torch.device("cpu")) is None


def test_memory_of_sums_is_that_of_float64(emulated_gpu):
    scores, tags = batch(10)
    emissions, transitions = scores.emissions.float(), scores.transitions.float()
    mask = torch.ones(5, 7, dtype=torch.bool)
    mask[1, 3:] = False
    tags[1, 3:] = -100  # in the padding anything will do
    hinge = ttt.StructuredHinge(tt.losses.FBeta(background=0))
    margin, risk = (kind(tt.losses.FBeta(background=0)) for kind in (ttt.SoftmaxMargin, ttt.ExpectedLoss))
    asked = emissions, transitions, tags, mask
    assert margin.device_bytes(*asked) > 2 * hinge.device_bytes(*asked) > 0
    assert risk.device_bytes(*asked) > 0


def test_statistics(emulated_gpu):
    scores, _ = batch(5)
    chunks, outside = tt.count(state="B-x"), tt.count(state="O")
    for statistics in ((chunks,), (chunks, outside), (outside, chunks, tt.count(state=4))):
        ours, theirs = (one.tallied(scores, statistics, NAMES) for one in (backend, cpu))
        same(ours[0], theirs[0])
        assert ours[2] == theirs[2]
        gain = torch.randn(ours[0].shape, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
        for mine, its in zip(ours[1](gain), theirs[1](gain), strict=True):
            same(mine, its)


def test_statistics_that_depend_on_the_length(emulated_gpu):
    """Tallies are those of the sentences of the batch, also where other lengths have more, or none at all."""
    source = torch.Generator().manual_seed(1)
    emissions = torch.randn(3, 6, 3, generator=source, dtype=torch.float64)
    transitions = torch.randn(3, 3, generator=source, dtype=torch.float64)
    weights = np.array([[0, 2, -1], [1, 0, 3], [0, -2, 0]])

    class Growing(tt.statistics.statistic.Recipe):
        """Counts more in shorter sentences; not defined for very short ones."""

        key = ("growing",)

        def on(self, model):
            if len(model) < 3:
                raise tt.ModelError("too short")
            table = np.stack([weights[t % 3] * (7 - len(model)) for t in range(len(model))])
            return tt.node_statistic(table)

    for lengths in ([5, 3, 4], [5, 5, 3], [4, 4, 4]):
        scores = Scores(emissions, transitions, Ends(lengths, None, 3, 6))
        ours, theirs = (one.tallied(scores, (Growing(),), None) for one in (backend, cpu))
        same(ours[0], theirs[0])
        assert ours[2] == theirs[2]
        gain = torch.randn(ours[0].shape, generator=source, dtype=torch.float64)
        for mine, its in zip(ours[1](gain), theirs[1](gain), strict=True):
            same(mine, its)
    with pytest.raises(tt.ModelError, match="too short"):
        backend.tallied(Scores(emissions, transitions, Ends([5, 2, 4], None, 3, 6)), (Growing(),), None)


def test_what_is_always_answered_on_the_cpu_says_so(emulated_gpu):
    scores, _ = batch(11)
    chain = ttt.Chain(scores.emissions, scores.transitions, lengths=scores.lengths, states=NAMES)
    with pytest.warns(tt.PerformanceWarning, match="the answer for each sentence is computed on the CPU"):
        best = chain.topk(1)
    assert torch.equal(best.labels[0], chain.argmax)
    with pytest.warns(tt.PerformanceWarning, match="the answer for each sentence is computed on the CPU"):
        chain.given(tt.count(state="O") <= 1).sample()


def test_what_is_wrong_is_found_by_the_kernel_and_told_by_the_cpu(emulated_gpu):
    emissions, transitions = torch.zeros(3, 4, 2), torch.zeros(2, 2)
    tags, mask = torch.zeros(3, 4, dtype=torch.int64), torch.ones(3, 4, dtype=torch.bool)
    mask[1, 2:] = False
    crf = ttt.CRF(2, batch_first=True)
    tags[1, 2:] = -100  # in the padding anything will do
    assert crf(emissions, tags, mask).isfinite()
    hole, none, wrong, odd = mask.clone(), mask.clone(), tags.clone(), emissions.clone()
    hole[1, 3], none[2], wrong[2, 1], odd[0, 3, 1] = True, False, 2, torch.nan
    for given, words in (
        ((emissions, tags, hole), "the mask of sentence 1 has a hole"),
        ((emissions, tags, none), "mask of the first timestep must all be on"),
        ((emissions, wrong, mask), "tags must be from 0 to 1, got 2"),
        ((odd, tags, mask), "emissions of chain 0 contain nan"),
    ):
        with pytest.raises(tt.ModelError, match=words):
            crf(*given)
    for part in (crf.start_transitions, crf.end_transitions, crf.transitions):
        with torch.no_grad():
            part.view(-1)[1] = torch.inf
        with pytest.raises(tt.ModelError, match="contain"):
            crf(emissions, tags, mask)
        torch.nn.init.zeros_(part)
    assert torch.equal(ttt.Chain(emissions, transitions, mask=mask).lengths, torch.tensor([4, 2, 4]))


def test_findings_are_waited_for(emulated_gpu, monkeypatch):
    """Until a kernel reports them, or has failed."""
    slot = findings.slot(torch.device("cpu"))
    told = slot._told
    monkeypatch.setattr(compiling, "is_idle", lambda *_: False)
    told[0], told[1] = 9, 7
    thread = threading.Timer(0.05, told.__setitem__, (len(told) - 1, 1))
    thread.start()
    assert slot.read()[:2] == (9, 7)
    thread.join()
    assert findings.slot(torch.device("cpu")) is slot
    monkeypatch.setattr(compiling, "is_idle", lambda *_: True)
    with pytest.raises(tt.errors.TallytreeError, match="ended without a result"):
        slot.read()


def test_losses_of_new_truths_are_learned(emulated_gpu, monkeypatch):
    """Also if there is no room to keep those of earlier batches."""
    loss = tt.losses.FBeta(background="O", beta=3.0)
    for most in (1 << 28, 0):
        monkeypatch.setattr(truths, "_MOST", most)
        for seed in range(4):
            scores, tags = batch(seed)
            ours, theirs = (
                one.hinge(scores, loss, NAMES, tags * (seed % 2), "slack") for one in (backend, cpu)
            )
            same(ours[0], theirs[0])


@pytest.mark.gpu
@pytest.mark.parametrize("states", [1, 2, 23, 32, 33, 50, 70])
@pytest.mark.parametrize("shared", [True, False])
def test_numbers_of_tags_on_a_gpu(states, shared):
    """A lane has one state or several, and tables of derivatives lie in different memory."""
    source = torch.Generator().manual_seed(states)
    shape = (states, states) if shared else (9, 5, states, states)
    emissions = 3 * torch.randn(9, 6, states, generator=source, dtype=torch.float64)
    transitions = torch.randn(shape, generator=source, dtype=torch.float64)
    emissions[3, 2, : states // 2] = -torch.inf
    tags = torch.full((9, 6), states - 1)
    here = Scores(emissions, transitions, Ends([6, 1, 4, 6, 2, 3, 5, 6, 6], None, 9, 6))
    there = replace(here, emissions=emissions.cuda(), transitions=transitions.cuda(), slopes=True)
    loss = tt.losses.FBeta(background=0)
    gains = torch.linspace(-1.0, 2.0, 9, dtype=torch.float64), torch.tensor(1.5, dtype=torch.float64)
    for name, asked, last in (
        ("log_partition", (), ()),
        ("log_prob", (), ()),
        ("hinge", (loss, None), ("slack",)),
        ("objective", (loss, None), ("softmax-margin",)),
    ):
        right = () if name == "log_partition" else (tags,)
        theirs = getattr(cpu, name)(here, *asked, *right, *last)
        ours = getattr(backend, name)(there, *asked, *(one.cuda() for one in right), *last)
        same(ours[0].cpu(), theirs[0])
        for gain in gains:
            for mine, its in zip(ours[-1](gain.cuda())[:2], theirs[-1](gain)[:2], strict=True):
                same(mine.cpu(), its)
    assert torch.equal(backend.viterbi(there).cpu(), cpu.viterbi(here))
