"""Synthetic bandits with a list of candidate actions, of which every round offers some (paper, Appendix "Additional
Experiments on Nonlinear Bandit"): Quadratic, Vector Quadratic and Neural. Every seed has a reward function, candidates,
offers and noise of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ensemblepp.compilation.compiled import compiled
from ensemblepp.environments.pool import Pool, Rounds
from ensemblepp.randomness.streams import GaussianRows, generator

Features = Literal["sphere", "gaussian"]


class Candidates(Pool):
    """Base of the three: candidate features, and offers without replacement.

    Args:
        seeds: the seeds.
        dimension: d.
        candidates: items of the list.
        offered: how many of them a round offers, uniformly without replacement.
        features: law of a candidate's features: uniform on the unit sphere ("sphere"), or N(0, I) ("gaussian").
        noise: standard deviation of the Gaussian reward noise; not used by Bernoulli rewards.

    Subclasses define `reward_function`.
    """

    bernoulli_rewards = False

    def __init__(
        self, seeds: Sequence[int], *, dimension: int, candidates: int, offered: int, features: Features, noise: float = 0.0
    ) -> None:
        seeds = tuple(seeds)
        table = np.empty((len(seeds), candidates, dimension), dtype=np.float32)
        means = np.empty((len(seeds), candidates))
        for row, seed in enumerate(seeds):
            source = generator(seed, "environment")
            # the function comes first, and the candidates in order: a longer list only adds candidates
            function = self.reward_function(source, dimension)
            drawn = source.standard_normal((candidates, dimension))
            if features == "sphere":
                drawn /= np.linalg.norm(drawn, axis=1, keepdims=True)
            table[row] = drawn
            means[row] = function(drawn)
        super().__init__(seeds, table, means, bernoulli=self.bernoulli_rewards)
        self._offered = offered
        self._noise = noise
        self._offer_sources = [generator(seed, "environment/offers") for seed in seeds]
        self._order = np.tile(np.arange(candidates, dtype=np.int32), (len(seeds), 1))
        if self.bernoulli:
            self._noise_sources = [generator(seed, "reward_noise") for seed in seeds]
        else:
            self._noise_sources = [GaussianRows(seed, "reward_noise", 1) for seed in seeds]

    def reward_function(self, source: np.random.Generator, dimension: int):
        """Draw a reward function from `source`: features (candidates, d) to means (candidates,)."""
        raise NotImplementedError

    def draw(self, rounds: int) -> Rounds:
        offers = np.empty((len(self.seeds), rounds, self._offered), dtype=np.int32)
        noise = np.empty((len(self.seeds), rounds))
        for row, (offer_source, noise_source) in enumerate(zip(self._offer_sources, self._noise_sources, strict=True)):
            _shuffle(self._order[row], offer_source.random((rounds, self._offered)), offers[row])
            if self.bernoulli:
                noise[row] = noise_source.random(rounds)
            else:
                noise[row] = self._noise * noise_source.take(rounds)[:, 0]
        return Rounds(offers, noise)


class Quadratic(Candidates):
    """f(x) = scale * x^T Theta Theta^T x with Theta in R^{d x d} of N(0, 1) entries."""

    def __init__(self, seeds: Sequence[int], *, scale: float, **options) -> None:
        self._scale = scale
        super().__init__(seeds, **options)

    def reward_function(self, source: np.random.Generator, dimension: int):
        matrix = source.standard_normal((dimension, dimension))
        return lambda features: self._scale * np.square(features @ matrix).sum(axis=1)


class VectorQuadratic(Candidates):
    """f(x) = scale * (x^T theta)^2 with theta uniform in the unit ball ("ball"), or on the unit sphere ("sphere")."""

    def __init__(self, seeds: Sequence[int], *, scale: float, parameter: Literal["ball", "sphere"], **options) -> None:
        self._scale, self._parameter = scale, parameter
        super().__init__(seeds, **options)

    def reward_function(self, source: np.random.Generator, dimension: int):
        theta = source.standard_normal(dimension)
        theta /= np.linalg.norm(theta)
        radius = source.random() ** (1 / dimension)
        if self._parameter == "ball":
            theta *= radius
        return lambda features: self._scale * np.square(features @ theta)


class Neural(Candidates):
    """Bernoulli rewards whose probability is the second softmax output, at a temperature, of a random ReLU network.

    Args:
        seeds: the seeds.
        hidden: widths of the network's layers.
        temperature: divides the two logits.
        weights: "xavier" draws weights N(0, 2 / (fan_in + fan_out)) and biases U(-1, 1) / sqrt(fan_in), as the released
            lineage does; "testbed" draws normals cut at two standard deviations over sqrt(fan_in), the first bias
            N(0, 1/d) and no others, as the Neural Testbed does.
        options: the keyword arguments of `Candidates`.
    """

    bernoulli_rewards = True

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        hidden: Sequence[int],
        temperature: float,
        weights: Literal["xavier", "testbed"],
        **options,
    ) -> None:
        self._hidden, self._temperature, self._weights = hidden, temperature, weights
        super().__init__(seeds, **options)

    def reward_function(self, source: np.random.Generator, dimension: int):
        layers = []
        for place, (fan_in, width) in enumerate(zip([dimension, *self._hidden], [*self._hidden, 2], strict=True)):
            if self._weights == "xavier":
                weight = np.sqrt(2 / (fan_in + width)) * source.standard_normal((fan_in, width))
                bias = source.uniform(-1, 1, width) / np.sqrt(fan_in)
            else:
                weight = _truncated_normal(source, (fan_in, width)) / np.sqrt(fan_in)
                bias = source.standard_normal(width) / np.sqrt(dimension) if place == 0 else np.zeros(width)
            layers.append((weight, bias))

        def probability(features: np.ndarray) -> np.ndarray:
            for weight, bias in layers[:-1]:
                features = np.maximum(features @ weight + bias, 0)
            weight, bias = layers[-1]
            logits = (features @ weight + bias) / self._temperature
            # far below, exp is infinity and the probability 0, as it should be
            with np.errstate(over="ignore"):
                return 1 / (1 + np.exp(logits[:, 0] - logits[:, 1]))

        return probability


def _truncated_normal(source: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
    """Standard normals in [-2, 2], by drawing the others anew."""
    values = source.standard_normal(shape)
    while (outside := np.abs(values) > 2).any():
        values[outside] = source.standard_normal(int(outside.sum()))
    return values


@compiled(nogil=True)
def _shuffle(order: np.ndarray, uniform: np.ndarray, offers: np.ndarray) -> None:
    """Fill `offers` (rounds, k) with uniform k-subsets in random order, by k steps of Fisher and Yates on `order` a round."""
    candidates = len(order)
    rounds, offered = offers.shape
    for step in range(rounds):
        for place in range(offered):
            other = place + int(uniform[step, place] * (candidates - place))
            order[place], order[other] = order[other], order[place]
            offers[step, place] = order[place]
