"""A copy of the project in which the real smoke workflow has run once, and one in which nothing has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from project import Project, copy_project


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory, mirror: Path) -> Project:
    """The project after one whole smoke run. Tests that change it put it back."""
    project = copy_project(tmp_path_factory.mktemp("smoke"), ENSEMBLEPP_MIRROR=str(mirror))
    done = project.snakemake()
    assert done.returncode == 0, done.stdout
    (project.folder / "first-run.log").write_text(done.stdout)
    files = [path for name in ("results/smoke", "data") for path in (project.folder / name).rglob("*") if path.is_file()]
    times = {str(path.relative_to(project.folder)): path.stat().st_mtime_ns for path in files}
    (project.folder / "first-run.times").write_text(json.dumps(times))
    return project


@pytest.fixture
def bare(tmp_path: Path) -> Project:
    """A copy in which nothing has run, without mirror and network."""
    return copy_project(tmp_path)
