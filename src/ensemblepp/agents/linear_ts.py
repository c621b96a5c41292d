"""Exact Thompson sampling in a linear bandit: every round draws theta from the posterior, by Cholesky."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensemblepp.agents.linear_posterior import LinearPosterior
from ensemblepp.environments.base import Choice, Decisions
from ensemblepp.streams import StepNoise


class LinearThompsonSampling:
    """theta_t = mean + L g with L L^T = covariance and g standard normal, from the seed's reference stream.

    Args:
        seeds: the seeds.
        dimension: d.
        prior_variance: variance of every entry of theta* in the prior.
    """

    chains = (("none", "none"),)

    def __init__(self, seeds: Sequence[int], *, dimension: int, prior_variance: float, **_: object) -> None:
        self.seeds = tuple(seeds)
        self.posterior = LinearPosterior(len(self.seeds), 1, dimension, prior_variance)
        self._noise = StepNoise(self.seeds, "reference", dimension)

    def act(self, decisions: Decisions) -> Choice:
        factor = np.linalg.cholesky(self.posterior.covariance)
        draw = np.matmul(factor, self._noise.next()[:, None, :, None])[..., 0]
        return decisions.maximise(self.posterior.mean + draw)

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        self.posterior.update(choice.features, reward)
