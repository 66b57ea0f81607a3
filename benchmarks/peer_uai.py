"""Solve a model in a UAI file with toulbar2: ``python peer_uai.py FILE TIMEOUT`` prints JSON.

The seconds are those of reading and solving, without imports.
"""

from __future__ import annotations

import json
import sys
import time


def main(path: str, timeout: int) -> None:
    from pytoulbar2 import CFN

    start = time.perf_counter()
    network = CFN(None, resolution=6, verbose=-1)
    network.Read(path)
    found = network.Solve(timeLimit=timeout)
    seconds = time.perf_counter() - start
    proven = found is not None and not getattr(network, "Limit", False)
    print(json.dumps({"assignment": list(found[0]) if found else None, "proven": proven, "seconds": seconds}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
