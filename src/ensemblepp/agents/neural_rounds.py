"""Many rounds of a neural agent on a pool, all chains at once: in PyTorch on any device, or compiled (`neural_kernel`).

The environment's offers and noise are drawn ahead and put beside the agent's random numbers; rewards and regret are computed
where the agent is. In PyTorch on a GPU, a whole round is one CUDA graph that is captured once and replayed, so that the host
launches one thing a round however many chains there are.
"""

from __future__ import annotations

import time as clock
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from ensemblepp.agents.neural import NeuralAgent
from ensemblepp.checkpoint import Checkpoint
from ensemblepp.environments.pool import Pool
from ensemblepp.simulate import Trajectory, stores_actions


def play(
    agent: NeuralAgent,
    environment: Pool,
    horizon: int,
    time: np.ndarray,
    on_step: Callable[[int], None],
    checkpoint: Checkpoint | None = None,
) -> Trajectory:
    """Play every chain's rounds; arguments, result and errors are those of `NeuralAgent.play`."""
    run = checkpoint.load() if checkpoint else None
    if run is None:
        run = _engine(agent)(agent, environment, horizon, time)
    else:
        on_step(run.agent.round * len(run.agent.seeds))
    while run.agent.round < horizon:
        before = run.agent.round
        run.advance()
        on_step((run.agent.round - before) * len(run.agent.seeds))
        if checkpoint:
            checkpoint.offer(run)
    return run.trajectory()


def _engine(agent: NeuralAgent) -> type[Run]:
    """The compiled rounds where they know the agent, else PyTorch."""
    if agent.device.type == "cpu" and hasattr(agent, "linear_heads"):
        from ensemblepp.agents.neural_kernel import CompiledRun

        return CompiledRun
    return TorchRun


class Run:
    """A simulation on its way: agent, environment, sums so far and what is stored of them. It can be pickled and goes on."""

    def __init__(self, agent: NeuralAgent, environment: Pool, horizon: int, time: np.ndarray) -> None:
        self.agent, self.environment, self.horizon, self.time = agent, environment, horizon, time
        chains, device = agent.stack, agent.device
        self.regret, self.reward = (torch.zeros(chains, dtype=torch.float64, device=device) for _ in range(2))
        self.optimal = torch.zeros(chains, dtype=torch.int64, device=device)
        self.constant = np.zeros((len(agent.seeds), environment.fixed_actions))
        self.seconds = 0.0
        self.stored: dict[str, list[np.ndarray]] = {}
        small = stores_actions(len(agent.seeds), len(agent.chains), horizon)
        self.action = torch.zeros(chains, horizon, dtype=torch.int32, device=device) if small else None
        # the seed's row of the tables; one table may serve all seeds
        self.seed_of = np.arange(chains) // len(agent.chains)
        self.table_of = self.seed_of if len(environment.table) > 1 else np.zeros(chains, dtype=np.intp)
        self._ahead = 0

    def advance(self) -> None:
        """Play up to the next stored round, or to the end of what is drawn ahead."""
        agent = self.agent
        if self._ahead == 0:
            self._draw(min(agent.chunk, self.horizon - agent.round))
        column = len(self.stored.get("regret", ()))
        rounds = min(int(self.time[column]) - agent.round, self._ahead)
        start = clock.perf_counter() if agent.device.type == "cuda" else clock.process_time()
        self.play(rounds)
        if agent.timed:
            if agent.device.type == "cuda":
                torch.cuda.synchronize()
            end = clock.perf_counter() if agent.device.type == "cuda" else clock.process_time()
            self.seconds += end - start
        if self.environment.fixed_actions:
            first = self._means.shape[1] - self._ahead
            means = self._means[:, first : first + rounds]
            self.constant += (means.max(axis=2, keepdims=True) - means).sum(axis=1)
        self._ahead -= rounds
        if agent.round == self.time[column]:
            agent.check()
            self._record()

    def play(self, rounds: int) -> None:
        """Play so many rounds, of those that are drawn ahead."""
        raise NotImplementedError

    def put(self, offers: np.ndarray, noise: np.ndarray) -> None:
        """Take the environment's draws for the rounds ahead, (seeds, rounds, ...)."""
        raise NotImplementedError

    def trajectory(self) -> Trajectory:
        """What the run leaves."""
        shape = (len(self.agent.seeds), len(self.agent.chains))
        stored = {
            name: np.stack(values, axis=-1).reshape(*shape, -1) for name, values in self.stored.items() if name != "constant"
        }
        constant = np.stack(self.stored["constant"], axis=-1).astype(np.float32) if self.environment.fixed_actions else None
        return Trajectory(
            self.time,
            stored.pop("regret").astype(np.float32),
            stored.pop("reward").astype(np.float32),
            stored.pop("optimal").astype(np.int32),
            None if self.action is None else self.action.cpu().numpy().reshape(*shape, -1),
            constant,
            {name: values.astype(np.float32) for name, values in stored.items()},
        )

    def _draw(self, rounds: int) -> None:
        self.agent.load(rounds)
        drawn = self.environment.draw(rounds)
        means = self.environment.means
        if self.environment.fixed_actions:
            rows = np.arange(len(means))[:, None, None] if len(means) > 1 else 0
            self._means = means[rows, drawn.offers]
        self.put(drawn.offers, drawn.noise)
        # a table of contexts may end before the horizon: then the next draw says so
        self._ahead = drawn.noise.shape[1]

    def _record(self) -> None:
        told = {"regret": self.regret, "reward": self.reward, "optimal": self.optimal}
        told = {name: values.cpu().numpy().copy() for name, values in told.items()}
        if self.environment.fixed_actions:
            told["constant"] = self.constant.copy()
        told |= self.agent.diagnostics()
        if self.agent.timed:
            told["seconds"] = np.full(self.agent.stack, self.seconds)
        for name, values in told.items():
            self.stored.setdefault(name, []).append(values if name == "constant" else values.ravel())


class TorchRun(Run):
    """Rounds in PyTorch."""

    def __init__(self, agent: NeuralAgent, environment: Pool, horizon: int, time: np.ndarray) -> None:
        super().__init__(agent, environment, horizon, time)
        self._table = torch.from_numpy(environment.table).to(agent.device)
        self._mean = torch.from_numpy(np.ascontiguousarray(environment.means)).to(agent.device)
        tables, items, _ = environment.table.shape
        rows = self.table_of if tables > 1 else np.zeros(agent.stack, dtype=np.intp)
        self._first_item = torch.from_numpy(rows * items).to(agent.device)
        self._graphs: dict[bool, torch.cuda.CUDAGraph] = {}

    def put(self, offers: np.ndarray, noise: np.ndarray) -> None:
        self.agent.put("offers", offers[self.seed_of].astype(np.int64))
        self._noise = noise
        held = torch.from_numpy(noise[self.seed_of])
        place = getattr(self, "_reward_noise", None)
        if place is None or place.shape[1] < held.shape[1]:
            self._reward_noise = held.to(self.agent.device)
        else:
            place[:, : held.shape[1]].copy_(held)

    def play(self, rounds: int) -> None:
        for _ in range(rounds):
            trains = self.agent.trains(self.agent.round + 1)
            if self.agent.device.type == "cuda" and self.agent.captures:
                self._replay(trains)
            else:
                self._round(trains)
            self.agent.end_round()

    def _round(self, trains: bool) -> None:
        """One round on the device; nothing in it waits for the host."""
        agent = self.agent
        offers = agent.now("offers") + self._first_item[:, None]
        features = self._table.flatten(0, 1).index_select(0, offers.flatten()).unflatten(0, offers.shape)
        if agent._offered is None:
            agent._offered = torch.empty_like(features)
        agent._offered.copy_(features)
        chosen = agent.choose(features)
        means = self._mean.flatten().index_select(0, offers.flatten()).unflatten(0, offers.shape)
        mean = means.gather(1, chosen[:, None])[:, 0]
        noise = self._reward_noise.index_select(1, agent._place)[:, 0]
        reward = (noise < mean).to(torch.float64) if self.environment.bernoulli else mean + noise
        regret = means.amax(dim=1) - mean
        self.regret += regret
        self.reward += reward
        self.optimal += regret == 0
        if self.action is not None:
            self.action.index_copy_(1, agent.clock, chosen[:, None].to(torch.int32))
        item = offers.gather(1, chosen[:, None])[:, 0] - self._first_item
        agent.observe(features[torch.arange(len(chosen), device=chosen.device), chosen], reward.to(torch.float32), item)
        if trains:
            agent.train()

    def _replay(self, trains: bool) -> None:
        """The round as a CUDA graph: the first of a kind runs as it is, the second is captured."""
        graph = self._graphs.get(trains)
        if graph is not None:
            graph.replay()
            return
        if trains in self._warm:
            graph = torch.cuda.CUDAGraph()
            # capturing records the round without running it
            with torch.cuda.graph(graph):
                self._round(trains)
            self._graphs[trains] = graph
            graph.replay()
            return
        # on a side stream, as torch asks for before a capture
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._round(trains)
        torch.cuda.current_stream().wait_stream(side)
        self._warm.add(trains)

    @property
    def _warm(self) -> set[bool]:
        return self.__dict__.setdefault("_warmed", set())

    def __getstate__(self) -> dict[str, Any]:
        # graphs are captured anew
        return self.__dict__ | {"_graphs": {}, "_warmed": set()}
