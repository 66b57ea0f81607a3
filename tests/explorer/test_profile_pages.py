"""Pages of profiles, without a problem file."""

import json
from pathlib import Path

import numpy as np
import pytest
from memory import rolled

import tallytree as tt
from tallytree.answers.profile import Profile
from tallytree.explorer import page, write_page
from tallytree.io import Parameter, ProblemFile


def test_from_a_profile(tmp_path: Path):
    """The same page as from a problem, without one."""
    model = tt.Model.chain(np.array([[0.0, 1], [0, 2], [0, -4]]), np.eye(2))
    ones = tt.count(model, state=1, name="ones")
    found = tt.profile(model, [ones])
    weighted = {"objective": "score - weight*ones", "parameters": {"weight": 1.5}}
    for asked in ({}, {"where": "ones >= 1"}, {"where": ones <= 2}, weighted):
        problem = ProblemFile(model, [ones], **asked)
        tt.explorer.write_page(found, tmp_path / "a.html", title="ones", **asked)
        tt.explorer.write_page(problem, tmp_path / "b.html", title="ones")
        assert (tmp_path / "a.html").read_text("utf-8") == (tmp_path / "b.html").read_text("utf-8")
    assert page(found) == page(ProblemFile(model, [ones])) == page(ProblemFile(model, [ones]), found)
    twice = tt.profile(model, [tt.count(state=1), tt.count(state=1, variables=[0])])
    assert f'"statistics":{json.dumps(twice.names, separators=(",", ":"))}' in page(twice)


def test_labellings_of_a_profile_with_checkpoints_come_from_all_tables(monkeypatch: pytest.MonkeyPatch):
    """A page needs every labelling: decoding each from checkpoints would repeat the pass as often."""
    rng = np.random.default_rng(0)
    model = tt.Model.grid(rng.normal(size=(3, 12, 2)), np.eye(2), np.eye(2))
    counted = [tt.count(state=1, name="ones").on(model)]
    whole = Profile.of(model, counted, tt.plan(model, counted))
    rolling = Profile.of(model, counted, rolled(tt.plan(model, counted), 4))
    assert (whole.plan.segments, rolling.plan.segments > 1, rolling.plan.every_table) == (1, True, True)
    monkeypatch.setattr(rolling, "_messages", None)  # the tables would be needed to decode from checkpoints
    run = Profile._run
    monkeypatch.setattr(Profile, "_run", lambda self: self._options.every_table and run(self))
    assert page(rolling) == page(whole)


def test_what_the_explorer_does_not_show(tmp_path: Path):
    model = tt.Model.chain(np.zeros((4, 2)), np.eye(2), states=["a", "b"])
    file = tmp_path / "page.html"
    with pytest.raises(tt.ModelError, match=r"got Model; pass tallytree.profile\(model, statistics\)"):
        write_page(model, file)
    with pytest.raises(tt.ModelError, match="has its own objective"):
        write_page(ProblemFile(model), file, where="ones >= 1")
    with pytest.raises(tt.ModelError, match="objective must be a formula, as a string; got <function"):
        write_page(tt.profile(model), file, objective=lambda score: score)
    with pytest.raises(tt.ModelError, match="of a reduction"):
        write_page(tt.profile(tt.transduce(model, tt.regular("a .* b"))), file)
    with pytest.raises(tt.ModelError, match="single precision"):
        write_page(tt.profile(model, [tt.count(state=1)], precision="single"), file)
    assert not file.exists()


def test_the_range_of_a_slider_is_given_as_in_a_file(tmp_path: Path):
    model = tt.Model.chain(np.zeros((4, 2)), np.eye(2))
    profile = tt.profile(model, [tt.count(state=1, name="ones")])
    pages = []
    for slider in ({"value": 0.5, "low": 0, "high": 4}, Parameter(0.5, 0, 4)):
        write_page(profile, tmp_path / "page.html", objective="score - w*ones", parameters={"w": slider})
        pages.append((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert pages[0] == pages[1]
    for wrong in ({"low": 0}, {"value": 0.5, "hihg": 4}, {"value": "a"}):
        with pytest.raises(
            tt.ModelError, match=r"the parameter 'w' is .*; expected a finite number, or tally"
        ):
            write_page(profile, tmp_path / "page.html", objective="score - w*ones", parameters={"w": wrong})
