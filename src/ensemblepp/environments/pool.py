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
        table: (seeds or 1, rows, width) float32 features; one list for all seeds, or one for each.
        means: (seeds or 1, items) noise-free rewards.
        blocks: with 1 an item is a row of the table, d = width. With more, item i is row i // blocks in block i % blocks of
            R^{blocks width}, zeros elsewhere: a context under every fixed action, of which only the context is kept.
        bernoulli: whether rewards are 1 with probability mean, else 0; otherwise they are mean plus noise.
        fixed_actions: number of actions whose meaning is the same in every round, else 0.

    Subclasses define `draw`.
    """

    family = "pool"

    def __init__(
        self,
        seeds: Sequence[int],
        table: np.ndarray,
        means: np.ndarray,
        *,
        blocks: int = 1,
        bernoulli: bool = False,
        fixed_actions: int = 0,
    ) -> None:
        self.seeds = tuple(seeds)
        self.table = table
        self.means = means
        self.blocks = blocks
        self.bernoulli = bernoulli
        self.fixed_actions = fixed_actions
        self.dimension = blocks * table.shape[-1]
        self._rounds = Rounds(np.empty((len(self.seeds), 0, 1), dtype=np.intp), np.empty((len(self.seeds), 0)))
        self._position = 0

    def draw(self, rounds: int) -> Rounds:
        """The next rounds, at least one and at most `rounds` of them."""
        raise NotImplementedError

    def features(self, items: np.ndarray) -> np.ndarray:
        """(seeds, ..., d) float32 features of items, (seeds, ...)."""
        own = np.arange(len(self.table)).reshape(-1, *[1] * (items.ndim - 1)) if len(self.table) > 1 else 0
        if self.blocks == 1:
            return self.table[own, items]
        row, block = np.divmod(items, self.blocks)
        features = np.zeros((items.size, self.blocks, self.table.shape[-1]), dtype=self.table.dtype)
        features[np.arange(items.size), block.ravel()] = self.table[own, row].reshape(items.size, -1)
        return features.reshape(*items.shape, self.dimension)

    def fixed_choices(self, offers: np.ndarray) -> dict[str, np.ndarray]:
        """What policies that learn nothing choose, name -> (seeds, rounds, policies), of offers (seeds, rounds, actions).

        Only for pools with fixed actions, besides each of which there are none of themselves.
        """
        return {}

    def decisions(self) -> Decisions:
        return Decisions(self.features(self.offers()))

    def mean_rewards(self) -> np.ndarray:
        return np.take_along_axis(self.means, self.offers(), axis=1)

    def step(self, choice: Choice) -> Outcome:
        means = self.mean_rewards()
        mean = np.take_along_axis(means, choice.index, axis=1)
        noise = self._rounds.noise[:, [self._position]]
        self._position += 1
        reward = (noise < mean).astype(float) if self.bernoulli else mean + noise
        return Outcome(reward, means.max(axis=1, keepdims=True) - mean)

    def offers(self) -> np.ndarray:
        """Items of the present round, (seeds, actions)."""
        if self._position == self._rounds.noise.shape[1]:
            self._rounds, self._position = self.draw(CHUNK), 0
        return self._rounds.offers[:, self._position]
