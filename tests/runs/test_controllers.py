"""Whose a lock of Snakemake's is: one of a process that is gone is removed, one of a living process stays."""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ensemblepp.errors import ResultError
from ensemblepp.runs import controllers
from ensemblepp.runs.controllers import FOLDER, LOCKS, enter, last
from ensemblepp.storage import leases
from ensemblepp.storage.leases import this_process

LOCK = LOCKS / "0.output.lock"
RUN = ["--cores", "all"]

#: Does what a process of Snakemake does at its start, and lives until standard input is closed.
SNAKEMAKE = """
import sys
from pathlib import Path
from ensemblepp.runs.controllers import LOCKS, enter
enter(["study_linear"])
LOCKS.mkdir(exist_ok=True)
(LOCKS / "0.output.lock").touch()
print("locked", flush=True)
sys.stdin.read()
(LOCKS / "0.output.lock").unlink()
"""


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch) -> Iterator[None]:
    """A project folder; processes that enter it here leave it in the end."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(leases, "POLL", 0.02)
    entered = []
    monkeypatch.setattr(atexit, "register", entered.append)
    yield
    for leave in entered:
        leave()


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """Another process of Snakemake, which has locked the folder."""
    process = subprocess.Popen(
        [sys.executable, "-c", SNAKEMAKE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "locked\n"
    yield process
    process.communicate()


def entry(**facts: object) -> Path:
    """The file of a process, of this host if nothing else is said."""
    owner = this_process() | facts
    path = FOLDER / f"{owner['host']}-{owner['process']}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(owner))
    return path


def locked() -> None:
    LOCKS.mkdir(parents=True, exist_ok=True)
    LOCK.touch()


def test_the_lock_of_a_killed_process_is_removed(other, capfd):
    other.kill()
    other.wait()
    assert LOCK.exists()
    mine = enter(RUN)
    assert not LOCK.exists()
    assert capfd.readouterr().err.startswith(f"removing the lock of process {other.pid} on ")
    assert sorted(FOLDER.glob("*.json")) == [mine.path]


def test_the_lock_of_a_living_process_stays(other, capfd):
    """Also beside one that is gone: whose lock it is cannot be told. All are then known."""
    (theirs,) = FOLDER.glob("*.json")
    dead = entry(process=2**22 + 1)
    mine = enter(RUN)
    assert LOCK.exists()
    assert capfd.readouterr().err == ""
    assert set(FOLDER.glob("*.json")) == {theirs, dead, mine.path}


def test_of_a_lock_that_nobody_is_known_to_have_made_nothing_is_said():
    """Snakemake then says what to do."""
    locked()
    enter(RUN)
    assert LOCK.exists()


@pytest.mark.parametrize("look", [["-n"], ["--summary"], ["--unlock"], ["study_linear", "--report=report.html"]])
def test_to_look_is_not_to_enter(look, other):
    """Nothing is removed for it, and nobody takes it for the owner of a lock."""
    other.kill()
    other.wait()
    before = sorted(path.name for path in FOLDER.iterdir())
    assert enter(look) is None
    assert sorted(path.name for path in FOLDER.iterdir()) == before
    assert LOCK.exists()


def test_the_lock_of_another_host_goes_when_it_gives_no_sign_of_life(monkeypatch, capfd):
    monkeypatch.setattr(leases, "STALE", 0.3)
    path = entry(host="login2")
    locked()
    enter(RUN)
    assert not LOCK.exists()
    assert not path.exists()
    waiting, removing = capfd.readouterr().err.splitlines()
    assert waiting.startswith(f"waiting for a sign of life of process {os.getpid()} on login2")
    assert removing.startswith(f"removing the lock of process {os.getpid()} on login2")


def test_the_lock_of_another_host_stays_when_it_gives_one():
    path = entry(host="login2")
    locked()

    def live() -> None:
        time.sleep(0.2)
        os.utime(path)

    thread = threading.Thread(target=live)
    thread.start()
    enter(RUN)
    thread.join()
    assert LOCK.exists()
    assert path.exists()


def test_a_process_that_got_the_number_of_one_that_is_gone_takes_its_place(monkeypatch):
    # a machine may have SLURM's commands and no SLURM
    monkeypatch.setattr(controllers.slurm, "settle", lambda: None)
    entry(began="1", cluster=True)
    locked()
    mine = enter(RUN)
    assert not LOCK.exists()
    assert leases.read(mine.path)[0] == this_process() | {"arguments": RUN}


def test_what_was_started_last_is_known():
    with pytest.raises(ResultError, match="nothing to resume: snakemake has not run in this folder"):
        last()
    enter(RUN)
    enter(["-n"])
    assert last() == RUN


def test_all_that_only_looks_is_an_option_of_snakemake():
    """So that none is misspelt."""
    words = subprocess.run([sys.executable, "-m", "snakemake", "--help"], capture_output=True, text=True, check=True).stdout
    assert [option for option in controllers.LOOKS if option not in words and option != "-np"] == []
