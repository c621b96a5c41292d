"""Finite-action linear bandit (paper, Appendix "Additional Experiments on Linear Bandit").

Features uniform in [-u, u]^d, theta* ~ N(0, prior_variance I), reward <x, theta*> + N(0, noise^2). Action set and theta*
are drawn once per seed and stay fixed over the run.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensemblepp.environments.base import Choice, Decisions, Outcome
from ensemblepp.streams import StepNoise, generator


class LinearFinite:
    """Finite-action linear bandit.

    Args:
        seeds: one independent bandit per seed.
        dimension: d.
        actions: size of the decision set.
        feature_bound: u.
        prior_variance: variance of every entry of theta*.
        noise: standard deviation of the reward noise.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        actions: int,
        feature_bound: float,
        prior_variance: float,
        noise: float,
    ) -> None:
        self.seeds = tuple(seeds)
        self.dimension = dimension
        # "always action a" is a policy here too, but the best one has no regret at all: nothing to compare with
        self.fixed_actions = 0
        features = np.empty((len(self.seeds), actions, dimension))
        self.theta = np.empty((len(self.seeds), dimension))
        for row, seed in enumerate(self.seeds):
            source = generator(seed, "environment")
            self.theta[row] = np.sqrt(prior_variance) * source.standard_normal(dimension)
            features[row] = source.uniform(-feature_bound, feature_bound, (actions, dimension))
        self._decisions = Decisions(features)
        self._means = np.einsum("snd,sd->sn", features, self.theta)
        self._best = self._means.max(axis=1, keepdims=True)
        self._noise = noise
        self._noise_source = StepNoise(self.seeds, "reward_noise", 1)

    def decisions(self) -> Decisions:
        return self._decisions

    def mean_rewards(self) -> np.ndarray:
        return self._means

    def step(self, choice: Choice) -> Outcome:
        mean = np.take_along_axis(self._means, choice.index, axis=1)
        return Outcome(mean + self._noise * self._noise_source.next(), self._best - mean)
