"""The device of these tests, by default the CPU.

``TALLYTREE_TORCH_DEVICE=cuda pytest tests/torch`` runs them on a GPU, ``=emulated`` on the CPU with the
kernels of the GPU as plain C++.
"""

import os

import pytest

try:
    import torch.nn
except ImportError:  # tests/ is on the path: without PyTorch, its name stands for this folder
    collect_ignore_glob = ["*.py"]


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and not torch.cuda.is_available():
        pytest.skip("there is no GPU here")


NAME = os.environ.get("TALLYTREE_TORCH_DEVICE", "cpu")


@pytest.fixture(autouse=True)
def _same_numbers():
    """Draw the same random numbers in every run, whatever ran before."""
    torch.manual_seed(0)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory):
    import kernel_emulator

    return kernel_emulator.Emulator(tmp_path_factory.mktemp("kernels"))


@pytest.fixture(scope="session")
def device():
    return torch.device("cpu" if NAME == "emulated" else NAME)


@pytest.fixture
def emulated_gpu(monkeypatch, emulator):
    """Let the GPU's backend answer for tensors on the CPU."""
    import kernel_emulator

    from tallytree.torch import backends
    from tallytree.torch.gpu import backend

    kernel_emulator.install(monkeypatch, emulator)
    monkeypatch.setattr(backends, "_module", lambda device: backend if device.type == "cpu" else None)


@pytest.fixture(autouse=NAME == "emulated")
def _emulated(emulated_gpu):
    pass


def pytest_collection_modifyitems(items):
    """What a device has no kernels for is answered on the CPU, with a warning that is no error there."""
    if NAME != "cpu":
        for item in items:
            item.add_marker(pytest.mark.filterwarnings("ignore::tallytree.PerformanceWarning"))
