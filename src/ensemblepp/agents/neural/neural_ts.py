"""NeuralTS (Zhang, Zhou, Li and Gu 2021): NeuralUCB's network and matrix, and a sample for every action in place of a bound."""

from __future__ import annotations

import torch

from ensemblepp.agents.neural.base import Scores
from ensemblepp.agents.neural.neural_ucb import NeuralUCB
from ensemblepp.randomness.draws import Normals


class NeuralTS(NeuralUCB):
    """The greatest of independent samples N(f(x), (nu sigma(x))^2) acts.

    Args:
        seeds: the seeds.
        training: the keyword arguments of `NeuralUCB`.
    """

    family = "single_head"
    sampled = True

    def score(self, features: torch.Tensor) -> Scores:
        mean, deviation = self.judge(features)
        self.expect(features.shape[1])
        return Scores(mean + deviation * self.now("reference"), mean)

    def expect(self, actions: int) -> None:
        """Draw numbers for so many actions a round, which is not known before the first one."""
        if "reference" not in self.sources:
            self.sources["reference"] = Normals(self.seeds, "reference/actions", (actions,))
            self.put("reference", self.sources["reference"](int(self._place) + self._left))
