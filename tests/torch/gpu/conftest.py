"""Kernels run on a GPU where there is one, and everywhere as plain C++."""

from __future__ import annotations

from collections.abc import Iterator

import kernel_emulator
import pytest


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, emulator: kernel_emulator.Emulator
) -> Iterator[str]:
    """The device of tensors that kernels take."""
    if request.param == "cuda":
        yield "cuda"
    else:
        kernel_emulator.install(monkeypatch, emulator)
        yield "cpu"
