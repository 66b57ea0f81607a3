"""Kernels of the GPU as plain C++: what they compute is tested where there is no GPU.

A kernel is compiled with the machine's compiler. The threads of a block run one after the other, each as far
as it can without the others (``kernel_emulator.h``), so that missing barriers show. Clusters of blocks and
speed are tested on a GPU.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import shutil
import subprocess
from contextlib import nullcontext
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from tallytree.torch.gpu import compiling

KERNELS = resources.files("tallytree.torch.gpu") / "kernels"


class Emulated:
    """A kernel that runs here."""

    def __init__(self, launch: Any) -> None:
        self.launch = launch
        launch.restype = ctypes.c_char_p

    def __call__(self, blocks: int, threads: int, memory: int, *arguments: Any) -> None:
        """Run the kernel."""
        assert blocks > 0 and threads > 0
        values = [bytes(given) for given in arguments]
        places = (ctypes.c_char_p * len(values))(*values)
        sizes = (ctypes.c_size_t * len(values))(*map(len, values))
        failure = self.launch(places, sizes, blocks, threads, memory)
        assert not failure, f"{self.launch.__name__}: {failure.decode()}"


class Emulator:
    """Compiles kernels into a folder and keeps them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.libraries: dict[str, ctypes.PyDLL] = {}

    def kernel(self, source: str, name: str, _device: Any, **settings: Any) -> Emulated:
        """Stand in for :func:`tallytree.torch.gpu.compiling.kernel`."""
        macros = "".join(f"#define {key} {value}\n" for key, value in sorted(settings.items()))
        key = hashlib.sha256((source + macros).encode()).hexdigest()[:16]
        if key not in self.libraries:
            self.libraries[key] = self._built(key, source, macros)
        return Emulated(getattr(self.libraries[key], f"launch_{name}"))

    def _built(self, key: str, source: str, macros: str) -> ctypes.PyDLL:
        here = Path(__file__).with_name("kernel_emulator.h")
        text = self.folder / f"{key}.cpp"
        names = re.findall(r'extern "C" __global__ .*?(\w+)\(const', (KERNELS / source).read_text())
        launches = "".join(f"LAUNCHED({name})\n" for name in names)
        text.write_text(f'#include "{here}"\n{macros}#include "{source}"\n{launches}')
        library = self.folder / f"{key}.so"
        compiler = shutil.which("c++") or pytest.skip("there is no C++ compiler here")
        options = ["-std=c++17", "-O1", "-U_FORTIFY_SOURCE", "-shared", "-fPIC", f"-I{KERNELS}"]
        options += ["-o", str(library), str(text)]
        subprocess.run([compiler, *options], check=True)
        return ctypes.PyDLL(str(library))


def install(monkeypatch: pytest.MonkeyPatch, emulator: Emulator) -> None:
    """Let the functions of the GPU take tensors of the CPU."""
    monkeypatch.setattr(compiling, "kernel", emulator.kernel)
    monkeypatch.setattr(compiling, "stream", lambda _: 0)
    monkeypatch.setattr(compiling, "capturing", lambda: False)
    monkeypatch.setattr(compiling, "preparing", lambda _: nullcontext())
    monkeypatch.setattr(compiling, "processors", lambda _: 1)
    monkeypatch.setattr(compiling, "has_clusters", lambda _: False)
    monkeypatch.setattr(compiling, "room", lambda _: 1 << 30)
    monkeypatch.setattr(compiling, "plenty", lambda _: 0)
    monkeypatch.setattr(compiling, "block_memory", lambda _: 226 << 10)
