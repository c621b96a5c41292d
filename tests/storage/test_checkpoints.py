"""Checkpoints: written whole or not at all, now and then, and read only where they are whole and fit."""

import json
import pickle
import stat
import threading
import types
from collections import OrderedDict, defaultdict, deque, namedtuple
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch

from ensemblepp.storage import checkpoints as module
from ensemblepp.storage.checkpoints import EVERY, Checkpoint
from ensemblepp.storage.seals import add_seal

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


def opened(path: Path, key: str = KEY, every: float = 0, fresh: object = None) -> Checkpoint:
    """A checkpoint of a run that is at its start."""
    checkpoint = Checkpoint(path, key, every)
    checkpoint.resume(fresh)
    return checkpoint


# ------------------------------------------------------------------------------------------------------------ files


def test_the_last_state_comes_back(tmp_path, capsys):
    """Nothing at first; then what was offered last, as a copy; another object reads it as well."""
    path = tmp_path / "run.checkpoint"
    checkpoint = Checkpoint(path, KEY, every=0)
    assert checkpoint.resume({}) is None
    for round_ in (1, 2):
        state = {"round": round_, "table": np.arange(round_)}
        checkpoint.offer(state)
        for reader in (checkpoint, Checkpoint(path, KEY)):
            found = reader.resume({})
            assert found["round"] == round_
            assert np.array_equal(found["table"], state["table"])
            assert found["table"] is not state["table"]
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]
    assert capsys.readouterr().err == ""


def test_states_are_saved_now_and_then(tmp_path, clock):
    """Every 300 seconds of a clock that starts with the checkpoint: offers at 299, 300, 599.9 and 600 save two states."""
    assert EVERY == 300
    checkpoint = opened(tmp_path / "run.checkpoint", every=EVERY)
    saved = []
    for seconds in (0, 299, 300, 301, 599.9, 600, 601):
        clock.now = 1000 + seconds
        checkpoint.offer(seconds)
        saved.append(checkpoint.resume(None))
    assert saved == [None, None, 300, 300, 300, 600, 600]


def test_a_slow_disk_does_not_make_a_run_save_all_the_time(tmp_path, clock, monkeypatch):
    """The next interval begins when a state has been written: offers 100 seconds apart save every third, as fast ones do."""

    def slow(path):
        clock.now += 400
        add_seal(path)

    monkeypatch.setattr(module, "add_seal", slow)
    checkpoint = opened(tmp_path / "run.checkpoint", every=EVERY)
    saved = []
    for name in range(6):
        clock.now += 100
        checkpoint.offer(name)
        saved.append(checkpoint.resume(None))
    assert saved == [None, None, 2, 2, 2, 5]


def test_another_key_is_another_run(tmp_path, capsys):
    """Its state is not returned, and one line says so; saving replaces it."""
    path = tmp_path / "run.checkpoint"
    opened(path).offer("old")
    other = Checkpoint(path, KEY + " of another code", every=0)
    assert other.resume(None) is None
    line = f"{path}: of another specification, code or library version; the run starts over\n"
    assert capsys.readouterr().err == line
    other.offer("new")
    assert other.resume(None) == "new"
    assert Checkpoint(path, KEY).resume(None) is None


def refusal(checkpoint: Checkpoint, path: Path, capsys, fresh: object = None) -> str:
    """The line that says why there is no state."""
    capsys.readouterr()
    assert checkpoint.resume(fresh) is None
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: ")
    assert line.endswith("; the run starts over\n")
    assert line.count("\n") == 1
    return line.removeprefix(f"{path}: ").removesuffix("; the run starts over\n")


UNSEALED = "unfinished, or not written by this project (it does not end with its checksum)"
DAMAGED = "damaged (its content differs from its checksum)"


def test_a_file_that_was_cut_off_anywhere_is_not_used(tmp_path, capsys):
    """Every length from 0 to one byte less than all of it."""
    path = tmp_path / "run.checkpoint"
    checkpoint = opened(path)
    checkpoint.offer({"table": np.arange(30.0), "names": ["one", "two"]})
    whole = path.read_bytes()
    assert checkpoint.resume({})["names"] == ["one", "two"]
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        assert refusal(checkpoint, path, capsys) == UNSEALED


def test_every_flipped_bit_is_noticed(tmp_path, capsys):
    path = tmp_path / "run.checkpoint"
    checkpoint = opened(path)
    checkpoint.offer({"table": np.arange(30.0), "names": ["one", "two"]})
    whole = path.read_bytes()
    for place in np.random.default_rng(0).integers(8 * len(whole), size=300).tolist():
        flipped = bytearray(whole)
        flipped[place // 8] ^= 1 << (place % 8)
        path.write_bytes(flipped)
        assert refusal(checkpoint, path, capsys) in (UNSEALED, DAMAGED)


class Trap:
    """What a file must not be able to do."""

    sprung = False

    def __reduce__(self):
        return Trap.spring, ()

    @staticmethod
    def spring() -> None:
        Trap.sprung = True


def test_nothing_in_a_file_is_run(tmp_path, capsys):
    """Neither a pickle, as checkpoints once were, nor one with a seal, nor one within an archive."""
    path = tmp_path / "run.checkpoint"
    pickled = pickle.dumps(KEY) + pickle.dumps(Trap())
    path.write_bytes(pickled)
    checkpoint = Checkpoint(path, KEY)
    assert refusal(checkpoint, path, capsys) == UNSEALED
    add_seal(path)
    assert refusal(checkpoint, path, capsys).startswith("holds no state of this run (")
    with path.open("wb") as file:
        np.savez(file, key=np.frombuffer(KEY.encode(), np.uint8), table=np.array([Trap()], object))
    add_seal(path)
    assert refusal(checkpoint, path, capsys).startswith("holds no state of this run (ValueError: Object arrays")
    assert not Trap.sprung


@pytest.mark.parametrize(
    "rows",
    [
        [["call", "subprocess:run", ["ls"], None, [], []]],
        [["call", "builtins:eval", ["1"], None, [], []]],
        [["place", "os:system"]],
        [["method", [1], "system"], ["place", "os"]],
        [["call", f"{__name__}:Trap", [], None, [], []]],
        [["place", f"{__name__}:opened"]],
        [["new", f"{__name__}:opened", [], None, [], []]],
        [["new", "numpy:memmap", ["written"], None, [], []]],
        [["new", "subprocess:Popen", [], None, [], []]],
        [["fill", 0]],
        [["list", [7]]],
        [["array", 3]],
        [],
    ],
    ids=str,
)
def test_a_file_names_nothing_that_the_run_is_not_made_of(tmp_path, capsys, rows):
    path = tmp_path / "run.checkpoint"
    texts = {"key": KEY, "table": json.dumps([[0], rows])}
    with path.open("wb") as file:
        np.savez(file, **{name: np.frombuffer(text.encode(), np.uint8) for name, text in texts.items()})
    add_seal(path)
    assert refusal(Checkpoint(path, KEY), path, capsys).startswith("holds no state of this run (")


@pytest.mark.parametrize(
    "state",
    [lambda: None, threading.Lock(), (n for n in range(3)), Path(), Path, np.array([object()]), types, print],
    ids=["lambda", "lock", "generator", "object", "class", "objects", "module", "function"],
)
def test_a_state_that_has_no_plain_form_is_never_saved(tmp_path, state, clock, capsys):
    """One line says so; the run does not try again; what was saved before stays, and no other file."""
    path = tmp_path / "run.checkpoint"
    checkpoint = opened(path, every=EVERY)
    clock.now += 300
    checkpoint.offer("before")
    clock.now += 300
    checkpoint.offer({"state": state})
    line = capsys.readouterr().err
    assert line.startswith(f"{path}: no checkpoints, the run starts over if it is killed (")
    assert line.count("\n") == 1
    clock.now += 1e9
    checkpoint.offer("after")
    assert opened(path).resume(None) == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


def test_a_run_that_has_no_plain_form_at_its_start_has_no_checkpoints(tmp_path, capsys):
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", KEY, every=0)
    assert checkpoint.resume({"rule": lambda: None}) is None
    assert "no checkpoints" in capsys.readouterr().err
    checkpoint.offer("state")
    assert list(tmp_path.iterdir()) == []


def test_a_state_is_written_beside_and_renamed(tmp_path, monkeypatch):
    """Killed while it is written: the state before is still there, whole, and nothing else."""
    path = tmp_path / "run.checkpoint"
    checkpoint = opened(path)
    checkpoint.offer("before")
    seen = []

    def dies(file, **options):
        file.write(b"half a st")
        file.flush()
        seen.extend(sorted(entry.name for entry in tmp_path.iterdir()))
        raise KeyboardInterrupt

    monkeypatch.setattr(np, "savez", dies)
    with pytest.raises(KeyboardInterrupt):
        checkpoint.offer("after")
    assert len(seen) == 2
    assert seen[1] == "run.checkpoint"
    assert checkpoint.resume(None) == "before"
    assert [entry.name for entry in tmp_path.iterdir()] == ["run.checkpoint"]


def test_the_file_is_readable_by_whom_other_files_are(tmp_path):
    """Not only by its owner, as temporary files are."""
    path = tmp_path / "run.checkpoint"
    opened(path).offer("state")
    (tmp_path / "other").touch()
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE((tmp_path / "other").stat().st_mode)


def test_a_complete_run_removes_it(tmp_path):
    """Twice is no error: there may never have been one."""
    path = tmp_path / "run.checkpoint"
    checkpoint = opened(path)
    checkpoint.offer("state")
    checkpoint.remove()
    assert not path.exists()
    checkpoint.remove()
    assert checkpoint.resume(None) is None


# ------------------------------------------------------------------------------------------------ what a state holds

Pair = namedtuple("Pair", "left right")


class Slotted:
    __slots__ = ("first", "second")


class Late:
    """An object that a run is not made of at its start."""


class Node:
    """An object with all that a state may hold."""

    def __init__(self) -> None:
        self.itself = self
        self.numbers = [0, -(2**80), 1e-300, float("inf"), 2 + 3j, True, None, range(2, 9, 3), slice(1, None)]
        self.texts = ["", "böse ✓", "\ud800", b"\x00\xff"]
        self.sets = [{1, 2}, frozenset("ab"), bytearray(b"ab")]
        self.containers = [deque([1, 2], maxlen=3), OrderedDict(b=1, a=2), defaultdict(list, {"x": [1]}), {(1, "a"): [2]}]
        self.pair = Pair(1, [2])
        self.slotted = Slotted()
        self.slotted.first = np.float32(0.1)
        self.rule = partial(opened, key="another")
        self.function, self.kind, self.method = opened, Pair, self.total
        self.arrays = [
            np.arange(6.0).reshape(2, 3).T,
            np.array(["a", "bc"]),
            np.zeros((0, 3), ">i2"),
            np.array(3),
            np.dtype("f4"),
        ]
        self.generators = [np.random.Generator(kind(5)) for kind in (np.random.SFC64, np.random.PCG64, np.random.MT19937)]
        self.draw = self.generators[0].normal
        self.tensor, self.half = torch.arange(12.0), torch.arange(3, dtype=torch.bfloat16)
        self.part = self.tensor[2:8].view(2, 3).T
        self.layer = torch.nn.Linear(2, 3)
        self.device, self.type, self.size = torch.device("cpu"), torch.float64, torch.Size([2, 3])
        self.noise = torch.Generator().manual_seed(4)

    def total(self) -> float:
        return float(self.part.sum())


def test_a_state_comes_back_as_it_was(tmp_path):
    """Parts that are one object are one again, tensors share their memory as before, and generators go on."""
    node = Node()
    for source in node.generators:
        source.standard_normal(7, dtype=np.float32)
    node.generators[1].spawn(2)
    torch.rand(3, generator=node.noise)
    node.tensor += 1
    node.late = Late()
    checkpoint = opened(tmp_path / "run.checkpoint", fresh=Node())
    checkpoint.offer(node)
    copy = checkpoint.resume(Node())
    assert copy.itself is copy
    assert copy is not node
    for name in ("numbers", "texts", "sets", "containers", "pair", "function", "kind", "device", "type", "size"):
        assert getattr(copy, name) == getattr(node, name), name
    assert type(copy.late) is Late
    assert [type(one) for one in copy.containers] == [type(one) for one in node.containers]
    assert copy.containers[0].maxlen == 3
    assert copy.containers[2]["new"] == []
    assert type(copy.pair) is Pair
    assert type(copy.slotted.first) is np.float32
    assert copy.slotted.first == np.float32(0.1)
    for found, expected in zip(copy.arrays, node.arrays, strict=True):
        assert type(found) is type(expected)
        if isinstance(found, np.ndarray):
            assert (found.dtype, found.flags.writeable) == (expected.dtype, True)
        assert np.array_equal(found, expected)
    assert copy.method.__self__ is copy
    copy.tensor += 100
    assert copy.total() == copy.method() == node.total() + 600
    assert torch.equal(copy.half, node.half)
    assert copy.draw.__self__ is copy.generators[0]
    for found, expected in zip(copy.generators, node.generators, strict=True):
        assert type(found.bit_generator) is type(expected.bit_generator)
        assert np.array_equal(found.standard_normal(9), expected.standard_normal(9))
        assert found.spawn(1)[0].random() == expected.spawn(1)[0].random()
    assert (copy.rule.func, copy.rule.keywords) == (opened, {"key": "another"})
    assert torch.equal(torch.rand(3, generator=copy.noise), torch.rand(3, generator=node.noise))
    point = torch.ones(2)
    assert torch.equal(copy.layer(point), node.layer(point))
    assert all(isinstance(parameter, torch.nn.Parameter) for parameter in copy.layer.parameters())
