"""The files that say what to install agree with each other."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

import ensemblepp

ROOT = Path(__file__).resolve().parents[1]


def locked(name: str = "requirements.lock") -> dict[str, str]:
    lines = (ROOT / name).read_text().splitlines()
    return dict(canonical(line).split("==") for line in lines if line and not line.startswith("#"))


def canonical(name: str) -> str:
    return name.lower().replace("_", "-")


def test_every_declared_dependency_is_locked_to_a_version_it_allows():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    # the site is built in an environment of its own
    own = {"requirements-docs.lock": extras.pop("docs")}
    declared = project["dependencies"] + [line for group in extras.values() for line in group]
    for name, lines in ({"requirements.lock": declared} | own).items():
        for requirement in map(Requirement, lines):
            version = locked(name)[canonical(requirement.name)]
            assert requirement.specifier.contains(version), f"{requirement} against {version}"


def test_conda_users_get_the_locked_versions():
    environment = yaml.safe_load((ROOT / "environment.yml").read_text())
    (pip,) = [entry["pip"] for entry in environment["dependencies"] if isinstance(entry, dict)]
    for line in pip:
        name, version = line.split("==")
        assert locked()[canonical(name)] == version, line


def test_torch_is_locked_without_a_build():
    assert locked()["torch"] == "2.13.0"


def test_one_version_everywhere():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == ensemblepp.__version__


@pytest.mark.parametrize("host", [".github/workflows/ci.yml", ".gitlab-ci.yml"])
def test_hosts_try_every_python_that_is_claimed(host):
    claimed = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text())
    assert claimed == sorted(set(re.findall(r'"(3\.\d+)"', (ROOT / host).read_text())))


def test_no_path_of_one_machine():
    """A tracked file that names a folder of the developers' machine works for nobody else."""
    for path in [*ROOT.glob("*"), *ROOT.glob("config/*"), *ROOT.glob("workflow/**/*"), *ROOT.glob("src/**/*.py")]:
        if path.is_file() and path.suffix not in (".png", ".pdf"):
            assert not re.search(r"(?<![\w.])/(home|root|Users)/\w", path.read_text(encoding="utf-8")), path
