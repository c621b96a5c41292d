"""The state of one SLURM job in a word that Snakemake knows: running, success or failed. What ended it goes to standard error.

    python status.py JOB

A controller that does not answer has told nothing, so the job counts as running. A job that the controller has forgotten is
looked for in the accounting database, where there is one.
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
    state, why = look(job)
    if state == "COMPLETED":
        print("success")
    elif state in ENDED:
        print(f"SLURM job {job}: {state}, {why or ENDED[state]}", file=sys.stderr)
        print("failed")
    else:
        print("running")


def look(job: str) -> tuple[str, str]:
    """The state of a job, and more of why than the state says; no state where SLURM does not answer."""
    asked = ask("scontrol", "show", "job", "--oneliner", job)
    if asked.returncode == 0:
        facts = dict(field.partition("=")[::2] for field in asked.stdout.split())
        killed = facts["JobState"] == "FAILED" and facts["ExitCode"] == "0:9"
        return facts["JobState"], "killed by signal 9, as happens to a job that needs more than its memory (mem_mb)" * killed
    if "Invalid job id" not in asked.stderr:
        return "", ""
    recorded = ask("sacct", "--noheader", "--allocations", "--parsable2", f"--jobs={job}", "--format=State")
    # such as "CANCELLED by 0"
    state = re.match("[A-Z_]*", recorded.stdout)[0]
    return (state, "") if state else ("FAILED", "SLURM knows it no more, and no accounting does")


def ask(*command: str) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        return subprocess.CompletedProcess(command, 1, "", str(error))


if __name__ == "__main__":
    main(sys.argv[1])
