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

    def score(self, features: torch.Tensor) -> Scores:
        mean, deviation = self.judge(features)
        if "reference" not in self.sources:
            # how many numbers a round takes is not known before
            self.sources["reference"] = Normals(self.seeds, "reference/actions", features.shape[1:2])
            self.put("reference", self.sources["reference"](int(self._place) + self._left))
        return Scores(mean + deviation * self.now("reference"), mean)
