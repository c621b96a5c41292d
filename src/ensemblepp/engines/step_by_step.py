"""The interaction loop, round by round: any agent in any environment, batched over seeds and chains."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ensemblepp.bandit import Agent, Environment
from ensemblepp.engines import contract
from ensemblepp.engines.fixed_policies import FixedPolicies
from ensemblepp.engines.threads import one_thread
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import Trajectory, stores_actions


@one_thread()
def play(
    agent: Agent,
    environment: Environment,
    horizon: int,
    time: np.ndarray,
    on_step: Callable[[int], None],
    checkpoint: Checkpoint | None = None,
) -> Trajectory:
    """Play `horizon` rounds of every seed; outputs at the rounds `time`; `on_step` hears of rounds done."""
    fresh = StepByStep(environment, agent, horizon, time)
    run = checkpoint.resume(fresh) if checkpoint else None
    if run is None:
        run = fresh
    else:
        on_step(run.step * len(agent.seeds))
    while run.step < horizon:
        run.round()
        on_step(len(agent.seeds))
        if checkpoint:
            checkpoint.offer(run)
    return run.trajectory()


class StepByStep:
    """A simulation on its way, round by round. It can be saved, where environment and agent can, and goes on."""

    def __init__(self, environment: Environment, agent: Agent, horizon: int, time: np.ndarray) -> None:
        self.environment, self.agent, self.time = environment, agent, time
        self.step = 0
        seeds, chains = len(agent.seeds), len(agent.chains)
        self.regret, self.reward = (np.empty((seeds, chains, len(time)), dtype=np.float32) for _ in range(2))
        self.optimal = np.empty((seeds, chains, len(time)), dtype=np.int32)
        self.fixed = FixedPolicies(environment)
        self.action = np.empty((seeds, chains, horizon), dtype=np.int32) if stores_actions(seeds, chains, horizon) else None
        names = getattr(agent, "diagnostics", dict)()
        self.diagnostics = {name: np.empty((seeds, chains, len(time)), dtype=np.float32) for name in names}
        # what agents that predict rewards are told of their error, where all rewards of a round are known
        self._pool = getattr(environment, "family", None) == "pool"
        if self._pool and hasattr(agent, "prediction_error"):
            self.error: np.ndarray | None = np.empty((seeds, chains, len(time)), dtype=np.float32)
        else:
            self.error = None
        self._regret, self._reward = (np.zeros((seeds, chains)) for _ in range(2))
        self._optimal = np.zeros((seeds, chains), dtype=np.int64)
        self._position = 0

    def round(self) -> None:
        agent, environment, step = self.agent, self.environment, self.step + 1
        shape = self._regret.shape
        decisions = environment.decisions()
        if step == 1:
            contract.check_decisions(environment, decisions, step)
        choice = agent.act(decisions)
        contract.check_choice(agent, choice, decisions, *shape, step)
        if step == 1:
            contract.check_features(agent, choice, decisions, (*shape, environment.dimension), step)
        records = self.step + 1 == self.time[self._position]
        if self.fixed or (records and self.error is not None):
            means = environment.mean_rewards()
        if self.fixed:
            contract.check_means(environment, means, environment.fixed_actions, step)
            own = environment.fixed_choices(environment.offers()[:, None]) if self._pool else {}
            self.fixed.add(means[:, None], own)
        outcome = environment.step(choice)
        contract.check_outcome(environment, outcome, shape, step)
        agent.update(choice, outcome.reward)
        self._regret += outcome.regret
        self._reward += outcome.reward
        self._optimal += outcome.regret == 0
        if self.action is not None:
            self.action[:, :, self.step] = choice.index
        self.step += 1
        if records:
            if self.error is not None:
                self.error[:, :, self._position] = agent.prediction_error(means)
            self._record()

    def _record(self) -> None:
        position = self._position
        self.regret[:, :, position] = self._regret
        self.reward[:, :, position] = self._reward
        self.optimal[:, :, position] = self._optimal
        self.fixed.record()
        for name, values in contract.reported(self.agent, self._regret.shape, self.diagnostics).items():
            self.diagnostics[name][:, :, position] = values
        self._position += 1

    def trajectory(self) -> Trajectory:
        constant, policies = self.fixed.curves()
        diagnostics = self.diagnostics if self.error is None else self.diagnostics | {"error": self.error}
        return Trajectory(self.time, self.regret, self.reward, self.optimal, self.action, constant, diagnostics, policies)
