"""Leases: one living owner at a time, and none that is gone stands in the way."""

from __future__ import annotations

import fcntl
import itertools
import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ensemblepp.errors import ResultError
from ensemblepp.storage import leases
from ensemblepp.storage.leases import STALE, Lease, gone, read, this_process

#: Takes the lease at its first argument, says so, and holds it until standard input is closed.
HOLDER = """
import sys
from ensemblepp.storage.leases import Lease
with Lease(sys.argv[1], "work"):
    print("taken", flush=True)
    sys.stdin.read()
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    """Looks and signs of life come often."""
    monkeypatch.setattr(leases, "POLL", 0.05)
    monkeypatch.setattr(leases, "EVERY", 0.05)
    for name in ("SLURM_JOB_ID", "SLURM_RESTART_COUNT"):
        monkeypatch.delenv(name, raising=False)


def holder(path: Path) -> subprocess.Popen[str]:
    """Another process that holds the lease."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout.readline() == "taken\n"
    return process


def test_a_lease_names_its_owner_and_is_gone_in_the_end(tmp_path):
    path = tmp_path / "deep" / "run.lease"
    with Lease(path, "run", arguments=["one"]) as lease:
        assert read(path)[0] == {**this_process(), "arguments": ["one"]}
        lease.note(cluster=True)
        assert read(path)[0] == {**this_process(), "arguments": ["one"], "cluster": True}
        assert not lease.waited
        assert not lease.lost
    assert read(path) == (None, 0.0)
    assert list(tmp_path.iterdir()) == [], "nor does the folder stay that was made for it"


def test_the_folder_stays_if_something_was_written_there(tmp_path):
    path = tmp_path / "deep" / "run.lease"
    with Lease(path, "run"):
        path.with_suffix(".nc").touch()
    assert [entry.name for entry in path.parent.iterdir()] == ["run.nc"]


def test_a_second_one_waits_for_a_living_owner(tmp_path, capfd):
    """It says once for whom, takes the lease when that one has ended, and knows that it has waited."""
    path = tmp_path / "run.lease"
    first = holder(path)
    second = subprocess.Popen(
        [sys.executable, "-c", HOLDER.replace('"work")', '"work") as lease').replace('"taken"', "lease.waited"), str(path)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    line = second.stderr.readline()
    assert line == f"work: waiting, as process {first.pid} on {this_process()['host']} works on it\n"
    assert second.poll() is None
    first.communicate()
    assert second.communicate() == ("True\n", "")
    assert not path.exists()


def test_the_lease_of_a_killed_process_is_taken_at_once(tmp_path):
    """Also while it is a zombie, which is still in the list of processes."""
    path = tmp_path / "run.lease"
    other = holder(path)
    other.kill()
    os.waitid(os.P_PID, other.pid, os.WEXITED | os.WNOWAIT)
    with Lease(path, "run") as lease:
        assert not lease.waited
    other.communicate()


def test_a_process_that_got_the_number_of_one_that_is_gone_is_another(tmp_path):
    me = this_process()
    assert not gone(me, 1e9)
    assert gone(me | {"began": "1"}, 0)
    assert gone(me | {"process": 2**22 + 1}, 0), "no such number"


def test_an_owner_on_another_host_is_gone_when_it_gave_no_sign_of_life():
    other = this_process() | {"host": "elsewhere"}
    assert not gone(other, STALE - 1)
    assert gone(other, STALE + 1)


def test_a_job_that_slurm_has_started_again_has_ended_where_it_was(monkeypatch):
    """Not another job, and not another process of the same start."""
    monkeypatch.setenv("SLURM_JOB_ID", "7")
    before = this_process() | {"host": "elsewhere"}
    assert not gone(before, 0)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert gone(before, 0)
    assert not gone(before | {"job": "8"}, 0)


@pytest.mark.parametrize("content", ["", '{"host": "el'])
def test_a_lease_that_was_not_written_to_its_end_is_nobodys(tmp_path, content):
    path = tmp_path / "run.lease"
    path.write_text(content)
    with Lease(path, "run"):
        assert read(path)[0] == this_process()


def test_an_owner_gives_signs_of_life(tmp_path):
    path = tmp_path / "run.lease"
    with Lease(path, "run"):
        os.utime(path, (1, 1))
        end = time.monotonic() + 60
        while read(path)[1] > STALE:
            assert time.monotonic() < end
            time.sleep(0.01)


def test_an_owner_that_was_replaced_learns_it_and_leaves_the_others_lease(tmp_path):
    path = tmp_path / "run.lease"
    other = json.dumps(this_process() | {"host": "elsewhere"})
    with Lease(path, "run") as lease:
        path.write_text(other)
        end = time.monotonic() + 60
        while not lease.lost:
            assert time.monotonic() < end
            time.sleep(0.01)
    assert path.read_text() == other


def test_of_many_at_once_one_at_a_time_has_it(tmp_path):
    """Eight processes find the lease of one that is gone; the times in which they hold it do not overlap."""
    path = tmp_path / "run.lease"
    path.write_text(json.dumps(this_process() | {"began": "1"}))
    code = """
import sys, time
from ensemblepp.errors import ResultError
from ensemblepp.storage import leases
leases.POLL = 0.001
for _ in range(5):
    with leases.Lease(sys.argv[1], "work"):
        begin = time.monotonic()
        time.sleep(0.01)
        print(begin, time.monotonic())
"""
    command = [sys.executable, "-c", code, str(path)]
    workers = [subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) for _ in range(8)]
    lines = "".join(worker.communicate()[0] for worker in workers).splitlines()
    held = sorted(tuple(map(float, line.split())) for line in lines)
    assert len(held) == 40
    assert [(one, two) for one, two in itertools.pairwise(held) if two[0] < one[1]] == []
    assert not path.exists()


def test_a_file_that_was_replaced_while_it_was_waited_for_is_no_lease(tmp_path):
    """It names an owner that is gone, and is held for a moment; when it is let go, the lease is a living one's."""
    path, taken = tmp_path / "run.lease", threading.Event()
    path.write_text(json.dumps(this_process() | {"began": "1"}))

    def work() -> None:
        with Lease(path, "run"):
            taken.set()

    thread = threading.Thread(target=work)
    with path.open() as old:
        fcntl.flock(old, fcntl.LOCK_EX)
        thread.start()
        time.sleep(0.3)
        other = tmp_path / "other"
        other.write_text(json.dumps(this_process() | {"host": "elsewhere"}))
        other.replace(path)
    assert not taken.wait(0.5)
    path.unlink()
    thread.join()
    assert taken.is_set()


def test_where_nothing_can_be_written_it_says_so(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ResultError) as raised, Lease(tmp_path / "file" / "M8" / "run.lease", "results/run.nc"):
        pass
    assert str(raised.value) == f"results/run.nc: {tmp_path / 'file' / 'M8'} cannot be written to (Not a directory)"
