"""The interaction loop, batched over seeds and chains; it knows no environment and no agent by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ensemblepp.agents.base import Agent
from ensemblepp.environments.base import Environment
from ensemblepp.times import time_grid

if TYPE_CHECKING:
    from ensemblepp.checkpoint import Checkpoint

#: With more chains x rounds than this, or with diagnostics, the grid of stored steps is a coarse one.
DENSE_ENTRIES = 10_000

#: Per-step actions are stored while a run's table has no more entries than this.
MAX_STORED_ACTIONS = 1_000_000


@dataclass(frozen=True)
class Trajectory:
    """What a simulation leaves, all cumulative over the rounds 1..time.

    Shapes: `time` (times,); `regret`, `reward` and `optimal` (number of rounds with zero regret) are
    (seeds, chains, times); `action` is (seeds, chains, horizon) or None where it would be large; `constant_regret`
    (seeds, actions, times) is what always choosing one action would have cost, or None where that is no policy.
    `diagnostics` are what the agent says of itself at the stored times, (seeds, chains, times) each, not cumulative.
    """

    time: np.ndarray
    regret: np.ndarray
    reward: np.ndarray
    optimal: np.ndarray
    action: np.ndarray | None
    constant_regret: np.ndarray | None
    diagnostics: dict[str, np.ndarray] = field(default_factory=dict)


def stores_actions(seeds: int, chains: int, horizon: int) -> bool:
    """Whether a table of all chosen actions is small."""
    return seeds * chains * horizon <= MAX_STORED_ACTIONS


def simulate(
    environment: Environment,
    agent: Agent,
    horizon: int,
    on_step: Callable[[int], None] = lambda rounds: None,
    checkpoint: Checkpoint | None = None,
) -> Trajectory:
    """Let `agent` play `environment` for `horizon` rounds; `on_step` is told how many rounds, summed over seeds, are done.

    An agent that can play the environment whole (`WholeRunAgent`) does so. With a checkpoint, a run that was killed goes on
    from its last one.
    """
    first = getattr(agent, "diagnostics", dict)()
    time = time_grid(horizon, coarse=bool(first) or len(agent.chains) * horizon > DENSE_ENTRIES)
    if hasattr(agent, "plays") and agent.plays(environment):
        return agent.play(environment, horizon, time, on_step, checkpoint)
    run = checkpoint.load() if checkpoint else None
    if run is None:
        run = _Run(environment, agent, horizon, time, first)
    else:
        on_step(run.step * len(agent.seeds))
    while run.step < horizon:
        run.round()
        on_step(len(agent.seeds))
        if checkpoint:
            checkpoint.offer(run)
    return run.trajectory()


class _Run:
    """A simulation on its way, round by round. It can be pickled, where environment and agent can, and goes on."""

    def __init__(
        self, environment: Environment, agent: Agent, horizon: int, time: np.ndarray, diagnostics: dict[str, np.ndarray]
    ) -> None:
        self.environment, self.agent, self.time = environment, agent, time
        self.step = 0
        seeds, chains, actions = len(agent.seeds), len(agent.chains), environment.fixed_actions
        self.regret, self.reward = (np.empty((seeds, chains, len(time)), dtype=np.float32) for _ in range(2))
        self.optimal = np.empty((seeds, chains, len(time)), dtype=np.int32)
        self.constant = np.empty((seeds, actions, len(time)), dtype=np.float32) if actions else None
        self.action = np.empty((seeds, chains, horizon), dtype=np.int32) if stores_actions(seeds, chains, horizon) else None
        self.told = {name: np.empty((seeds, chains, len(time)), dtype=np.float32) for name in diagnostics}
        self._regret, self._reward = (np.zeros((seeds, chains)) for _ in range(2))
        self._optimal = np.zeros((seeds, chains), dtype=np.int64)
        self._constant = np.zeros((seeds, actions))
        self._position = 0

    def round(self) -> None:
        choice = self.agent.act(self.environment.decisions())
        if self.constant is not None:
            means = self.environment.mean_rewards()
            self._constant += means.max(axis=1, keepdims=True) - means
        outcome = self.environment.step(choice)
        self.agent.update(choice, outcome.reward)
        self._regret += outcome.regret
        self._reward += outcome.reward
        self._optimal += outcome.regret == 0
        if self.action is not None:
            self.action[:, :, self.step] = choice.index
        self.step += 1
        if self.step == self.time[self._position]:
            self._record()

    def _record(self) -> None:
        position = self._position
        self.regret[:, :, position] = self._regret
        self.reward[:, :, position] = self._reward
        self.optimal[:, :, position] = self._optimal
        if self.constant is not None:
            self.constant[:, :, position] = self._constant
        for name, values in getattr(self.agent, "diagnostics", dict)().items():
            self.told[name][:, :, position] = values
        self._position += 1

    def trajectory(self) -> Trajectory:
        return Trajectory(self.time, self.regret, self.reward, self.optimal, self.action, self.constant, self.told)
