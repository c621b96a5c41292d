"""The interaction loop, batched over seeds and chains; it knows no environment and no agent by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from ensemblepp.agents.base import Agent
from ensemblepp.environments.base import Environment
from ensemblepp.times import time_grid

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
    environment: Environment, agent: Agent, horizon: int, on_step: Callable[[int], None] = lambda rounds: None
) -> Trajectory:
    """Let `agent` play `environment` for `horizon` rounds; `on_step` is told how many rounds, summed over seeds, are done.

    An agent that plays whole games (`GameAgent`) does so where the environment has them (`GameEnvironment`).
    """
    diagnostics = getattr(agent, "diagnostics", dict)
    first = diagnostics()
    time = time_grid(horizon, coarse=bool(first) or len(agent.chains) * horizon > DENSE_ENTRIES)
    if getattr(agent, "plays_games", False) and hasattr(environment, "games"):
        return agent.play(environment.games(), horizon, time, on_step)
    seeds, chains, actions = len(agent.seeds), len(agent.chains), environment.fixed_actions
    regret, reward = (np.empty((seeds, chains, len(time)), dtype=np.float32) for _ in range(2))
    optimal = np.empty((seeds, chains, len(time)), dtype=np.int32)
    constant = np.empty((seeds, actions, len(time)), dtype=np.float32) if actions else None
    chosen = np.empty((seeds, chains, horizon), dtype=np.int32) if stores_actions(seeds, chains, horizon) else None
    told = {name: np.empty((seeds, chains, len(time)), dtype=np.float32) for name in first}
    total_regret, total_reward = (np.zeros((seeds, chains)) for _ in range(2))
    total_optimal = np.zeros((seeds, chains), dtype=np.int64)
    total_constant = np.zeros((seeds, actions))

    position = 0
    for step in range(1, horizon + 1):
        choice = agent.act(environment.decisions())
        if actions:
            means = environment.mean_rewards()
            total_constant += means.max(axis=1, keepdims=True) - means
        outcome = environment.step(choice)
        agent.update(choice, outcome.reward)
        total_regret += outcome.regret
        total_reward += outcome.reward
        total_optimal += outcome.regret == 0
        if chosen is not None:
            chosen[:, :, step - 1] = choice.index
        if step == time[position]:
            regret[:, :, position] = total_regret
            reward[:, :, position] = total_reward
            optimal[:, :, position] = total_optimal
            if constant is not None:
                constant[:, :, position] = total_constant
            for name, values in diagnostics().items():
                told[name][:, :, position] = values
            position += 1
        on_step(seeds)
    return Trajectory(time, regret, reward, optimal, chosen, constant, told)
