"""What this project asks of SLURM itself, and patience with a controller that does not answer for a while."""

from __future__ import annotations

import asyncio
import functools
import os
import subprocess
import sys
import time
from types import ModuleType

#: Begins the names of our jobs; the profiles say the same.
PREFIX = "ensemblepp_"
#: Seconds between two questions to a controller that does not answer, or about jobs that are waited for.
POLL = 10.0
#: So often an executor asks for a setting of SLURM's that SLURM does not tell.
ATTEMPTS = 5


def settle() -> None:
    """Leave no job of this folder in the queue: cancel those that wait, wait for those that run."""
    said: object = ()
    while (jobs := _jobs()) != []:
        if jobs:
            # one that has begun meanwhile is not cancelled
            subprocess.run(["scancel", "--state=PENDING", *jobs], check=False)
            jobs = _jobs()
        if jobs != said and jobs != []:
            if jobs is None:
                say("SLURM does not answer; waiting to ask it for jobs of the process that is gone")
            else:
                say(f"waiting for SLURM job {', '.join(jobs)} of the process that is gone (or scancel it)")
            said = jobs
        if jobs != []:
            time.sleep(POLL)


def be_patient(plugin: ModuleType) -> None:
    """Let the executor `snakemake_executor_plugin_slurm` wait while SLURM does not answer.

    By itself (2.8.0) it turns to `sacct`, forgets all its jobs when that does not answer either, and is silent for ever;
    `sbatch` fails, and jobs use up their retries. It also takes "CANCELLED by 0", as sacct says it, for a job that runs.
    """
    ask_age, query, run_job = plugin.get_min_job_age, plugin.query_job_status, plugin.Executor.run_job
    known: int | None = None
    said = False

    @functools.wraps(ask_age)
    def get_min_job_age() -> int | None:
        nonlocal known
        attempts = 0
        while known is None and attempts < ATTEMPTS:
            known = ask_age()
            if known is None:
                attempts += _answers()
                time.sleep(POLL)
        return known

    @functools.wraps(query)
    async def query_job_status(command: str, logger: object) -> tuple[dict[str, str], float]:
        nonlocal said
        while (found := await query(command, logger))[0] is None:
            if _answers() and not said:
                say(f"SLURM answers, but not to this, which is asked again: {command}")
                said = True
            await asyncio.sleep(POLL)
        states, seconds = found
        return {job: (state.split() or [state])[0] for job, state in states.items()}, seconds

    @functools.wraps(run_job)
    def run(self: object, job: object) -> None:
        while not _answers():
            time.sleep(POLL)
        run_job(self, job)

    plugin.get_min_job_age, plugin.query_job_status, plugin.Executor.run_job = get_min_job_age, query_job_status, run


def say(line: str) -> None:
    """A line for the user, at once."""
    print(line, file=sys.stderr, flush=True)


def _jobs() -> list[str] | None:
    """The numbers of this folder's jobs that have not ended, without the job that this process is in; None if not known."""
    command = ["squeue", "--noheader", f"--user={os.getuid()}", "--format=%A|%j|%Z"]
    listed = subprocess.run(command, capture_output=True, text=True, check=False)
    if listed.returncode != 0:
        return None
    jobs = [line.split("|", 2) for line in listed.stdout.splitlines()]
    here, own = os.path.realpath("."), os.environ.get("SLURM_JOB_ID")
    return [job for job, name, folder in jobs if name.startswith(PREFIX) and os.path.realpath(folder) == here and job != own]


_silent = False


def _answers() -> bool:
    """Whether the controller does; a change is told."""
    global _silent
    asked = subprocess.run(["scontrol", "ping"], capture_output=True, text=True, check=False)
    answers = "is UP" in asked.stdout
    if answers == _silent:
        say("SLURM answers again" if answers else "SLURM does not answer; its jobs run on, waiting for it")
    _silent = not answers
    return answers
