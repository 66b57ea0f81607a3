"""``tallytree`` on the command line: solve, plan, profile, k-best, convert, and more.

The package is imported by the command only, so that ``import tallytree`` stays light.
"""

from tallytree.cli.commands import main

__all__ = ["main"]
