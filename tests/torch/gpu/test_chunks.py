"""Searches for whole chunks by the kernels of the GPU, compared with the CPU, in all schemes."""

import pytest

torch = pytest.importorskip("torch")

import tallytree as tt  # noqa: E402
from tallytree.torch import cpu  # noqa: E402
from tallytree.torch.functions import Scores  # noqa: E402
from tallytree.torch.gpu import backend  # noqa: E402
from tallytree.torch.inputs import Ends  # noqa: E402


def chunk_names(tags, types, outside):
    return (*outside, *(f"{tag}-{kind}" for kind in types for tag in tags))


SCHEMES = [
    ("BIO", chunk_names("BI", "xyz", "O")),
    ("BIO", chunk_names("BI", "xyz", ())),
    ("BIO", ("I-x", "O", "B-y", "I-y", "B-x", "I-z")),
    ("BIO", ("O",)),
    ("BIOES", chunk_names("BIES", "xy", "O")),
    ("BIOES", ("S-x", "E-x", "O", "I-y", "B-x")),
    ("IO", chunk_names("I", "xyz", "O")),
    ("BIO", chunk_names("BI", "abcdefghijklmnopq", "O")),
    ("BIOES", chunk_names("BIES", "abcdefghij", "O")),
]


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize(("scheme", "names"), SCHEMES)
def test_chunks_of_all_schemes(emulated_gpu, scheme, names, shared):
    states, positions = len(names), 9
    for seed in range(6):
        source = torch.Generator().manual_seed(seed)
        shape = (states, states) if shared else (4, positions - 1, states, states)
        emissions = torch.randn(4, positions, states, generator=source, dtype=torch.float64)
        transitions = torch.randn(shape, generator=source, dtype=torch.float64)
        tags = torch.randint(0, states, (4, positions), generator=source)
        if seed % 2:  # ties and forbidden steps
            emissions, transitions = emissions.round(), transitions.round()
            transitions[torch.rand(shape, generator=source) < 0.2 / states] = -torch.inf
            emissions.scatter_add_(2, tags.unsqueeze(2), torch.full((4, positions, 1), 3.0).double())
        scores = Scores(emissions, transitions, Ends([positions, 1, 6, 2], None, 4, positions))
        loss = tt.losses.ChunkFBeta(scheme=scheme)
        try:
            wanted, _, _ = cpu.hinge(scores, loss, names, tags, "slack")
        except tt.ModelError:  # true tags are forbidden
            with pytest.raises(tt.ModelError):
                backend.hinge(scores, loss, names, tags, "slack")
            continue
        found, gaps, _ = backend.hinge(scores, loss, names, tags, "slack")
        torch.testing.assert_close(found, wanted, rtol=1e-10, atol=1e-10)
        assert float(gaps.max()) < 1e-12
