"""Blocks as jobs: one writer at a time, a checkpoint when told to end, a word when memory runs out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ensemblepp.engines import step_by_step
from ensemblepp.runs import block
from ensemblepp.runs.fingerprint import fingerprint
from ensemblepp.runs.job import StoppedError, simulate
from ensemblepp.specification import Block
from ensemblepp.storage import leases
from ensemblepp.storage.datasets import read_dataset
from ensemblepp.storage.leases import Lease, this_process

ROUNDS = 60
SPEC = {
    "environment": {
        "name": "small",
        "kind": "linear_finite",
        "options": {"dimension": 3, "actions": 5, "feature_bound": 0.5, "prior_variance": 10.0, "noise": 1.0},
    },
    "agent": {"name": "ts", "kind": "linear_ts", "options": {"prior_variance": 10.0}},
    "engine": "step_by_step",
    "ensemble_size": 0,
    "horizon": ROUNDS,
    "seeds": [0, 1],
    "device": "cpu",
}

CODE = fingerprint(*Block("", SPEC).code)

#: Takes the folder of the run file; 0.02 seconds a round.
SLOW = f"""
import sys, time
from ensemblepp.cli import main
from ensemblepp.runs import progress
progress.Progress.step = lambda self, rounds=1: (print(rounds, flush=True), time.sleep(0.02))
sys.exit(main(["simulate", "--spec", {json.dumps(json.dumps(SPEC))}, "--code", {json.dumps(CODE)}, "--output", sys.argv[1]]))
"""


@pytest.fixture(autouse=True)
def soon(monkeypatch):
    monkeypatch.setattr(leases, "POLL", 0.02)


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> bytes:
    """The run file of a block that nothing disturbed."""
    path = tmp_path_factory.mktemp("whole") / "run.nc"
    simulate(SPEC, path, code=CODE)
    return path.read_bytes()


def start(output: Path) -> subprocess.Popen[str]:
    """A job of another process, after its first round."""
    process = subprocess.Popen([sys.executable, "-c", SLOW, output], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "2\n"
    return process


def test_a_job_leaves_the_run_and_nothing_else(whole, tmp_path):
    output = tmp_path / "run.nc"
    block.run(SPEC, output, code=CODE)
    assert output.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "run.nc"]


def test_told_to_end_it_saves_its_state_and_a_new_start_goes_on(whole, tmp_path):
    """Of a process of its own, by SIGTERM. The rounds of the two add up, and the bytes are those of a run in one piece."""
    output = tmp_path / "run.nc"
    process = start(output)
    process.send_signal(signal.SIGTERM)
    said, error = process.communicate()
    done = 2 + 2 * len(said.splitlines())
    rest = "a new start goes on from its checkpoint"
    assert error.splitlines()[-1] == f"error: {output}: told to end after {done} of {2 * ROUNDS} rounds; {rest}"
    assert process.returncode == 1
    assert [path.name for path in tmp_path.iterdir()] == ["run.checkpoint"]
    told = []
    simulate(SPEC, output, code=CODE, on_step=told.append)
    assert told[0] == done
    assert sum(told) == 2 * ROUNDS
    assert output.read_bytes() == whole
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "run.nc"]


def terminate(_rounds: int) -> None:
    os.kill(os.getpid(), signal.SIGTERM)


def test_an_engine_without_checkpoints_ends_as_well(tmp_path, monkeypatch):
    def play(agent, environment, horizon, time, on_step, checkpoint):
        for _ in range(horizon):
            on_step(2)
        raise AssertionError("it goes on")

    monkeypatch.setattr(step_by_step, "play", play)
    with pytest.raises(StoppedError, match=r"told to end after 6 of 120 rounds; a new start begins anew"):
        simulate(SPEC, tmp_path / "run.nc", on_step=lambda rounds: terminate(rounds))
    assert list(tmp_path.iterdir()) == []
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_before_the_first_round_it_ends_at_once(tmp_path, monkeypatch):
    """So also while it waits."""
    output = tmp_path / "run.nc"
    monkeypatch.setattr(block, "build", terminate)
    with pytest.raises(StoppedError, match="told to end after 0 of 120 rounds"):
        simulate(SPEC, output)
    assert list(tmp_path.iterdir()) == []


def test_told_to_end_after_the_last_round_it_finishes(whole, tmp_path, monkeypatch):
    write = block.write_dataset
    monkeypatch.setattr(block, "write_dataset", lambda *args: (terminate(0), write(*args)))
    output = tmp_path / "run.nc"
    simulate(SPEC, output, code=CODE)
    assert output.read_bytes() == whole


def test_a_second_writer_waits_and_takes_what_the_first_has_made(whole, tmp_path, capfd):
    output = tmp_path / "run.nc"
    first = start(output)
    told = []
    simulate(SPEC, output, code=CODE, on_step=told.append)
    assert first.poll() is not None or output.exists()
    first.communicate()
    said = capfd.readouterr()
    assert said.err.startswith(f"{output}: waiting, as process {first.pid} on ")
    assert f"{output}: made by the other process" in said.err
    assert told == [], "nothing was simulated"
    assert output.read_bytes() == whole


@pytest.mark.parametrize("how", ["killed", "other code"])
def test_a_second_writer_takes_over_where_the_first_left_nothing_of_use(how, whole, tmp_path):
    """It was killed, or made the block with other code."""
    output = tmp_path / "run.nc"
    first = start(output)
    if how == "killed":
        first.kill()
    told = []
    simulate(SPEC, output, code="another", on_step=told.append)
    first.communicate()
    assert sum(told) == 2 * ROUNDS
    assert read_dataset(output).attrs["code"] == "another"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.json", "run.nc"]


def test_a_job_that_was_taken_for_dead_leaves_the_block_to_the_other(tmp_path, monkeypatch):
    monkeypatch.setattr(leases, "EVERY", 0.01)
    output = tmp_path / "run.nc"
    other = json.dumps(this_process() | {"host": "elsewhere"})

    def replaced(_rounds: int) -> None:
        output.with_suffix(".lease").write_text(other)
        time.sleep(0.1)

    with pytest.raises(StoppedError, match="another process has taken over"):
        simulate(SPEC, output, on_step=replaced)
    assert [path.name for path in tmp_path.iterdir()] == ["run.lease"]
    assert output.with_suffix(".lease").read_text() == other


class OutOfMemoryError(RuntimeError):
    """As torch's."""


@pytest.mark.parametrize("error", [MemoryError("Unable to allocate 7 GiB"), OutOfMemoryError("Unable to allocate 7 GiB")])
def test_out_of_memory_says_so(error, tmp_path):
    output = tmp_path / "run.nc"

    def on_step(_rounds: int) -> None:
        raise error

    with pytest.raises(StoppedError) as raised:
        simulate(SPEC, output, on_step=on_step)
    remedy = "give the job more memory (mem_mb), or fewer seeds (seeds_per_block in config/studies.yaml)"
    assert str(raised.value) == f"{output}: out of memory (Unable to allocate 7 GiB); {remedy}"
    assert list(tmp_path.iterdir()) == []


def test_other_errors_are_left_alone(tmp_path):
    def on_step(_rounds: int) -> None:
        raise RuntimeError("of the user's code")

    with pytest.raises(RuntimeError, match="of the user's code"):
        simulate(SPEC, tmp_path / "run.nc", on_step=on_step)


def test_the_lease_is_beside_the_run_file(tmp_path):
    seen = []
    simulate(SPEC, tmp_path / "run.nc", on_step=lambda rounds: seen.append((tmp_path / "run.lease").exists()))
    assert all(seen)
    with Lease(tmp_path / "run.lease", "run") as lease:
        assert not lease.waited
