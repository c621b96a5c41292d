"""Bandits made of a table of contexts with known rewards: every round shows one row, every action is a fixed decision.

Action a of a context x has block-disjoint features: x in block a of R^{N d}, zeros elsewhere (paper, Appendix
"Additional Experiments on Nonlinear Bandit"). Each seed meets the rows in its own random order; when all are used and
another pass is allowed, they are shuffled anew.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensemblepp.environments.base import Choice, Decisions, Outcome
from ensemblepp.errors import ConfigError
from ensemblepp.streams import StepNoise, generator


class Contextual:
    """A contextual bandit over a table.

    Args:
        seeds: one independent order of the rows and one reward noise per seed.
        contexts: (rows, d) float32.
        means: (rows, actions) noise-free reward of every action.
        noise: standard deviation of the reward noise.
        passes: how often every row may be shown.
    """

    def __init__(self, seeds: Sequence[int], contexts: np.ndarray, means: np.ndarray, *, noise: float, passes: int) -> None:
        self.seeds = tuple(seeds)
        self._contexts = contexts
        self._means = means
        self.fixed_actions = means.shape[1]
        self.dimension = contexts.shape[1] * self.fixed_actions
        self._noise = noise
        self._noise_source = StepNoise(self.seeds, "reward_noise", 1)
        self._passes = passes
        self._order_source = [generator(seed, "environment") for seed in self.seeds]
        self._order = np.empty((len(self.seeds), 0), dtype=np.intp)
        self._round = 0

    def decisions(self) -> Decisions:
        seeds, (actions, width) = len(self.seeds), (self.fixed_actions, self._contexts.shape[1])
        features = np.zeros((seeds, actions, actions, width), dtype=np.float32)
        blocks = np.arange(actions)
        features[:, blocks, blocks] = self._contexts[self._rows()][:, None]
        return Decisions(features.reshape(seeds, actions, actions * width))

    def mean_rewards(self) -> np.ndarray:
        return self._means[self._rows()]

    def step(self, choice: Choice) -> Outcome:
        means = self.mean_rewards()
        mean = np.take_along_axis(means, choice.index, axis=1)
        self._round += 1
        return Outcome(mean + self._noise * self._noise_source.next(), means.max(axis=1, keepdims=True) - mean)

    def _rows(self) -> np.ndarray:
        """The present row of every seed."""
        while self._round >= self._order.shape[1]:
            if self._order.shape[1] >= self._passes * len(self._means):
                raise ConfigError(
                    f"round {self._round + 1} is beyond the data: {len(self._means)} rows x {self._passes} pass(es); "
                    "lower the horizon or raise passes in config/environments.yaml"
                )
            shuffled = np.stack([source.permutation(len(self._means)) for source in self._order_source])
            self._order = np.concatenate([self._order, shuffled], axis=1)
        return self._order[:, self._round]


def unit_rows(table: np.ndarray) -> np.ndarray:
    """`table` (rows, d) with every row divided by its Euclidean norm (rows of zeros stay), float32."""
    norm = np.linalg.norm(table.astype(np.float64), axis=1, keepdims=True)
    return (table / np.where(norm == 0, 1, norm)).astype(np.float32)
