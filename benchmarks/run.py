"""Run the benchmarks: ``python benchmarks/run.py [--quick] [--json FILE] [--forget] [names …]``.

Results are stored as ratios and compared with the last run of each benchmark: see ``history.py``.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import history
import numpy as np

import tallytree as tt
from tallytree.kernels import native

NAMES = (
    "rates",
    "scaling",
    "end_to_end",
    "memory",
    "rolling",
    "certificate",
    "distribution",
    "kbest",
    "losses",
    "sequences",
    "corpus",
    "peers",
    "growth",
    "segmentation",
    "batches",
    "threads",
    "single",
    "transformations",
    "widths",
    "bounds",
    "sentences",
    "parsing",
    "prediction",
    "torch_layers",
    "torch_gpu",
)


def machine() -> dict[str, Any]:
    """Return the machine that the figures were measured on."""
    return {
        "tallytree": tt.__version__,
        "instructions": native.instruction_set(),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }


def as_json(data: dict[str, Any]) -> str:
    """Write what was measured; NumPy's numbers and booleans become plain ones."""
    return json.dumps(data, indent=1, default=lambda value: value.tolist())


def keep(data: dict[str, Any], references: dict[str, float], *, quick: bool, forget: bool) -> None:
    """Compare the run with those before it, then store it."""
    found = history.figures(data, references)
    history.compare(history.before(quick, list(references)), found)
    if not forget:
        print(f"stored in {history.store(data['machine'], found, quick)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="Run the benchmarks, all or some.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"any of {', '.join(NAMES)}; default: all")
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer repeats")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write what was measured here, too")
    parser.add_argument("--forget", action="store_true", help="compare with the last run, but store nothing")
    args = parser.parse_args()
    unknown = set(args.names) - set(NAMES)
    if unknown:
        parser.error(f"unknown: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    data: dict[str, Any] = {"machine": machine()}
    references: dict[str, float] = {}
    print(", ".join(f"{key} {value}" for key, value in data["machine"].items()), end="\n\n")
    for name in args.names or NAMES:
        start, unit = time.perf_counter(), history.reference()
        data[name] = importlib.import_module(name).main(quick=args.quick)
        references[name] = min(unit, history.reference())
        print(f"({name}: {time.perf_counter() - start:.0f} s)\n", flush=True)
    keep(data, references, quick=args.quick, forget=args.forget)
    if args.json:
        args.json.write_text(as_json(data))


if __name__ == "__main__":
    main()
