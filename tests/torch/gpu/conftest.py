"""Kernels run on a GPU if there is one, and always as plain C++."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    import kernel_emulator  # imports torch, which is optional


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def device(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch, emulator: kernel_emulator.Emulator
) -> Iterator[str]:
    """The device of tensors that kernels take."""
    if request.param == "cuda":
        yield "cuda"
    else:
        import kernel_emulator

        kernel_emulator.install(monkeypatch, emulator)
        yield "cpu"
