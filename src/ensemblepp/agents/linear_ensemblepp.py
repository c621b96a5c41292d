"""Linear Ensemble++ sampling (paper, Section "Linear Ensemble++ Sampling"), for many pairs of laws at once.

Kept in information form: with B_t = Sigma_t^{-1} A_t the paper's update (eq. "incre-matrix-factor") becomes
B_t = B_{t-1} + x z^T, and theta_t = mu + Sigma_t (B_t zeta), which is O(d^2 + dM) per step.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from ensemblepp import distributions
from ensemblepp.agents.linear_posterior import LinearPosterior
from ensemblepp.environments.base import Choice, Decisions
from ensemblepp.streams import StepNoise, generator


class LinearEnsemblePlusPlus:
    """Linear Ensemble++ for every pair of the given reference and perturbation laws; a pair is a chain.

    Ensemble sampling (ES) as the paper's Figure 2 defines it is this agent with the coordinate reference.

    Args:
        seeds: the seeds.
        dimension: d.
        ensemble_size: M, columns of the factor A.
        references: laws of zeta.
        perturbations: laws of z.
        prior_variance: Sigma_0 = prior_variance I.
    """

    def __init__(
        self,
        seeds: Sequence[int],
        *,
        dimension: int,
        ensemble_size: int,
        references: Sequence[distributions.Law],
        perturbations: Sequence[distributions.Law],
        prior_variance: float,
        **_: object,
    ) -> None:
        self.seeds = tuple(seeds)
        self.references = tuple(references)
        self.perturbations = tuple(perturbations)
        self.chains = tuple(itertools.product(self.references, self.perturbations))
        self.posterior = LinearPosterior(len(self.seeds), len(self.chains), dimension, prior_variance)
        # A_0 has N(0, Sigma_0) columns over sqrt(M); column m is the same at every ensemble size but for that factor
        start = np.stack([generator(seed, "agent").standard_normal((ensemble_size, dimension)).T for seed in self.seeds])
        start /= np.sqrt(prior_variance * ensemble_size)  # B_0 = A_0 / prior_variance
        self.information = np.repeat(start[:, None], len(self.chains), axis=1)
        self._rank_one = np.empty_like(self.information)
        self._reference = StepNoise(self.seeds, "reference", ensemble_size)
        self._perturbation = StepNoise(self.seeds, "perturbation", ensemble_size)

    @property
    def factor(self) -> np.ndarray:
        """A = Sigma B, shape (seeds, chains, d, M)."""
        return np.matmul(self.posterior.covariance, self.information)

    def act(self, decisions: Decisions) -> Choice:
        gaussian = self._reference.next()
        zeta = np.stack([distributions.reference(law, gaussian) for law in self.references], axis=1)
        zeta = np.repeat(zeta, len(self.perturbations), axis=1)
        pulled = np.matmul(self.information, zeta[..., None])[..., 0]
        return decisions.maximise(self.posterior.mean + self.posterior.transform(pulled))

    def update(self, choice: Choice, reward: np.ndarray) -> None:
        gaussian = self._perturbation.next()
        z = np.stack([distributions.perturbation(law, gaussian) for law in self.perturbations], axis=1)
        z = np.tile(z, (1, len(self.references), 1))
        self.posterior.update(choice.features, reward)
        np.multiply(choice.features[..., :, None], z[..., None, :], out=self._rank_one)
        self.information += self._rank_one
