"""A lease: a file that says which living process works on something, so that no second one does the same at the same time.

A process that is killed cannot give its lease back. So the file names its owner: host, process and when that process began;
and the owner touches it now and then. On the owner's host the system tells whether it lives. From other hosts, a lease that
was not touched for `STALE` seconds is one whose owner is gone; their clocks must agree to within that.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import platform
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

from ensemblepp.errors import ResultError

#: Seconds between two signs of life of an owner.
EVERY = 30.0
#: Seconds without one after which an owner on another host is gone.
STALE = 300.0
#: Seconds between two looks at somebody else's lease.
POLL = 2.0


class Lease:
    """The right to work on something, as a context; to enter waits until no living process has it.

    Args:
        path: the file of the lease.
        name: what it is a lease of, for the line that a process that waits prints.
        facts: what else the file is to hold.

    Attributes:
        path: the file of the lease.
        waited: whether another process had it first.
        lost: whether another process has taken it over, which happens to an owner that gave no sign of life.

    Raises:
        ResultError: on entering, the folder cannot be written to.
    """

    def __init__(self, path: str | Path, name: str, **facts: Any) -> None:
        self.path, self._name = Path(path), name
        self._owner = {**this_process(), **facts}
        self._ended = threading.Event()
        # deepest first
        self._made = [folder for folder in self.path.parents if not folder.exists()]
        self.waited = self.lost = False

    def __enter__(self) -> Lease:
        said = None
        while (holder := self._take()) is not None:
            self.waited = True
            if holder != said:
                print(f"{self._name}: waiting, as {described(holder)} works on it", file=sys.stderr, flush=True)
                said = holder
            time.sleep(POLL)
        threading.Thread(target=self._stay, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        with contextlib.suppress(FileNotFoundError), _locked(self.path) as file:
            if _read(file) == self._owner:
                self.path.unlink()
        with contextlib.suppress(OSError):  # something was written there
            for folder in self._made:
                folder.rmdir()

    def note(self, **facts: Any) -> None:
        """Let the file hold further facts; for its owner."""
        with _locked(self.path) as file:
            self._owner |= facts
            self._write(file)

    def _take(self) -> dict[str, Any] | None:
        """Make the lease this process's, or tell which living process has it."""
        try:
            with _locked(self.path, create=True) as file:
                holder = _read(file)
                if holder and not gone(holder, age(file)):
                    return holder
                self._write(file)
        except OSError as error:
            raise ResultError(f"{self._name}: {self.path.parent} cannot be written to ({error.strerror})") from error
        return None

    def _write(self, file: TextIO) -> None:
        file.seek(0)
        file.truncate()
        json.dump(self._owner, file)
        file.flush()
        os.fsync(file.fileno())

    def _stay(self) -> None:
        """Give signs of life until the end."""
        while not self._ended.wait(EVERY):
            try:
                with _locked(self.path) as file:
                    if _read(file) == self._owner:
                        os.utime(self.path)
                        continue
            except FileNotFoundError:
                pass
            except OSError:  # a file system that is away may come back
                continue
            if not self._ended.is_set():
                self.lost = True
                return


def this_process() -> dict[str, Any]:
    """What identifies a process among all of all hosts, as the file of a lease holds it."""
    job = os.environ.get("SLURM_JOB_ID")
    facts = {"host": platform.node(), "process": os.getpid(), "began": _began(os.getpid())}
    return facts | ({"job": job, "restarts": int(os.environ.get("SLURM_RESTART_COUNT", 0))} if job else {})


def gone(owner: dict[str, Any], silent: float) -> bool:
    """Whether an owner has ended, as far as can be told, when it gave its last sign of life `silent` seconds ago."""
    me = this_process()
    if owner["host"] == me["host"]:
        return _began(owner["process"]) != owner["began"]
    # a job that SLURM has started again has ended where it ran before
    again = "job" in me and owner.get("job") == me["job"] and owner["restarts"] < me["restarts"]
    return again or silent > STALE


def described(owner: dict[str, Any]) -> str:
    """An owner in words."""
    job = f" (SLURM job {owner['job']})" if "job" in owner else ""
    return f"process {owner['process']} on {owner['host']}{job}"


def read(path: Path) -> tuple[dict[str, Any] | None, float]:
    """The owner that the file of a lease names, None if there is none, and seconds since its last sign of life."""
    try:
        with path.open(encoding="utf-8") as file:
            return _read(file), age(file)
    except FileNotFoundError:
        return None, 0.0


def age(file: TextIO) -> float:
    """Seconds since a file was touched."""
    return time.time() - os.fstat(file.fileno()).st_mtime


@contextlib.contextmanager
def _locked(path: Path, *, create: bool = False) -> Iterator[TextIO]:
    """Open the file of a lease for this process alone, for as short a time as it takes to read and write it.

    Raises:
        FileNotFoundError: it is not there, and is not to be made.
    """
    while True:
        try:
            if create:
                path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | (os.O_CREAT if create else 0), 0o666)
        except FileNotFoundError:
            if create:  # another has just removed the folder that it had made
                continue
            raise
        with os.fdopen(handle, "r+", encoding="utf-8") as file:
            # some network file systems know no such locks: there, two that find a stale lease at one instant may both take it
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX)
            # it may have been given back, and taken anew, between opening and locking
            try:
                same = os.path.samestat(os.fstat(handle), path.stat())
            except FileNotFoundError:
                same = False
            if same:
                yield file
                return


def _read(file: TextIO) -> dict[str, Any] | None:
    """The owner in a file; None if its writer was killed before it had written all."""
    file.seek(0)
    try:
        return json.load(file)
    except ValueError:
        return None


def _began(process: int) -> str | None:
    """When a process of this host began, in words that no other process of its number shares; None if it has ended."""
    stat = Path(f"/proc/{process}/stat")
    if stat.parent.parent.joinpath("self").exists():
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            return None
        # one that has ended stays in the list until its parent asks for it
        return None if fields[0] in "ZX" else fields[19]
    listed = subprocess.run(["ps", "-o", "lstart=,stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    *words, state = listed.stdout.split() or ["Z"]
    return None if state.startswith("Z") else " ".join(words)
