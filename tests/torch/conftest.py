"""The device of these tests, by default the CPU: ``TALLYTREE_TORCH_DEVICE=cuda pytest tests/torch``."""

import os

import pytest

torch = pytest.importorskip("torch")


@pytest.fixture(scope="session")
def device():
    return torch.device(os.environ.get("TALLYTREE_TORCH_DEVICE", "cpu"))
