"""Layers in CUDA graphs: the results of replays, and what becomes of invalid inputs that nobody waits for.

Without a GPU, a call whose launches count as captured runs at once, as one replay.
"""

import copy

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402
from tallytree.torch.gpu import compiling, looking, replays, truth_counts, truths  # noqa: E402

NAMES = ("O", "B-x", "I-x", "B-y", "I-y")
C = len(NAMES)
LOSSES = [tt.losses.HammingDistance(), tt.losses.FBeta(background="O"), tt.losses.ChunkFBeta()]
MODULES = [
    lambda loss, reduction: ttt.StructuredHinge(loss, labels=NAMES, reduction=reduction),
    lambda loss, reduction: ttt.SoftmaxMargin(loss, labels=NAMES, reduction=reduction),
    lambda loss, reduction: ttt.ExpectedLoss(loss, labels=NAMES, reduction=reduction),
]
IDS = ["hinge", "softmax-margin", "risk"]


def likelihood(reduction):
    crf = ttt.CRF(C, batch_first=True)

    def value(emissions, links, tags, mask):
        parameters = {"transitions": links, "start_transitions": links[0], "end_transitions": links[1]}
        return torch.func.functional_call(crf, parameters, (emissions, tags, mask, reduction))

    return value


WAYS = [likelihood(one) for one in ("mean", "token_mean", "none")]
WAYS += [ttt.NegativeLogLikelihood(reduction=one) for one in ("mean", "none")]
WAYS += [made(loss, one) for made in MODULES for loss in LOSSES for one in ("mean", "none")]
WAY_IDS = [f"likelihood-{one}" for one in ("mean", "token_mean", "none")]
WAY_IDS += [f"nll-{one}" for one in ("mean", "none")]
WAY_IDS += [f"{name}-{i}-{one}" for name in IDS for i in range(3) for one in ("mean", "none")]


def batch(seed, device="cpu"):
    source = torch.Generator().manual_seed(seed)
    emissions = torch.randn(4, 6, C, generator=source, dtype=torch.float64)
    links = torch.randn(C, C, generator=source, dtype=torch.float64)
    tags = torch.randint(0, C, (4, 6), generator=source)
    lengths = torch.randint(1, 7, (4, 1), generator=source)
    return [one.to(device) for one in (emissions, links, tags, torch.arange(6) < lengths)]


def outcome(way, given):
    emissions, links, tags, mask = given
    emissions, links = (one.detach().requires_grad_() for one in (emissions, links))
    value = way(emissions, links, tags, mask)
    weights = torch.arange(1.0, value.numel() + 1, dtype=value.dtype, device=value.device).view(value.shape)
    return value, *torch.autograd.grad((value * weights).sum(), [emissions, links])


def tags_out_of_range(given):
    given[2][0, 0] = C + 70000


def score_nan(given):
    given[0][1, 0, 0] = torch.nan


def mask_with_a_hole(given):
    given[3][2] = torch.tensor([1, 1, 0, 0, 1, 0], dtype=torch.bool)


WRONG = [
    (tags_out_of_range, "tags must be from 0 to 4, got 70005"),
    (score_nan, "scores that are nan"),
    (mask_with_a_hole, "the mask of sentence 2 has a hole"),
]


def is_invalid(found):
    value, *slopes = found
    return bool(value.isnan().all()) and all(bool((one == 0).all()) for one in slopes)


@pytest.fixture
def captured(emulated_gpu, monkeypatch):
    """Let launches count as captured, from when it is called."""
    yield lambda: monkeypatch.setattr(compiling, "capturing", lambda: True)
    replays._REPLAYED.clear()


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_results(captured, way):
    wanted = outcome(way, batch(1))
    captured()
    for mine, its in zip(outcome(way, batch(1)), wanted, strict=True):
        assert torch.equal(mine, its)
    replays.check()


@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
@pytest.mark.parametrize(("spoil", "words"), WRONG, ids=["tags", "scores", "mask"])
def test_invalid_inputs(captured, way, spoil, words):
    captured()
    given = batch(2)
    spoil(given)
    assert is_invalid(outcome(way, given))
    with pytest.raises(tt.ModelError, match=words):
        replays.check()
    replays.check()


def test_one_error_tells_of_all_graphs(captured):
    captured()
    for spoil, _ in WRONG:
        given = batch(2)
        spoil(given)
        outcome(WAYS[0], given)
    with pytest.raises(tt.ModelError):
        replays.check()
    replays.check()  # since the last call, nothing was wrong


@pytest.mark.parametrize("made", [MODULES[0], MODULES[1]], ids=IDS[:2])
def test_forbidden_truths(captured, made):
    captured()
    given = batch(3)
    given[0][0, 0, given[2][0, 0]] = -torch.inf
    assert is_invalid(outcome(made(LOSSES[1], "mean"), given))
    with pytest.raises(tt.ModelError, match="true tags with a score of -inf"):
        replays.check()


def test_nothing_is_allowed(captured):
    captured()
    given = batch(3)
    given[0][0, 0] = -torch.inf
    assert is_invalid(outcome(MODULES[2](LOSSES[1], "mean"), given))
    with pytest.raises(tt.ModelError, match="all taggings are forbidden"):
        replays.check()
    assert ttt.Chain(*given[:2], mask=given[3]).argmax[0].eq(0).all()
    with pytest.raises(tt.ModelError, match="all taggings are forbidden"):
        replays.check()


def test_what_needs_the_host_is_refused(captured):
    captured()
    emissions, links, _, mask = batch(4)
    chain = ttt.Chain(emissions, links, mask=mask)
    for ask in (lambda: chain.tally(tt.count(state=1)), chain.sample):
        with pytest.raises(tt.TallytreeError, match="cannot be captured"):
            ask()


def test_losses_that_are_too_large_are_refused(captured, monkeypatch):
    monkeypatch.setattr(truths, "_MOST", 100)
    captured()
    with pytest.raises(tt.TallytreeError, match="need more than 100 bytes"):
        outcome(MODULES[0](LOSSES[1], "mean"), batch(1))


def test_tables_are_large_enough_for_all_truths(emulated_gpu):
    for loss in LOSSES:
        rules = truths.rules_of(loss, NAMES, C, 6, torch.device("cpu"))
        for seed in range(5):
            emissions, links, tags, _ = batch(seed)
            scores = ttt.functions.Scores(emissions, links, ttt.inputs.Ends(None, None, 4, 6))
            seen = looking.Seen(scores, tags)
            found = truth_counts.Counting(rules, seen).truths(seen.read())
            assert found.tallies.columns <= rules.most_columns


# --- on a GPU ----------------------------------------------------------------------------------------------


def recorded(way, given):
    """Return a CUDA graph of a step, and its results."""
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        outcome(way, given)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        found = outcome(way, given)
    return graph, found


@pytest.mark.gpu
@pytest.mark.parametrize("way", WAYS, ids=WAY_IDS)
def test_replays(way):
    given = batch(1, "cuda")
    graph, found = recorded(way, given)
    for seed in range(2, 6):
        new = batch(seed, "cuda")
        for place, one in zip(given, new, strict=True):
            place.copy_(one)
        graph.replay()
        for mine, its in zip(found, outcome(way, new), strict=True):
            assert torch.equal(mine, its)
    for spoil, words in WRONG:
        new = batch(7, "cuda")
        spoil(new)
        for place, one in zip(given, new, strict=True):
            place.copy_(one)
        graph.replay()
        assert is_invalid(found)
        with pytest.raises(tt.ModelError, match=words):
            ttt.check_replays()
        ttt.check_replays()
    for place, one in zip(given, batch(8, "cuda"), strict=True):
        place.copy_(one)
    graph.replay()
    assert torch.equal(found[0], outcome(way, batch(8, "cuda"))[0])
    ttt.check_replays()


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:The AccumulateGrad node's stream")
def test_graphed_callables():
    emissions, _, tags, mask = batch(1, "cuda")
    crf = ttt.CRF(C, batch_first=True).cuda().double()
    sample = emissions.clone().requires_grad_(), tags, mask
    graphed = torch.cuda.make_graphed_callables(copy.deepcopy(crf), sample)
    for seed in range(2, 5):
        emissions, _, tags, mask = batch(seed, "cuda")
        ours, theirs = (emissions.clone().requires_grad_() for _ in range(2))
        found, wanted = graphed(ours, tags, mask), crf(theirs, tags, mask)
        assert torch.equal(found, wanted)
        assert torch.equal(torch.autograd.grad(found, ours)[0], torch.autograd.grad(wanted, theirs)[0])


@pytest.mark.gpu
@pytest.mark.filterwarnings("ignore:The CUDA Graph is empty")
def test_lengths_on_the_host_are_refused():
    emissions, links, _, _ = batch(4, "cuda")
    graph = torch.cuda.CUDAGraph()
    with pytest.raises(tt.TallytreeError, match="moving a mask or lengths to the GPU cannot be captured"):  # noqa: SIM117
        with torch.cuda.graph(graph):
            _ = ttt.Chain(emissions, links, [1, 2, 3, 6]).log_partition
    _ = ttt.Chain(emissions, links, [1, 2, 3, 6]).log_partition


@pytest.mark.gpu
def test_a_capture_without_a_call_before():
    """Kernels are compiled and losses of truths computed while the capture goes on."""
    given = [one.cuda() for one in batch(9)]
    given[0] = given[0][..., :4].contiguous()
    given[1], given[2] = given[1][:4, :4].contiguous(), given[2].clamp(max=3)
    way = ttt.StructuredHinge(tt.losses.FBeta(background=0, beta=3.0))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        value = way(*given)
    graph.replay()
    assert torch.equal(value, way(*given))
