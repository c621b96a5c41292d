"""Rounds of agents made of linear heads (`agents.neural.linear_heads`) by the compiled kernel: what it is fed with."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from ensemblepp.agents.neural.linear_heads import LinearHeads
from ensemblepp.engines.neural import kernel, run
from ensemblepp.engines.neural.rows import RowsRun


class CompiledRun(RowsRun):
    """Rounds by the compiled kernel."""

    by_columns = True

    def frozen(self, features: torch.Tensor) -> torch.Tensor:
        return self.agent.offsets(features)

    def play_rows(self, start: int, stop: int) -> None:
        agent, heads = self.agent, self.agent.linear_heads()
        none = np.empty((agent.stack, stop - start, 0), dtype=np.float32)

        def drawn(name: str, present: bool = True) -> np.ndarray:
            return agent._draws[name].numpy()[:, start:stop] if present else none

        if heads.sampled_directions:
            directions = drawn("directions")
        else:
            listed = heads.directions
            directions = np.zeros((0, heads.members), np.float32) if listed is None else listed.numpy()
            directions = directions[None, None, None]
        offers = self._offers[:, start:stop]
        offsets = self.frozen_of_offers(start, stop) if heads.offsets else np.empty((1, 1, 0, 0), dtype=np.float32)
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
        kernel.play(self._shape(heads), self._environment(), _dense(draws), self._progress(), agent.round)

    def _shape(self, heads: LinearHeads) -> kernel.Shape:
        agent = self.agent

        def at(name: str) -> int:
            return self._at.get(name, -1)

        layers = range(len(agent.hidden))
        none = np.zeros((agent.stack, agent.width, heads.members * agent.classes), dtype=np.float32)
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
            prior=none if heads.prior is None else heads.prior.numpy(),
            learning_rate=float(agent.learning_rate),
            weight_decay=float(agent.weight_decay),
            warm_up=agent.warm_up,
            update_every=agent.update_every,
        )


def _dense(draws: kernel.Draws) -> kernel.Draws:
    """The draws with every array contiguous: one compiled version serves all."""
    return kernel.Draws(*(np.ascontiguousarray(array) for array in draws))


play = partial(run.play, CompiledRun)
