"""Compact-action linear bandit: the unit sphere (paper, Appendix "Additional Experiments on Linear Bandit").

theta* ~ N(0, prior_variance I), reward <x, theta*> + N(0, noise^2). For a parameter theta the best action is theta / |theta|,
and the regret of x is |theta*| - <x, theta*>.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from ensemblepp.bandit import Choice, LinearInstance, Outcome, SphereDecisions
from ensemblepp.randomness.streams import StepNoise, generator


class LinearSphere:
    """Compact-action linear bandit.

    Args:
        seeds: one independent bandit per seed.
        dimension: d.
        prior_variance: variance of every entry of theta*.
        noise: standard deviation of the reward noise.
    """

    family = "linear"

    def __init__(self, seeds: Sequence[int], *, dimension: int, prior_variance: float, noise: float) -> None:
        self.seeds = tuple(seeds)
        self.dimension = dimension
        self.fixed_actions = 0
        sources = [generator(seed, "environment") for seed in self.seeds]
        self.theta = np.sqrt(prior_variance) * np.stack([source.standard_normal(dimension) for source in sources])
        self._best = np.linalg.norm(self.theta, axis=1)[:, None]
        self._noise = noise
        self._noise_source = StepNoise(self.seeds, "reward_noise", 1)
        self._begun = False

    def decisions(self) -> SphereDecisions:
        return SphereDecisions()

    def mean_rewards(self) -> np.ndarray:
        return self._best

    def step(self, choice: Choice) -> Outcome:
        self._begun = True
        mean = np.einsum("scd,sd->sc", choice.features, self.theta)
        return Outcome(mean + self._noise * self._noise_source.next(), self._best - mean)

    def instances(self) -> Iterator[LinearInstance]:
        if self._begun:
            raise RuntimeError("this bandit has been played: its streams are at another place; make a new one")
        self._begun = True
        for seed, theta, noise in zip(self.seeds, self.theta, self._noise_source.rows, strict=True):
            yield LinearInstance(
                seed=seed, theta=theta, reward_noise=lambda rounds, noise=noise: self._noise * noise.take(rounds)[:, 0]
            )
