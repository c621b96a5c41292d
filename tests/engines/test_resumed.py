"""Killed and started again: every agent, on every engine that plays it, goes on to the last bit."""

from __future__ import annotations

import os

import pytest
import torch
from every_kind import ROUNDS, agent_entry, built, environment_entry, partner_of
from killed import Killed, assert_equal, killer

from ensemblepp import registry
from ensemblepp.engines.choice import simulate
from ensemblepp.storage.checkpoints import Checkpoint

torch.set_num_threads(1)

#: Played whole in a minute or two, without checkpoints.
WHOLE = {"linear.compiled", "linear.batched"}


@pytest.mark.parametrize("engine", ["own", "step_by_step"])
@pytest.mark.parametrize("kind", registry.AGENTS)
def test_a_killed_run_goes_on_to_the_same_bits(kind, engine, tmp_path, monkeypatch):
    """A state after each of 12 rounds of two seeds, and death in the eighth."""
    monkeypatch.chdir(tmp_path)
    # a state per round is a lot to wait for the disk for
    monkeypatch.setattr(os, "fsync", lambda handle: None)
    place = environment_entry(partner_of(kind), tmp_path)

    def start():
        environment, agent, own = built(place, agent_entry(kind))
        return environment, agent, own if engine == "own" else engine

    def play(*more) -> object:
        environment, agent, engine = start()
        return simulate(environment, agent, ROUNDS, *more, engine=engine)

    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    with pytest.raises(Killed):
        play(killer(2 * 8), checkpoint)
    assert (tmp_path / "run.checkpoint").exists() == (registry.ENGINES[start()[2]].split(".", 2)[2] not in WHOLE)
    reported = []
    assert_equal(play(reported.append, checkpoint), play())
    assert sum(reported) == 2 * ROUNDS
    assert reported[0] == 2 * 7 or not (tmp_path / "run.checkpoint").exists()
