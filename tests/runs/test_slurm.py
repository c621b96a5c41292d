"""Patience of Snakemake's SLURM executor. SLURM's side is written here; with a real one, see tests/slurm/test_slurm.py."""

from __future__ import annotations

import asyncio
import os
from types import SimpleNamespace

import pytest
import snakemake_executor_plugin_slurm

from ensemblepp.runs import slurm


@pytest.fixture
def ping(tmp_path, monkeypatch):
    """Lets `scontrol ping` say each of some words, and then the last of them."""
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(slurm, "POLL", 0.0)
    monkeypatch.setattr(slurm, "_silent", False)

    def says(*words: str) -> None:
        lines = tmp_path / "lines"
        lines.write_text("".join(f"Slurmctld(primary) at SETUP is {word}\n" for word in words))
        script = tmp_path / "scontrol"
        script.write_text(f'#!/bin/sh\nhead -n 1 {lines}\n[ "$(wc -l < {lines})" -eq 1 ] || sed -i 1d {lines}\n')
        script.chmod(0o755)

    return says


def plugin(ages: list[int | None], answers: list[dict[str, str] | None], submitted: list[str]) -> SimpleNamespace:
    """What is patched of the executor, with such answers in turn."""

    async def query_job_status(command: str, logger: object):
        answer = answers.pop(0)
        return (None, None) if answer is None else (answer, 0.1)

    executor = SimpleNamespace(run_job=lambda self, job: submitted.append(job))
    fake = SimpleNamespace(get_min_job_age=lambda: ages.pop(0), query_job_status=query_job_status, Executor=executor)
    slurm.be_patient(fake)
    return fake


def test_what_is_patched_is_there():
    """In the locked version of the executor."""
    assert callable(snakemake_executor_plugin_slurm.get_min_job_age)
    assert asyncio.iscoroutinefunction(snakemake_executor_plugin_slurm.query_job_status)
    assert callable(snakemake_executor_plugin_slurm.Executor.run_job)


def test_a_setting_is_asked_for_until_slurm_answers_and_then_kept(ping):
    ping(*["DOWN"] * 20, "UP")
    fake = plugin([*[None] * 21, 300], [], [])
    assert fake.get_min_job_age() == 300
    assert fake.get_min_job_age() == 300


def test_a_setting_that_slurm_does_not_tell_is_not_asked_for_for_ever(ping):
    ping("UP")
    fake = plugin([None] * slurm.ATTEMPTS, [], [])
    assert fake.get_min_job_age() is None


def test_jobs_are_asked_for_until_slurm_answers(ping, capfd):
    """It is told once that it is away, and once that it is back."""
    ping("DOWN", "DOWN", "UP")
    fake = plugin([], [None, None, None, {"7": "RUNNING"}], [])
    assert asyncio.run(fake.query_job_status("squeue", None)) == ({"7": "RUNNING"}, 0.1)
    said = capfd.readouterr().err.splitlines()
    assert said[:2] == ["SLURM does not answer; its jobs run on, waiting for it", "SLURM answers again"]
    assert said[2:] == ["SLURM answers, but not to this, which is asked again: squeue"]


def test_a_cancelled_job_is_one_whoever_did_it(ping):
    """Also an answer without jobs is one."""
    fake = plugin([], [{"7": "CANCELLED by 0", "8": "COMPLETED", "9": ""}, {}], [])
    assert asyncio.run(fake.query_job_status("sacct", None))[0] == {"7": "CANCELLED", "8": "COMPLETED", "9": ""}
    assert asyncio.run(fake.query_job_status("sacct", None))[0] == {}


def test_nothing_is_submitted_while_slurm_is_away(ping, capfd):
    ping("DOWN", "UP")
    submitted = []
    fake = plugin([], [], submitted)
    fake.Executor.run_job(None, "a job")
    assert submitted == ["a job"]
    assert "SLURM answers again" in capfd.readouterr().err


def test_of_the_jobs_of_a_process_that_is_gone_those_that_run_are_waited_for(ping, tmp_path, monkeypatch, capfd):
    """Those that wait are cancelled. Not those of other folders or names, nor the job that this process is in."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SLURM_JOB_ID", "3")
    queue = tmp_path / "queue"
    jobs = [
        (1, "ensemblepp_a", "."),
        (2, "ensemblepp_b", "."),
        (3, "ensemblepp_a", "."),
        (4, "other", "."),
        (5, "ensemblepp_a", "x"),
    ]
    queue.write_text("".join(f"{job}|{name}|{tmp_path / folder}\n" for job, name, folder in jobs))
    scripts = {
        # away at first; each look at the queue after job 2 was cancelled is one at which job 1 may have ended
        "squeue": f"[ -e away ] || {{ touch away; exit 1; }}; cat {queue}; [ ! -e told ] || sed -i /^1/d {queue}; "
        "[ ! -e cancelled ] || touch told",
        "scancel": f'echo "$@" >> cancelled; sed -i /^2/d {queue}',
    }
    for name, script in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    slurm.settle()
    assert (tmp_path / "cancelled").read_text().splitlines()[0] == "--state=PENDING 1 2"
    assert capfd.readouterr().err.splitlines() == [
        "SLURM does not answer; waiting to ask it for jobs of the process that is gone",
        "waiting for SLURM job 1 of the process that is gone (or scancel it)",
    ]
    assert [line[0] for line in queue.read_text().splitlines()] == ["3", "4", "5"]
