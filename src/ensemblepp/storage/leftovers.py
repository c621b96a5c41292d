"""Temporary files and folders that say whose they are, so that a later run clears those whose owner is gone.

A process that is killed cannot remove what it was writing. Names therefore hold its machine, its number and when it started;
whoever writes into the same folder next removes what belongs to a process that is no more.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

#: Of a machine that cannot be asked, what has not been written to for so many seconds has no owner.
SILENCE = 24 * 3600.0

_NAME = re.compile(r"\..+\.([0-9a-f]{8})-(\d+)-(\d+)\.")


def prefix(stem: str) -> str:
    """How the name of a temporary file or folder of this process begins."""
    number = os.getpid()
    _, start = _process(number) or ("", 0)
    return f".{stem}.{_machine()}-{number}-{start}."


@contextlib.contextmanager
def temporary_folder(parent: str | Path, stem: str) -> Iterator[Path]:
    """A hidden folder in `parent` that is removed at the end; what others left there is cleared first."""
    clear(parent)
    with tempfile.TemporaryDirectory(prefix=prefix(stem), dir=parent) as folder:
        yield Path(folder)


def clear(folder: str | Path) -> None:
    """Remove the temporary files and folders in `folder` whose owner is gone."""
    with os.scandir(folder) as entries:
        found = [(Path(entry.path), name) for entry in entries if (name := _NAME.match(entry.name))]
    for path, name in found:
        # another process may be faster, and what is of another user may have to stay
        with contextlib.suppress(OSError):
            if _is_gone(path, name[1], int(name[2]), int(name[3])):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _is_gone(path: Path, machine: str, number: int, start: int) -> bool:
    if machine != _machine():
        newest = max(entry.stat().st_mtime for entry in (path, *path.rglob("*")))
        return time.time() - newest > SILENCE
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    except PermissionError:  # it lives, as another user's
        return False
    found = _process(number)
    # the number may have been given to another process since; a zombie only waits for its parent
    return found is not None and (found[1] != start or found[0] == "Z")


def _process(number: int) -> tuple[str, int] | None:
    """State of a process and when it started, in ticks since the machine did; None where that cannot be read."""
    try:
        fields = Path(f"/proc/{number}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return None
    return fields[0], int(fields[19])


@functools.cache
def _machine() -> str:
    """8 hex digits of where process numbers mean the same: this machine, since it started, and this container."""
    parts = [platform.node()]
    with contextlib.suppress(OSError):
        parts += [Path("/proc/sys/kernel/random/boot_id").read_text("utf-8"), str(Path("/proc/self/ns/pid").readlink())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:8]
