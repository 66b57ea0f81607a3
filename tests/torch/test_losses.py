"""The losses compared with enumeration: values and derivatives."""

import pytest

torch = pytest.importorskip("torch")

from torch_chains import enumerated, padded, random_chain  # noqa: E402

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402

NAMES = {1: ["O"], 2: ["O", "B-NP"], 3: ["O", "B-NP", "I-NP"]}
RECIPES = [
    tt.losses.HammingDistance(),
    tt.losses.HammingLoss(),
    tt.losses.FBeta(background=0),
    tt.losses.FBeta(background="O", beta=2.0),
    tt.losses.Recall(background=0),
    tt.losses.IntersectionOverUnion(background=0),
    tt.losses.ChunkFBeta(),
]
KINDS = ["margin", "slack", "softmax-margin", "risk"]


def module(kind, recipe, names, **more):
    if kind in ("margin", "slack"):
        return ttt.StructuredHinge(recipe, scaling=kind, labels=names, **more)
    return {"softmax-margin": ttt.SoftmaxMargin, "risk": ttt.ExpectedLoss}[kind](recipe, labels=names, **more)


def by_definition(kind, recipe, names, tags, scores, right):
    """The loss of one sentence, which is part of the graph of its scores."""
    chunks = isinstance(recipe, tt.losses.ChunkFBeta) or getattr(recipe, "background", None) == "O"

    def said(row):
        return [names[tag] for tag in row] if chunks else row

    against = recipe.against(said(tags[right].tolist()))
    costs = scores.new_tensor([against(said(row)) for row in tags.tolist()])
    ahead = scores - scores[right]
    if kind == "margin":
        return (costs + ahead).max()
    if kind == "slack":
        return torch.where(costs > 0, costs * (1 + ahead), 0.0).max()
    if kind == "softmax-margin":
        return torch.logsumexp(scores + costs, 0) - scores[right]
    return torch.softmax(scores, 0) @ costs


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("recipe", RECIPES, ids=repr)
@pytest.mark.parametrize(
    ("seed", "own", "forbidden"), [(s, o, f) for s in (0, 3, 4, 5) for o in (0, 1) for f in (0, 0.3)]
)
def test_values_and_derivatives(kind, recipe, seed, own, forbidden, device):
    emissions, transitions, lengths = random_chain(seed, device, own, forbidden)
    names = NAMES[emissions.shape[2]]
    ours, theirs = ([t.clone().requires_grad_() for t in (emissions, transitions)] for _ in range(2))
    every = enumerated(*theirs, lengths)
    right = [int(torch.nonzero(scores > -torch.inf)[-1]) for _, scores in every]
    tags = padded([tags[i] for (tags, _), i in zip(every, right, strict=True)], emissions.shape[1])
    wanted = torch.stack(
        [by_definition(kind, recipe, names, *one, i) for one, i in zip(every, right, strict=True)]
    )
    mask = (torch.arange(emissions.shape[1]) < lengths[:, None]).to(device)
    found = module(kind, recipe, names, reduction="none")(*ours, tags, mask)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
    gains = torch.tensor([1.0, -0.5, 2.0], dtype=torch.float64, device=device)
    for gain in (gains, torch.ones_like(gains)):
        one = torch.autograd.grad(found, ours, gain, retain_graph=True)
        other = torch.autograd.grad(wanted, theirs, gain, retain_graph=True, allow_unused=True)
        for mine, theirs_slope, tensor in zip(one, other, theirs, strict=True):
            slope = torch.zeros_like(tensor) if theirs_slope is None else torch.nan_to_num(theirs_slope)
            torch.testing.assert_close(mine, slope, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("kind", ["softmax-margin", "risk"])
def test_gradcheck(kind, device):
    emissions, transitions, lengths = random_chain(5, device)
    tensors = [torch.nan_to_num(one).requires_grad_() for one in (emissions, transitions)]
    tags = torch.zeros(emissions.shape[:2], dtype=torch.int64, device=device)
    mask = (torch.arange(emissions.shape[1]) < lengths[:, None]).to(device)
    loss = module(kind, tt.losses.ChunkFBeta(), NAMES[emissions.shape[2]])
    assert torch.autograd.gradcheck(lambda *scores: loss(*scores, tags, mask), tensors)


@pytest.mark.parametrize("kind", KINDS)
def test_reductions_and_names(kind, device):
    emissions, transitions, _ = random_chain(5, device, dtype=torch.float32)
    names, tags = (
        NAMES[emissions.shape[2]],
        torch.zeros(emissions.shape[:2], dtype=torch.int64, device=device),
    )
    given = torch.nan_to_num(emissions), transitions, tags
    each = module(kind, "chunk-f1", names, reduction="none")(*given)
    assert each.shape == (3,)
    assert each.dtype == torch.float32
    torch.testing.assert_close(module(kind, "chunk-f1", names)(*given), each.mean())
    summed = module(kind, tt.losses.ChunkFBeta(names), None, reduction="sum")  # the loss has the names
    torch.testing.assert_close(summed(*given), each.sum())
    assert "ChunkFBeta" in repr(summed)
    assert "sum" in repr(summed)
    hinge = ttt.StructuredHinge("chunk-f1", scaling="slack", labels=["O", "B-x"])
    assert "labels=['O', 'B-x']" in repr(hinge) and "scaling='slack'" in repr(hinge)


def unsummable():
    references = tt.losses.Bleu(), tt.losses.RougeN(), tt.losses.RougeL()
    weighted = tt.losses.WeightedHamming(weight=[[0, 1], [2, 0]])
    return *references, weighted, tt.losses.ZeroOne(), tt.losses.LabelCount()


@pytest.mark.parametrize("loss", unsummable(), ids=lambda loss: type(loss).__name__)
def test_losses_that_cannot_be_summed_are_refused_at_once(loss):
    for kind in (ttt.SoftmaxMargin, ttt.ExpectedLoss):
        with pytest.raises(tt.ModelError, match=r"cannot be summed over labellings; use a loss that counts"):
            kind(loss)
    ttt.StructuredHinge(loss)


def test_what_is_wrong_is_said(device):
    emissions, transitions = torch.zeros(1, 2, 2, device=device), torch.zeros(2, 2, device=device)
    tags = torch.zeros(1, 2, dtype=torch.int64, device=device)
    with pytest.raises(tt.ModelError, match="reduction must be"):
        ttt.StructuredHinge("chunk-f1", reduction="max")
    with pytest.raises(tt.ModelError, match="there are 2 tags, but labels has 3 names"):
        ttt.ExpectedLoss("chunk-f1", labels=["O", "B", "I"])(emissions, transitions, tags)
    with pytest.raises(tt.ModelError, match=r"labels=\['O', 'B'\] contradicts the names passed to the loss"):
        ttt.StructuredHinge(tt.losses.ChunkFBeta(["B", "O"]), labels=["O", "B"])
    assert ttt.StructuredHinge(tt.losses.ChunkFBeta(["B", "O"]), labels=["B", "O"]).labels == ("B", "O")
    with pytest.raises(tt.ModelError, match="labels has 'A' twice"):
        ttt.ExpectedLoss("chunk-f1", labels=["O", "A", "A"])
    with pytest.raises(tt.ModelError, match="the labels O, A: the background 'X' is not one of them"):
        ttt.ExpectedLoss(tt.losses.FBeta(background="X"), labels=["O", "A"])(emissions, transitions, tags)
    with pytest.raises(tt.ModelError, match="scaling"):
        ttt.StructuredHinge("chunk-f1", scaling="both")
    for loss in (tt.losses.FBeta(background="O"), "chunk-f1"):
        with pytest.raises(tt.ModelError, match=r"the background 'O' of the loss is a name.*; pass labels="):
            ttt.StructuredHinge(loss)(emissions, transitions, tags)
    with pytest.raises(tt.ModelError, match="the tags have no names; pass labels="):
        ttt.ExpectedLoss("chunk-f1")(emissions, transitions, tags)
    emissions[0, 1, 0] = -torch.inf
    for loss in (ttt.StructuredHinge("hamming"), ttt.SoftmaxMargin("hamming")):
        with pytest.raises(tt.ModelError, match="tags of sentence 0 are forbidden"):
            loss(emissions, transitions, tags)


def test_a_step_of_training_lowers_the_loss(device):
    torch.manual_seed(0)
    labels = ["O", "B-NP", "I-NP"]
    words = torch.randn(8, 6, 5, device=device)
    tags = torch.randint(0, 3, (8, 6), device=device)
    mask = (torch.arange(6) < torch.randint(1, 7, (8, 1))).to(device)
    for kind in KINDS:
        layer = torch.nn.Linear(5, 3).to(device)
        transitions = torch.nn.Parameter(torch.zeros(3, 3, device=device))
        loss = module(kind, tt.losses.ChunkFBeta(labels), None)
        optimiser = torch.optim.Adam([*layer.parameters(), transitions], lr=0.05)
        values = []
        for _ in range(40):
            optimiser.zero_grad()
            value = loss(layer(words), transitions, tags, mask)
            value.backward()
            optimiser.step()
            values.append(value.item())
        assert values[-1] < 0.9 * values[0], kind


def test_a_risk_of_nothing_is_refused(device):
    emissions = torch.zeros(2, 3, 2, device=device)
    emissions[1, 1] = -torch.inf
    risk = ttt.ExpectedLoss(tt.losses.HammingDistance())
    with pytest.raises(tt.InfeasibleError, match="sentence 1"):
        risk(emissions, torch.zeros(2, 2, device=device), torch.zeros(2, 3, dtype=torch.int64, device=device))


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize(("seed", "own"), [(s, o) for s in range(6) for o in (0, 1)])
def test_negative_log_likelihoods(seed, own, reduction, device):
    emissions, transitions, lengths = random_chain(seed, device, own, 0.2)
    ours, theirs = ([t.clone().requires_grad_() for t in (emissions, transitions)] for _ in range(2))
    every = enumerated(*theirs, lengths)
    right = [int(torch.nonzero(scores > -torch.inf)[-1]) for _, scores in every]
    tags = padded([tags[i] for (tags, _), i in zip(every, right, strict=True)], emissions.shape[1])
    each = torch.stack(
        [torch.logsumexp(scores, 0) - scores[i] for (_, scores), i in zip(every, right, strict=True)]
    )
    wanted = {"none": each, "sum": each.sum(), "mean": each.mean()}[reduction]
    mask = (torch.arange(emissions.shape[1]) < lengths[:, None]).to(device)
    found = ttt.NegativeLogLikelihood(reduction=reduction)(*ours, tags, mask)
    torch.testing.assert_close(found, wanted, rtol=1e-9, atol=1e-9)
    gain = torch.linspace(-1, 2, 3, dtype=found.dtype, device=device) if reduction == "none" else None
    one = torch.autograd.grad(found, ours, gain)
    other = torch.autograd.grad(wanted, theirs, gain, allow_unused=True)
    for mine, slope, tensor in zip(one, other, theirs, strict=True):
        known = torch.zeros_like(tensor) if slope is None else torch.nan_to_num(slope)
        torch.testing.assert_close(mine, known, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("reduction", ["none", "mean"])
def test_negative_log_likelihood_of_forbidden_tags(reduction, device):
    emissions = torch.zeros(2, 3, 2, dtype=torch.float64, device=device)
    emissions[0, 1, 1] = -torch.inf
    emissions.requires_grad_()
    tags = torch.tensor([[0, 1, 0], [0, 1, 0]], device=device)
    loss = ttt.NegativeLogLikelihood(reduction=reduction)
    found = loss(emissions, emissions.new_zeros(2, 2), tags)
    wanted = torch.tensor([torch.inf, 8.0]).log() if reduction == "none" else torch.tensor(torch.inf)
    torch.testing.assert_close(found.cpu(), wanted.to(found.dtype))
    (slopes,) = torch.autograd.grad(found.sum(), emissions)
    assert not slopes[0].any() and slopes[1].any()


@pytest.mark.parametrize(
    "made", [ttt.NegativeLogLikelihood, lambda **more: module("slack", RECIPES[2], None, **more)]
)
def test_sentences_as_the_second_dimension(made, device):
    emissions, transitions, lengths = random_chain(3, device)
    emissions, transitions = (
        torch.nan_to_num(emissions, neginf=-3.0),
        torch.nan_to_num(transitions, neginf=-3.0),
    )
    mask = (torch.arange(emissions.shape[1]) < lengths[:, None]).to(device)
    tags = torch.zeros(mask.shape, dtype=torch.int64, device=device)
    wanted = made()(emissions, transitions, tags, mask)
    found = made(batch_first=False)(emissions.transpose(0, 1), transitions, tags.T, mask.T)
    torch.testing.assert_close(found, wanted, rtol=0, atol=0)
    with pytest.raises(tt.ModelError, match="transpose them, or pass batch_first=False"):
        made()(
            torch.zeros(3, 2, 2, device=device),
            torch.zeros(2, 2, device=device),
            tags[:1, :1].expand(3, 2) * 0,
            torch.tensor([[1, 1], [0, 1], [0, 1]], dtype=torch.bool, device=device),
        )
