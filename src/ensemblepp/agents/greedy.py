"""Greedy: the trunk and one linear head of Ensemble++, without ensemble, prior or noise (the paper's A = 0)."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from ensemblepp.agents.neural import NeuralAgent
from ensemblepp.networks import mlp
from ensemblepp.streams import generator


class Greedy(NeuralAgent):
    """Regress rewards on features, always choose the action with the greatest prediction.

    At one seed its initial trunk and head are those of Ensemble++, and so are its minibatches.

    Args:
        seeds: the seeds.
        dimension: entries of an action's features.
        hidden: widths of the trunk's layers.
        training: the keyword arguments of `NeuralAgent`.
    """

    def __init__(self, seeds: Sequence[int], *, dimension: int, hidden: Sequence[int], ensemble_size: int = 0, **training):
        super().__init__(seeds, dimension=dimension, **training)
        generators = [generator(seed, "agent") for seed in self.seeds]
        self._trunk = mlp.init_trunk(generators, dimension, hidden, self.device)
        self._base = mlp.init_linear_head(generators, hidden[-1] if hidden else dimension, self.device)
        self.parameters = [*self._trunk, self._base]
        self.start()

    def score(self, features: torch.Tensor) -> torch.Tensor:
        return mlp.linear_head(self._base, mlp.trunk(self._trunk, features))

    def loss(self, features: torch.Tensor, reward: torch.Tensor, extra: torch.Tensor) -> torch.Tensor:
        return (self.score(features) - reward).square().mean(dim=1)
