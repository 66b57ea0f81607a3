"""Report what this machine lacks for building tallytree, before anything is downloaded or compiled."""

import importlib.util
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

OLDEST = (3, 11)
PROBE = "#include <concepts>\n#include <span>\nint main() { return std::span<int>().size(); }\n"
DEBIAN = "On Debian or Ubuntu: apt-get install git make g++ python3-dev python3-venv"


def missing() -> list[str]:
    """List what is missing."""
    lacks = []
    if sys.version_info < OLDEST:
        lacks.append(f"Python 3.11 or later (make PYTHON=/path/to/it …); this is {sys.version.split()[0]}")
    if any(importlib.util.find_spec(name) is None for name in ("venv", "ensurepip")):
        lacks.append("Python's venv with pip (python3-venv)")
    if not (Path(sysconfig.get_paths()["include"]) / "Python.h").exists():
        lacks.append("Python's headers (python3-dev)")
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if compiler is not None and shutil.which(compiler.split()[0]) is None:
        lacks.append(f"the C++ compiler that CXX names, {compiler}")
    elif compiler is None:
        lacks.append("a C++ compiler, GCC or Clang (g++)")
    elif not compiles(compiler):
        lacks.append(f"a compiler with C++20; {compiler} cannot compile it (GCC 10 or Clang 12 can)")
    return lacks


def compiles(compiler: str) -> bool:
    """Return whether a compiler supports C++20."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe.cpp"
        source.write_text(PROBE)
        command = [*compiler.split(), "-std=c++20", "-fsyntax-only", str(source)]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def main() -> int:
    lacks = missing()
    if lacks:
        print("tallytree cannot be built here yet. Missing:", *lacks, sep="\n  - ", file=sys.stderr)
        print(DEBIAN, file=sys.stderr)
    return 1 if lacks else 0


if __name__ == "__main__":
    sys.exit(main())
