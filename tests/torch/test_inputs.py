"""Invalid tensors raise clear errors."""

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
import tallytree.torch as ttt  # noqa: E402

E, L = torch.zeros(2, 3, 2), torch.zeros(2, 2)
HOLE = torch.tensor([[1, 1, 1], [1, 0, 1]], dtype=torch.bool)

BAD = [
    ([[0.0]], L, {}, "emissions must be a tensor of shape .* got list"),
    (E[0], L, {}, r"emissions must have shape \(batch, positions, tags\) without zeros, got \(3, 2\)"),
    (E[:0], L, {}, r"without zeros, got \(0, 3, 2\)"),
    (E.long(), L, {}, r"got torch.int64; use emissions.float\(\)"),
    (E, L[0], {}, r"transitions must have shape \(tags, tags\) or .* got \(2,\)"),
    (E, torch.zeros(3, 3), {}, r"that is \(2, 2\), got \(3, 3\)"),
    (E, torch.zeros(2, 3, 2, 2), {}, r"that is \(2, 2, 2, 2\), got \(2, 3, 2, 2\)"),
    (E, L, {"lengths": [3]}, r"one number for each of 2 sentences, got \(1,\)"),
    (E, L, {"lengths": [3, 0]}, "sentence 1 has length 0, .* drop empty sentences"),
    (E, L, {"lengths": [4, 1]}, "sentence 0 has length 4, but lengths must be from 1 to 3"),
    (E, L, {"lengths": [1.5, 2]}, "lengths must be integers, got torch.float32"),
    (E, L, {"lengths": torch.ones(2, 3).bool()}, r"lengths must be integers, got torch.bool; pass a mask as"),
    (E, L, {"lengths": "ab"}, "lengths must be a tensor or a list of integers, got 'ab'"),
    (E, L, {"mask": HOLE}, "the mask of sentence 1 has a hole"),
    (E, L, {"mask": torch.zeros(2, 3, dtype=torch.bool)}, "mask: sentence 0 has length 0"),
    (E, L, {"mask": torch.ones(2, 2, dtype=torch.bool)}, r"of shape \(2, 3\), like emissions, got \(2, 2\)"),
    (E, L, {"mask": torch.ones(2, 3)}, r"dtype torch.bool, got torch.float32; use mask.bool\(\)"),
    (E, L, {"mask": HOLE, "lengths": [3, 1]}, "give either lengths or a mask"),
    (E, L, {"states": ["O"]}, "there are 2 tags, but states has 1 name"),
    (
        E,
        torch.zeros(2, 2, device="meta"),
        {},
        "all tensors must be on the same device, .* transitions on meta",
    ),
]


@pytest.mark.parametrize(("emissions", "transitions", "more", "text"), BAD)
def test_bad_scores(emissions, transitions, more, text):
    with pytest.raises(tt.ModelError, match=text):
        _ = ttt.Chain(emissions, transitions, **more).log_partition  # a GPU looks at masks when it computes


def test_masks_are_looked_at_at_once_on_the_cpu():
    from tallytree.torch.backends import looks

    if looks(E.device):
        pytest.skip("a GPU is emulated")
    with pytest.raises(tt.ModelError, match="the mask of sentence 1 has a hole"):
        ttt.Chain(E, L, mask=HOLE)


@pytest.mark.parametrize(
    ("tags", "text"),
    [
        (torch.zeros(2, 3), r"integers, got torch.float32; use tags.long\(\)"),
        (torch.zeros(2, 2, dtype=torch.int64), r"must have shape \(2, 3\), like emissions, got \(2, 2\)"),
        (torch.full((2, 3), 2), "tags must be from 0 to 1, got 2"),
        (torch.full((2, 3), -1), "tags must be from 0 to 1, got -1"),
    ],
)
def test_bad_tags(tags, text):
    with pytest.raises(tt.ModelError, match=text):
        ttt.Chain(E, L).log_prob(tags)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_scores_that_mean_nothing(value):
    emissions = E.clone()
    emissions[1, 2, 0] = value
    with pytest.raises(tt.ModelError, match="emissions of chain 1 contain"):
        _ = ttt.Chain(emissions, L).log_partition
    with pytest.raises(tt.ModelError, match="emissions of chain 1 contain"):
        ttt.Chain(emissions, L).topk(1)
    assert ttt.Chain(emissions, L, [3, 2]).log_partition.isfinite().all()
    transitions = L.clone()
    transitions[0, 1] = value
    with pytest.raises(tt.ModelError, match="transitions of chain 0 contain"):
        _ = ttt.Chain(E, transitions).log_partition


def test_other_devices_are_answered_for_on_the_cpu():
    from tallytree.torch.backends import backend_of

    with pytest.warns(tt.PerformanceWarning, match="viterbi is computed on the CPU"):
        assert backend_of(torch.device("meta"), "viterbi").device.type == "cpu"
