"""Checkpoints: written whole or not at all, now and then, and read only where they fit."""

import pickle
import stat
import threading

import numpy as np
import pytest

from ensemblepp.storage import checkpoints as module
from ensemblepp.storage.checkpoints import EVERY, Checkpoint

KEY = "a specification"


class Clock:
    """Seconds that pass when they are told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


def test_the_last_state_comes_back(tmp_path):
    """Nothing at first; then what was offered last, as a copy; another object reads it as well."""
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, KEY, every=0)
    assert checkpoint.load() is None
    for round_ in (1, 2):
        state = {"round": round_, "table": np.arange(round_)}
        checkpoint.offer(state)
        for reader in (checkpoint, Checkpoint(path, KEY)):
            found = reader.load()
            assert found["round"] == round_
            assert np.array_equal(found["table"], state["table"])
            assert found["table"] is not state["table"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


def test_states_are_saved_now_and_then(tmp_path, clock):
    """Every 300 seconds of a clock that starts with the checkpoint: offers at 299, 300, 599.9 and 600 save two states."""
    assert EVERY == 300
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", KEY)
    saved = []
    for seconds in (0, 299, 300, 301, 599.9, 600, 601):
        clock.now = 1000 + seconds
        checkpoint.offer(seconds)
        saved.append(checkpoint.load())
    assert saved == [None, None, 300, 300, 300, 600, 600]


class Slow:
    """A state that takes 400 seconds to write."""

    clock: Clock

    def __init__(self, name: int) -> None:
        self.name = name

    def __reduce__(self):
        self.clock.now += 400
        return Slow, (self.name,)


def test_a_slow_disk_does_not_make_a_run_save_all_the_time(tmp_path, clock, monkeypatch):
    """The next interval begins when a state has been written: offers 100 seconds apart save every third, as fast ones do."""
    monkeypatch.setattr(Slow, "clock", clock, raising=False)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", KEY)
    saved = []
    for name in range(6):
        clock.now += 100
        checkpoint.offer(Slow(name))
        saved.append(getattr(checkpoint.load(), "name", None))
    assert saved == [None, None, 2, 2, 2, 5]


def test_another_key_is_another_run(tmp_path):
    """Its state is neither returned nor even read; saving replaces it."""
    path = tmp_path / "run.checkpoint"
    Checkpoint(path, KEY, every=0).offer("old")
    with path.open("ab") as file:
        file.write(b"what follows the state is not looked at")
    other = Checkpoint(path, KEY + " of another code", every=0)
    assert other.load() is None
    other.offer("new")
    assert other.load() == "new"
    assert Checkpoint(path, KEY).load() is None


def test_a_file_that_was_cut_off_anywhere_is_not_used(tmp_path):
    """Every length from 0 to one byte less than all of it; a file of anything else is not used either."""
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, KEY, every=0)
    checkpoint.offer({"table": np.arange(30.0), "names": ["one", "two"]})
    whole = path.read_bytes()
    assert checkpoint.load()["names"] == ["one", "two"]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert checkpoint.load() is None, length
    damaged = (b"\x80\x04\x8c\x02\xff\xfe.", b"I1x\n.", whole[:40] + bytes(len(whole) - 40))
    for content in (b"\n", b"no pickle", b"abc", b"\x80\x05", bytes(100), b"\xff" * 100, *damaged):
        path.write_bytes(content)
        assert checkpoint.load() is None, content


def test_a_state_of_a_class_that_is_no_more_is_not_used(tmp_path, monkeypatch):
    """As after an edit of the code that the key does not see."""
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, KEY, every=0)
    monkeypatch.setattr(module, "Gone", type("Gone", (), {"__module__": module.__name__}), raising=False)
    checkpoint.offer(module.Gone())
    assert checkpoint.load() is not None
    monkeypatch.delattr(module, "Gone")
    assert checkpoint.load() is None


@pytest.mark.parametrize("state", [lambda: None, threading.Lock(), (n for n in range(3))], ids=["lambda", "lock", "generator"])
def test_a_state_that_cannot_be_pickled_is_never_saved(tmp_path, state, clock):
    """The run goes on without checkpoints, and does not try again; what was saved before stays, and no other file."""
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", KEY)
    clock.now += 300
    checkpoint.offer("before")
    clock.now += 300
    checkpoint.offer({"state": state})
    assert checkpoint.load() == "before"
    clock.now += 1e9
    checkpoint.offer("after")
    assert checkpoint.load() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


def test_a_state_is_written_beside_and_renamed(tmp_path, monkeypatch):
    """Killed while it is written: the state before is still there, whole, and nothing else."""
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, KEY, every=0)
    checkpoint.offer("before")
    seen = []

    def dies(value, file, **options):
        file.write(b"half a st")
        file.flush()
        seen.extend(sorted(entry.name for entry in tmp_path.iterdir()))
        raise KeyboardInterrupt

    monkeypatch.setattr(pickle, "dump", dies)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.offer("after")
    assert len(seen) == 2
    assert seen[1] == "run.checkpoint"
    assert checkpoint.load() == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


def test_the_file_is_readable_by_whom_other_files_are(tmp_path):
    """Not only by its owner, as temporary files are."""
    path = tmp_path / "run.checkpoint"
    Checkpoint(path, KEY, every=0).offer("state")
    (tmp_path / "other").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_a_complete_run_removes_it(tmp_path):
    """Twice is no error: there may never have been one."""
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, KEY, every=0)
    checkpoint.offer("state")
    checkpoint.remove()
    assert not path.exists()
    checkpoint.remove()
    assert checkpoint.load() is None
