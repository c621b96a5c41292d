"""Epsilon-greedy: Greedy, but for a random action now and then."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from ensemblepp.agents.neural.base import Scores
from ensemblepp.agents.neural.greedy import Greedy
from ensemblepp.agents.neural.linear_heads import LinearHeads
from ensemblepp.randomness.draws import Uniforms


class EpsilonGreedy(Greedy):
    """Greedy, but for a uniformly random action in every round with probability epsilon.

    Args:
        seeds: the seeds.
        epsilon: that probability.
        training: the keyword arguments of `Greedy`.
    """

    family = "linear_heads"

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
