"""LinUCB (Abbasi-Yadkori et al. 2011): the upper confidence bound of the ridge estimate."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensemblepp.agents.linear.posterior import LinearPosterior
from ensemblepp.bandit import Choice, Decisions


class LinearUCB:
    """argmax <x, mean> + alpha_t sqrt(x^T Sigma x), on finite decision sets.

    Args:
        seeds: the seeds.
        dimension: d.
        prior_variance: Sigma_0 = prior_variance I.
        width: alpha, or None for beta_t of the theory (`LinearPosterior.inflation`).
        delta: confidence level of beta_t.
    """

    chains = (("none", "none"),)

    def __init__(
        self, seeds: Sequence[int], *, dimension: int, prior_variance: float, width: float | None, delta: float, **_: object
    ) -> None:
        self.seeds = tuple(seeds)
        self.posterior = LinearPosterior(len(self.seeds), 1, dimension, prior_variance)
        self._width, self._delta = width, delta
        self._prior_variance = prior_variance
        self._features: np.ndarray | None = None
        self._variance: np.ndarray | None = None

    def act(self, decisions: Decisions) -> Choice:
        features = decisions.features
        if features is not self._features:
            # a new decision set: x^T Sigma x from scratch; in one that stays it follows each update in O(|X| d)
            self._features = features
            self._variance = np.einsum("snd,snd->sn", features @ self.posterior.covariance[:, 0], features)
        width = self.posterior.inflation(self._delta)[:, 0] if self._width is None else self._width
        score = np.matmul(features, self.posterior.mean[:, 0, :, None])[..., 0]
        score += width * np.sqrt(self._variance.clip(min=0.0))
        return decisions.choose(score.argmax(axis=1)[:, None])

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        direction = self.posterior.transform(choice.features)
        scale = 1.0 + np.einsum("scd,scd->s", choice.features, direction)
        self._variance -= np.matmul(self._features, direction[:, 0, :, None])[..., 0] ** 2 / scale[:, None]
        self.posterior.update(choice.features, reward)
