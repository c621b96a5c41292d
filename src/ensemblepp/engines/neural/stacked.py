"""Rounds in PyTorch, all chains at once, on any device.

On a GPU a whole round is one CUDA graph that is captured once and replayed, so that the host launches one thing a round however
many chains there are.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.engines import contract
from ensemblepp.engines.neural import run
from ensemblepp.environments.pool import Pool


class StackedRun(run.Run):
    """Rounds in PyTorch."""

    def __init__(self, agent: NeuralAgent, environment: Pool, horizon: int, time: np.ndarray) -> None:
        super().__init__(agent, environment, horizon, time)
        self._table = torch.from_numpy(environment.table).to(agent.device)
        self._mean = torch.from_numpy(np.ascontiguousarray(environment.means)).to(agent.device)
        self._first_row = torch.from_numpy(self.table_of * environment.table.shape[1]).to(agent.device)
        self._first_mean = torch.from_numpy(self.means_of * environment.means.shape[1]).to(agent.device)
        self._blocks = torch.arange(environment.blocks, device=agent.device)[:, None]
        self._graphs: dict[bool, torch.cuda.CUDAGraph] = {}
        self._warm: set[bool] = set()

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
        offers = agent.now("offers")
        features = self._features(offers)
        if agent._offered is None:
            agent._offered = torch.empty_like(features)
        agent._offered.copy_(features)
        chosen = agent.choose(features)
        # on a GPU `gather` below looks at the range, and nothing waits for the host
        shown = chosen.numpy() if chosen.device.type == "cpu" else np.zeros(chosen.shape, dtype=np.int64)
        contract.check_index(agent, shown, agent.stack, offers.shape[1], agent.round + 1)
        means = _rows(self._mean.flatten(), offers + self._first_mean[:, None])
        mean = means.gather(1, chosen[:, None])[:, 0]
        noise = self._reward_noise.index_select(1, agent._place)[:, 0]
        reward = (noise < mean).to(torch.float64) if self.environment.bernoulli else mean + noise
        regret = means.amax(dim=1) - mean
        self.regret += regret
        self.reward += reward
        self.optimal += regret == 0
        if self.action is not None:
            self.action.index_copy_(1, agent.clock, chosen[:, None].to(torch.int32))
        item = offers.gather(1, chosen[:, None])[:, 0]
        agent.observe(features[torch.arange(len(chosen), device=chosen.device), chosen], reward.to(torch.float32), item)
        if trains:
            agent.train()

    def _features(self, items: torch.Tensor) -> torch.Tensor:
        """(chains, actions, dimension) features of the chains' items, (chains, actions)."""
        table, blocks = self._table.flatten(0, 1), len(self._blocks)
        rows = _rows(table, items // blocks + self._first_row[:, None])
        if blocks == 1:
            return rows
        # a fill and no product: zeros are positive, whatever the context's sign
        elsewhere = (items % blocks)[..., None, None] != self._blocks
        return rows[:, :, None].masked_fill(elsewhere, 0.0).flatten(2)

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

    def __getstate__(self) -> dict[str, Any]:
        # graphs are captured anew
        return self.__dict__ | {"_graphs": {}, "_warm": set()}


def _rows(table: torch.Tensor, places: torch.Tensor) -> torch.Tensor:
    """The entries of `table`, (rows, ...), at `places`, of any shape."""
    return table.index_select(0, places.flatten()).unflatten(0, places.shape)


play = partial(run.play, StackedRun)
