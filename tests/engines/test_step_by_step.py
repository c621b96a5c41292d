"""The interaction loop, on a bandit and an agent small enough to add up by hand."""

import os

import numpy as np
import pytest
from killed import Killed, assert_equal, killer
from neural_pools import SEEDS, pool

from ensemblepp import trajectory as times
from ensemblepp.agents.linear.ucb import LinearUCB
from ensemblepp.bandit import Decisions, Outcome
from ensemblepp.engines.choice import simulate
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import time_grid

#: MEANS[round][seed] = noise-free rewards of the three actions.
MEANS = np.array(
    [
        [[1.0, 0.0, 0.5], [0.0, 2.0, 1.0]],
        [[0.0, 1.0, 0.5], [3.0, 2.0, 3.0]],
        [[0.25, 0.0, 0.5], [0.0, 0.0, 1.0]],
        [[1.0, 1.0, 0.0], [2.0, 1.0, 0.0]],
    ]
)
#: CHOICES[round][seed][chain]
CHOICES = np.array([[[0, 1], [1, 0]], [[0, 1], [2, 1]], [[1, 2], [0, 2]], [[2, 0], [0, 1]]])
NOISE = 10.0


class Scripted:
    """Plays `MEANS` over and over; the observed reward is the mean plus 10, so that it is not the regret's mean."""

    seeds = (0, 1)
    dimension = 1

    def __init__(self, fixed_actions=3, log=None):
        self.fixed_actions = fixed_actions
        self.log = [] if log is None else log
        self.round = 0

    def decisions(self):
        self.log.append("decisions")
        return Decisions(np.full((2, 3, 1), float(self.round)))

    def mean_rewards(self):
        return MEANS[self.round % 4]

    def step(self, choice):
        self.log.append("step")
        means = self.mean_rewards()
        self.round += 1
        mean = np.array([[means[seed, action] for action in choice.index[seed]] for seed in range(2)])
        return Outcome(mean + NOISE, means.max(axis=1)[:, None] - mean)


class Script:
    """Chooses `CHOICES` over and over, and keeps the rewards that it sees."""

    seeds = (0, 1)
    chains = (("gaussian", "sphere"), ("gaussian", "cube"))

    def __init__(self, log=None):
        self.log = [] if log is None else log
        self.seen = []
        self.round = 0

    def act(self, decisions):
        self.log.append("act")
        assert (decisions.features == self.round).all()
        return decisions.choose(CHOICES[self.round % 4])

    def update(self, choice, reward):
        self.log.append("update")
        assert np.array_equal(choice.index, CHOICES[self.round % 4])
        self.round += 1
        self.seen.append(reward)


def test_four_rounds_by_hand():
    """Gaps per round, seed 0: 0 1 0.5 1 and 1 0 0 0; seed 1: 0 0 1 0 and 2 1 0 1."""
    agent = Script()
    trajectory = simulate(Scripted(), agent, 4)
    assert trajectory.time.tolist() == [1, 2, 3, 4]
    assert trajectory.regret.tolist() == [[[0, 1, 1.5, 2.5], [1, 1, 1, 1]], [[0, 0, 1, 1], [2, 3, 3, 4]]]
    assert trajectory.reward.tolist() == [[[11, 21, 31, 41], [10, 21, 31.5, 42.5]], [[12, 25, 35, 47], [10, 22, 33, 44]]]
    assert trajectory.optimal.tolist() == [[[1, 1, 1, 1], [0, 1, 2, 3]], [[1, 2, 2, 3], [0, 0, 1, 1]]]
    assert trajectory.action.tolist() == [[[0, 0, 1, 2], [1, 1, 2, 0]], [[1, 2, 0, 0], [0, 1, 2, 1]]]
    assert np.array_equal(
        agent.seen, [[[11, 10], [12, 10]], [[10, 11], [13, 12]], [[10, 10.5], [10, 11]], [[10, 11], [12, 11]]]
    )


def test_regret_of_constant_actions_by_hand():
    """Always action 0, 1 or 2 of seed 0 misses 0 1 0.25 0, 1 0 0.5 0 or 0.5 0.5 0 1."""
    trajectory = simulate(Scripted(), Script(), 4)
    assert trajectory.constant_regret.tolist() == [
        [[0, 1, 1.25, 1.25], [1, 1, 1.5, 1.5], [0.5, 1, 1, 2]],
        [[2, 2, 3, 3], [0, 1, 2, 3], [1, 1, 1, 3]],
    ]


def test_actions_without_a_meaning_have_no_constant_regret():
    trajectory = simulate(Scripted(fixed_actions=0), Script(), 4)
    assert trajectory.constant_regret is None
    assert trajectory.regret[0, 0].tolist() == [0, 1, 1.5, 2.5]


def test_order_of_a_round():
    """Decisions, act, answer, update, and then the progress call: one round of two seeds is done."""
    log = []
    simulate(Scripted(log=log), Script(log=log), 3, log.append)
    assert log == ["decisions", "act", "step", "update", 2] * 3


@pytest.mark.parametrize(("limit", "stored"), [(16, True), (15, False)])
def test_actions_are_stored_up_to_a_limit(monkeypatch, limit, stored):
    """2 seeds x 2 chains x 4 rounds are 16 entries."""
    monkeypatch.setattr(times, "MAX_STORED_ACTIONS", limit)
    trajectory = simulate(Scripted(), Script(), 4)
    assert (trajectory.action is not None) == stored
    assert trajectory.regret[1, 1].tolist() == [2, 3, 3, 4]


def test_thinned_trajectory_is_the_full_one_at_the_stored_times(monkeypatch):
    """The script repeats every 4 rounds; actions are stored at every round all the same."""
    thin = simulate(Scripted(), Script(), 3000)
    monkeypatch.setattr(times, "DENSE_HORIZON", 3000)
    full = simulate(Scripted(), Script(), 3000)
    assert len(thin.time) < 700 < len(full.time) == 3000
    for name in ("regret", "reward", "optimal", "constant_regret"):
        assert np.array_equal(getattr(thin, name), getattr(full, name)[..., thin.time - 1])
    assert np.array_equal(thin.action, full.action)
    assert full.regret[0, 0, -1] == 750 * 2.5


def test_diagnostics_are_taken_at_the_stored_rounds():
    """What the agent says after a round's update; the grid is coarse then: 150 rounds are not all stored."""

    class Diagnosed(Script):
        def diagnostics(self):
            return {"rounds": np.full((2, 2), float(self.round)), "chain": np.array([[0.0, 1.0], [2.0, 3.0]])}

    trajectory = simulate(Scripted(), Diagnosed(), 150)
    assert trajectory.time.tolist() == time_grid(150, coarse=True).tolist()
    assert len(trajectory.time) < 120
    assert set(trajectory.diagnostics) == {"rounds", "chain"}
    assert np.array_equal(trajectory.diagnostics["rounds"], np.broadcast_to(trajectory.time, (2, 2, len(trajectory.time))))
    assert np.array_equal(trajectory.diagnostics["chain"][:, :, -1], [[0, 1], [2, 3]])
    plain = simulate(Scripted(), Script(), 150)
    assert plain.diagnostics == {}
    assert len(plain.time) == 150
    assert np.array_equal(trajectory.regret, plain.regret[..., trajectory.time - 1])


def test_many_chains_for_many_rounds_are_stored_on_the_coarse_grid(monkeypatch):
    """2 chains x 150 rounds are 300 entries."""
    full = simulate(Scripted(), Script(), 150)
    monkeypatch.setattr(times, "DENSE_ENTRIES", 300)
    assert simulate(Scripted(), Script(), 150).time.tolist() == list(range(1, 151))
    monkeypatch.setattr(times, "DENSE_ENTRIES", 299)
    coarse = simulate(Scripted(), Script(), 150)
    assert coarse.time.tolist() == time_grid(150, coarse=True).tolist()
    for name in ("regret", "reward", "optimal", "constant_regret"):
        assert np.array_equal(getattr(coarse, name), getattr(full, name)[..., coarse.time - 1])
    assert np.array_equal(coarse.action, full.action)


def test_a_killed_run_goes_on_to_the_same_bits(monkeypatch, tmp_path):
    """LinUCB knows nothing of checkpoints: the loop saves it, here in every round."""
    # a state per round is a lot to wait for the disk for
    monkeypatch.setattr(os, "fsync", lambda handle: None)

    def start():
        environment = pool("quadratic", SEEDS)
        return environment, LinearUCB(SEEDS, dimension=6, prior_variance=1.0, width=1.0, delta=0.05)

    whole = simulate(*start(), 60)
    checkpoint = Checkpoint(tmp_path / "run.checkpoint", "key", every=0)
    with pytest.raises(Killed):
        simulate(*start(), 60, killer(3 * 33), checkpoint)
    reported = []
    assert_equal(simulate(*start(), 60, reported.append, checkpoint), whole)
    assert reported[0] == 3 * 32
