"""What runs by compiled code share: every chain's parameters in a row of its own, Adam's moments beside them, and a buffer.

Parameters are copied into the rows before rounds are played, and back to the agent after.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ensemblepp.agents.neural import columns
from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.engines.neural import network, run
from ensemblepp.environments.pool import Pool

#: A frozen network is taken once of every item, and not whenever one is offered, where a chain keeps at most so many numbers.
LISTED = 2**20

#: Items of which they are taken at once.
ITEMS = 1024


class RowsRun(run.Run):
    """Rounds by a compiled function, which a subclass calls in `play_rows`."""

    #: Whether the function can do without the features of items whose columns it knows.
    by_columns = False

    def __init__(self, agent: NeuralAgent, environment: Pool, horizon: int, time: np.ndarray) -> None:
        super().__init__(agent, environment, horizon, time)
        chains, capacity = agent.stack, agent.capacity
        # where each parameter begins in a chain's row
        sizes = [int(np.prod(shape[1:])) for _, shape in agent.layout.values()]
        self._at = dict(zip(agent.layout, np.cumsum([0, *sizes[:-1]]).tolist(), strict=True))
        self._rows, self._first, self._second = (np.zeros((chains, sum(sizes)), dtype=np.float32) for _ in range(3))
        self._steps = np.zeros(chains, dtype=np.int64)
        self._item = np.zeros((chains, capacity), dtype=np.int32)
        self._rewards = np.zeros((chains, capacity), dtype=np.float32)
        self._extra = np.zeros((chains, capacity, agent.extra_width), dtype=np.float32)
        few = agent.dimension // columns.SPARSE if self.by_columns and agent.hidden else 0
        self._columns = columns.filled(environment.table, few)
        self._of_items: np.ndarray | None = None

    def put(self, offers: np.ndarray, noise: np.ndarray) -> None:
        self._offers, self._noise = np.ascontiguousarray(offers, dtype=np.int32), noise
        self._done = 0

    def play(self, rounds: int) -> None:
        agent, start, stop = self.agent, self._done, self._done + rounds
        parts = [parameter.detach().numpy().reshape(agent.stack, -1) for parameter in agent.parameters.values()]
        np.concatenate(parts, axis=1, out=self._rows)
        self.play_rows(start, stop)
        for part, first in zip(parts, self._at.values(), strict=True):
            part[:] = self._rows[:, first : first + part.shape[1]]
        self._done = stop
        agent.round += rounds
        agent.clock += rounds
        agent._left -= rounds
        agent._place += rounds
        if agent.round == self.time[len(self.stored.get("regret", ()))]:
            agent._offered = torch.from_numpy(self.environment.features(self._offers[:, stop - 1])[self.seed_of])

    def play_rows(self, start: int, stop: int) -> None:
        """Play the rounds `start` to `stop` of those that are drawn ahead, in the rows."""
        raise NotImplementedError

    def frozen(self, features: torch.Tensor) -> torch.Tensor:
        """The agent's frozen network, for agents that have one: (chains, rows, dimension) to (chains, rows, outputs)."""
        raise NotImplementedError

    @torch.no_grad()
    def frozen_of_offers(self, start: int, stop: int) -> np.ndarray:
        """`frozen` of all that is offered in those rounds, (chains, rounds, actions, outputs)."""
        offers, items = self._offers[:, start:stop], self.environment.means.shape[-1]
        # what an agent keeps of the network beside a sample, that it keeps of every item then
        if items * self.agent.extra_width > LISTED:
            found = self.frozen(self._features(offers.reshape(len(offers), -1))).numpy()
            return found.reshape(len(found), *offers.shape[1:], -1)
        if self._of_items is None:
            parts = (np.arange(first, min(first + ITEMS, items)) for first in range(0, items, ITEMS))
            features = (self._features(np.broadcast_to(part, (len(offers), len(part)))) for part in parts)
            self._of_items = np.concatenate([self.frozen(part).numpy() for part in features], axis=1)
        return self._of_items[np.arange(len(self.seed_of))[:, None, None], offers[self.seed_of]]

    def _features(self, items: np.ndarray) -> torch.Tensor:
        """Features of items, (seeds, rows), for every chain: (chains, rows, dimension)."""
        return torch.from_numpy(self.environment.features(items)[self.seed_of])

    def _environment(self) -> network.Environment:
        own = self.environment
        return network.Environment(own.table, self._columns, own.blocks, own.means, self.table_of, self.means_of, own.bernoulli)

    def _progress(self) -> network.Progress:
        agent = self.agent
        return network.Progress(
            self._rows,
            self._first,
            self._second,
            self._steps,
            self._item,
            self._rewards,
            self._extra,
            self.regret.numpy(),
            self.reward.numpy(),
            self.optimal.numpy(),
            agent.explored.numpy(),
            agent.last_loss.numpy(),
            np.empty((0, 0), dtype=np.int32) if self.action is None else self.action.numpy(),
        )

    def __getstate__(self) -> dict[str, Any]:
        # found again when it is asked for
        return self.__dict__ | {"_of_items": None}
