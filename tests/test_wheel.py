"""The wheel, installed into an environment that knows nothing of the repository."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest
from project import ROOT, copy_project

import ensemblepp

BUILD = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet", "--disable-pip-version-check"]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the files of a fresh clone, without a network."""
    source = tmp_path_factory.mktemp("source")
    copy_project(source, compiled=False)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *BUILD, "--wheel-dir", str(source / "dist"), "."], cwd=source, check=True
    )
    (built,) = (source / "dist").glob("*.whl")
    return built


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, which sees the locked packages and no editable installation."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    packages = folder / Path(sysconfig.get_path("purelib")).relative_to(sys.prefix)
    # as a line: what *.pth files there say is not read
    (packages / "locked.pth").write_text(sysconfig.get_path("purelib") + "\n")
    options = ["install", "--no-deps", "--no-index", "--quiet", "--disable-pip-version-check"]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(folder / "bin/python"), *options, str(wheel)], check=True)
    # what is compiled for the tests need not be compiled again
    for path in (ROOT / "src").glob("**/__pycache__/*.sealed"):
        copy = packages / path.relative_to(ROOT / "src")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    return folder


def run(environment: Path, folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    own = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "ENSEMBLEPP_MIRROR")}
    first, *others = command
    return subprocess.run(
        [str(environment / "bin" / first), *others], cwd=folder, env=own, capture_output=True, text=True, check=False
    )


def test_what_is_in_it(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert wheel.name == f"ensemblepp-{ensemblepp.__version__}-py3-none-any.whl"
    for name in ("environments.yaml", "agents.yaml"):
        assert zipfile.ZipFile(wheel).read(f"ensemblepp/config/files/{name}") == (ROOT / "config" / name).read_bytes()
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").glob("ensemblepp/**/*.py")}
    assert sources <= names
    assert "ensemblepp/py.typed" in names
    assert any(name.startswith("ensemblepp/data/checksums/") for name in names)
    assert {f"ensemblepp/report/files/page.{kind}" for kind in ("html", "css", "js")} <= names
    foreign = {name.split("/")[0] for name in names} - {"ensemblepp", f"ensemblepp-{ensemblepp.__version__}.dist-info"}
    assert not foreign


def test_the_source_archive_gives_the_same_wheel(wheel, tmp_path):
    """Of an archive alone, without the repository."""
    build = "from setuptools import build_meta; build_meta.build_sdist('dist')"
    subprocess.run([sys.executable, "-c", build], cwd=wheel.parents[1], check=True, stdout=subprocess.DEVNULL)
    (archive,) = wheel.parent.glob("*.tar.gz")
    subprocess.run([sys.executable, "-m", "pip", "wheel", *BUILD, "--wheel-dir", str(tmp_path), str(archive)], check=True)
    again = tmp_path / wheel.name
    assert contents(again) == contents(wheel)


def contents(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def test_quickstart_in_an_empty_folder(environment, tmp_path):
    done = run(environment, tmp_path, "ensemblepp", "quickstart", "--horizon", "40", "--seeds", "2")
    assert done.returncode == 0, done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["quickstart.png"]
    assert (tmp_path / "quickstart.png").read_bytes().startswith(b"\x89PNG")
    head, columns, *rows, last = done.stdout.splitlines()
    assert head == "regret after 40 rounds minus that of TS, mean of 2 paired seeds and 95 % interval:"
    assert columns.split() == ["agent", "M", "difference", "from", "to"]
    assert [row.split("  ")[0] for row in rows] == ["Ensemble++"] * 3 + ["ES (independent members)"] * 3
    assert last == "quickstart.png"


def test_it_is_not_the_repository_that_is_used(environment, tmp_path):
    code = (
        "import ensemblepp, ensemblepp.config.shipped as s; print(ensemblepp.__file__, s._INSTALLED.is_dir(), len(s.shipped()))"
    )
    done = run(environment, tmp_path, "python", "-c", code)
    place, installed, keys = done.stdout.split()
    assert Path(place).is_relative_to(environment)
    assert (installed, keys) == ("True", "4")
    assert run(environment, tmp_path, "ensemblepp", "--version").stdout == f"ensemblepp {ensemblepp.__version__}\n"
