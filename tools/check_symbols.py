"""Check that no code compiled for a newer instruction set can be linked into the baseline path.

A weak symbol (an inline function, a template) that the kernel file shares with any other object is kept once,
from whichever object the linker meets first. If that is the AVX-512 one, older machines crash. So a weak
symbol of a kernel object must not be defined anywhere else.
"""

import subprocess
import sys
from collections import defaultdict
from pathlib import Path


def weak_symbols(path: Path) -> set[str]:
    listing = subprocess.run(
        ["nm", "--defined-only", str(path)], check=True, capture_output=True, text=True
    ).stdout
    fields = [line.split() for line in listing.splitlines()]
    weak = {field[-1] for field in fields if len(field) >= 2 and field[-2] in "VvWwu"}
    return {name for name in weak if not name.startswith("DW.ref.")}  # a pointer for exceptions, not code


def main(build: str) -> int:
    objects = sorted(Path(build).glob("**/CMakeFiles/*.dir/**/*.o"))
    if not any(part.startswith("kernel_baseline") for path in objects for part in path.parts):
        print(f"no kernel objects below {build}")
        return 1
    owners: dict[str, list[Path]] = defaultdict(list)
    for path in objects:
        for symbol in weak_symbols(path):
            owners[symbol].append(path)
    bad = 0
    for symbol, paths in sorted(owners.items()):
        if len(paths) > 1 and any(part.startswith("kernel_") for path in paths for part in path.parts):
            print(f"weak symbol {symbol} in", *(str(path.relative_to(build)) for path in paths))
            bad += 1
    return int(bad > 0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
