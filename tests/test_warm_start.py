"""Jobs that start warm are the jobs they would be by themselves: outputs, environment, status, and ends of every kind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensemblepp.warm_start import VARIABLE, ask

#: A stop for what hangs.
PATIENCE = 120

#: What a job does here, by its last argument.
SERVER = """
import os, signal, sys, time
from pathlib import Path
from ensemblepp.warm_start.server import serve

def run(arguments):
    what = arguments[-1]
    if what == "say":
        print("out", os.getcwd(), os.environ["OWN"], sys.stdin.read())
        print("err", file=sys.stderr)
        return 3
    if what == "raise":
        raise ValueError("no such thing")
    if what == "leave":
        sys.exit(2)
    if what == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if what.endswith("saves"):
        def save(*_):
            Path(what).write_text("saved")
            sys.exit(5)
        signal.signal(signal.SIGTERM, save)
    Path(what).write_text(str(os.getpid()))
    time.sleep(600)

serve(Path(sys.argv[1]), run, modules=(), later=())
"""

ASK = "import sys; from ensemblepp.warm_start import ask; sys.exit(ask(sys.argv[1:]))"


def until(condition) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


@contextlib.contextmanager
def served(folder: Path, script: str = SERVER) -> Iterator[tuple[dict[str, str], subprocess.Popen]]:
    """A server's environment for jobs, and its process."""
    folder.mkdir()
    process = subprocess.Popen([sys.executable, "-c", script, str(folder / "socket")], stdin=subprocess.PIPE)
    try:
        until((folder / "socket").exists)
        yield os.environ | {VARIABLE: str(folder / "socket"), "OWN": "value"}, process
    finally:
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def command(what: object) -> list[str]:
    return [sys.executable, "-c", ASK, "--threads", "1", "simulate", str(what)]


def test_output_folder_environment_and_status_are_the_job_s(tmp_path):
    with served(tmp_path / "warm") as (environment, _):
        (tmp_path / "here").mkdir()
        for _ in range(2):
            done = subprocess.run(
                command("say"), cwd=tmp_path / "here", env=environment, input="", capture_output=True, text=True, check=False
            )
            assert (done.returncode, done.stdout, done.stderr) == (3, f"out {tmp_path / 'here'} value \n", "err\n")


@pytest.mark.parametrize(
    ("what", "status", "words"),
    [("raise", 1, "ValueError: no such thing"), ("leave", 2, ""), ("die", 1, "the process that ran this job died")],
)
def test_other_ends(tmp_path, what, status, words):
    with served(tmp_path / "warm") as (environment, _):
        done = subprocess.run(command(what), env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == status
        assert words in done.stderr
        # the server goes on
        assert subprocess.run(command("leave"), env=environment, check=False).returncode == 2


@pytest.mark.parametrize(
    ("how", "waits"),
    [
        ('modules=(), later=("of_use:get_ready",)', False),
        ('modules=("of_use:get_ready",), later=(), at_once=True', False),
        ('modules=("of_use:get_ready",), later=()', True),
    ],
)
def test_what_is_loaded_before_a_job_asks(tmp_path, how, waits):
    """What only later jobs need, and all where there will be jobs; else nothing that no job may need."""
    (tmp_path / "of_use.py").write_text("from pathlib import Path\ndef get_ready(): Path('ready').touch()")
    script = f"""
import os, sys
from pathlib import Path
from ensemblepp.warm_start.server import serve
os.chdir({str(tmp_path)!r})
sys.path.append({str(tmp_path)!r})
serve(Path(sys.argv[1]), lambda arguments: 7, {how})
"""
    with served(tmp_path / "warm", script) as (environment, _):
        if waits:
            # as long as the others take several times over
            time.sleep(0.5)
            assert not (tmp_path / "ready").exists()
        else:
            until((tmp_path / "ready").exists)
        assert subprocess.run(command("ask"), env=environment, check=False).returncode == 7
    assert (tmp_path / "ready").exists()


def alive(pid: int) -> bool:
    status = Path(f"/proc/{pid}/status")
    return status.exists() and "\nState:\tZ" not in status.read_text()


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks /proc for processes")
# not SIGINT, which a shell makes background jobs ignore
@pytest.mark.parametrize("sent", [signal.SIGKILL, signal.SIGTERM])
def test_a_killed_job_takes_its_process_along(tmp_path, sent):
    with served(tmp_path / "warm") as (environment, _):
        job = subprocess.Popen(command(tmp_path / "pid"), env=environment, stderr=subprocess.DEVNULL)
        until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text())
        process = int((tmp_path / "pid").read_text())
        assert process != job.pid
        assert alive(process)
        job.send_signal(sent)
        assert job.wait(PATIENCE) == (128 + sent if sent == signal.SIGTERM else -sent)
        until(lambda: not alive(process))


@pytest.mark.skipif(not Path("/proc").exists(), reason="asks /proc for processes")
@pytest.mark.parametrize(("sent", "status"), [(signal.SIGTERM, 5), (signal.SIGKILL, -signal.SIGKILL)])
def test_its_process_is_told_and_may_save_what_it_has(tmp_path, sent, status):
    """A job that is told to end waits until it has; of one that is killed, it does so all the same."""
    with served(tmp_path / "warm") as (environment, _):
        path = tmp_path / "saves"
        job = subprocess.Popen(command(path), env=environment, stderr=subprocess.DEVNULL)
        until(lambda: path.exists() and path.read_text())
        process = int(path.read_text())
        job.send_signal(sent)
        assert job.wait(PATIENCE) == status
        until(lambda: not alive(process))
        assert path.read_text() == "saved"


def test_the_server_ends_with_the_process_that_started_it(tmp_path):
    """However that ends; the socket and its folder are gone."""
    script = f"""
import os, signal, sys
from pathlib import Path
from ensemblepp.warm_start.server import start
server = start()
print(server.pid, os.environ[{VARIABLE!r}], flush=True)
while not Path(os.environ[{VARIABLE!r}]).exists():
    pass
os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, path = done.stdout.split()
    until(lambda: not alive(int(pid)))
    assert not Path(path).parent.exists()


def test_what_is_not_served(tmp_path, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    assert ask(["simulate", "say"]) is None
    # nobody listens
    monkeypatch.setenv(VARIABLE, str(tmp_path / "socket"))
    assert ask(["simulate", "say"]) is None
    with served(tmp_path / "warm") as (environment, _):
        monkeypatch.setenv(VARIABLE, environment[VARIABLE])
        for other in ([], ["--threads", "1"], ["embed", "say"], ["--threads", "2", "simulate", "say"]):
            assert ask(other) is None
        for served_too in (["--threads", "1", "present", "leave"], ["aggregate", "leave"]):
            assert ask(served_too) == 2


def test_a_warm_run_is_a_cold_run_byte_by_byte(tmp_path):
    """With the real command. What it loads leaves no thread but memory's own, as a fork needs it."""
    script = """
import sys
from pathlib import Path
from ensemblepp import cli
from ensemblepp.warm_start.server import LANGUAGE_MODELS, LATER, MODULES, serve

cli._settle_surroundings(1)
serve(Path(sys.argv[1]), cli.main, modules=MODULES + LATER + LANGUAGE_MODELS, later=())
"""
    spec = {
        "environment": {
            "name": "quadratic",
            "kind": "quadratic",
            "options": {"dimension": 5, "candidates": 9, "offered": 3, "features": "sphere", "scale": 1.0, "noise": 0.1},
        },
        "agent": {"name": "ucb", "kind": "linear_ucb", "options": {"prior_variance": 1.0, "width": 1.0, "delta": 0.1}},
        "engine": "step_by_step",
        "ensemble_size": 0,
        "horizon": 20,
        "seeds": [0, 1],
        "device": "cpu",
    }
    files = {}
    with served(tmp_path / "warm", script) as (environment, server):
        for name, own in (("cold", os.environ | {VARIABLE: ""}), ("warm", environment)):
            arguments = ["--threads", "1", "simulate", "--spec", json.dumps(spec), "--output", f"{name}.nc"]
            done = subprocess.run(
                [sys.executable, "-m", "ensemblepp", *arguments],
                cwd=tmp_path,
                env=own,
                capture_output=True,
                text=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            files[name] = (tmp_path / f"{name}.nc").read_bytes()
            used = json.loads((tmp_path / f"{name}.json").read_text())
            assert used["cpu_seconds"] > 0
            assert used["peak_memory_mb"] > 1
        threads = [path.read_text().strip() for path in Path(f"/proc/{server.pid}/task").glob("*/comm")]
    assert files["warm"] == files["cold"]
    # of memory's own thread the allocator takes care at a fork
    assert [name for name in threads[1:] if not name.startswith("jemalloc")] == []


def test_asking_imports_nothing():
    slow = {"numpy", "argparse", "typing", "subprocess", "ensemblepp.cli"}
    script = f"import sys; import ensemblepp.warm_start; print({slow} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
