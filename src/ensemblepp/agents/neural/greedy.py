"""Greedy: the trunk and base head of Ensemble++, without ensemble, prior or noise (the paper's A = 0)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ensemblepp.agents.neural import mlp
from ensemblepp.agents.neural.base import NeuralAgent, Scores
from ensemblepp.agents.neural.linear_heads import LinearHeads
from ensemblepp.randomness.streams import generator


class Greedy(NeuralAgent):
    """Regress rewards on features, always choose the action with the greatest prediction.

    At one seed its initial trunk and head are those of Ensemble++, and so are its minibatches.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        training: the keyword arguments of `NeuralAgent`.
    """

    family = "linear_heads"

    def __init__(self, seeds: Sequence[int], *, dimension: int, ensemble_size: int = 0, **training) -> None:
        super().__init__(seeds, dimension=dimension, **training)
        generators = [generator(seed, "agent") for seed in self.seeds]
        self.start(self.trunk_parameters(generators) | {"base": mlp.init_head(generators, self.width, self.classes)})

    def score(self, features: torch.Tensor) -> Scores:
        value = self.expected(features)
        return Scores(value, value)

    def expected(self, features: torch.Tensor) -> torch.Tensor:
        return mlp.linear_head(self.parameters["base"][..., -1:], self.trunk(features))

    def loss_of(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor, step: int) -> torch.Tensor:
        return self.fitted(mlp.head_outputs(self.parameters["base"], self.trunk(features)), reward).mean(dim=1)

    def linear_heads(self) -> LinearHeads:
        return LinearHeads(based=True)
