"""Rounds by the compiled kernel: what it is fed with, and what goes back to the agent.

For agents made of linear heads (`agents.neural.linear_heads`), on a CPU. Their parameters are copied into rows of their own
before, and back after.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import torch

from ensemblepp.agents.neural.base import NeuralAgent
from ensemblepp.agents.neural.linear_heads import LinearHeads
from ensemblepp.engines.neural import kernel, run
from ensemblepp.environments.pool import Pool


class CompiledRun(run.Run):
    """Rounds by the compiled kernel."""

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

    def put(self, offers: np.ndarray, noise: np.ndarray) -> None:
        self._offers, self._noise = np.ascontiguousarray(offers, dtype=np.int32), noise
        self._done = 0

    def play(self, rounds: int) -> None:
        agent, heads = self.agent, self.agent.linear_heads()
        start, stop = self._done, self._done + rounds
        none = np.empty((agent.stack, rounds, 0), dtype=np.float32)

        def drawn(name: str, present: bool = True) -> np.ndarray:
            return agent._draws[name].numpy()[:, start:stop] if present else none

        if heads.sampled_directions:
            directions = drawn("directions")
        else:
            listed = heads.directions
            directions = np.zeros((0, heads.members), np.float32) if listed is None else listed.numpy()
            directions = directions[None, None, None]
        offers = self._offers[:, start:stop]
        offsets = np.empty((1, 1, 0, 0), dtype=np.float32)
        if heads.offsets:
            features = self.environment.features(offers)[self.seed_of]
            with torch.no_grad():
                flat = agent.offsets(torch.from_numpy(features).flatten(1, 2))
            offsets = flat.unflatten(1, features.shape[1:3]).numpy()
        draws = kernel.Draws(
            offers,
            self._noise[:, start:stop],
            self.seed_of,
            drawn("minibatch"),
            drawn("reference", heads.members > 0),
            drawn("weights" if heads.weighted else "perturbation", heads.members > 0),
            directions,
            offsets,
            drawn("wander", heads.epsilon is not None),
        )
        parts = [parameter.detach().numpy().reshape(agent.stack, -1) for parameter in agent.parameters.values()]
        np.concatenate(parts, axis=1, out=self._rows)
        kernel.play(self._shape(heads), self._environment(), _dense(draws), self._state(heads), agent.round)
        for part, first in zip(parts, self._at.values(), strict=True):
            part[:] = self._rows[:, first : first + part.shape[1]]
        self._done = stop
        agent.round += rounds
        agent.clock += rounds
        agent._left -= rounds
        agent._place += rounds
        if agent.round == self.time[len(self.stored.get("regret", ()))]:
            agent._offered = torch.from_numpy(self.environment.features(offers[:, -1])[self.seed_of])

    def _shape(self, heads: LinearHeads) -> kernel.Shape:
        agent = self.agent

        def at(name: str) -> int:
            return self._at.get(name, -1)

        layers = range(len(agent.hidden))
        return kernel.Shape(
            widths=np.array([agent.dimension, *agent.hidden], dtype=np.int64),
            weights=np.array([at(f"w{layer}") for layer in layers], dtype=np.int64),
            biases=np.array([at(f"b{layer}") for layer in layers], dtype=np.int64),
            base=at("base"),
            heads=at("heads"),
            bias=at("bias"),
            classes=agent.classes,
            members=heads.members,
            posterior_scale=np.float32(heads.posterior_scale),
            weighted=heads.weighted,
            offsets=heads.offsets,
            any_class=heads.any_class,
            epsilon=np.float32(-1 if heads.epsilon is None else heads.epsilon),
            learning_rate=float(agent.learning_rate),
            weight_decay=float(agent.weight_decay),
            warm_up=agent.warm_up,
            update_every=agent.update_every,
        )

    def _environment(self) -> kernel.Environment:
        own = self.environment
        return kernel.Environment(own.table, own.blocks, own.means, self.table_of, self.means_of, own.bernoulli)

    def _state(self, heads: LinearHeads) -> kernel.Progress:
        agent = self.agent
        shape = (agent.stack, agent.width, heads.members * agent.classes)
        return kernel.Progress(
            self._rows,
            self._first,
            self._second,
            self._steps,
            np.zeros(shape, dtype=np.float32) if heads.prior is None else heads.prior.numpy(),
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
        return self.__dict__.copy()


def _dense(draws: kernel.Draws) -> kernel.Draws:
    """The draws with every array contiguous: one compiled version serves all."""
    return kernel.Draws(*(np.ascontiguousarray(array) for array in draws))


play = partial(run.play, CompiledRun)
