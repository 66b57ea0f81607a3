"""Helpers for tests of UAI files."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, settings

from tallytree.model.model import Model

EXAMPLE = """MARKOV
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""

in_a_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)


def saved(folder: Path, text: str | bytes, name: str = "model.uai") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def labellings(model: Model) -> list[tuple[int, ...]]:
    return list(product(*(range(n) for n in model.cardinalities.tolist())))


def scores(model: Model) -> list[float]:
    return [float(model.score(np.array(y, dtype=int))) for y in labellings(model)]
