"""Greedy: the trunk and base head of Ensemble++, without ensemble, prior or noise (the paper's A = 0), and epsilon-greedy."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp.agents.neural import NeuralAgent, Scores
from ensemblepp.agents.neural_draws import Uniforms
from ensemblepp.agents.neural_heads import LinearHeads
from ensemblepp.networks import mlp
from ensemblepp.streams import generator


class Greedy(NeuralAgent):
    """Regress rewards on features, always choose the action with the greatest prediction.

    At one seed its initial trunk and head are those of Ensemble++, and so are its minibatches.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        training: the keyword arguments of `NeuralAgent`.
    """

    def __init__(self, seeds: Sequence[int], *, dimension: int, ensemble_size: int = 0, **training) -> None:
        super().__init__(seeds, dimension=dimension, **training)
        generators = [generator(seed, "agent") for seed in self.seeds]
        self.start(self.trunk_parameters(generators) | {"base": mlp.init_head(generators, self.width, self.classes)})

    def score(self, features: torch.Tensor) -> Scores:
        value = mlp.linear_head(self.parameters["base"][..., -1:], self.trunk(features))
        return Scores(value, value)

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        return self.fitted(mlp.head_outputs(self.parameters["base"], self.trunk(features)), reward).mean(dim=1)

    def linear_heads(self) -> LinearHeads:
        return LinearHeads(based=True)


class EpsilonGreedy(Greedy):
    """Greedy, but for a uniformly random action in every round with probability epsilon.

    Args:
        seeds: the seeds.
        epsilon: that probability.
        training: the keyword arguments of `Greedy`.
    """

    def __init__(self, seeds: Sequence[int], *, epsilon: float, **training) -> None:
        super().__init__(seeds, **training)
        self._epsilon = epsilon
        self.sources["wander"] = Uniforms(self.seeds, "reference/wander", (2,))

    def score(self, features: torch.Tensor) -> Scores:
        mean = super().score(features).mean
        wander = self.now("wander")
        # the same float32 product as the compiled rounds'
        picked = (wander[:, 1] * np.float32(mean.shape[1])).to(torch.int64)
        lifted = mean.scatter(1, picked[:, None], torch.inf)
        return Scores(torch.where(wander[:, :1] < self._epsilon, lifted, mean), mean)

    def linear_heads(self) -> LinearHeads:
        return LinearHeads(based=True, epsilon=self._epsilon)
