"""Snakemake is killed, and started again as if nothing had happened."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest
from project import HANGS, Project

pytestmark = [pytest.mark.faults, pytest.mark.workflow]

RUNS = [
    f"results/smoke/runs/finite-d10-100/{agent}/seeds{seeds}.nc"
    for agent in ("ts/M0/T50", "linear-ensemble++/M2/T50", "linear-ensemble++/M8/T50")
    for seeds in ("0-1", "2-3")
]


def start(project: Project, *arguments: str) -> subprocess.Popen[bytes]:
    """Snakemake at work: it has locked the folder, and the first run file is there or is being made."""
    command = [sys.executable, "-m", "snakemake", *arguments, "--config", "scale=smoke", "--", *RUNS]
    process = subprocess.Popen(
        command, cwd=project.folder, env=project.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    end = time.monotonic() + HANGS
    # a job of a process that was killed may make a run file as well, but a lock is this one's once it has entered the list
    signs = (f".snakemake/controllers/*-{process.pid}.json", ".snakemake/locks/*.lock", "results/smoke/runs/**/seeds*")
    while not all(list(project.folder.glob(sign)) for sign in signs):
        assert process.poll() is None
        assert time.monotonic() < end
        time.sleep(0.05)
    return process


def test_after_a_kill_the_same_command_goes_on(bare):
    """The process alone is killed: its jobs may live on, and are not disturbed. Twice, and then it goes on to the end."""
    for _ in range(2):
        process = start(bare, "--cores", "1")
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert list((bare.folder / ".snakemake/locks").iterdir())
        for path in (bare.folder / "results/smoke").rglob("seeds*"):
            path.unlink()
    again = bare.snakemake(*RUNS)
    assert again.returncode == 0, again.stdout
    assert f"removing the lock of process {process.pid} on {os.uname().nodename}, which is gone" in again.stdout
    made = bare.run_files()
    assert sorted(made) == sorted(RUNS)
    left = [path.name for path in (bare.folder / "results/smoke/runs").rglob("*") if path.suffix not in (".nc", ".json", "")]
    assert left == []
    resumed = subprocess.run(
        [sys.executable, "-m", "ensemblepp", "resume"],
        cwd=bare.folder,
        env=bare.environment | {"PYTHONPATH": str(bare.folder / "src")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert "Nothing to be done" in resumed.stdout + resumed.stderr
    assert bare.run_files() == made


def test_a_living_process_is_respected(bare):
    """It is only held up; a second one leaves, with Snakemake's words, and the first one ends well."""
    process = start(bare, "--cores", "1")
    process.send_signal(signal.SIGSTOP)
    second = bare.snakemake(*RUNS)
    process.send_signal(signal.SIGCONT)
    assert second.returncode != 0
    assert "Directory cannot be locked" in second.stdout
    assert process.wait() == 0
    assert sorted(bare.run_files()) == sorted(RUNS)
