"""Bandits over a finite list of items with known mean rewards, of which every round offers some (see `Pool`)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ensemblepp.bandit import Choice, Decisions, Outcome

#: Rounds that are drawn ahead when a pool is played round by round; changes memory and speed, never the values.
CHUNK = 64


class Rounds(NamedTuple):
    """Some rounds of a pool, drawn ahead."""

    offers: np.ndarray  #: (seeds, rounds, actions) int, which items are offered
    noise: np.ndarray  #: (seeds, rounds) noise of the reward: added to the mean, or compared with it (`Pool.bernoulli`)


class Pool:
    """A bandit whose actions are items of a list, with features and mean rewards of their own.

    Engines for neural agents play many rounds at once; other agents play them round by round, like any environment, and meet
    the same.

    Args:
        seeds: the seeds.
        table: (seeds or 1, items, d) float32 features; one list for all seeds, or one for each.
        means: (seeds or 1, items) noise-free rewards.
        bernoulli: whether rewards are 1 with probability mean, else 0; otherwise they are mean plus noise.
        fixed_actions: number of actions whose meaning is the same in every round, else 0.

    Subclasses define `draw`.
    """

    family = "pool"

    def __init__(
        self, seeds: Sequence[int], table: np.ndarray, means: np.ndarray, *, bernoulli: bool = False, fixed_actions: int = 0
    ) -> None:
        self.seeds = tuple(seeds)
        self.table = table
        self.means = means
        self.bernoulli = bernoulli
        self.fixed_actions = fixed_actions
        self.dimension = table.shape[-1]
        self._ahead = Rounds(np.empty((len(self.seeds), 0, 1), dtype=np.intp), np.empty((len(self.seeds), 0)))
        self._position = 0

    def draw(self, rounds: int) -> Rounds:
        """The next rounds, at least one and at most `rounds` of them."""
        raise NotImplementedError

    def decisions(self) -> Decisions:
        seeds = np.arange(len(self.table))[:, None] if len(self.table) > 1 else 0
        return Decisions(self.table[seeds, self._offers()])

    def mean_rewards(self) -> np.ndarray:
        return np.take_along_axis(self.means, self._offers(), axis=1)

    def step(self, choice: Choice) -> Outcome:
        means = self.mean_rewards()
        mean = np.take_along_axis(means, choice.index, axis=1)
        noise = self._ahead.noise[:, [self._position]]
        self._position += 1
        reward = (noise < mean).astype(float) if self.bernoulli else mean + noise
        return Outcome(reward, means.max(axis=1, keepdims=True) - mean)

    def _offers(self) -> np.ndarray:
        """Items of the present round, (seeds, actions)."""
        if self._position == self._ahead.noise.shape[1]:
            self._ahead, self._position = self.draw(CHUNK), 0
        return self._ahead.offers[:, self._position]
