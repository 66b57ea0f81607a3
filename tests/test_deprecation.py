"""Deprecated names: each refers to the object of the new name, and warns when it is used."""

import importlib
import pickle
import warnings

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

import tallytree as tt
from tallytree.deprecation import REMOVAL
from tallytree.learning import BestDecoder, KBestDecoder

RENAMED = [
    ("tallytree", "AugmentedModel", "ExplicitModel"),
    ("tallytree", "augment", "explicit_model"),
    ("tallytree.io", "Problem", "ProblemFile"),
    ("tallytree.learning", "Best", "BestDecoder"),
    ("tallytree.learning", "KBest", "KBestDecoder"),
    ("tallytree.learning", "Problem", "TrainingProblem"),
    ("tallytree.learning", "path", "regularisation_path"),
    ("tallytree.learning.decoding", "Best", "BestDecoder"),
    ("tallytree.learning.decoding", "KBest", "KBestDecoder"),
]


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_an_old_name_is_the_new_object_and_warns_at_the_line_that_uses_it(module, old, new):
    home = importlib.import_module(module)
    text = f"{module}.{old} is now called {module}.{new}; the old name will be removed in release {REMOVAL}"
    with pytest.warns(DeprecationWarning) as caught:
        known = getattr(home, old)
    assert known is getattr(home, new)
    assert [(str(one.message), one.filename) for one in caught] == [(text, __file__)]


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_an_old_name_can_be_imported(module, old, new):
    names: dict = {}
    with pytest.warns(DeprecationWarning, match=f"is now called {module}.{new}") as caught:
        exec(compile(f"from {module} import {old}", "a_users_file.py", "exec"), names)
    assert names[old] is getattr(importlib.import_module(module), new)
    assert {one.filename for one in caught} == {"a_users_file.py"}


@pytest.mark.parametrize(("module", "old", "new"), RENAMED)
def test_only_the_new_name_is_listed(module, old, new):
    home = importlib.import_module(module)
    listed = getattr(home, "__all__", dir(home))  # packages list their names, modules do not
    assert old not in dir(home)
    assert old not in listed
    assert new in listed


@pytest.mark.parametrize("module", sorted({module for module, _, _ in RENAMED}))
def test_new_names_do_not_warn_and_unknown_ones_are_refused(module):
    home = importlib.import_module(module)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert all(hasattr(home, name) for name in getattr(home, "__all__", dir(home)))
        with pytest.raises(AttributeError, match=f"module '{module}' has no attribute 'nothing'"):
            home.nothing  # noqa: B018


def test_instances_are_those_of_the_old_class():
    model = tt.explicit_model(tt.Model([2], [((0,), [0, 1])]), [tt.count(state=1)])
    with pytest.warns(DeprecationWarning, match="ExplicitModel"):
        assert isinstance(model, tt.AugmentedModel)


@pytest.mark.parametrize("decoder", [BestDecoder(), KBestDecoder(3)])
def test_a_pickle_made_under_the_old_name_is_read(decoder):
    name = type(decoder).__name__
    old = pickle.dumps(decoder, protocol=0).replace(name.encode(), name.removesuffix("Decoder").encode())
    with pytest.warns(DeprecationWarning, match=name) as caught:
        assert pickle.loads(old) == decoder
    assert caught[0].filename == __file__
    assert pickle.loads(pickle.dumps(decoder)) == decoder


def test_the_option_tallies_is_layout():
    model = tt.Model.chain([[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]])
    ones = tt.count(model, state=1)
    with pytest.warns(DeprecationWarning, match=r"tallies= is now called layout=.* 0\.3\.0") as caught:
        old = tt.profile(model, [ones], tallies="cells")
    assert caught[0].filename == __file__
    assert old.plan.mode == tt.profile(model, [ones], layout="cells").plan.mode == "cells"
    with pytest.warns(DeprecationWarning, match="tallies= is now called layout="):
        assert tt.solve_batch([model], tallies="rows")[0].score == 3.0


def test_rows_that_are_allowed_are_rows_where():
    model = tt.Model.chain([[0.0, 1.0], [0.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]])
    ones = tt.count(model, state=1)
    profile = tt.profile(model, [ones])
    with pytest.warns(DeprecationWarning, match="is now called rows_where") as caught:
        old = profile.allowed(ones >= 1)
    assert caught[0].filename == __file__
    assert old.tolist() == profile.rows_where(ones >= 1).tolist() == [1, 2]
