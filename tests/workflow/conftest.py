"""A copy of the project in which the real smoke workflow has run once, and one in which nothing has."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from pathlib import Path

import pytest
from project import ROOT, Project, copy_project, share_compiled


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory, mirror: Path) -> Project:
    """The project after one whole smoke run. Tests that change it put it back.

    The run is made once; every process that runs tests has a copy of what it left.
    """
    shared = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        shared = shared.parent
    first = shared / "first-smoke-run"
    with (shared / "first-smoke-run.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (first / "first-run.times").exists():
            run_all(first, mirror)
    return copy_of(first, tmp_path_factory.mktemp("smoke"), mirror)


@pytest.fixture
def smoke_copy(smoke: Project, tmp_path: Path, mirror: Path) -> Project:
    """As `smoke`, for one test, which need not put back what it changes: to copy it is faster than to run it again."""
    return copy_of(smoke.folder, tmp_path, mirror)


def copy_of(finished: Path, folder: Path, mirror: Path) -> Project:
    project = copy_project(folder, ENSEMBLEPP_MIRROR=str(mirror))
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    return project


def run_all(folder: Path, mirror: Path) -> None:
    """The smoke run in a copy of the project, and a list of the times of what it has made."""
    shutil.rmtree(folder, ignore_errors=True)
    project = copy_project(folder, ENSEMBLEPP_MIRROR=str(mirror))
    done = project.snakemake()
    assert done.returncode == 0, done.stdout
    (folder / "first-run.log").write_text(done.stdout)
    # for other copies of the project, and for the tests that compile here
    share_compiled(folder, ROOT)
    files = [path for name in ("results/smoke", "data") for path in (folder / name).rglob("*") if path.is_file()]
    times = {str(path.relative_to(folder)): path.stat().st_mtime_ns for path in files}
    (folder / "first-run.times").write_text(json.dumps(times))


@pytest.fixture
def bare(tmp_path: Path) -> Project:
    """A copy in which nothing has run, without mirror and network."""
    return copy_project(tmp_path)
