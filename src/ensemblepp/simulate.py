"""The interaction loop, batched over seeds and chains; it knows no environment and no agent by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ensemblepp.agents.base import Agent
from ensemblepp.environments.base import Environment

#: Up to this horizon every step is stored; beyond it a log + linear grid.
DENSE_HORIZON = 2000

#: Per-step actions are stored while a run's table has no more entries than this.
MAX_STORED_ACTIONS = 1_000_000


@dataclass(frozen=True)
class Trajectory:
    """What a simulation leaves, all cumulative over the rounds 1..time.

    Shapes: `time` (times,); `regret`, `reward` and `optimal` (number of rounds with zero regret) are
    (seeds, chains, times); `action` is (seeds, chains, horizon) or None where it would be large; `constant_regret`
    (seeds, actions, times) is what always choosing one action would have cost, or None where that is no policy.
    """

    time: np.ndarray
    regret: np.ndarray
    reward: np.ndarray
    optimal: np.ndarray
    action: np.ndarray | None
    constant_regret: np.ndarray | None


def time_grid(horizon: int) -> np.ndarray:
    """The steps that are stored, increasing, ending with `horizon`: all of them up to 2,000, else about 600."""
    if horizon <= DENSE_HORIZON:
        return np.arange(1, horizon + 1)
    logarithmic = np.geomspace(1, horizon, 200).round()
    linear = np.linspace(1, horizon, 401).round()
    return np.unique(np.concatenate([logarithmic, linear]).astype(int))


def simulate(environment: Environment, agent: Agent, horizon: int, on_step: Callable[[], None] = lambda: None) -> Trajectory:
    """Let `agent` play `environment` for `horizon` rounds; `on_step` is called after each."""
    time = time_grid(horizon)
    seeds, chains, actions = len(agent.seeds), len(agent.chains), environment.fixed_actions
    regret, reward = (np.empty((seeds, chains, len(time)), dtype=np.float32) for _ in range(2))
    optimal = np.empty((seeds, chains, len(time)), dtype=np.int32)
    constant = np.empty((seeds, actions, len(time)), dtype=np.float32) if actions else None
    small = seeds * chains * horizon <= MAX_STORED_ACTIONS
    chosen = np.empty((seeds, chains, horizon), dtype=np.int32) if small else None
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
            position += 1
        on_step()
    return Trajectory(time, regret, reward, optimal, chosen, constant)
