"""The device of these tests, by default the CPU: ``TALLYTREE_TORCH_DEVICE=cuda pytest tests/torch``."""

import os

import pytest

try:
    import torch.nn
except ImportError:  # tests/ is on the path: without PyTorch, its name stands for this folder
    collect_ignore_glob = ["*.py"]


@pytest.fixture(scope="session")
def device():
    return torch.device(os.environ.get("TALLYTREE_TORCH_DEVICE", "cpu"))


def pytest_collection_modifyitems(items):
    """What a device has no kernels for is answered on the CPU, with a warning that is no error there."""
    if os.environ.get("TALLYTREE_TORCH_DEVICE", "cpu") != "cpu":
        for item in items:
            item.add_marker(pytest.mark.filterwarnings("ignore::tallytree.PerformanceWarning"))
