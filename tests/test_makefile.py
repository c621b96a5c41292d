"""The commands of the Makefile that need no environment."""

from __future__ import annotations

import os
import pty
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with results and logs of every scale."""
    shutil.copyfile(ROOT / "Makefile", tmp_path / "Makefile")
    for scale in ("smoke", "quick", "paper", "paper-scale"):
        (tmp_path / "results" / scale).mkdir(parents=True)
        (tmp_path / "logs" / scale).mkdir(parents=True)
    return tmp_path


def outside_make() -> dict[str, str]:
    """The environment, not as part of the make that may have started the tests."""
    return {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}


def clean(folder: Path, *arguments: str, answer: str | None = None) -> str:
    """Run `make clean`, on a terminal where there is an answer to give; what it says."""
    command = ["make", "clean", *arguments]
    own = outside_make()
    if answer is None:
        done = subprocess.run(
            command, cwd=folder, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=True
        )
        return done.stdout
    watcher, terminal = pty.openpty()
    with subprocess.Popen(
        command, cwd=folder, env=own, stdin=terminal, stdout=subprocess.PIPE, stderr=terminal, text=True
    ) as process:
        os.write(watcher, f"{answer}\n".encode())
        said = process.communicate()[0]
    os.close(terminal)
    os.close(watcher)
    assert process.returncode == 0
    return said


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "results").iterdir())


def test_without_a_terminal_results_at_the_papers_scale_stay(folder):
    assert "kept: results/paper and logs/paper" in clean(folder)
    assert left(folder) == ["paper", "paper-scale"]
    assert (folder / "logs/paper").exists()


def test_a_variable_says_that_they_may_go(folder):
    assert clean(folder, "CLEAN_PAPER=yes") == ""
    assert left(folder) == ["paper-scale"]
    assert not (folder / "logs/paper").exists()


@pytest.mark.parametrize(
    ("answer", "kept"), [("y", ["paper-scale"]), ("", ["paper", "paper-scale"]), ("n", ["paper", "paper-scale"])]
)
def test_on_a_terminal_it_asks(folder, answer, kept):
    clean(folder, answer=answer)
    assert left(folder) == kept


def test_without_such_results_nothing_is_asked(folder):
    (folder / "results/paper").rmdir()
    assert clean(folder) == ""
    assert left(folder) == ["paper-scale"]


def test_bytecode_is_kept_whatever_a_container_says(folder):
    # packages are installed without it, so that what is never imported is never compiled
    own = outside_make() | {"PYTHONDONTWRITEBYTECODE": "1"}
    show = 'show: ; @echo "$${PYTHONDONTWRITEBYTECODE-kept}"'
    said = subprocess.run(["make", f"--eval={show}", "show"], cwd=folder, env=own, capture_output=True, text=True, check=True)
    assert said.stdout == "kept\n"
