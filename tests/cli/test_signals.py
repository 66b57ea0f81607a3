"""Commands stopped by signals, in real processes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytest.importorskip("sklearn")
pytest.importorskip("clarabel")

from command_line import run

from tallytree import startup
from tallytree.cli.exits import Exit
from tallytree.learning import load

COMMAND = [sys.executable, "-m", "tallytree"]
WITH_PROCESSES = """
import runpy
from tallytree.learning import oracle
oracle._WORTH_PROCESSES = 0.0  # use them at once
runpy.run_module("tallytree", run_name="__main__", alter_sys=True)
"""
WORDS = [f"w{i} T{i % 7} {'B-NP' if i % 3 == 0 else 'I-NP' if i % 3 == 1 else 'O'}" for i in range(600)]
SENTENCES = "\n\n".join("\n".join(WORDS[i : i + 6]) for i in range(0, 600, 6)) + "\n"

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="looks for processes in /proc")


def heard() -> None:
    """In a new process: signals as they are for commands of a shell, whatever the tests run under."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


def started(*arguments, prepared=heard, command=COMMAND, **options):
    return subprocess.Popen(
        [*command, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepared,
        start_new_session=True,
        **options,
    )


def session(leader):
    """Return the processes of a session that still run."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def is_empty_soon(look, seconds=10.0):
    end = time.monotonic() + seconds
    while look() and time.monotonic() < end:
        time.sleep(0.1)
    return not look()


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("train.txt").write_text(SENTENCES)
    return tmp_path


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_training_in_processes_ends_with_its_workers(corpus, number):
    maps = corpus / "maps"
    maps.mkdir()
    options = ("--jobs", "2", "--tolerance", "1e-12", "--passes", "1000000", "--checkpoint", "run.npz")
    process = started(
        "train", "chunk", "train.txt", "-o", "m.npz", *options,
        env={**os.environ, "JOBLIB_TEMP_FOLDER": str(maps)}, command=[sys.executable, "-c", WITH_PROCESSES],
    )  # fmt: skip
    assert "pass 1" in process.stderr.readline()
    while len(session(process.pid)) <= 2:  # until a pass has ended that used workers
        assert "pass" in process.stderr.readline()
    began = time.monotonic()
    process.send_signal(number)
    out, err = process.communicate(timeout=60)
    assert time.monotonic() - began < 30
    assert process.returncode == 128 + number
    assert "Traceback" not in err
    assert "interrupted True" in " ".join(out.split())
    assert load("m.npz").interrupted_
    assert is_empty_soon(lambda: session(process.pid))
    assert is_empty_soon(lambda: list(maps.rglob("*.pkl")))
    assert not list(corpus.glob(".*.tmp"))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_files_that_are_half_written_go_away(corpus, number):
    assert run("train", "chunk", "train.txt", "-o", "m.npz", "--passes", "1", "--quiet") == Exit.OK
    process = started("chunk", "m.npz", "-", "-o", "o.txt")
    process.stdin.write(SENTENCES)
    process.stdin.flush()
    assert is_empty_soon(lambda: not list(corpus.glob(".o.txt.*.tmp")), 60)  # it has begun to write
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    name = "interrupted" if number == signal.SIGINT else f"stopped by {number.name}"
    assert err == f"tallytree: {name}\n"
    assert not list(corpus.glob(".o.txt.*")) and not Path("o.txt").exists()


def test_several_signals_at_once_are_one(corpus):
    assert run("train", "chunk", "train.txt", "-o", "m.npz", "--passes", "1", "--quiet") == Exit.OK
    process = started("chunk", "m.npz", "-", "-o", "o.txt")
    assert is_empty_soon(lambda: not list(corpus.glob(".o.txt.*.tmp")), 60)
    process.send_signal(signal.SIGTERM)
    for _ in range(20):
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode in (Exit.HUNG_UP, Exit.TERMINATED)
    assert "Traceback" not in err and not list(corpus.glob(".o.txt.*"))


def test_a_signal_that_is_ignored_stays_so(corpus):
    assert run("train", "chunk", "train.txt", "-o", "m.npz", "--passes", "1", "--quiet") == Exit.OK
    process = started(
        "chunk", "m.npz", "-", "-o", "o.txt", prepared=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)
    )
    process.stdin.write(SENTENCES)
    assert is_empty_soon(lambda: not list(corpus.glob(".o.txt.*.tmp")), 60)
    process.send_signal(signal.SIGHUP)
    process.communicate(timeout=60)
    assert process.returncode == Exit.OK
    assert Path("o.txt").read_text().count("\n\n") == 100


LOADING = """
import os, signal, sys

class Early:
    def find_spec(self, name, path=None, target=None):
        if name == "numpy" and "tallytree" in sys.modules:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
        return None

sys.meta_path.insert(0, Early())
"""


@pytest.mark.parametrize("command", [COMMAND, [str(Path(sys.executable).with_name("tallytree"))]])
def test_an_interrupt_while_loading_is_no_traceback(corpus, command):
    if not Path(command[0]).exists():
        pytest.skip("the command is not installed beside Python")
    Path("sitecustomize.py").write_text(LOADING)
    done = subprocess.run(
        [*command, "schema"],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=heard,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(corpus), os.environ.get("PYTHONPATH", "")])},
    )
    assert (done.returncode, done.stderr) == (Exit.INTERRUPTED, "tallytree: interrupted\n")


WORKER = """
import os, signal, sys
sys.argv[0] = "/bin/tallytree"  # as joblib sets it
import tallytree.startup
os.kill(os.getpid(), signal.SIGINT)
"""


def test_workers_end_without_a_word():
    done = subprocess.run(
        [sys.executable, "-c", WORKER], capture_output=True, text=True, check=False, preexec_fn=heard
    )
    assert (done.returncode, done.stderr) == (Exit.INTERRUPTED, "")


def test_nothing_is_loaded_before_an_interrupt_is_heard():
    text = (
        "import sys; before = {*sys.modules}; exec(open(sys.argv[1]).read()); print({*sys.modules} - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, startup.__file__], capture_output=True, text=True, check=True
    )
    assert done.stdout == "set()\n"


def test_the_library_leaves_signals_alone():
    text = "import signal, tallytree; print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, preexec_fn=heard
    )
    assert done.stdout == "True\n"


def test_a_command_gives_handlers_back(corpus):
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
    run("train", "chunk", "train.txt", "-o", "m.npz", "--passes", "1", "--quiet")
    assert before == [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)]
