"""What a killed process left behind is cleared by the next; what a living one is writing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ensemblepp.storage import leftovers
from ensemblepp.storage.datasets import atomic_path, write_json
from ensemblepp.storage.leftovers import SILENCE, clear, prefix, temporary_folder

#: Begins to write a file and a folder, and waits to be killed.
WRITER = """
import sys, time
from ensemblepp.storage.datasets import atomic_path
from ensemblepp.storage.leftovers import temporary_folder
with temporary_folder(sys.argv[1], "model") as folder, atomic_path(sys.argv[1] + "/seeds0-9.nc") as path:
    (folder / "weights").write_text("half")
    path.write_text("half")
    print("ready", flush=True)
    time.sleep(600)
"""


def hidden(folder: Path) -> list[str]:
    return sorted(path.name.split(".")[1] for path in folder.iterdir() if path.name.startswith("."))


@pytest.fixture
def writer(tmp_path):
    with subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        yield process
        process.kill()


def test_a_killed_writer_s_files_are_cleared_and_a_living_one_s_stay(tmp_path, writer):
    """By whoever writes into the folder next, another file too."""
    assert hidden(tmp_path) == ["model", "seeds0-9"]
    write_json({}, tmp_path / "other.json")
    assert hidden(tmp_path) == ["model", "seeds0-9"]
    # stopped is not gone
    writer.send_signal(signal.SIGSTOP)
    write_json({}, tmp_path / "other.json")
    assert hidden(tmp_path) == ["model", "seeds0-9"]
    writer.kill()
    # a zombie at first, as nobody has waited for it
    while Path(f"/proc/{writer.pid}/stat").exists() and leftovers._process(writer.pid)[0] != "Z":
        time.sleep(0.01)
    write_json({}, tmp_path / "other.json")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.json"]


def test_a_folder_is_cleared_by_the_next_one(tmp_path, writer):
    writer.kill()
    writer.wait()
    with temporary_folder(tmp_path, "report") as folder:
        assert hidden(tmp_path) == ["report"]
        assert folder.parent == tmp_path
    assert hidden(tmp_path) == []


def test_a_process_number_that_was_given_away_again_is_another_owner(tmp_path):
    """The name holds when the process started, too."""
    own = prefix("seeds0-9")
    other = own.replace(f"-{leftovers._process(os.getpid())[1]}.", "-1.")
    assert other != own
    for name in (own, other):
        (tmp_path / f"{name}abc.nc").touch()
    clear(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [f"{own}abc.nc"]


def test_a_process_that_cannot_be_asked_lives(tmp_path, monkeypatch):
    """As another user's."""

    def refuse(number: int, signal_: int) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "kill", refuse)
    path = tmp_path / f".seeds0-9.{leftovers._machine()}-{2**22 + 1}-1.abc.nc"
    path.touch()
    clear(tmp_path)
    assert path.exists()


@pytest.mark.parametrize(("age", "stays"), [(0, True), (SILENCE - 60, True), (SILENCE + 60, False)])
def test_another_machine_s_files_are_cleared_once_nobody_writes_to_them(tmp_path, age, stays):
    file, folder = tmp_path / ".seeds0-9.00000000-1-1.abc.nc", tmp_path / ".model.00000000-1-1.abc"
    file.touch()
    folder.mkdir()
    (folder / "weights").touch()
    then = time.time() - age
    for path in (file, folder / "weights", folder):
        os.utime(path, (then, then))
    os.utime(folder, (then - 10 * SILENCE,) * 2)
    clear(tmp_path)
    assert [file.exists(), folder.exists()] == [stays, stays]


def test_other_hidden_files_are_not_ours(tmp_path):
    names = {".snakemake", ".gitignore", ".seeds0-9.abcd1234.nc", "seeds0-9.00000000-1-1.abc.nc"}
    for name in names:
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (0, 0))
    clear(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == names


def test_a_failed_body_leaves_nothing(tmp_path):
    with pytest.raises(KeyError), atomic_path(tmp_path / "a.json"), temporary_folder(tmp_path, "b"):
        raise KeyError
    assert list(tmp_path.iterdir()) == []
