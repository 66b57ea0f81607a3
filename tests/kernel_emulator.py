"""Kernels of the GPU as plain C++: what they compute is tested where there is no GPU.

A kernel is compiled with the machine's compiler for blocks of one thread (``kernel_emulator.h``), which run
one after the other, so it takes the same steps in order. What that cannot show, races and speed, is tested on
a GPU.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import shutil
import subprocess
from contextlib import nullcontext
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tallytree.torch.gpu import chains, compiling

KERNELS = resources.files("tallytree.torch.gpu") / "kernels"


class Emulated:
    """A kernel that runs here."""

    def __init__(self, function: Any, place: Any) -> None:
        self.function, self.place = function, place

    def __call__(self, blocks: int, threads: int, memory: int, *arguments: Any) -> None:
        """Run the kernel."""
        assert blocks > 0 and threads > 0 and memory <= 227 << 10
        values = [_structure(len(given)).from_buffer_copy(given) for given in map(bytes, arguments)]
        for block in range(blocks):
            self.place(block, blocks)
            self.function(*values)


@functools.cache
def _structure(size: int) -> type[ctypes.Structure]:
    """Return a structure of some bytes, which C takes like any other that is too large for registers."""
    assert size > 16 and size % 8 == 0
    return type("_Structure", (ctypes.Structure,), {"_fields_": [("words", ctypes.c_uint64 * (size // 8))]})


class Emulator:
    """Compiles kernels into a folder and keeps them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.libraries: dict[str, ctypes.CDLL] = {}

    def kernel(self, source: str, name: str, _device: Any, **settings: Any) -> Emulated:
        """Stand in for :func:`tallytree.torch.gpu.compiling.kernel`."""
        macros = "".join(f"#define {key} {value}\n" for key, value in sorted(settings.items()))
        key = hashlib.sha256((source + macros).encode()).hexdigest()[:16]
        if key not in self.libraries:
            self.libraries[key] = self._built(key, source, macros)
        library = self.libraries[key]
        return Emulated(getattr(library, name), library.place)

    def _built(self, key: str, source: str, macros: str) -> ctypes.CDLL:
        here = Path(__file__).with_name("kernel_emulator.h")
        text = self.folder / f"{key}.cpp"
        text.write_text(f'#include "{here}"\n{macros}#include "{source}"\n')
        library = self.folder / f"{key}.so"
        compiler = shutil.which("c++") or pytest.skip("there is no C++ compiler here")
        options = ["-std=c++17", "-O1", "-shared", "-fPIC", f"-I{KERNELS}", "-o", str(library), str(text)]
        subprocess.run([compiler, *options], check=True)
        return ctypes.CDLL(str(library))


def install(monkeypatch: pytest.MonkeyPatch, emulator: Emulator) -> None:
    """Let the functions of the GPU take tensors of the CPU."""
    monkeypatch.setattr(compiling, "kernel", emulator.kernel)
    monkeypatch.setattr(compiling, "stream", lambda _: 0)
    monkeypatch.setattr(compiling, "capturing", lambda: False)
    monkeypatch.setattr(compiling, "preparing", lambda _: nullcontext())
    monkeypatch.setattr(chains, "_WARPS", 1)
    monkeypatch.setattr(compiling, "processors", lambda _: 1)
    monkeypatch.setattr(compiling, "has_clusters", lambda _: False)
    monkeypatch.setattr(compiling, "room", lambda _: 1 << 30)
    monkeypatch.setattr(compiling, "plenty", lambda _: 0)
    monkeypatch.setattr(compiling, "block_memory", lambda _: 226 << 10)
