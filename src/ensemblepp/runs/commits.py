"""The git commit that runs record: of the working directory, where the code of a workflow stands."""

from __future__ import annotations

import subprocess

#: What is recorded where git cannot tell: no repository, no git, or a folder of another user, which git refuses to read.
UNKNOWN = "unknown"

_DESCRIBE = ("git", "describe", "--always", "--abbrev=40", "--exclude=*", "--dirty=+")


def commit() -> str:
    """The commit in 40 hexadecimal digits, and "+" if tracked files differ from it; `UNKNOWN` where git cannot tell."""
    return _asked()[0]


def doubt() -> str:
    """Why the commit cannot be told, in one line; empty where it can be."""
    found, reason = _asked()
    return f"the git commit of this folder cannot be told ({reason}): runs record it as '{UNKNOWN}'" if found == UNKNOWN else ""


def _asked() -> tuple[str, str]:
    """The commit, and why it is unknown if it is."""
    try:
        done = subprocess.run(_DESCRIBE, capture_output=True, text=True, check=False)
    except OSError as error:
        return UNKNOWN, f"git: {error.strerror}"
    if done.returncode or not done.stdout.strip():
        return UNKNOWN, next(iter(done.stderr.strip().splitlines()), "git says nothing")
    return done.stdout.strip(), ""
