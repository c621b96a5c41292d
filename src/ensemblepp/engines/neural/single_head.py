"""Rounds of agents of one trunk with one linear head (`agents.neural.single_head`) by their own compiled kernel."""

from __future__ import annotations

from functools import partial

import numpy as np

from ensemblepp.agents.neural.single_head import SingleHead
from ensemblepp.engines.neural import run, single_head_kernel
from ensemblepp.engines.neural.rows import RowsRun


class SingleHeadRun(RowsRun):
    """Rounds by that kernel."""

    by_columns = True

    def play_rows(self, start: int, stop: int) -> None:
        agent, own = self.agent, self.agent.single_head()
        if own.gradients and own.gradients.sampled:
            agent.expect(self._offers.shape[2])

        def drawn(name: str, *shape: int) -> np.ndarray:
            found = agent._draws.get(name)
            return np.empty((agent.stack, 0, *shape), dtype=np.float32) if found is None else found.numpy()

        reference = drawn("reference", 0)
        draws = single_head_kernel.Draws(
            self._offers,
            np.ascontiguousarray(self._noise),
            self.seed_of,
            agent._draws["minibatch"].numpy(),
            reference[:, :, 0] if reference.ndim == 4 else reference,  # dropout's: one set of units for all actions
            drawn("dropped", 0, 0, 0),
        )
        exploring = self._exploring(own)
        single_head_kernel.play(
            self._shape(), self._environment(), draws, self._progress(), exploring, agent.round, start, stop
        )
        if own.gradients:
            for name, first in self._at.items():
                part = own.gradients.matrix[name].numpy().reshape(agent.stack, -1)
                part[:] = exploring.matrix[:, first : first + part.shape[1]]

    def _exploring(self, own: SingleHead) -> single_head_kernel.Exploring:
        stack, gradients, regression = self.agent.stack, own.gradients, own.regression
        matrix = np.empty((stack, 0), dtype=np.float32)
        if gradients:
            matrix = np.concatenate([gradients.matrix[name].numpy().reshape(stack, -1) for name in self._at], axis=1)
        return single_head_kernel.Exploring(
            matrix=matrix,
            ridge=np.float32(gradients.ridge if gradients else 0),
            exploration=np.float32(gradients.exploration if gradients else 0),
            precision=regression.precision.numpy() if regression else np.empty((stack, 0, 0)),
            moment=regression.moment.numpy().reshape(stack, -1) if regression else np.empty((stack, 0)),
            prior=1 / regression.prior_variance if regression else 0.0,
            weight=regression.noise**-2 if regression else 0.0,
            refresh=regression.refresh if regression else 1,
            rate=np.float32(own.dropped or 0),
        )

    def _shape(self) -> single_head_kernel.Shape:
        agent, layers = self.agent, range(len(self.agent.hidden))
        return single_head_kernel.Shape(
            np.array([agent.dimension, *agent.hidden], dtype=np.int64),
            np.array([self._at[f"w{layer}"] for layer in layers], dtype=np.int64),
            np.array([self._at[f"b{layer}"] for layer in layers], dtype=np.int64),
            base=self._at["base"],
            classes=agent.classes,
            learning_rate=float(agent.learning_rate),
            weight_decay=float(agent.weight_decay),
            warm_up=agent.warm_up,
            update_every=agent.update_every,
        )


play = partial(run.play, SingleHeadRun)
