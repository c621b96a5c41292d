"""The state of one SLURM job in a word that Snakemake knows: running, success or failed. What ended it goes to standard error.

    python status.py JOB

A controller that does not answer has told nothing, so the job counts as running. A job that squeue has forgotten is looked for
in the accounting database, where there is one.
"""

import re
import subprocess
import sys

#: States in which a job has ended, and what they mean; all others are on the way.
ENDED = {
    "COMPLETED": "",
    "BOOT_FAIL": "its node did not start",
    "CANCELLED": "cancelled by a person or an administrator",
    "DEADLINE": "its deadline passed",
    "FAILED": "it ended with an error",
    "NODE_FAIL": "its node failed",
    "OUT_OF_MEMORY": "it asked for less memory (mem_mb) than it needs",
    "PREEMPTED": "it made way for another job",
    "TIMEOUT": "it reached its time limit (runtime)",
}


def main(job: str) -> None:
    state = look(job)
    if state in (None, ""):
        print("running")
        return
    if state == "COMPLETED":
        print("success")
    elif state in ENDED:
        print(f"SLURM job {job}: {state}, {ENDED[state]}", file=sys.stderr)
        print("failed")
    elif state == "UNKNOWN":
        print(f"SLURM job {job}: SLURM knows it no more, and there is no accounting that does", file=sys.stderr)
        print("failed")
    else:
        print("running")


def look(job: str) -> str | None:
    """The state of a job in one word, UNKNOWN if SLURM has none; None if SLURM does not answer."""
    asked = ask("squeue", "--noheader", "--states=all", f"--jobs={job}", "--format=%T %r")
    if asked.returncode == 0 and asked.stdout.split():
        state, reason = asked.stdout.split()[:2]
        return "OUT_OF_MEMORY" if state == "FAILED" and reason == "OutOfMemory" else state
    if asked.returncode != 0 and "Invalid job id" not in asked.stderr:
        return None
    recorded = ask("sacct", "--noheader", "--allocations", "--parsable2", f"--jobs={job}", "--format=State")
    # such as "CANCELLED by 0"
    return (re.findall(r"^[A-Z_]+", recorded.stdout) or ["UNKNOWN"])[0]


def ask(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


if __name__ == "__main__":
    main(sys.argv[1])
