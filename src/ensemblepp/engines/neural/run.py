"""What all engines for neural agents share: draws for the rounds ahead, sums, and what is stored of them.

The environment's offers and noise are drawn ahead and put beside the agent's random numbers; rewards and regret are computed
where the agent is.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable

import numpy as np
import torch

from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.engines import contract
from ensemblepp.engines.fixed_policies import FixedPolicies
from ensemblepp.engines.threads import one_thread
from ensemblepp.environments.pool import Pool
from ensemblepp.storage.checkpoints import Checkpoint
from ensemblepp.trajectory import Trajectory, stores_actions


class Run:
    """A simulation on its way: agent, environment, sums so far and what is stored of them. It can be saved and goes on."""

    def __init__(self, agent: NeuralAgent, environment: Pool, horizon: int, time: np.ndarray) -> None:
        self.agent, self.environment, self.horizon, self.time = agent, environment, horizon, time
        chains, device = agent.stack, agent.device
        self.regret, self.reward = (torch.zeros(chains, dtype=torch.float64, device=device) for _ in range(2))
        self.optimal = torch.zeros(chains, dtype=torch.int64, device=device)
        self.fixed = FixedPolicies(environment)
        self.seconds = 0.0
        self.stored: dict[str, list[np.ndarray]] = {}
        small = stores_actions(len(agent.seeds), len(agent.chains), horizon)
        self.action = torch.zeros(chains, horizon, dtype=torch.int32, device=device) if small else None
        # which table and which means are whose; one may serve all seeds
        self.seed_of = np.arange(chains) // len(agent.chains)
        self.table_of, self.means_of = (
            self.seed_of if len(lists) > 1 else np.zeros(chains, dtype=np.intp)
            for lists in (environment.table, environment.means)
        )
        self._waiting = 0

    def advance(self) -> None:
        """Play up to the next stored round, or to the end of what is drawn ahead."""
        agent = self.agent
        if self._waiting == 0:
            self._draw(min(agent.chunk, self.horizon - agent.round))
        column = len(self.stored.get("regret", ()))
        rounds = min(int(self.time[column]) - agent.round, self._waiting)
        start = clock.perf_counter() if agent.device.type == "cuda" else clock.process_time()
        self.play(rounds)
        if agent.timed:
            if agent.device.type == "cuda":
                torch.cuda.synchronize()
            end = clock.perf_counter() if agent.device.type == "cuda" else clock.process_time()
            self.seconds += end - start
        first = self._drawn.shape[1] - self._waiting
        if self.fixed:
            offers = self._drawn[:, first : first + rounds]
            self.fixed.add(self._means(offers), self.environment.fixed_choices(offers))
        self._waiting -= rounds
        if agent.round == self.time[column]:
            agent.check()
            self._record(self._means(self._drawn[:, first + rounds - 1]))

    def play(self, rounds: int) -> None:
        """Play so many rounds, of those that are drawn ahead."""
        raise NotImplementedError

    def put(self, offers: np.ndarray, noise: np.ndarray) -> None:
        """Take the environment's draws for the rounds ahead, (seeds, rounds, ...)."""
        raise NotImplementedError

    def trajectory(self) -> Trajectory:
        """What the run leaves."""
        shape = (len(self.agent.seeds), len(self.agent.chains))
        stored = {name: np.stack(values, axis=-1).reshape(*shape, -1) for name, values in self.stored.items()}
        constant, policies = self.fixed.curves()
        return Trajectory(
            self.time,
            stored.pop("regret").astype(np.float32),
            stored.pop("reward").astype(np.float32),
            stored.pop("optimal").astype(np.int32),
            None if self.action is None else self.action.cpu().numpy().reshape(*shape, -1),
            constant,
            {name: values.astype(np.float32) for name, values in stored.items()},
            policies,
        )

    def _draw(self, rounds: int) -> None:
        self.agent.load(rounds)
        drawn = self.environment.draw(rounds)
        contract.check_draw(self.environment, drawn, rounds)
        self._drawn = drawn.offers
        self.put(drawn.offers, drawn.noise)
        # a table of contexts may end before the horizon: then the next draw says so
        self._waiting = drawn.noise.shape[1]

    def _means(self, offers: np.ndarray) -> np.ndarray:
        """Noise-free rewards of offers, (seeds, ..., actions)."""
        means = self.environment.means
        if len(means) == 1:
            return means[0, offers]
        return means[np.arange(len(means)).reshape(-1, *[1] * (offers.ndim - 1)), offers]

    def _record(self, means: np.ndarray) -> None:
        """Store the present sums and what the agent says; `means` (seeds, actions) are the last round's true ones."""
        sums = {"regret": self.regret, "reward": self.reward, "optimal": self.optimal}
        present = {name: values.cpu().numpy().copy() for name, values in sums.items()}
        self.fixed.record()
        present |= self.agent.diagnostics() | {"error": self.agent.prediction_error(means)}
        if self.agent.timed:
            present["seconds"] = np.full(self.agent.stack, self.seconds)
        for name, values in present.items():
            self.stored.setdefault(name, []).append(values.ravel())


@one_thread()
def play(
    kind: type[Run],
    agent: NeuralAgent,
    environment: Pool,
    horizon: int,
    time: np.ndarray,
    on_step: Callable[[int], None],
    checkpoint: Checkpoint | None = None,
) -> Trajectory:
    """Play `horizon` rounds for all chains by runs of one kind; outputs at the rounds `time`; `on_step` hears of rounds done.

    With a checkpoint, a run that was killed goes on from its last one.

    Raises:
        TrainingError: the loss left the real numbers.
    """
    fresh = kind(agent, environment, horizon, time)
    run = checkpoint.resume(fresh) if checkpoint else None
    if run is None:
        run = fresh
    else:
        on_step(run.agent.round * len(run.agent.seeds))
    while run.agent.round < horizon:
        before = run.agent.round
        run.advance()
        on_step((run.agent.round - before) * len(run.agent.seeds))
        if checkpoint:
            checkpoint.offer(run)
    return run.trajectory()
