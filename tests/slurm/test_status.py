"""What profiles/slurm-generic makes of every answer of SLURM. The answers are written here; real ones are in test_slurm.py."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

STATUS = Path(__file__).resolve().parents[2] / "profiles/slurm-generic/status.py"


def status(folder: Path, scontrol: str, sacct: str = "exit 1") -> tuple[str, str]:
    """What status.py says of job 7 on both outputs, where SLURM's programs do this."""
    for name, script in (("scontrol", scontrol), ("sacct", sacct)):
        path = folder / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    done = subprocess.run(
        [sys.executable, str(STATUS), "7"], env=environment, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout, done.stderr


def shown(state: str, code: str = "0:0") -> str:
    return f"echo 'JobId=7 JobName=ensemblepp_simulate UserId=a(1) Priority=1 JobState={state} Reason=None ExitCode={code}'"


@pytest.mark.parametrize("state", ["PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "SUSPENDED", "REQUEUED", "STOPPED"])
def test_a_job_on_its_way_is_running(state, tmp_path):
    assert status(tmp_path, shown(state)) == ("running\n", "")


def test_a_job_that_completed_is_a_success(tmp_path):
    assert status(tmp_path, shown("COMPLETED")) == ("success\n", "")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("CANCELLED", "cancelled by a person or an administrator"),
        ("FAILED", "it ended with an error"),
        ("NODE_FAIL", "its node failed"),
        ("OUT_OF_MEMORY", "it asked for less memory (mem_mb) than it needs"),
        ("PREEMPTED", "it made way for another job"),
        ("TIMEOUT", "it reached its time limit (runtime)"),
        ("BOOT_FAIL", "its node did not start"),
        ("DEADLINE", "its deadline passed"),
    ],
)
def test_a_job_that_failed_says_why(state, words, tmp_path):
    assert status(tmp_path, shown(state, "1:0")) == ("failed\n", f"SLURM job 7: {state}, {words}\n")


def test_a_job_that_was_killed_hints_at_memory(tmp_path):
    """Where SLURM watches memory without cgroups, it says no more than that."""
    words = "killed by signal 9, as happens to a job that needs more than its memory (mem_mb)"
    assert status(tmp_path, shown("FAILED", "0:9")) == ("failed\n", f"SLURM job 7: FAILED, {words}\n")


@pytest.mark.parametrize("error", ["Unable to contact slurm controller (connect failure)", "Socket timed out on send/recv", ""])
def test_a_controller_that_does_not_answer_has_told_nothing(error, tmp_path):
    """Not even when accounting would say something else."""
    assert status(tmp_path, f"echo 'slurm_load_jobs error: {error}' >&2; exit 1", "echo FAILED") == ("running\n", "")


FORGOTTEN = "echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1"


@pytest.mark.parametrize(
    ("sacct", "word", "said"),
    [
        ("echo COMPLETED", "success", ""),
        ("echo 'CANCELLED by 0'", "failed", "SLURM job 7: CANCELLED, cancelled by a person or an administrator\n"),
        ("echo RUNNING", "running", ""),
        ("echo 'Slurm accounting storage is disabled' >&2; exit 1", "failed", "no more, and no accounting does\n"),
    ],
)
def test_a_job_that_the_controller_has_forgotten_is_looked_up(sacct, word, said, tmp_path):
    output, error = status(tmp_path, FORGOTTEN, sacct)
    assert output == f"{word}\n"
    assert error.endswith(said)
    assert bool(error) == bool(said)
