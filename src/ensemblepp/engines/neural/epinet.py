"""Rounds of EpiNet by its own compiled kernel: what it is fed with."""

from __future__ import annotations

from functools import partial

import numpy as np
import torch

from ensemblepp.engines.neural import epinet_kernel, run
from ensemblepp.engines.neural.rows import RowsRun


class EpiNetRun(RowsRun):
    """Rounds of EpiNet by the compiled kernel."""

    def frozen(self, features: torch.Tensor) -> torch.Tensor:
        return self.agent.prior(features)

    def play_rows(self, start: int, stop: int) -> None:
        agent = self.agent
        perturbation = agent._draws.get("perturbation")
        none = np.empty((0, 0, 0), dtype=np.float32)
        draws = epinet_kernel.Draws(
            self._offers,
            np.ascontiguousarray(self._noise),
            self.seed_of,
            agent._draws["minibatch"].numpy(),
            agent._draws["reference"].numpy(),
            none if perturbation is None else perturbation.numpy(),
            agent._draws["indices"].numpy(),
            np.ascontiguousarray(self.frozen_of_offers(start, stop)),
        )
        epinet_kernel.play(self._shape(), self._environment(), draws, self._progress(), agent.round, start)

    def _shape(self) -> epinet_kernel.Shape:
        agent, at, layers = self.agent, self._at, range(len(self.agent.hidden))
        names = ("base", "bias", "from_features", "from_hidden", "from_index", "in_bias", "middle", "out", "out_bias")
        return epinet_kernel.Shape(
            np.array([agent.dimension, *agent.hidden], dtype=np.int64),
            np.array([at[f"w{layer}"] for layer in layers], dtype=np.int64),
            np.array([at[f"b{layer}"] for layer in layers], dtype=np.int64),
            *(at[name] for name in names),
            classes=agent.classes,
            members=agent.ensemble_size,
            units=agent.parameters["middle"].shape[-1],
            posterior_scale=np.float32(agent.posterior_scale),
            double_softmax=agent.double_softmax,
            learning_rate=float(agent.learning_rate),
            weight_decay=float(agent.weight_decay),
            warm_up=agent.warm_up,
            update_every=agent.update_every,
        )


play = partial(run.play, EpiNetRun)
