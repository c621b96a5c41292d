"""The Gaussian posterior of a linear bandit, batched over seeds and chains: what all linear agents share step by step."""

from __future__ import annotations

import numpy as np


class LinearPosterior:
    """N(mean, covariance) of theta* after ridge regression with prior N(0, prior_variance I) and unit noise variance.

    Paper, eq. (1) ("incre-posterior"), updated by Sherman-Morrison in O(d^2) per chain:
    `covariance` (seeds, chains, d, d) and `mean` (seeds, chains, d), float64.
    """

    def __init__(self, seeds: int, chains: int, dimension: int, prior_variance: float) -> None:
        self.covariance = np.empty((seeds, chains, dimension, dimension))
        self.covariance[...] = prior_variance * np.eye(dimension)
        self.mean = np.zeros((seeds, chains, dimension))
        self._prior_variance = prior_variance
        self._log_determinant = np.zeros((seeds, chains))
        self._rank_one = np.empty_like(self.covariance)

    def update(self, features: np.ndarray, reward: np.ndarray) -> None:
        """Condition on one observation per chain: features (seeds, chains, d), reward (seeds, chains)."""
        direction = self.transform(features)
        variance = 1.0 + _dot(features, direction)
        gain = direction / variance[..., None]
        self.mean += gain * (reward - _dot(features, self.mean))[..., None]
        np.multiply(gain[..., :, None], direction[..., None, :], out=self._rank_one)
        self.covariance -= self._rank_one
        self._log_determinant += np.log(variance)

    def transform(self, vectors: np.ndarray) -> np.ndarray:
        """covariance @ vectors for every chain, shape (seeds, chains, d)."""
        return np.matmul(self.covariance, vectors[..., None])[..., 0]

    def inflation(self, delta: float | None) -> np.ndarray:
        """beta_t = sqrt(lambda) + sqrt(2 log(1/delta) + log det(Sigma^{-1} / lambda)), (seeds, chains, 1); 1 if delta is None.

        Paper, Appendix "Proof of Theorem ... for linear contextual bandits", with lambda = 1 / prior_variance.
        """
        if delta is None:
            return np.ones((*self._log_determinant.shape, 1))
        return (self._prior_variance**-0.5 + np.sqrt(2 * np.log(1 / delta) + self._log_determinant))[..., None]


def _dot(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return np.einsum("scd,scd->sc", left, right)
