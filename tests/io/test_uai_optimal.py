"""Plain MAP on instances of the UAI competitions, compared with published optimal values."""

import time
from pathlib import Path

import pytest

import tallytree as tt

FOLDER = Path(__file__).parents[3] / "shared" / "data" / "uai"
OPTIMAL = FOLDER / "optimal.tsv"
NAMES = ["Segmentation_11", "Segmentation_12", "Pedigree_11", "Promedus_27", "Alchemy_11", "CSP_12"]


@pytest.mark.skipif(not OPTIMAL.exists(), reason=f"{OPTIMAL} is not there")
@pytest.mark.parametrize("name", NAMES)
def test_the_best_score_is_the_proven_one(name):
    values = dict(line.split("\t") for line in OPTIMAL.read_text(encoding="utf-8").splitlines()[1:])
    model = tt.io.read_uai(FOLDER / f"{name}.uai", evidence=FOLDER / f"{name}.uai.evid")
    start = time.perf_counter()
    plan = tt.plan(model)
    planned = time.perf_counter()
    best = tt.profile(model, plan=plan).best()
    done = time.perf_counter()
    print(f"{name}: width {plan.width}, {plan.operations:.3g} operations, {plan.peak_bytes / 2**20:.0f} MiB")
    print(f"planned in {planned - start:.2f} s, solved in {done - planned:.2f} s")
    assert best.score == pytest.approx(float(values[name]), abs=1e-6)
    assert model.score(best.assignment) == pytest.approx(best.score, abs=1e-9)
