"""What ``import tallytree`` brings."""

import subprocess
import sys

import pytest

import tallytree as tt

LAZY = ("explorer", "learning", "plot", "testing", "torch")


def test_heavy_packages_are_reached_but_not_imported_with_the_core():
    program = f"""
import sys
import tallytree as tt
print(sorted(m for m in ("matplotlib", "sklearn", "scipy", "tallytree.learning") if m in sys.modules))
print(all(hasattr(tt, name) and name in dir(tt) for name in {LAZY}))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


def test_a_name_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'plots'"):
        tt.plots  # noqa: B018
