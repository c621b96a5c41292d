"""Finite-action linear bandit (paper, Appendix "Additional Experiments on Linear Bandit").

theta* ~ N(0, prior_variance I), reward <x, theta*> + N(0, noise^2). The features of an action are uniform in [-u, u]^d, or
uniform on the unit sphere. The decision set is drawn once per seed and stays, or is a fresh one every round (varying contexts).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import numpy as np

from ensemblepp.bandit import Choice, Decisions, LinearInstance, Outcome
from ensemblepp.randomness.streams import StepNoise, generator


class LinearFinite:
    """Finite-action linear bandit.

    Args:
        seeds: one independent bandit per seed.
        dimension: d.
        actions: size of the decision set.
        features: "cube": uniform in [-feature_bound, feature_bound]^d; "sphere": uniform on the unit sphere.
        feature_bound: u.
        prior_variance: variance of every entry of theta*.
        noise: standard deviation of the reward noise.
        varying: whether every round has its own decision set.
    """

    family = "linear"

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        actions: int,
        feature_bound: float,
        prior_variance: float,
        noise: float,
        features: Literal["cube", "sphere"] = "cube",
        varying: bool = False,
    ) -> None:
        self.seeds = tuple(seeds)
        self.dimension = dimension
        # "always action a" is a policy in a fixed set too, but the best one has no regret at all: nothing to compare with
        self.fixed_actions = 0
        self.theta = np.empty((len(self.seeds), dimension))
        self._actions, self._bound, self._kind, self._varying = actions, feature_bound, features, varying
        self._noise = noise
        self._noise_source = StepNoise(self.seeds, "reward_noise", 1)
        self._begun = False
        self._sources = [generator(seed, "environment") for seed in self.seeds]
        for row, source in enumerate(self._sources):
            self.theta[row] = np.sqrt(prior_variance) * source.standard_normal(dimension)
        self._decisions: Decisions | None = None

    def decisions(self) -> Decisions:
        if self._decisions is None:
            # not at the start: instances() never needs the sets of all seeds at once
            self._decisions = Decisions(np.stack([self._draw(source, 1)[0] for source in self._sources]))
            self._means = np.einsum("snd,sd->sn", self._decisions.features, self.theta)
        return self._decisions

    def mean_rewards(self) -> np.ndarray:
        self.decisions()
        return self._means

    def step(self, choice: Choice) -> Outcome:
        self._begun = True
        means = self.mean_rewards()
        mean = np.take_along_axis(means, choice.index, axis=1)
        if self._varying:
            self._decisions = None
        return Outcome(mean + self._noise * self._noise_source.next(), means.max(axis=1, keepdims=True) - mean)

    def instances(self) -> Iterator[LinearInstance]:
        if self._begun:
            raise RuntimeError("this bandit has been played: its streams are at another place; make a new one")
        self._begun = True
        streams = zip(self.seeds, self.theta, self._noise_source.rows, strict=True)
        for row, (seed, theta, noise) in enumerate(streams):
            sets = self._sets(row)
            yield LinearInstance(
                seed=seed,
                theta=theta,
                reward_noise=lambda rounds, noise=noise: self._noise * noise.take(rounds)[:, 0],
                features=None if self._varying else sets(1)[0],
                fresh=sets if self._varying else None,
                actions=self._actions,
            )

    def _sets(self, row: int) -> Callable[[int], np.ndarray]:
        """rounds -> the next decision sets of a seed, (rounds, actions, d); first the present one, if it has been looked at."""
        present = [] if self._decisions is None else [self._decisions.features[row : row + 1]]

        def sets(rounds: int) -> np.ndarray:
            if not present:
                return self._draw(self._sources[row], rounds)
            return np.concatenate([present.pop(), self._draw(self._sources[row], rounds - 1)])

        return sets

    def _draw(self, source: np.random.Generator, rounds: int) -> np.ndarray:
        """(rounds, actions, d) features, the same however many rounds are drawn at once."""
        shape = (rounds, self._actions, self.dimension)
        if self._kind == "cube":
            return source.uniform(-self._bound, self._bound, shape)
        features = source.standard_normal(shape)
        features /= np.sqrt(np.einsum("raf,raf->ra", features, features))[..., None]
        return features
