"""Processes of Snakemake that work in this folder, and what one that was killed leaves: its lock, and jobs on the cluster.

Snakemake locks the folder, and cannot tell whether the owner of a lock still lives. Each of its processes here holds a lease,
so that it is known: the lock of one that is gone is removed, that of a living one stays and is respected.
"""

from __future__ import annotations

import atexit
import contextlib
import fcntl
import json
import os
import platform
import shutil
import time
from pathlib import Path
from typing import Any

from ensemblepp.errors import ResultError
from ensemblepp.runs import slurm
from ensemblepp.storage import leases
from ensemblepp.storage.leases import Lease

FOLDER = Path(".snakemake/controllers")
LOCKS = Path(".snakemake/locks")
#: Options with which Snakemake looks or tidies up, and runs no job.
LOOKS = {
    *("-n", "-np", "--dry-run", "--dryrun", "-S", "--summary", "-D", "--detailed-summary", "--dag", "--rulegraph"),
    *("--filegraph", "--d3dag", "--lint", "--report", "-l", "--list", "--list-rules", "--list-target-rules", "--list-changes"),
    *("--list-untracked", "--unlock", "--cleanup-metadata", "--delete-all-output"),
}


def enter(arguments: list[str]) -> Lease | None:
    """Take the place of a process of Snakemake before it looks at files and locks; the lease ends with this process.

    What processes that are gone have left is put in order first. Of their jobs on SLURM, those that run are waited for; those
    that wait are cancelled, as each would begin by deleting what another one has made meanwhile.

    Args:
        arguments: of Snakemake's command line; with one of LOOKS nothing happens.
    """
    if any(argument.partition("=")[0] in LOOKS for argument in arguments):
        return None
    FOLDER.mkdir(parents=True, exist_ok=True)
    mine = Lease(FOLDER / f"{platform.node()}-{os.getpid()}.json", "this folder", arguments=arguments)
    seen: dict[Path, int] = {}
    while (dead := _enter(mine, seen)) is None:
        time.sleep(leases.POLL)
    atexit.register(mine.__exit__)
    if any(owner.get("cluster") for owner in dead.values()) and shutil.which("squeue"):
        slurm.settle()
    for path in dead:
        if path != mine.path:
            path.unlink(missing_ok=True)
    (FOLDER / "last").write_text(json.dumps(arguments), encoding="utf-8")
    return mine


def last() -> list[str]:
    """The arguments with which Snakemake was last started here.

    Raises:
        ResultError: it never was.
    """
    try:
        return json.loads((FOLDER / "last").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise ResultError("nothing to resume: snakemake has not run in this folder; start it instead") from None


def _enter(mine: Lease, seen: dict[Path, int]) -> dict[Path, dict[str, Any]] | None:
    """Take `mine`, and a lock whose owner is gone away; the owners that are gone, by their files.

    None if it has to be waited to see whether the owner of a lock, on another host, lives: `seen` holds when each such gave its
    last sign of life at the first look.
    """
    with (FOLDER / "guard").open("w") as guard:
        with contextlib.suppress(OSError):  # some network file systems know no such locks
            fcntl.flock(guard, fcntl.LOCK_EX)
        living, dead = {}, {}
        for path in FOLDER.glob("*.json"):
            owner, silent = leases.read(path)
            (living if owner and not leases.gone(owner, silent) else dead)[path] = owner or {}
        locks = list(LOCKS.glob("*.lock"))
        if locks and not living and any(dead.values()):
            names = ", ".join(leases.described(owner) for owner in dead.values() if owner)
            slurm.say(f"removing the lock of {names}, which is gone")
            for lock in locks:
                lock.unlink(missing_ok=True)
        if locks and living and not any(_lives(path, owner, seen) for path, owner in living.items()):
            return None
        mine.__enter__()
        # jobs may be those of a process that lives
        return {} if living else dead


def _lives(path: Path, owner: dict[str, Any], seen: dict[Path, int]) -> bool:
    """Whether an owner that may be living is: it is on this host, or has given a sign of life since the first look."""
    if owner["host"] == platform.node():
        return True
    try:
        touched = path.stat().st_mtime_ns
    except FileNotFoundError:
        return False
    if path not in seen:
        slurm.say(f"waiting for a sign of life of {leases.described(owner)} (at most {leases.STALE:.0f} s)")
    return seen.setdefault(path, touched) != touched
