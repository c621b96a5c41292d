"""A copy of the project in which the real smoke workflow has run once, and one in which nothing has."""

from __future__ import annotations

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
    return project


@pytest.fixture
def bare(tmp_path: Path) -> Project:
    """A copy in which nothing has run, without mirror and network."""
    return copy_project(tmp_path)
