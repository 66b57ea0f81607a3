"""Shell completion offers the words of the commands."""

import os
import pty
import select
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from command_line import said


def completed(script: str, *words: str) -> list[str]:
    listed = " ".join(f"'{word}'" for word in words)
    ask = f"COMP_WORDS=({listed}); COMP_CWORD={len(words) - 1}; _tallytree; echo ${{COMPREPLY[@]}}"
    return subprocess.run(
        ["bash", "-c", f"{script}\n{ask}"], capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_completion_in_bash(files, capsys):
    script = said(capsys, "completion", "bash")
    assert completed(script, "tallytree", "so") == ["solve"]
    assert completed(script, "tallytree", "solve", "--obj") == ["--objective"]
    assert completed(script, "tallytree", "solve", "--format", "") == ["json", "uai", "wcsp", "cfn"]
    assert completed(script, "tallytree", "solve", "week.j") == ["week.json"]
    assert completed(script, "tallytree", "completion", "f") == ["fish"]
    assert completed(script, "tallytree", "train", "chunk", "--scaling", "s") == ["slack"]
    assert completed(script, "tallytree", "train", "pa") == ["parse"]


WORDS = {
    "tallytree so": "solve",
    "tallytree solve --obj": "--objective",
    "tallytree solve --format j": "json",
    "tallytree solve week.j": "week.json",
    "tallytree train ch": "chunk",
    "tallytree train chunk week.j": "week.json",
    "tallytree train chunk --scaling sl": "slack",
    "tallytree completion f": "fish",
}


@pytest.mark.skipif(shutil.which("fish") is None, reason="no fish")
def test_completion_in_fish(files, capsys):
    Path("script.fish").write_text(said(capsys, "completion", "fish"))
    for typed, whole in WORDS.items():
        ask = ["fish", "--no-config", "-c", f"source script.fish; complete -C '{typed}'"]
        out = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        assert [line.partition("\t")[0] for line in out.splitlines()] == [whole]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="no zsh")
def test_completion_in_zsh(files, capsys):
    """In a terminal, because zsh completes only there: each line is typed, followed by a tab."""
    Path("script.zsh").write_text(said(capsys, "completion", "zsh"))
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["TERM"] = "dumb"
        os.execvp("zsh", ["zsh", "-f", "-i"])
    seen = ""

    def until(text: str) -> None:
        nonlocal seen
        while text not in seen:
            ready, _, _ = select.select([terminal], [], [], 30)
            assert ready, f"{text!r} is not in {seen!r}"
            seen += os.read(terminal, 4096).decode(errors="replace")

    try:
        os.write(terminal, b"autoload -U compinit; compinit -u -d dump; source script.zsh; echo rea''dy\n")
        until("ready\r\n")
        for typed, whole in WORDS.items():
            seen = ""
            os.write(terminal, typed.encode() + b"\t")
            until(f"{typed.rpartition(' ')[0]} {whole}")
            os.write(terminal, b"\x15")
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_scripts_for_other_shells_know_the_commands(shell, capsys):
    script = said(capsys, "completion", shell)
    assert all(name in script for name in ("k-best", "train", "chunk-f1"))
