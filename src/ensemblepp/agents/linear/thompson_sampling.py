"""Exact Thompson sampling in a linear bandit: every round draws theta from the posterior, by Cholesky."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ensemblepp.agents.linear.chains import LinearChains
from ensemblepp.bandit import Choice
from ensemblepp.randomness.streams import StepNoise


class LinearThompsonSampling(LinearChains):
    """theta_t = mean + R^{-1} g with R^T R the precision, R upper triangular, g standard normal from the stream "reference".

    Args:
        seeds: the seeds.
        options: as in `LinearChains`.
    """

    family = "linear"

    def __init__(self, seeds: Sequence[int], **options) -> None:
        super().__init__(seeds, laws=[("exact", "none")], labels=[("none", "none")], **options)

    @cached_property
    def _precision(self) -> np.ndarray:
        return np.tile(np.eye(self.dimension) / self.prior_variance, (len(self.seeds), 1, 1, 1))

    @cached_property
    def _draws(self) -> StepNoise:
        return StepNoise(self.seeds, "reference", self.dimension)

    def deviation(self) -> np.ndarray:
        upper = np.linalg.cholesky(self._precision, upper=True)
        return np.linalg.solve(upper, self._draws.next()[:, None, :, None])[..., 0]

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        super().update(choice, reward)
        self._precision += choice.features[..., :, None] * choice.features[..., None, :]
