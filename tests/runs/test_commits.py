"""What git says of the working directory, as runs record it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from ensemblepp.runs.commits import commit, doubt


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory outside any repository."""
    monkeypatch.chdir(tmp_path)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    return tmp_path


def git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], check=True, capture_output=True, text=True).stdout.strip()


def test_outside_a_repository_it_is_unknown_and_said_so(folder):
    assert commit() == "unknown"
    assert doubt().startswith("the git commit of this folder cannot be told (fatal: not a git repository")
    assert doubt().endswith("): runs record it as 'unknown'")


def test_without_git_too(folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    assert commit() == "unknown"
    assert "(git: No such file or directory)" in doubt()


def test_a_commit_and_whether_files_differ_from_it(folder):
    (folder / "code.py").write_text("one = 1\n", encoding="utf-8")
    git("init")
    git("add", "code.py")
    git("-c", "user.name=Test", "-c", "user.email=test@example.org", "commit", "-m", "Add code")
    assert commit() == git("rev-parse", "HEAD")
    assert doubt() == ""
    (folder / "code.py").write_text("one = 2\n", encoding="utf-8")
    assert commit() == git("rev-parse", "HEAD") + "+"
