"""Bandits made of a table of contexts with known rewards: every round shows one row, every action is a fixed decision.

Action a of a context x has block-disjoint features: x in block a of R^{N d}, zeros elsewhere (paper, Appendix
"Additional Experiments on Nonlinear Bandit"). Each seed meets the rows in its own random order; when all are used and
another pass is allowed, they are shuffled anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensemblepp.environments.pool import Pool, Rounds
from ensemblepp.errors import ConfigError
from ensemblepp.randomness.streams import GaussianRows, generator


class Contextual(Pool):
    """A contextual bandit over a table; item `row * actions + a` of its pool is action a in context `row`.

    Args:
        seeds: one independent order of the rows and one reward noise per seed.
        contexts: (rows, width), kept as float32; d = actions x width.
        means: (rows, actions) noise-free reward of every action.
        noise: standard deviation of the reward noise.
        passes: how often every row may be shown.
        policies: name -> (rows, policies) the action that a policy which learns nothing takes in every row.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        contexts: np.ndarray,
        means: np.ndarray,
        *,
        noise: float,
        passes: int,
        policies: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        seeds, actions = tuple(seeds), means.shape[1]
        table = np.ascontiguousarray(contexts, dtype=np.float32)[None]
        super().__init__(seeds, table, means.reshape(1, -1).astype(float), blocks=actions, fixed_actions=actions)
        self._policies = dict(policies or {})
        self._noise = noise
        self._noise_sources = [GaussianRows(seed, "reward_noise", 1) for seed in seeds]
        self._passes = passes
        self._order_sources = [generator(seed, "environment") for seed in seeds]
        self._order = np.empty((len(seeds), 0), dtype=np.intp)
        self._drawn = 0

    def fixed_choices(self, offers: np.ndarray) -> dict[str, np.ndarray]:
        row = offers[..., 0] // self.fixed_actions
        return {name: chosen[row] for name, chosen in self._policies.items()}

    def draw(self, rounds: int) -> Rounds:
        rows = self.means.shape[1] // self.fixed_actions
        rounds = min(rounds, rows * self._passes - self._drawn)
        if rounds == 0:
            raise ConfigError(
                f"round {self._drawn + 1} is beyond the data: {rows} rows x {self._passes} pass(es); "
                "lower the horizon or raise passes in config/environments.yaml"
            )
        while self._drawn + rounds > self._order.shape[1]:
            shuffled = np.stack([source.permutation(rows) for source in self._order_sources])
            self._order = np.concatenate([self._order, shuffled], axis=1)
        shown = self._order[:, self._drawn : self._drawn + rounds]
        self._drawn += rounds
        noise = np.stack([self._noise * source.take(rounds)[:, 0] for source in self._noise_sources])
        return Rounds(shown[..., None] * self.fixed_actions + np.arange(self.fixed_actions), noise)
