"""Progress on a terminal, and silence elsewhere."""

import io
import sys
import time

from tallytree.cli.text import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr("tallytree.cli.text._PATIENCE", 0.0)
    monkeypatch.setattr("tallytree.cli.text._PACE", 0.01)
    with progress("solving", shown=True):
        while "solving: 0 s" not in terminal.getvalue():
            time.sleep(0.01)
    assert terminal.getvalue().endswith("\r\033[K")
    quiet = Terminal()
    monkeypatch.setattr(sys, "stderr", quiet)
    with progress("solving", shown=False):
        pass
    assert quiet.getvalue() == ""
